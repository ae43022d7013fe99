"""An op whose kernels on a GPU find mistakes in data and need memory between them, compiled for the emulation: what frameworks'
libraries for GPUs are linked with."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from opc.backends.base import Compile
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import CudaBackend
from opc.backends.cuda.frameworks import emulation
from opc.backends.kernel.backend import OPTIMIZE, VARIANT, KernelBackend
from opc.build.toolchain import runtime_include
from opc.ir.op import Family
from opc.pipeline import compile_text

SHELF = """
op: shelf
domain: opc.test
version: 1
doc: Rows by number, scaled, and their sum.
types: {T: [float32]}
inputs: {t: 'T[V, D]', ids: 'int64[N]', w: 'T[D]'}
attributes:
  scale: {type: float, default: 0.5, check: scale >= 0}
outputs: {y: 'T[N, D]', total: 'T[D]'}
kernel: |
  v[n, d] = t[ids[n], d] * scale
  y[n, d] = v[n, d] * w[d]
  total[d] = sum[n](v[n, d])
gradient: {scatter: atomic}
"""


def shelf() -> Family:
    """Return the family of the op."""
    return compile_text(SHELF, "shelf.yaml")


def write(files: Mapping[str, str], folder: Path) -> None:
    """Write the files of a package."""
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def run(command: list[str], folder: Path) -> None:
    """Run a compiler, whose messages are the failure's."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


MINDSPORE_FLAGS = ("-std=c++17", "-O0", "-D_GLIBCXX_USE_CXX11_ABI=0", "-I", str(runtime_include()))


def for_mindspore(package: Path, objects: list[Path], output: str, *flags: str) -> None:
    """Compile the program of mindspore/emulated_gpu.cpp over a package, and link it with kernels, into `output` below it."""
    program = Path(__file__).parent / "mindspore" / "emulated_gpu.cpp"
    twin = f'-DTWIN="{package / "mindspore" / "shelf_mindspore.cu"}"'
    made = (*MINDSPORE_FLAGS, "-fPIC", "-I", str(Path(emulation("mindspore.h")).parent), *flags)
    run(["g++", *made, "-Wall", "-Wextra", "-Werror", twin, "-c", str(program), "-o", "twin.o"], package)
    run(["gcc", "-fPIC", "-I", str(runtime_include()), "-c", "mindspore/threads.c", "-o", "threads.o"], package)
    shared = ("-shared",) if output.endswith(".so") else ()
    run(["g++", *shared, "twin.o", "threads.o", *map(str, objects), "-o", output, "-lmvec", "-lm", "-lpthread"], package)


def kernels(family: Family, folder: Path) -> list[Path]:
    """Write and compile the kernels of a family, those of the CPU and the emulated ones of a GPU; return the objects."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ((toolkit.VARIABLE, toolkit.EMULATED), (VARIANT, "baseline"), (OPTIMIZE, "0")):
            patch.setenv(name, value)
        backends = (KernelBackend(), CudaBackend())
        steps = [s for b in backends for s in b.build(family) if isinstance(s, Compile) and "arrays" not in s.source]
        for b in backends:
            write(b.emit(family), folder)
    for step in steps:
        (folder / step.object).parent.mkdir(parents=True, exist_ok=True)
        run(["g++", *step.flags, "-O0", f"-I{runtime_include()}", "-c", step.source, "-o", step.object], folder)
    return [folder / step.object for step in steps]
