"""The kernels of families as one library, for the instruction set of this machine alone, and quick to compile."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import opc
from opc.backends.kernel.backend import COMMON_FLAGS, VARIANTS
from opc.emit.dtypes import c_compute, c_storage
from opc.emit.kernel.files import kernel_files
from opc.ir.dtypes import DTYPES
from opc.ir.op import Family
from tests.emit.kernel_library import KernelLibrary

INCLUDE = Path(opc.__file__).parent.parent / "runtime" / "include"
LINK = ("-lmvec", "-lm")
VARIANT = "v3"
NAMED_TYPES = re.compile(r"^#define (OPC_STORED_MINIFLOATS|OPC_COMPUTED_TYPES|OPC_FACTOR_INTEGERS) .*\n", re.MULTILINE)
"""The types that a kernel names for itself; files that are included one after the other have all of them in common."""
EVERY_TYPE = [
    f"-DOPC_STORED_MINIFLOATS={','.join(c_storage(d) for d in DTYPES if d.row.minifloat is not None)}",
    f"-DOPC_COMPUTED_TYPES={','.join(c_compute(d) for d in DTYPES if d.compute is d)}",
    "-DOPC_FACTOR_INTEGERS=int8_t,uint8_t",
]
POISON = ("-include", str(Path(__file__).parent / "poison.h"), "-ftrivial-auto-var-init=pattern")
"""Memory of temporaries and buffers holds no numbers before it is written; the outputs' holds some that no op computes."""


def compile_kernels(family: Family, folder: Path, optimise: str) -> Path:
    """Compile the kernels of a family into a shared library and return it.

    Raises:
        CalledProcessError: when the compiler refuses them; its message is there.
    """
    return compile_together([family], folder, optimise)


def compile_together(
    families: Sequence[Family], folder: Path, optimise: str = "-O1", change: Callable[[str], str] = lambda text: text
) -> Path:
    """Compile the kernels of families with different names, after a `change` of each text, into one library and return it.

    Raises:
        CalledProcessError: when the compiler refuses them; its message is there.
    """
    types: list[str] = []
    for family in families:
        for path, text in kernel_files(family).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(change(NAMED_TYPES.sub("", text)))
            types = types or (EVERY_TYPE if NAMED_TYPES.search(text) else [])
    (folder / "loops.cpp").write_text("".join(f'#include "kernel/{f.name}_loops.cpp"\n' for f in families))
    (folder / "entries.cpp").write_text("".join(f'#include "kernel/{f.name}.cpp"\n' for f in families))
    flags = [*COMMON_FLAGS, "-fopenmp-simd", "-w", *types, *POISON, f"-I{INCLUDE}", f"-I{folder}", f"-I{folder / 'kernel'}"]
    for source, own in (
        ("loops", (optimise, f"-DOPC_VARIANT={VARIANT}", *VARIANTS[VARIANT])),
        # Rows of float32 take the way of large tensors, past the caches; those of float64 do not.
        ("entries", ("-O0", f"-DOPC_FORCE_VARIANT={VARIANT}", "-DOPC_CACHE_BYTES=1")),
    ):
        _run("g++", *flags, *own, "-c", folder / f"{source}.cpp", "-o", folder / f"{source}.o")
    library = folder / "libfuzz.so"
    _run("g++", "-shared", "-o", library, folder / "loops.o", folder / "entries.o", *LINK)
    return library


class Libraries:
    """Kernels of many ops, by name, of which several are compiled as one library when one of them is asked for.

    That takes half the time of a library for each. Where the compiler refuses one of them, each is compiled alone.
    """

    TOGETHER = 24

    def __init__(self, names: Iterable[str], family: Callable[[str], Family], folder: Path) -> None:
        self._names, self._family, self._folder = list(names), family, folder
        self._made: dict[int, Path | None] = {}

    def of(self, name: str) -> Path:
        """Return a library that has the kernels of an op.

        Raises:
            CalledProcessError: when the compiler refuses them; its message is there.
        """
        number = self._names.index(name) // self.TOGETHER
        if number not in self._made:
            together = self._names[number * self.TOGETHER : (number + 1) * self.TOGETHER]
            try:
                self._made[number] = compile_together([self._family(n) for n in together], self._folder / str(number), "-O0")
            except subprocess.CalledProcessError:
                self._made[number] = None
        return self._made[number] or compile_kernels(self._family(name), self._folder / name, "-O0")


def _run(*command: str | Path) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


__all__ = ["KernelLibrary", "Libraries", "compile_kernels", "compile_together"]
