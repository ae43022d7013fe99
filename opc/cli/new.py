"""`opc new` and `opc schema`: a first spec, and what editors know of specs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opc.cli.console import OK, say, shown


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the op, in snake_case.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder of the specs.")] = Path("specs"),
    einsum: Annotated[
        str | None, typer.Option(metavar="EQUATION", help="What the op computes, as in NumPy's einsum.", show_default=False)
    ] = None,
) -> int:
    """Write a first spec to start from, or that of an equation."""
    from opc.build import files
    from opc.diagnostics import Diagnostic, SpecError
    from opc.spec.einsum import einsum_spec
    from opc.spec.schema import FILE_NAME, schema_text
    from opc.spec.template import new_spec

    text = new_spec(name) if einsum is None else einsum_spec(name, einsum)
    path = out / f"{name}.yaml"
    if path.exists():
        raise SpecError([Diagnostic(f"{shown(path)} exists already", hint="give the op another name, or edit that file")])
    files.make_folder(out)
    files.write(path, text, out)
    if not (out / FILE_NAME).exists():
        files.write(out / FILE_NAME, schema_text(), out)
    say(f"wrote {shown(path)}")
    say(f"next: opc test {shown(path)}")
    return OK


def schema(
    output: Annotated[Path | None, typer.Option("--output", metavar="FILE", help="Write it to a file.")] = None,
) -> int:
    """Print the JSON Schema of a spec, for editors."""
    from opc.spec.schema import schema_text

    if output is None:
        say(schema_text().rstrip("\n"))
    else:
        output.write_text(schema_text(), encoding="utf-8")
        say(f"wrote {shown(output)}")
    return OK
