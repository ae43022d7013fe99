"""The one library of all ops that some frameworks are handed."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from opc.backends.base import Backend
from opc.build.toolchain import Toolchain, runtime_include
from opc.build.wheels.module import Carried
from opc.diagnostics import Diagnostic, SpecError


def texts(module: str, ops: Sequence[Carried], backends: Sequence[Backend]) -> dict[str, tuple[str, str]]:
    """Return, by the backend's name, the name and the C of each library that stands for those of several ops."""
    found = {}
    for b in backends:
        paths = [f"{c.family.name}/{part.handed}" for c in ops if (part := c.parts.get(b.name)) is not None and part.handed]
        source = b.joint_library(paths) if len(paths) > 1 else ""
        if source:
            found[b.name] = f"lib{module}_{b.name}.so", source
    return found


def built(sources: Mapping[str, tuple[str, str]], compiler: Toolchain, folder: Path) -> dict[str, Path]:
    """Compile such libraries into `folder`; return the path of each by its name.

    Raises:
        SpecError: with what the compiler says of one.
    """
    made = {}
    for name, source in sources.values():
        with tempfile.TemporaryDirectory(prefix="opc-joint-") as scratch:
            Path(scratch, "joint.c").write_text(source, encoding="utf-8")
            made[name] = folder / name
            flags = (*compiler.c_flags, "-I", str(runtime_include()), *compiler.link_flags)
            call = [*compiler.command, *flags, "joint.c", "-o", str(made[name].absolute())]
            done = subprocess.run(call, cwd=scratch, capture_output=True, text=True, errors="replace", check=False)
            if done.returncode != 0:
                raise SpecError([Diagnostic(f"{name} can't be built: {done.stderr.strip() or done.returncode}")])
    return made
