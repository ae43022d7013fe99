"""`opc init`: a project of ops."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from opc.cli.console import OK, say, shown
from opc.cli.options import Backends


def init(
    name: Annotated[
        Path, typer.Argument(metavar="NAME", help="Name of the distribution, my-ops; or its folder.", show_default=False)
    ],
    backend: Backends = None,
    generated: Annotated[bool, typer.Option("--generated", help="Keep generated packages in the repository too.")] = False,
) -> int:
    """Start a project: specs, tests, a workflow that builds wheels."""
    from opc.build.wheels import start

    wanted = ("torch", "onnxruntime") if backend is None else tuple(backend)
    made = start.project_files(name.absolute().name, wanted, generated=generated)
    start.write(name, made)
    for path in made:
        say(f"wrote {shown(name / path)}")
    say(f"next: cd {shown(name)} && opc test{' && opc generate' if generated else ''}")
    return OK
