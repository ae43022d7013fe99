"""The command `opc`: the table of its commands. Each command is a function that returns its exit code.

Exit codes: 0 all is well, 1 something was found wrong (a spec with mistakes, a failed build or test, a stale file), 2 wrong use.
Heavy modules are imported inside the functions that need them, so that `opc --help` and a build with nothing to do are quick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from opc.cli import backends, bench, build, cache, check, env, fmt, generate, init, lsp, new, package, run, show, site, test
from opc.cli.console import guarded

Commands = Mapping[str, Callable[..., int]]

# In the order of the help.
COMMANDS: Commands = {
    "generate": generate.generate,
    "build": build.build,
    "package": package.package,
    "test": test.prove,
    "report": test.report,
    "cover": test.cover,
    "check": check.check,
    "fmt": fmt.fmt,
    "lsp": lsp.lsp,
    "init": init.init,
    "new": new.new,
    "show": show.show,
    "backends": backends.backends,
    "run": run.run,
    "bench": bench.bench,
    "site": site.site,
    "schema": new.schema,
}
GROUPS: Mapping[str, tuple[str, Commands]] = {
    "env": (
        "Make environments for backends that can't live beside the others.",
        {"create": env.create, "list": env.list_all, "remove": env.remove},
    ),
    "cache": (
        "Look after what `opc.load` has built and kept.",
        {"list": cache.list_all, "verify": cache.verify, "prune": cache.prune},
    ),
}


def _exit(code: int, **_: object) -> None:
    """End with what a command has returned; the other arguments are the options of `opc` itself."""
    raise typer.Exit(code)


def _version(wanted: bool) -> None:
    if wanted:
        from opc import __version__

        typer.echo(f"opc {__version__}")
        raise typer.Exit


def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Describe an op once in YAML; get a proven kernel, gradient and binding for every framework."""


def _group(commands: Commands, **settings: Any) -> typer.Typer:
    # Plain help: rich takes longer to import than everything else `opc --help` does.
    group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, **settings)
    for name, command in commands.items():
        group.command(name)(command)
    return group


def _app(commands: Commands) -> typer.Typer:
    """Return `opc` with these commands."""
    made = _group(
        commands,
        name="opc",
        callback=_options,
        result_callback=_exit,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    for name, (about, of_group) in GROUPS.items() if commands is COMMANDS else ():
        made.add_typer(_group(of_group, help=about), name=name)
    return made


app = _app(COMMANDS)


def main() -> None:
    """Run the command line; a user's mistake ends in diagnostics, never in a traceback."""
    # Of a command that runs, the options of others need not be known: finding them takes a twentieth of the time of `generate`.
    first = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = _app({first: COMMANDS[first]}) if first in COMMANDS else app
    sys.exit(guarded(lambda: chosen(prog_name="opc")))
