"""The command `opc`. Each command is a few lines here; what it says is written in `opc.cli_*`, what it does below.

Exit codes: 0 all is well, 1 something was found wrong (a spec with mistakes, a failed build or test, a stale file), 2 wrong use.
Everything heavy is imported by the command that needs it, so that `opc --help` and a build with nothing to do are quick.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from opc.cli_console import guarded

app = typer.Typer(
    name="opc",
    help="Describe an op once in YAML; get a proven kernel, gradient and binding for every framework.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    # Plain help: rich takes longer to import than everything else `opc --help` does.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Specs = Annotated[
    list[Path] | None,
    typer.Argument(metavar="SPEC", help="Spec files, or folders of them; by default the folder specs.", show_default=False),
]
Spec = Annotated[Path, typer.Argument(metavar="SPEC", help="The spec file.", show_default=False)]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder the packages are written to, one an op.")]
Backends = Annotated[
    list[str] | None,
    typer.Option("--backend", "-b", metavar="NAME", help="Only this backend; may be repeated. See `opc backends`."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
GENERATED = Path("generated")


def _version(wanted: bool) -> None:
    if wanted:
        from opc import __version__

        typer.echo(f"opc {__version__}")
        raise typer.Exit


@app.callback()
def _app(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


@app.command()
def generate(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a file is not what it should be.")] = False,
) -> None:
    """Write the package of each spec: kernel, bindings, tests."""
    from opc import cli_build

    raise typer.Exit(cli_build.check_generated(specs, out, backend) if check else cli_build.generate(specs, out, backend))


@app.command()
def build(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compilers run at once; one a processor.")] = None,
    json: Json = False,
) -> None:
    """Generate and compile what has changed."""
    from opc import cli_build

    raise typer.Exit(cli_build.build(specs, out, backend, jobs, json))


@app.command("test")
def prove(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes run at once; one a processor.")] = None,
    report: Annotated[Path | None, typer.Option("--report", metavar="FILE.html", help="Write a report for people.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE.xml", help="Write a JUnit report.")] = None,
    markdown: Annotated[Path | None, typer.Option("--markdown", metavar="FILE.md", help="Write a page for a repository.")] = None,
    sanitize: Annotated[
        str | None,
        typer.Option(
            "--sanitize", metavar="KIND", help="Run the kernels under sanitizers: address,undefined,thread or some of them."
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail also when a backend could not be run.")] = False,
    cover: Annotated[
        bool, typer.Option("--cover", help="Run what changed whole, other ops in part: slow backends on the covering set alone.")
    ] = False,
    part: Annotated[
        str | None, typer.Option("--part", metavar="K/N", help="Only the K-th of N parts of the specs, as 2/5.")
    ] = None,
    results: Annotated[Path | None, typer.Option("--results", metavar="FILE.json", help="Write what `opc report` joins.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Run also what passed before on the same bytes.")] = False,
    json: Json = False,
) -> None:
    """Build, prove each op on each backend, print the table."""
    from opc import cli_test

    raise typer.Exit(
        cli_test.test(specs, out, backend, jobs, report, junit, markdown, json, sanitize, strict, cover, part, results, again)
    )


@app.command("report")
def join_results(
    results: Annotated[
        list[Path], typer.Argument(metavar="FILE.json...", help="Results of parts of a proof.", show_default=False)
    ],
    markdown: Annotated[Path | None, typer.Option("--markdown", metavar="FILE.md", help="Write a page for a repository.")] = None,
    command: Annotated[str, typer.Option("--made-by", metavar="TEXT", help="What the page says it was made by.")] = "opc test",
) -> None:
    """Join the results of `opc test --results`, print the table."""
    from opc import cli_test

    raise typer.Exit(cli_test.join(results, markdown, command))


@app.command("cover")
def print_cover(
    specs: Specs = None,
    out: Out = GENERATED,
    every: Annotated[bool, typer.Option("--all", help="All features of each op.")] = False,
) -> None:
    """Print the covering set: few ops that have everything the ops have."""
    from opc import cli_test

    raise typer.Exit(cli_test.cover(specs, out, every))


@app.command()
def check(specs: Specs = None, json: Json = False) -> None:
    """Look for mistakes in specs; write nothing."""
    from opc import cli_spec

    raise typer.Exit(cli_spec.check(specs, json))


@app.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the op, in snake_case.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the specs.")] = Path("specs"),
) -> None:
    """Write a first spec to start from."""
    from opc import cli_spec

    raise typer.Exit(cli_spec.new(name, out))


@app.command()
def show(
    spec: Spec,
    ir: Annotated[bool, typer.Option("--ir", help="The typed op. This is what is shown by default.")] = False,
    gradient: Annotated[bool, typer.Option("--gradient", help="The derived ops, what they save and cost.")] = False,
    loops: Annotated[bool, typer.Option("--loops", help="The loops the kernel runs.")] = False,
    sharding: Annotated[bool, typer.Option("--sharding", help="How the op may be spread over devices.")] = False,
    c: Annotated[bool, typer.Option("--c", help="The kernel's C++.")] = False,
    size: Annotated[
        list[str] | None, typer.Option("--size", help="A size in the costs of --gradient, as N=8; may be repeated.")
    ] = None,
) -> None:
    """Show what opc makes of a spec."""
    from opc import cli_show

    raise typer.Exit(cli_show.show(spec, ir, gradient, loops, c, sharding, size or ()))


@app.command()
def backends(
    specs: Annotated[
        list[Path] | None, typer.Argument(metavar="SPEC", help="Tell which of these ops each can't carry.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """List the backends, and how to get those that are missing."""
    from opc import cli_backends

    raise typer.Exit(cli_backends.backends(specs or [], json))


env = typer.Typer(help="Make environments for backends that can't live beside the others.", no_args_is_help=True)
app.add_typer(env, name="env")


@env.command("create")
def env_create(
    backends: Annotated[list[str], typer.Argument(metavar="BACKEND...", help="Their backends.", show_default=False)],
) -> None:
    """Make the environment of a backend, with the versions that opc is proved on."""
    from opc import cli_env

    raise typer.Exit(cli_env.create(backends))


@env.command("list")
def env_list(json: Json = False) -> None:
    """List the environments of this project."""
    from opc import cli_env

    raise typer.Exit(cli_env.list_all(json))


@env.command("remove")
def env_remove(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The environments.", show_default=False)],
) -> None:
    """Remove environments."""
    from opc import cli_env

    raise typer.Exit(cli_env.remove(names))


cached = typer.Typer(help="Look after what `opc.load` has built and kept.", no_args_is_help=True)
app.add_typer(cached, name="cache")


@cached.command("list")
def cache_list(json: Json = False) -> None:
    """List what is kept, the last used first, and its size."""
    from opc import cli_cache

    raise typer.Exit(cli_cache.list_all(json))


@cached.command("verify")
def cache_verify() -> None:
    """Compare every built file with what the compiler made; what differs is removed, and built again when it is needed."""
    from opc import cli_cache

    raise typer.Exit(cli_cache.verify())


@cached.command("prune")
def cache_prune(
    max_size: Annotated[str | None, typer.Option("--max-size", metavar="SIZE", help="Keep so much, such as 500M or 2G.")] = None,
    days: Annotated[float | None, typer.Option("--days", min=0, help="Remove what was not used for so many days.")] = None,
) -> None:
    """Remove what is kept: all of it, or by size and age."""
    from opc import cli_cache

    raise typer.Exit(cli_cache.prune(max_size, days))


@app.command()
def run(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="The model: x.onnx, or x.json as Paddle saves it.", show_default=False)
    ],
    spec: Annotated[
        list[Path] | None, typer.Option("--spec", "-s", metavar="SPEC", help="Spec of a custom op in it; may be repeated.")
    ] = None,
    inputs: Annotated[
        list[str] | None, typer.Option("--input", "-i", metavar="NAME=FILE.npy", help="An input; may be repeated.")
    ] = None,
    output: Annotated[Path, typer.Option("--output", metavar="DIR", help="Folder the outputs are written to.")] = Path(),
    out: Out = GENERATED,
) -> None:
    """Run a model with custom ops on ONNX Runtime or in Paddle Inference."""
    from opc import cli_run

    raise typer.Exit(cli_run.run(model, spec or [], inputs or [], output, out))


@app.command()
def bench(
    specs: Specs = None,
    section: Annotated[
        list[str] | None, typer.Option("--section", metavar="NAME", help="Only this section; may be repeated. All: see `--list`.")
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="The gradients of the ops; as --section backward.")] = False,
    size: Annotated[int, typer.Option("--size", min=1, help="Elements of the large tensors.")] = 1 << 24,
    rounds: Annotated[int, typer.Option("--rounds", min=3, help="Rounds the medians are taken over.")] = 15,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads of each contender; one a processor.")] = None,
    out: Out = GENERATED,
    json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    list_sections: Annotated[bool, typer.Option("--list", help="List the sections and exit.")] = False,
) -> None:
    """Measure ops beside their peers in the frameworks."""
    from opc import cli_bench

    raise typer.Exit(cli_bench.bench(specs, section, backward, size, rounds, threads, out, json, markdown, list_sections))


@app.command()
def schema(
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it to a file.")] = None,
) -> None:
    """Print the JSON Schema of a spec, for editors."""
    from opc import cli_spec

    raise typer.Exit(cli_spec.schema(output))


def main() -> None:
    """Run the command line; what a user did wrong is told as diagnostics, never as a traceback."""
    sys.exit(guarded(lambda: app(prog_name="opc")))


if __name__ == "__main__":
    main()
