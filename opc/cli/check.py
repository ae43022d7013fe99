"""`opc check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli.console import FAILED, OK, find_specs, say, say_json, show_diagnostics, shown
from opc.cli.options import Json, Specs

if TYPE_CHECKING:
    from opc.editor.checks import Checked


class Format(StrEnum):
    """How mistakes are printed."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"


def check(
    specs: Specs = None,
    as_json: Json = False,
    form: Annotated[
        Format, typer.Option("--format", help="Print text for people, JSON for scripts, or SARIF 2.1.0 for code hosts.")
    ] = Format.TEXT,
) -> int:
    """Look for mistakes in specs; write nothing."""
    from opc.diagnostics import Told

    files = find_specs(specs)
    every = _checked(files)
    mistaken = sum(not checked.is_good for checked in every)
    told = Told()
    every = [replace(checked, diagnostics=told.new(checked.diagnostics)) for checked in every]
    if form is Format.SARIF:
        from opc.editor.sarif import sarif

        say_json(sarif(every))
    elif as_json or form is Format.JSON:
        say_json([d.as_dict() for checked in every for d in checked.diagnostics])
    else:
        show_diagnostics(d for checked in every for d in checked.diagnostics)
        count = f"{len(files)} spec{'s' if len(files) != 1 else ''}"
        say(f"{count}: no mistakes" if not mistaken else f"{count}: {mistaken} with mistakes")
    return FAILED if mistaken else OK


def _checked(files: Sequence[Path]) -> list[Checked]:
    from opc.diagnostics import Diagnostics
    from opc.editor import checks
    from opc.spec.loader import Spec, load

    first: dict[str, Path] = {}

    def read(path: Path, found: Diagnostics) -> Spec:
        spec = load(path, whole=False)
        name = spec.model.op
        # A name with a mistake of its own was replaced.
        own = ("op",) in spec.values and spec.text("op").value == name
        if own and first.setdefault(name, path) != path:
            other = f"{shown(first[name])} describes an op '{name}' too"
            found.error(other, spec.text("op").span(0, len(name)), "rename one of the ops: they would share a package")
        return spec

    every = []
    for path in files:
        found = Diagnostics()
        every.append(checks.check(partial(read, path, found), found))
    return every
