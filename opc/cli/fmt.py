"""`opc fmt`."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Annotated

import typer

from opc.cli.console import FAILED, OK, find_specs, need, note, say, show_diagnostics, shown
from opc.cli.options import Specs


def fmt(
    specs: Specs = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when a spec would be written otherwise.")] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; print what would change, and fail as --check does.")
    ] = False,
) -> int:
    """Lay out specs: order of keys, indentation, blanks; comments and meaning stay."""
    files = find_specs(specs, files=True)
    need("opc fmt", "fmt", "ruamel.yaml")
    from opc.diagnostics import SpecError

    changed, refused = [], 0
    for path in files:
        try:
            changed += [path] if _lay_out(path, write=not check and not diff, show=diff) else []
        except SpecError as error:
            show_diagnostics(error.diagnostics)
            refused += 1
    dry = check or diff
    for path in changed:
        note(f"{'would write' if dry else 'wrote'} {shown(path)}")
    left = len(files) - len(changed) - refused
    counts = ((len(changed), "to write" if dry else "written"), (left, "as they should be"), (refused, "refused"))
    say(f"{len(files)} spec{'s' if len(files) != 1 else ''}: {', '.join(f'{n} {what}' for n, what in counts if n)}")
    return FAILED if refused or (dry and changed) else OK


def _lay_out(path: Path, write: bool, show: bool) -> bool:
    """Lay out a file; return whether that changed it, or would."""
    from opc.build import files
    from opc.editor.layout import laid_out
    from opc.spec.loader import read

    text = read(path)
    new = laid_out(text, str(path))
    if new.encode() == path.read_bytes():
        return False
    if show:
        name = shown(path)
        say("".join(difflib.unified_diff(text.splitlines(True), new.splitlines(True), name, name)).rstrip("\n"))
    if write:
        # A link stays one, and a file that others may not read too.
        place = path.resolve()
        mode = place.stat().st_mode
        files.write(place, new, place.parent)
        place.chmod(mode)
    return True
