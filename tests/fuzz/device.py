"""Kernels of ops for a GPU, on the emulation of one: held to the oracle, and to themselves with threads in another order."""

from __future__ import annotations

import os
import random
import resource
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from opc.backends.base import DeviceLostError, OpError, Unsupported
from opc.backends.cuda.backend import EMULATED_FLAGS
from opc.backends.cuda.session import CudaSession
from opc.backends.cuda.toolkit import EMULATED, VARIABLE, library_path
from opc.diagnostics import SpecError
from opc.emit.cuda.files import cuda_files, refused
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from opc.testing.cases.calls import Case
from opc.testing.oracle.bounds import Bounded
from opc.testing.oracle.tolerance import compare
from tests.fuzz.check import MEMORY, SECONDS
from tests.fuzz.isolated import isolated
from tests.fuzz.kernels import EVERY_TYPE, INCLUDE, NAMED_TYPES
from tests.fuzz.proof import answers, calls

LIBRARY = "libdevice.so"


def compile_together(families: Sequence[Family], folder: Path) -> None:
    """Compile the kernels of families with different names into one library, which a session of each finds in its folder.

    Raises:
        CalledProcessError: when the compiler refuses them; its message is there.
    """
    types: list[str] = []
    for family in families:
        for path, text in {**kernel_files(family), **cuda_files(family)}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(NAMED_TYPES.sub("", text))
            types = types or (EVERY_TYPE if NAMED_TYPES.search(text) else [])
        found = folder / family.name / library_path(family)
        found.parent.mkdir(parents=True, exist_ok=True)
        found.symlink_to(folder / LIBRARY)
    source = folder / "device.cpp"
    kernels = "".join(f'#include "kernel/{family.name}.cu"\n' for family in families)
    source.write_text(f'{kernels}#include "opc/cuda/arrays.h"\n')
    made = ("-w", *types, f"-I{INCLUDE}", f"-I{folder}", "-shared", source, "-o", folder / LIBRARY, "-lm")
    subprocess.run(("g++", *EMULATED_FLAGS, *made), check=True, capture_output=True, text=True)


def wrong_call(session: CudaSession, op: Op, case: Case, want: dict[str, Bounded] | None) -> Iterator[str]:
    """Yield what is wrong with the answer to a call."""
    names = list(want) if want is not None else case.wanted
    try:
        got = session.call(op.name, case.arrays(), dict(case.attributes), names)
    except Unsupported:
        return
    except (OpError, DeviceLostError, AssertionError) as error:
        if want is not None or not isinstance(error, OpError):
            yield f"{type(error).__name__}: {error}"
        return
    if want is None:
        yield "accepted, but the op has no value"
        return
    yield from (c.message for n, a in got.items() if not (c := compare(n, a, want[n])).ok)


def wrong_in(session: CudaSession, made: Iterable[tuple[Op, Case]]) -> Iterator[str]:
    """Yield what is wrong with the answers to some calls."""
    for op, case, want in answers(made):
        yield from (f"{case.name}: {message}" for message in islice(wrong_call(session, op, case, want), 1))


def wrong_on_device(family: Family, session: CudaSession, rng: random.Random, count: int) -> Iterator[str]:
    """Yield what is wrong with kernels, at most one thing for each op of the family."""
    seen = set()
    for op, case, want in answers(calls(family, rng, count, large=rng.random() < 0.1)):
        if op.name in seen:
            continue
        given = [(n, a.data.shape, a.layout) for n, a in case.inputs.items() if a is not None]
        for message in islice(wrong_call(session, op, case, want), 1):
            seen.add(op.name)
            yield f"device, {case.name} {given} {dict(case.attributes)}: {message}"


def compiled(texts: Sequence[str], folder: Path) -> bool:
    """Return whether the kernels of several ops could be compiled as one library, which is quicker than one for each."""

    def run() -> list[str]:
        compile_together([f for text in texts for f in families(text)], folder)
        return []

    return not isolated(run, 8 * SECONDS)  # what one of them ends with, it ends with when it is checked alone


def families(text: str) -> Iterator[Family]:
    """Yield the family of a spec, where there is one and a device has kernels of it."""
    try:
        family = compile_text(text, "drawn")
    except SpecError:
        return
    if not refused(family):
        yield family


def check(text: str, seed: str, count: int = 2, seconds: int = SECONDS, folder: Path | None = None) -> list[str]:
    """Return what is wrong with an op's kernels for a device, a crash or a hang too; `folder` holds a library of them."""

    def run(place: Path) -> Iterator[str]:
        for family in families(text):
            if folder is None:
                try:
                    compile_together([family], place)
                except subprocess.CalledProcessError as error:
                    yield "does not compile: " + "\n".join([line for line in error.stderr.splitlines() if "error" in line][:3])
                    return
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            yield from wrong_on_device(family, CudaSession(family, place / family.name), random.Random(seed), count)

    def alone() -> list[str]:
        os.environ[VARIABLE] = EMULATED
        if folder is not None:
            return list(run(folder))
        with tempfile.TemporaryDirectory() as name:
            return list(run(Path(name)))

    return isolated(alone, 8 * seconds)
