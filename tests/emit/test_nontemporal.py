"""Outputs written past the caches: the same answers in every form, and where the compiler's own stores would not do it."""

from __future__ import annotations

import subprocess
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.lower.loop_ir import RowStage
from opc.lower.lower import lower
from opc.pipeline import compile_text, load_family
from tests.emit.conftest import Build
from tests.emit.kernel_library import KernelLibrary, odd_parallel_for, split_everywhere
from tests.emit.test_kernel import SPECS, judged, wrong

EVERYWHERE = "-DOPC_CACHE_BYTES=1"
BEST = instruction_sets()[0]
"""Has a kernel store past the caches whatever it can, however small."""


@pytest.mark.rotating
@pytest.mark.parametrize(
    ("name", "variant"),
    [*((name, BEST) for name in ("leaky_relu", "clamp", "log_softmax")), *(("add", name) for name in instruction_sets())],
)
def test_cases(build: Build, name: str, variant: str) -> None:
    forced = (f"-DOPC_FORCE_VARIANT={variant}",)
    family, library = build(name, EVERYWHERE, *forced, derived=("backward",))
    for op in (family.forward, family.backward):
        assert op is not None
        calls = judged(op)
        for parallel_for in (None, odd_parallel_for, split_everywhere):
            assert wrong(KernelLibrary(family, library, parallel_for), calls) == []


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("offset", [0, 1, 3, 16])
@pytest.mark.parametrize("size", [1, 15, 16, 17, 1000, 40_001])
def test_rows_that_start_anywhere_between_two_vectors(build: Build, size: int, offset: int, dtype: Any) -> None:
    family, library = build("add", EVERYWHERE, derived=("backward",))
    rng = np.random.default_rng(size)
    a, b = (rng.standard_normal(size + offset).astype(dtype)[offset:] for _ in range(2))
    d_a, d_b, y = (np.full(size + 64, 7, dtype) for _ in range(3))
    kernel = KernelLibrary(family, library, split_everywhere)
    kernel.call(family.forward, {"a": a, "b": b}, {}, outputs={"y": y[offset : offset + size]})
    np.testing.assert_array_equal(y[offset : offset + size], a + b)
    assert family.backward is not None
    # The two outputs lie differently: only one of them can be stored by whole vectors.
    outputs = {"d_a": d_a[offset : offset + size], "d_b": d_b[2 * offset : 2 * offset + size]}
    inputs = {o.name: {"d_y": a, "a": a, "b": b}[o.name] for o in family.backward.inputs}
    kernel.call(family.backward, inputs, {}, outputs=outputs)
    for got, at in ((y, offset), (d_a, offset), (d_b, 2 * offset)):
        assert (got[:at] == 7).all(), "what is before the output is as it was"
        assert (got[at + size :] == 7).all(), "what is behind the output is as it was"
    np.testing.assert_array_equal(outputs["d_a"], a)
    np.testing.assert_array_equal(outputs["d_b"], a)


def test_in_place(build: Build) -> None:
    family, library = build("leaky_relu", EVERYWHERE, derived=())
    x = np.linspace(-3, 3, 5000, dtype=np.float32)
    want = np.where(x > 0, x, x * np.float32(0.5))
    KernelLibrary(family, library, split_everywhere).call(family.forward, {"x": x}, {"alpha": 0.5}, outputs={"y": x})
    np.testing.assert_array_equal(x, want)


def test_a_sum_of_one_point_keeps_the_sign_of_zero(build: Build) -> None:
    family, library = build("add", EVERYWHERE, derived=("backward",))
    op = family.backward
    assert op is not None
    d_y = np.full(100, -0.0, np.float32)
    inputs = {o.name: d_y for o in op.inputs}
    got = KernelLibrary(family, library).call(op, inputs, {})
    assert np.signbit(got["d_a"]).all()


def test_the_stores_go_past_the_caches(build: Build) -> None:
    _, library = build("add")
    text = subprocess.run(["objdump", "-d", library], capture_output=True, text=True, check=True).stdout
    assert "movntdq" in text
    assert "sfence" in text


SUM = """\
op: {name}
domain: tests.nontemporal
version: 1
doc: Rows.
types: {{T: [float32]}}
inputs: {{x: 'T[..., D]'}}
outputs: {{{outputs}}}
kernel: |
{kernel}
"""


@pytest.mark.parametrize(
    ("outputs", "kernel", "nontemporal"),
    [
        ("y: 'T[..., D]'", "  y[..., d] = x[..., d] + 1", True),
        ("y: 'T[..., D]'", "  m[...] = max[d](x[..., d])\n  y[..., d] = x[..., d] - m[...]", True),
        # The first pass keeps the exponentials where the answer will be: its lines are in the cache.
        ("y: 'T[..., D]'", "  e[..., d] = exp(x[..., d])\n  s[...] = sum[d](e[..., d])\n  y[..., d] = e[..., d] / s[...]", False),
        ("y: 'T[...]'", "  y[...] = sum[d](x[..., d])", False),
        ("y: 'T[..., D]', z: 'bool[..., D]'", "  y[..., d] = x[..., d] + 1\n  z[..., d] = x[..., d] > 0", False),
    ],
    ids=["elementwise", "behind a reduction", "kept in the output", "reduction", "two types"],
)
def test_which_stages_store_past_the_caches(outputs: str, kernel: str, nontemporal: bool) -> None:
    family = compile_text(SUM.format(name="rows", outputs=outputs, kernel=kernel), "rows.yaml")
    assert _nontemporal(family.forward) == [nontemporal]


def test_derivatives_of_gradients_have_one_form() -> None:
    family = load_family(SPECS / "gelu.yaml")
    assert all(_nontemporal(family.forward) + _nontemporal(family.backward))
    assert not any(_nontemporal(family.backward_backward) + _nontemporal(family.jvp) + _nontemporal(family.backward_jvp))


def _nontemporal(op: Any) -> list[bool]:
    return ["nontemporal" in s.schedule for v in lower(op) for s in v.program.stages if isinstance(s, RowStage)]
