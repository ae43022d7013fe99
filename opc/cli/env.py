"""`opc env`: environments for backends whose frameworks can't live beside the others."""

from __future__ import annotations

from typing import Annotated

import typer

from opc.cli import completion
from opc.cli.console import FAILED, OK, note, progress_line, say, say_json, show_diagnostics, shown
from opc.cli.options import Json


def create(
    backends: Annotated[
        list[str],
        typer.Argument(metavar="BACKEND...", help="Their backends.", show_default=False, autocompletion=completion.backends),
    ],
) -> int:
    """Make the environment of a backend, with the versions that opc is proved on."""
    from concurrent.futures import ThreadPoolExecutor

    from opc import config
    from opc.build import environments
    from opc.diagnostics import SpecError

    failed = False
    named = config.load().python
    with progress_line() as progress, ThreadPoolExecutor() as pool:
        # Each waits for pip most of the time; two backends of one environment wait for its lock.
        running = [pool.submit(environments.create, name, progress, note) for name in dict.fromkeys(backends)]
    for task in running:
        try:
            made = task.result()
        except SpecError as error:
            show_diagnostics(error.diagnostics)
            failed = True
            continue
        record = made.record
        what = "nothing changed" if made.fresh else f"made in {made.seconds:.0f} s"
        say(f"{record.name}: {what}; {', '.join(record.backends)} run with {shown(record.python)}")
        for name in sorted(set(record.backends) & set(named)):
            note(f"[tool.opc.python] of {shown(str(config.load().path))} names {named[name]} for {name}, which goes first")
    return FAILED if failed else OK


def list_all(as_json: Json = False) -> int:
    """List the environments of this project."""
    from opc.backends import environments
    from opc.build.environments import names

    found = {record.name: record for record in environments.records()}
    if as_json:
        data = [
            {"name": r.name, "python": str(r.python), "backends": list(r.backends), "requirements": list(r.requirements)}
            for r in found.values()
        ]
        say_json(data)
        return OK
    for name in names():
        if name in found:
            say(f"{name}: {', '.join(found[name].backends)} run with {shown(found[name].python)}")
        else:
            say(f"{name}: not finished; opc env create {name} begins anew, opc env remove {name} removes it")
    if not names():
        say(f"there are no environments in {shown(environments.root())}")
    return OK


def remove(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME...", help="The environments.", show_default=False, autocompletion=completion.environments),
    ],
) -> int:
    """Remove environments."""
    from opc.build import environments

    for name in names:
        environments.remove(name, note)
        say(f"{name}: removed")
    return OK
