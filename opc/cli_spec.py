"""`opc check`, `opc new` and `opc schema`: the commands that work on specs alone."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from opc.cli_console import FAILED, OK, find_specs, say, show_diagnostics, shown


def check(given: Sequence[Path] | None, as_json: bool) -> int:
    """Look for mistakes in specs; every file is looked at, whatever the others hold."""
    from opc.diagnostics import Diagnostic, Diagnostics, Severity, SpecError
    from opc.pipeline import compile_spec
    from opc.spec.loader import load

    files = find_specs(given)
    every: list[Diagnostic] = []
    first: dict[str, Path] = {}
    mistaken = 0
    for path in files:
        found = Diagnostics()
        try:
            spec = load(path, whole=False)
            name = spec.model.op
            if ("op",) in spec.values and first.setdefault(name, path) != path:
                other = f"{shown(first[name])} describes an op '{name}' too"
                found.error(other, spec.text("op").span(0, len(name)), "rename one of the ops: they would share a package")
            compile_spec(spec, found)
            if any(d.severity is Severity.ERROR for d in found.items):
                mistaken += 1
        except SpecError as error:
            mistaken += 1
            # The mistakes come with the warnings that were found before them.
            found.items = list(dict.fromkeys((*found.items, *error.diagnostics)))
        every += found.items
    if as_json:
        say(json.dumps([d.as_dict() for d in every], indent=2))
    else:
        show_diagnostics(every)
        count = f"{len(files)} spec{'s' if len(files) != 1 else ''}"
        say(f"{count}: no mistakes" if not mistaken else f"{count}: {mistaken} with mistakes")
    return FAILED if mistaken else OK


def new(name: str, folder: Path) -> int:
    """Write a first spec, and the schema beside it for editors."""
    from opc.build import files
    from opc.diagnostics import Diagnostic, SpecError
    from opc.spec.schema import FILE_NAME, schema_text
    from opc.spec.template import new_spec

    text = new_spec(name)
    path = folder / f"{name}.yaml"
    if path.exists():
        raise SpecError([Diagnostic(f"{shown(path)} exists already", hint="give the op another name, or edit that file")])
    files.make_folder(folder)
    files.write(path, text, folder)
    if not (folder / FILE_NAME).exists():
        files.write(folder / FILE_NAME, schema_text(), folder)
    say(f"wrote {shown(path)}")
    say(f"next: opc test {shown(path)}")
    return OK


def schema(output: Path | None) -> int:
    """Print or write the JSON Schema of a spec."""
    from opc.spec.schema import schema_text

    if output is None:
        say(schema_text().rstrip("\n"))
    else:
        output.write_text(schema_text(), encoding="utf-8")
        say(f"wrote {shown(output)}")
    return OK
