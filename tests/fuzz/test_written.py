"""What `written.py` says: the kernels of each op and of its derived ops against the oracle, at the sizes that choose
between the ways they are run, in memory that holds what no kernel would compute.

Those of a theme that come first always run, all of them with `OPC_FUZZ` in the environment.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from opc.testing.cases.calls import Case, Maker
from opc.testing.cases.fitting import volume
from opc.testing.cases.sizes import Sizes, dims_of
from tests.amounts import MANY
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.calls import parents
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import answers, wrong_kernel
from tests.fuzz.written import THEMES, specs

SIZES = (
    {"H": 64, "L": 64, "K": 5, "J": 2},
    {"H": 9, "L": 3, "K": 2, "J": 7},
    {"H": 33, "L": 65, "K": 3, "J": 3},
    {"H": 1, "K": 4, "J": 4},
)
"""Sizes by dimension: as many of a contraction as a block has beside fewer than it takes remainders of, and others."""

ORDINARY = ((5, 7, 3, 4), (1, 2, 1, 3), (17, 33, 2, 9), (4, 0, 3, 2), (33, 8, 16, 5), (64, 3, 65, 2))
"""Sizes by turns."""

FEW = None if MANY else 3
"""How many ops of a theme are run."""

LARGEST = 60_000
"""The most points of the largest loop of a call: the oracle holds all of them at once."""


def cases(op: Op, parent: Op | None) -> Iterator[Case]:
    """Yield calls of an op at the sizes above that it has calls of."""
    maker = Maker(op, parent, LARGEST)
    dims = dims_of(op)
    chosen = [dict(zip(dims, (row * len(dims))[: len(dims)], strict=True)) for row in ORDINARY]
    chosen += [{d: named.get(d, 6) for d in dims} for named in SIZES if "H" in dims]
    for n, sizes in enumerate(chosen):
        case = maker.make("sizes", Sizes(sizes, {"...": ((2, 3), (), (17,))[n % 3]}, {}))
        if case is None:
            continue
        shapes = {name: a.data.shape for name, a in case.inputs.items() if a is not None}
        if volume(op, infer(op, shapes, case.attributes)) <= LARGEST:
            yield case


def wrong(family: Family, kernel: KernelLibrary) -> Iterator[str]:
    """Yield what is wrong with the kernels of a family, for each op at most one call."""
    above = parents(family)
    for op in family.ops:
        found = (
            f"{case.name}: {message}"
            for _, case, want in answers((op, case) for case in cases(op, above.get(id(op))))
            for message in wrong_kernel(kernel, op, case, want)
        )
        yield from islice(found, 1)


@pytest.mark.rotating
@pytest.mark.parametrize("theme", THEMES)
def test_kernels(theme: str, tmp_path: Path) -> None:
    texts = specs(theme, THEMES[theme])[:FEW]
    families = [compile_text(text, theme) for text in texts]
    library = compile_together(families, tmp_path, "-O0")
    found = []
    for text, family in zip(texts, families, strict=True):
        with np.errstate(all="ignore"):
            mistakes = list(wrong(family, KernelLibrary(family, library)))
        if mistakes:
            found.append("\n".join([*mistakes, text]))
    assert not found, "\n".join([f"{len(found)} of {len(families)} ops are wrong", *found])


@pytest.mark.parametrize("stage", ["unwritten_0_s", "unwritten_0_y"])
def test_what_is_not_written_shows(stage: str, tmp_path: Path) -> None:
    """The check itself: of a kernel one of whose stages leaves out the last element, or is not run, every call is wrong."""
    (text,) = specs(
        "unwritten", "x[M, Z] -> y[P]; P = M*Z; ? Z > 0; s[j:M*Z] = 0*x[j // Z, j % Z]**2; y[j] = s[j] + s[M*Z - 1 - j]*0"
    )
    family = compile_text(text, "unwritten")
    family = replace(family, backward=None, backward_backward=None, backward_jvp=None, jvp=None)
    run = f"code = opc::run(nest, loops.{stage},"
    for name, changed in (("all", f"if (false) {run}"), ("last", f"--nest.columns; {run}")):
        folder = tmp_path / name
        library = compile_together([family], folder, "-O0", lambda text, changed=changed: text.replace(run, changed))
        assert list(wrong(family, KernelLibrary(family, library))), name
