"""`opc env`: environments for backends whose frameworks can't live beside the others."""

from __future__ import annotations

import json
from collections.abc import Sequence

from opc.cli_console import FAILED, OK, note, progress_line, say, show_diagnostics, shown


def create(backends: Sequence[str]) -> int:
    """Make the environments of backends, side by side; one that fails does not stop the others."""
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


def list_all(as_json: bool) -> int:
    """List the environments of this project."""
    from opc.backends import environments
    from opc.build.environments import names

    found = {record.name: record for record in environments.records()}
    if as_json:
        data = [
            {"name": r.name, "python": str(r.python), "backends": list(r.backends), "requirements": list(r.requirements)}
            for r in found.values()
        ]
        say(json.dumps(data, indent=2))
        return OK
    for name in names():
        if name in found:
            say(f"{name}: {', '.join(found[name].backends)} run with {shown(found[name].python)}")
        else:
            say(f"{name}: not finished; opc env create {name} begins anew, opc env remove {name} removes it")
    if not names():
        say(f"there are no environments in {shown(environments.root())}")
    return OK


def remove(names: Sequence[str]) -> int:
    """Remove environments."""
    from opc.build import environments

    for name in names:
        environments.remove(name, note)
        say(f"{name}: removed")
    return OK
