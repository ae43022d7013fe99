"""All that is held of one random op, in a process of its own."""

from __future__ import annotations

import contextlib
import random
import resource
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from opc.diagnostics import SpecError
from opc.ir.op import Family
from opc.pipeline import compile_text
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.bodies import spec
from tests.fuzz.isolated import isolated
from tests.fuzz.kernels import compile_kernels, compile_together
from tests.fuzz.proof import wrong_by_force, wrong_code, wrong_text, wrong_twins
from tests.fuzz.reading import is_read

SECONDS = 60
"""How long one op may take of a core; its compilers are not counted."""

MEMORY = 12 << 30
"""How much memory, in bytes."""


def drawn(seed: int | str, number: int) -> str:
    """Return the text of the spec with this number."""
    return spec(random.Random(f"{seed}/{number}"), f"fuzz_{number}")


def compiled(texts: Sequence[str], folder: Path, optimise: str) -> Path | None:
    """Return one library of the kernels of several ops, which takes half the time of one for each; None where there is none."""

    def run() -> list[str]:
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        families = []
        for text in texts:
            with contextlib.suppress(SpecError):
                families.append(compile_text(text, "drawn"))
        return [str(compile_together(families, folder, optimise))]

    (found, *more) = isolated(run, 8 * SECONDS)  # what one of them ends with, it ends with when it is checked alone
    return Path(found) if not more and Path(found).is_file() else None


def _compiled(family: Family, rng: random.Random, folder: Path, library: Path | None) -> Path:
    optimise = rng.choice(("-O0", "-O0", "-O0", "-O1"))
    return library or compile_kernels(family, folder, optimise)


def wrong(text: str, seed: str, count: int = 2, library: Path | None = None) -> Iterator[str]:
    """Yield what is wrong with an op, of each kind one thing; `count` is how many calls each derived op gets.

    Its kernels are those of a library where one is given.
    """
    rng = random.Random(seed)
    try:
        family = compile_text(text, "drawn")
    except SpecError as error:
        yield f"refused: {error}"
        return
    if is_read(text):
        yield from wrong_text(text)
        yield from wrong_by_force(text, family, rng, 3)
    with tempfile.TemporaryDirectory() as name:
        folder, kernel = Path(name), None
        try:
            of = _compiled(family, rng, folder, library)
            kernel = partial(KernelLibrary, family, of)
        except subprocess.CalledProcessError as error:
            yield "does not compile: " + "\n".join([line for line in error.stderr.splitlines() if "error" in line][:3])
        session = load(family, folder) if rng.random() < 0.3 else None
        yield from wrong_code(family, kernel, session, rng, count, large=rng.random() < 0.04)
    if rng.random() < 0.5:
        yield from wrong_twins(text, family, rng)


def check(text: str, seed: str, count: int = 2, seconds: int = SECONDS, library: Path | None = None) -> list[str]:
    """Return what is wrong with an op, a crash or a hang too."""

    def run() -> list[str]:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        return list(wrong(text, seed, count, library))

    return isolated(run, 8 * seconds)


__all__ = ["check", "compiled", "drawn"]
