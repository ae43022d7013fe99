"""Where the greatest or least element so far stands: one pass along the axis, in the op and in the derivatives of a running
maximum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opc.ir.expr import SEARCHES, reductions
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage
from opc.lower.nest_plans import ScanPlan
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelError, KernelLibrary, compile_kernel

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: %s}
inputs: {x: 'T[B, N, D]', w: 'T[N]'}
outputs: {y: '%s'}
%s
kernel: |
  %s
"""
Array = np.ndarray[Any, Any]
B, N, D = 2, 70, 3

SEARCHED: dict[str, tuple[str, Callable[[Array, int], Array]]] = {
    "y[b, i, d] = argmax[k:i + 1](x[b, k, d])": ("int64[B, N, D]", lambda v, i: v[:, : i + 1].argmax(1)),
    "y[b, i, d] = argmin[k:i + 1](x[b, k, d])": ("int64[B, N, D]", lambda v, i: v[:, : i + 1].argmin(1)),
    "y[b, d, i] = argmax[k:N - i](x[b, k, d])": ("int64[B, D, N]", lambda v, i: v[:, : N - i].argmax(1)),
    "y[b, i, d] = i - argmax[k:i + 1](-x[b, k, d])": ("int64[B, N, D]", lambda v, i: i - v[:, : i + 1].argmin(1)),
}


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64"])
def test_each_running_search(dtype: str, tmp_path: Any) -> None:
    """Ties, infinities and NaNs among them: the first one counts, and a NaN is better than any number."""
    rng = np.random.default_rng(5)
    x = rng.integers(0, 6, (B, N, D)).astype(dtype)
    if x.dtype.kind == "f":
        x[:, :2], x[1, 4, 0], x[1, 9, 0], x[0, 60:, 1] = -np.inf, np.nan, np.nan, np.inf
        x[0, 60:, 2] = -np.inf
    forms = [s for s in SEARCHED if dtype != "uint64" or "-x" not in s]
    outputs = ", ".join(f"y{n}: '{SEARCHED[s][0]}'" for n, s in enumerate(forms))
    body = "\n  ".join(s.replace("y[", f"y{n}[", 1) for n, s in enumerate(forms))
    text = (HEAD % (f"[{dtype}]", "%s", "gradient: none", body)).replace("{y: '%s'}", f"{{{outputs}}}")
    family = compile_text(text, "f.yaml")
    stages = [s for v in cpu_programs(family.forward) for s in v.program.stages]
    assert all(isinstance(s, NestStage) and all(isinstance(p, ScanPlan) for p in s.plans) and s.plans for s in stages)
    library = KernelLibrary(family, compile_kernel(family, tmp_path))
    got = library.call(family.forward, {"x": x, "w": np.zeros(N, dtype)}, {})
    for n, s in enumerate(forms):
        want = np.stack([SEARCHED[s][1](x, i) for i in range(N)], axis=2 if "y[b, d, i]" in s else 1)
        np.testing.assert_array_equal(got[f"y{n}"], want, err_msg=s)


def test_a_search_of_what_is_before_has_nothing_at_first(tmp_path: Any) -> None:
    text = HEAD % ("[float32]", "int64[B, N, D]", "gradient: none", "y[b, i, d] = argmax[k:i](x[b, k, d]) if i > 0 else -1")
    family = compile_text(text, "f.yaml")
    library = KernelLibrary(family, compile_kernel(family, tmp_path))
    x = np.random.default_rng(5).integers(0, 6, (B, N, D)).astype("float32")
    got = library.call(family.forward, {"x": x, "w": np.zeros(N, "float32")}, {})["y"]
    want = np.stack([x[:, :i].argmax(1) if i else np.full((B, D), -1) for i in range(N)], axis=1)
    np.testing.assert_array_equal(got, want)


def test_a_search_of_nothing_refuses_the_call(tmp_path: Any) -> None:
    text = HEAD % ("[float32]", "int64[B, N, D]", "gradient: none", "y[b, i, d] = argmax[k:i](x[b, k, d])")
    family = compile_text(text, "f.yaml")
    library = KernelLibrary(family, compile_kernel(family, tmp_path))
    with pytest.raises(KernelError, match="argmax over k"):
        library.call(family.forward, {"x": np.zeros((B, N, D), "float32"), "w": np.zeros(N, "float32")}, {})
    none = library.call(family.forward, {"x": np.zeros((B, 0, D), "float32"), "w": np.zeros(0, "float32")}, {})["y"]
    assert none.shape == (B, 0, D)


@pytest.mark.parametrize("body", ["y[b, i, d] = max[k:i + 1](x[b, k, d] * w[k])", "y[b, i, d] = min[k:i + 1](x[b, k, d]) * w[i]"])
def test_derivatives_of_a_running_maximum_search_in_one_pass(body: str) -> None:
    family = compile_text(HEAD % ("[float32]", "T[B, N, D]", "require: [N > 0]", body), "f.yaml")
    found = 0
    for op in family.ops:
        for variant in cpu_programs(op):
            for s in variant.program.stages:
                if isinstance(s, NestStage) and any(e.kind in SEARCHES for e in reductions(s.assign.value)):
                    assert s.plans, op.name
                    assert all(isinstance(p, ScanPlan) for p in s.plans), op.name
                    found += 1
    assert found >= 4
