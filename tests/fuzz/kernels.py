"""The kernels of one family as a library, for the instruction set of this machine alone, and quick to compile."""

from __future__ import annotations

import subprocess
from pathlib import Path

import opc
from opc.backends.kernel.backend import COMMON_FLAGS, VARIANTS
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family

INCLUDE = Path(opc.__file__).parent.parent / "runtime" / "include"
LINK = ("-lmvec", "-lm")
VARIANT = "v3"


def compile_kernels(family: Family, folder: Path, optimise: str) -> Path:
    """Compile the kernels of a family into a shared library and return it.

    Raises:
        CalledProcessError: when the compiler refuses them; its message is there.
    """
    for path, text in kernel_files(family).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    flags = [*COMMON_FLAGS, "-fopenmp-simd", "-w", f"-I{INCLUDE}", f"-I{folder}", f"-I{folder / 'kernel'}"]
    objects = []
    for source, own in (
        (f"{family.name}_loops", (optimise, f"-DOPC_VARIANT={VARIANT}", *VARIANTS[VARIANT])),
        # Rows of float32 take the way of large tensors, past the caches; those of float64 do not.
        (family.name, ("-O0", f"-DOPC_FORCE_VARIANT={VARIANT}", "-DOPC_CACHE_BYTES=1")),
    ):
        objects.append(folder / f"{source}.o")
        _run("g++", *flags, *own, "-c", folder / "kernel" / f"{source}.cpp", "-o", objects[-1])
    library = folder / f"lib{family.name}.so"
    _run("g++", "-shared", "-o", library, *objects, *LINK)
    return library


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
