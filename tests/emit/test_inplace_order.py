"""Outputs in the memory of inputs, beside sums that other outputs wait for: no element is written before it was read."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from opc.lower.cuda.stages import device_programs
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import read_by, written_by
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel

SPEC = """\
op: %s
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float32, float64]}
inputs: {p: 'T[M, N]', g: 'T[M, N]', h: 'T[N, N]'}
outputs: {q: 'T[M, N]', s: 'T[M, N]'}
inplace: {q: p}
kernel: |
  %s
"""
SHARED = {
    "a sum over all": "n[] = sum[i, j](g[i, j])",
    "a sum of rows": "n[i:M] = sum[j](g[i, j])",
    "a norm of rows of rows": "m[i:M] = max[j](g[i, j])\n  n[i:M] = sum[j](exp(g[i, j] - m[i]))",
    "a sum of columns": "n[j:N] = sum[i](g[i, j])",
    "a running sum": "n[i:M, j:N] = sum[k:j + 1](g[i, k])",
    "a product of matrices": "n[i:M, j:N] = sum[k](g[i, k] * h[k, j])",
    "a turned read": "n[i:M, j:N] = g[M - 1 - i, N - 1 - j]",
}
READERS = {
    "before": "s[i, j] = p[i, j] * {n} + 1\n  q[i, j] = 2 * p[i, j] + g[i, j]",
    "before, through a temporary": "t[i, j] = exp(p[i, j]) - g[i, j]\n  s[i, j] = t[i, j] + {n}\n  q[i, j] = 3 * p[i, j]",
    "a temporary afterwards": "t[i, j] = exp(p[i, j]) - g[i, j]\n  q[i, j] = 3 * p[i, j]\n  s[i, j] = t[i, j] + {n}",
    "a temporary beside it": "t[i, j] = exp(p[i, j]) - g[i, j]\n  q[i, j] = 3 * p[i, j]\n  s[i, j] = t[i, j] * q[i, j] + {n}",
    "of what was written": "q[i, j] = 2 * p[i, j] + g[i, j]\n  s[i, j] = q[i, j] * {n}",
    "both": "s[i, j] = p[i, j] - g[i, j]\n  q[i, j] = p[i, j] * {n}",
}
PLACES = ("[]", "[i:M]", "[j:N]", "[i:M, j:N]")


def body(shared: str, readers: str) -> str:
    lines = SHARED[shared]
    place = lines.rpartition("\n")[2].strip().removeprefix("n").partition("]")[0] + "]"
    assert place in PLACES
    return f"{lines}\n  {READERS[readers]}".replace("{n}", "n" + place.replace(":M", "").replace(":N", ""))


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], KernelLibrary]:
    found = {}
    for number, key in enumerate(product(SHARED, READERS)):
        family = compile_text(SPEC % (f"held{number}", body(*key)), "f.yaml")
        found[key] = KernelLibrary(family, compile_kernel(family, tmp_path_factory.mktemp("inplace")))
    return found


@pytest.mark.rotating("file")
@pytest.mark.parametrize("readers", READERS)
@pytest.mark.parametrize("shared", SHARED)
def test_what_is_in_place_is_what_it_is_elsewhere(
    shared: str, readers: str, libraries: dict[tuple[str, str], KernelLibrary]
) -> None:
    library = libraries[shared, readers]
    op = library.family.forward
    rng = np.random.default_rng(2)
    for shape in ((3, 5), (1, 40), (40, 1), (70, 300)):
        given: dict[str, Any] = {n: rng.standard_normal(shape) for n in "pg"} | {"h": rng.standard_normal((shape[1],) * 2)}
        apart = library.call(op, {n: a.copy() for n, a in given.items()}, {})
        here = {n: a.copy() for n, a in given.items()}
        together = library.call(op, here, {}, outputs={"q": here["p"]})
        assert together["q"] is here["p"]
        for name in "qs":
            np.testing.assert_array_equal(together[name], apart[name], err_msg=f"{name} of {shape}")


@pytest.mark.parametrize("readers", READERS)
@pytest.mark.parametrize("shared", SHARED)
def test_no_stage_reads_behind_the_one_that_writes_in_place(shared: str, readers: str) -> None:
    op = compile_text(SPEC % ("held", body(shared, readers)), "f.yaml").forward
    for variant in (*cpu_programs(op), *device_programs(op)):
        stages = variant.program.stages
        (written,) = [n for n, stage in enumerate(stages) if "q" in written_by(stage)]
        assert not [stage.name for stage in stages[written + 1 :] if "p" in read_by(stage)]
