"""`opc check`."""

from __future__ import annotations

from pathlib import Path

from opc.cli.console import FAILED, OK, find_specs, say, say_json, show_diagnostics, shown
from opc.cli.options import Json, Specs


def check(specs: Specs = None, as_json: Json = False) -> int:
    """Look for mistakes in specs; write nothing."""
    from opc.compiler import Stage, compile_spec
    from opc.diagnostics import Diagnostic, Diagnostics, Severity, SpecError
    from opc.spec.loader import load
    from opc.testing.references.names import check_operators

    files = find_specs(specs)
    every: list[Diagnostic] = []
    first: dict[str, Path] = {}
    mistaken = 0
    for path in files:
        found = Diagnostics()
        try:
            spec = load(path, whole=False)
            name = spec.model.op
            # A name with a mistake of its own was replaced.
            own = ("op",) in spec.values and spec.text("op").value == name
            if own and first.setdefault(name, path) != path:
                other = f"{shown(first[name])} describes an op '{name}' too"
                found.error(other, spec.text("op").span(0, len(name)), "rename one of the ops: they would share a package")
            check_operators(spec, found)
            compile_spec(spec, to=Stage.FAMILY, found=found)
            if any(d.severity is Severity.ERROR for d in found.items):
                mistaken += 1
        except SpecError as error:
            mistaken += 1
            # The mistakes come with the warnings that were found before them.
            found.items = list(dict.fromkeys((*found.items, *error.diagnostics)))
        every += found.items
    if as_json:
        say_json([d.as_dict() for d in every])
    else:
        show_diagnostics(every)
        count = f"{len(files)} spec{'s' if len(files) != 1 else ''}"
        say(f"{count}: no mistakes" if not mistaken else f"{count}: {mistaken} with mistakes")
    return FAILED if mistaken else OK
