"""Kernels compiled for systems and machines that are not here: `python -m tests.systems [SPEC...]`, by default of all specs.

The clang++ of Python's package ziglang has the headers of each. Nothing is linked or run. A warning is a mistake.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from opc.backends.base import Compile
from opc.backends.kernel.backend import KernelBackend
from opc.backends.numpy.backend import NumpyBackend
from opc.build.toolchain import runtime_include
from opc.ir.op import Family
from opc.pipeline import load_family

SYSTEMS = ("aarch64-linux-gnu", "aarch64-macos", "x86_64-macos", "x86_64-windows-gnu", "aarch64-windows-gnu")

# zig gives its clang++ arguments for linking, of which this warns where nothing is linked. A sum of conditions is meant.
WARNINGS = ("-Wall", "-Werror", "-Wno-unused-command-line-argument", "-Wno-bitwise-instead-of-logical", "-Wno-unused-function")

# The functions that the NumPy binding calls of the runtime.
BINDING = """#define _GNU_SOURCE
#include "numpy/binding.h"
"""

SPECS = Path(__file__).parents[1] / "specs"


def compiled(family: Family, folder: Path, system: str, *more: str) -> None:
    """Compile the kernels of a family, of every instruction set that the machine has, and the C side of NumPy's functions.

    Raises:
        CalledProcessError: with what the compiler says.
    """
    for path, text in {**KernelBackend().emit(family), **NumpyBackend().emit(family)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / "binding.c").write_text(BINDING)
    common, x86 = KernelBackend().build_anywhere(family)
    steps = [s for s in (*common, *(x86 if system.startswith("x86_64") else ())) if isinstance(s, Compile)]
    calls = [("c++", [f.replace("x86-64-", "x86_64_") for f in s.flags if not f.startswith("-O")], s.source) for s in steps]
    calls.append(("cc", ["-std=c11"], "binding.c"))
    for language, flags, source in calls:
        command = [sys.executable, "-m", "ziglang", language, "-target", system, "-g0", "-fno-sanitize=all", *flags, *WARNINGS]
        include = [f"-I{runtime_include()}", f"-I{folder}"]
        run = [*command, *include, *more, "-O0", "-c", str(folder / source), "-o", str(folder / "made.o")]
        subprocess.run(run, check=True, capture_output=True, text=True)


def mistakes(specs: Sequence[Path], systems: Sequence[str] = SYSTEMS) -> Iterator[tuple[str, str, str]]:
    """Yield each spec and system whose kernels don't compile, and what the compiler says."""

    def tried(spec: Path) -> list[tuple[str, str, str]]:
        family, found = load_family(spec), []
        for system in systems:
            with tempfile.TemporaryDirectory() as folder:
                try:
                    compiled(family, Path(folder), system)
                except subprocess.CalledProcessError as error:
                    found.append((spec.stem, system, error.stderr))
        return found

    with ThreadPoolExecutor(2) as pool:
        for found in pool.map(tried, specs):
            yield from found


if __name__ == "__main__":
    chosen = [Path(a) for a in sys.argv[1:]] or sorted(SPECS.glob("*.yaml"))
    wrong = list(mistakes(chosen))
    for name, system, said in wrong:
        print(f"{name} for {system}:\n{said}")
    print(f"{len(chosen)} ops compiled for {', '.join(SYSTEMS)}, not run" if not wrong else f"{len(wrong)} did not compile")
    sys.exit(bool(wrong))
