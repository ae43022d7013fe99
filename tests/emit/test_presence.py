"""Optional operands read behind `and`, `or` and `not`: every backend gives what Python's own lazy operators give."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together

Array = np.ndarray[Any, Any]

SPEC = """\
op: asked
domain: probe
version: 1
doc: Presence through and, or and not.
types: {T: floating}
inputs: {x: 'T[N]', 'mask?': 'bool[N]', 'w?': 'T[N]', 'v?': 'T[M]'}
outputs: {a: 'T[N]', b: 'T[N]', c: 'T[N]', d: 'T[N]', e: 'bool[N]', f: 'T[N]', g: 'T[N]'}
kernel: |
  a[i] = x[i] if not present(mask) or mask[i] else 0
  b[i] = x[i] if present(mask) and mask[i] else 0
  c[i] = x[i] * w[i] if x[i] > 0 and present(w) and w[i] > 0 else x[i]
  d[i] = x[i] if x[i] > 1 or not present(w) or w[i] <= 0 else w[i] * w[i]
  e[i] = not present(mask) or not mask[i]
  f[i] = x[i] if present(v) and M > 2 and sum[m:M](v[m]) > 0 else 0
  g[i] = w[i] * x[i] if not (not present(w) or w[i] <= 0) else 2 * x[i]
"""
NAMES = tuple("abcdefg")
X = np.array([3.0, -2.0, 0.5, 2.0], np.float32)
GIVEN = {
    "mask": np.array([True, False, False, True]),
    "w": np.array([2.0, 3.0, 4.0, -5.0], np.float32),
    "v": np.array([1.0, -2.0, 3.0], np.float32),
}
CALLS = [frozenset(names) for n in range(4) for names in itertools.combinations(GIVEN, n)]


@pytest.fixture(scope="module")
def family() -> Family:
    return compile_text(SPEC, "asked.yaml")


@pytest.fixture(scope="module")
def library(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_together([family], tmp_path_factory.mktemp("asked"), "-O0")


def expected(mask: Array | None, w: Array | None, v: Array | None) -> dict[str, list[Any]]:
    """Return every output, computed one element at a time."""
    found: dict[str, list[Any]] = {name: [] for name in NAMES}
    for i, x in enumerate(X.tolist()):
        found["a"].append(x if mask is None or mask[i] else 0)
        found["b"].append(x if mask is not None and mask[i] else 0)
        found["c"].append(x * w[i] if x > 0 and w is not None and w[i] > 0 else x)
        found["d"].append(x if w is None or x > 1 or w[i] <= 0 else w[i] * w[i])
        found["e"].append(mask is None or not mask[i])
        found["f"].append(x if v is not None and len(v) > 2 and v.sum() > 0 else 0)
        found["g"].append(w[i] * x if w is not None and w[i] > 0 else 2 * x)
    return found


def slopes(w: Array | None, mask: Array | None, v: Array | None) -> dict[str, list[float]]:
    """Return the gradients by x and w of the sum of all outputs."""
    d_x, d_w = [], []
    for i, x in enumerate(X.tolist()):
        by_x = [mask is None or mask[i], mask is not None and mask[i], v is not None]
        scaled = w is not None and w[i] > 0
        by_x += [w[i] if w is not None and scaled and x > 0 else 1, x > 1 or not scaled, w[i] if w is not None and scaled else 2]
        d_x.append(float(sum(by_x)))
        own = 0.0 if w is None or not scaled else (x if x > 0 else 0) + (0 if x > 1 else 2 * w[i]) + x
        d_w.append(float(own))
    return {"d_x": d_x, "d_w": d_w}


@pytest.mark.parametrize("given", CALLS, ids=lambda names: "-".join(sorted(names)) or "none")
def test_what_is_read_behind_a_condition_may_be_absent(
    given: frozenset[str], family: Family, library: Path, tmp_path: Path
) -> None:
    inputs: dict[str, Array | None] = {"x": X, **{name: a if name in given else None for name, a in GIVEN.items()}}
    op = family.forward
    want = expected(inputs["mask"], inputs["w"], inputs["v"])
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    answers: dict[str, Mapping[str, Any]] = {
        "oracle": {name: found.value for name, found in evaluate(op, inputs, {}).items()},
        "kernel": KernelLibrary(family, library).call(op, inputs, {}),
        "numpy": dict(zip(NAMES, module[function_name(op)](*inputs.values()), strict=True)),
        "onnx": load(family, tmp_path).function_call(op.name, inputs, {}, list(NAMES)),
    }
    for (backend, found), name in itertools.product(answers.items(), NAMES):
        np.testing.assert_allclose(found[name], np.array(want[name]), 1e-6, err_msg=f"{backend} {name}")


@pytest.mark.parametrize("given", CALLS, ids=lambda names: "-".join(sorted(names)) or "none")
def test_gradients_of_what_is_read_behind_a_condition(
    given: frozenset[str], family: Family, library: Path, tmp_path: Path
) -> None:
    op = family.backward
    assert op is not None
    inputs: dict[str, Array | None] = {"x": X, **{name: a if name in given else None for name, a in GIVEN.items()}}
    ones = {f"d_{o.name}": np.ones(4, np.float32) for o in family.forward.outputs}
    call = {o.name: inputs[o.name] if o.name in inputs else ones[o.name] for o in op.inputs}
    names = [o.name for o in op.outputs if o.name == "d_x" or (o.name == "d_w" and "w" in given)]
    want = slopes(inputs["w"], inputs["mask"], inputs["v"])
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    everything = [o.name for o in op.outputs]
    answers: dict[str, Mapping[str, Any]] = {
        "kernel": KernelLibrary(family, library).call(op, call, {}),
        "numpy": dict(zip(everything, module[function_name(op)](*call.values()), strict=True)),
        "onnx": load(family, tmp_path).function_call(op.name, call, {}, names),
    }
    for (backend, found), name in itertools.product(answers.items(), names):
        np.testing.assert_allclose(found[name], np.array(want[name]), 1e-6, err_msg=f"{backend} {name}")
