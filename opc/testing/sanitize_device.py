"""Kernels for a GPU under sanitizers: compiled with them by the C++ compiler, executed on the CPU, on calls of the proof.

The address sanitizer sees accesses outside operands, temporaries and shared memory, which lie in blocks of memory of their own;
the undefined-behaviour sanitizer what C++ leaves open. Threads of a block take turns, so that there is nothing for the thread
sanitizer: a missing barrier shows in the proof itself, where the order of threads is random.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from opc import config
from opc.backends.cuda.backend import EMULATED_FLAGS, CudaBackend
from opc.backends.kernel.backend import KernelBackend
from opc.build import toolchain
from opc.diagnostics import SpecError
from opc.ir.op import Family
from opc.pipeline import load_family
from opc.testing.call_file import KernelCall, call_file
from opc.testing.results import Column, Report, Result, Status
from opc.testing.sanitize import call, calls_of, driver, narrowed, run_program, sanitizer_flags

MOST = {"forward": 20, "derived": 8, "refused": 6}
"""How many calls of an op are run."""

LARGEST = 20_000
"""The most points of the largest loop of a call: threads that take turns are slow under a sanitizer."""


def sanitize_device(
    report: Report,
    specs: Sequence[Path],
    sanitizers: Sequence[str],
    jobs: int | None = None,
    progress: Callable[[int, int, str], None] | None = None,
) -> None:
    """Run the kernels of specs for a GPU under sanitizers, on the CPU, and add what these reported in a column.

    Raises:
        SpecError: when there is no compiler here.
    """
    group = tuple(s for s in sanitizers if s != "thread")
    if not group or not specs:
        return
    start = time.monotonic()
    compiler = toolchain.find(config.load())
    name = f"CUDA {'+'.join(group)}"
    report.backends[name] = Column(name, compiler.command[0].rsplit("/", 1)[-1])
    with tempfile.TemporaryDirectory(prefix="opc-sanitize-") as scratch, ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        prove = partial(_prove, folder=Path(scratch), compiler=compiler.command, sanitizers=group, name=name)
        for done, (spec, found) in enumerate(zip(specs, pool.map(prove, specs)), 1):
            if isinstance(found, SpecError):
                report.mistaken(spec, found.diagnostics)
            else:
                report.add(found)
            if progress is not None:
                progress(done, len(specs), spec.stem)
    report.seconds += time.monotonic() - start


def _prove(spec: Path, folder: Path, compiler: Sequence[str], sanitizers: Sequence[str], name: str) -> list[Result] | SpecError:
    """Return what became of the calls of a spec, or what is wrong with it."""
    try:
        family = load_family(spec)
    except SpecError as error:
        return error
    if reasons := CudaBackend().requires(family):
        why = "; ".join(d.message for d in reasons)
        return [Result(family.name, name, "build", family.name, Status.REFUSED, message=why)]
    # As of the CPU's kernels: two element types stand for all.
    family = narrowed(family)
    return list(check_device(family, folder / family.name, compiler, sanitizers, name=name, shared=folder))


def check_device(
    family: Family,
    folder: Path,
    compiler: Sequence[str],
    sanitizers: Sequence[str],
    calls: Sequence[KernelCall] | None = None,
    *,
    name: str = "CUDA",
    shared: Path | None = None,
) -> Iterator[Result]:
    """Compile the kernels of a family for a GPU in `folder` and yield what became of each call: of these, or of all kinds.

    In `shared` lies what other families use too.
    """
    for path, text in {**KernelBackend().emit(family), **CudaBackend().emit(family)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    calls = [*calls_of(family, MOST, LARGEST)] if calls is None else calls
    (folder / "calls").write_bytes(call_file(family, calls))
    try:
        program = build(family, folder, compiler, sanitizers, shared or folder)
    except subprocess.CalledProcessError as error:
        yield Result(family.name, name, "build", family.name, Status.FAILED, float("inf"), message=error.stderr.strip())
    else:
        yield from run_program([program, folder / "calls", family.name], name, family, calls, Status.EMULATED)


def build(family: Family, folder: Path, compiler: Sequence[str], sanitizers: Sequence[str], shared: Path) -> Path:
    """Compile the kernels in `folder` and the driver with sanitizers.

    Raises:
        CalledProcessError: when the compiler refuses, with what it says.
    """
    flags = sanitizer_flags(sanitizers, pointers=False)
    include = [f"-I{toolchain.runtime_include()}", f"-I{folder}"]
    made, program = folder / "kernels.o", folder / "driver"
    # The rules of C++ that the compiler relies on in kernels as they are shipped hold here too.
    own = ["-std=c++17", *EMULATED_FLAGS, "-w"]
    call([*compiler, *own, *flags, *include, "-c", folder / "kernel" / f"{family.name}.cu", "-o", made])
    objects = [made, driver(shared, compiler, sanitizers, flags, "OPC_ON_GPU")]
    call([*compiler, *flags, "-rdynamic", "-o", program, *objects, "-pthread", "-ldl", "-lm"])
    return program


__all__ = ["check_device", "sanitize_device"]
