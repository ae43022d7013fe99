"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opc.cli import completion
from opc.cli.console import WrongUse


def _known(context: typer.Context, given: list[str] | None) -> list[str] | None:
    """Refuse names of backends that nobody registers; a shell that completes a line asks for nothing of the kind."""
    if given and not context.resilient_parsing:
        from opc.backends import registry

        unknown = registry.unknown(given)
        if unknown:
            raise WrongUse(*unknown)
    return given


Specs = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SPEC",
        help="Spec files, or folders of them; by default the folder specs.",
        show_default=False,
        autocompletion=completion.specs,
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder the packages are written to, one an op.")]
Backends = Annotated[
    list[str] | None,
    typer.Option(
        "--backend",
        "-b",
        metavar="NAME",
        help="Only this backend; may be repeated. See `opc backends`.",
        callback=_known,
        autocompletion=completion.backends,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Markdown = Annotated[Path | None, typer.Option("--markdown", metavar="FILE.md", help="Write a page for a repository.")]

GENERATED = Path("generated")
"""The folder that packages are written to where no other is given."""
