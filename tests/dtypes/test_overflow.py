"""What is rounded to 8 bits near the end of a format, in ONNX's functions: their converters differ there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.backends.node_call import NodeCall
from opc.backends.onnxruntime.values import inference_session, run
from opc.ir.dtypes import DTYPES, DType, numpy_dtype
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load

Array = np.ndarray[Any, Any]

EIGHT = [d for d in DTYPES if d.row.minifloat is not None and d.bits == 8]
SPEC = """\
op: narrowed_{dtype}
domain: test
version: 1
doc: A conversion.
gradient: none
inputs: {{x: 'float32[N]'}}
outputs: {{y: '{dtype}[N]'}}
kernel: |
  y[n] = cast({dtype}, x[n])
"""


def near_the_end(dtype: DType) -> Array:
    """Return float32 numbers around the least that is rounded beyond the greatest, and far from it."""
    assert dtype.row.minifloat is not None
    end = np.float32(dtype.row.minifloat.overflow(dtype.bits))
    beside = [end, np.nextafter(end, np.float32(0)), np.nextafter(end, np.float32(np.inf))]
    found = np.array([*beside, *np.linspace(end / 2, end * 2, 500), end * 1000, np.inf, np.nan, 0], np.float32)
    return np.concatenate([found, -found])


@pytest.mark.parametrize("dtype", EIGHT)
def test_the_least_number_beyond(dtype: DType) -> None:
    """NumPy's type rounds it to infinity or nan, and what is before it to a number."""
    assert dtype.row.minifloat is not None
    end = np.float32(dtype.row.minifloat.overflow(dtype.bits))
    kind = numpy_dtype(dtype)
    assert np.isfinite(np.nextafter(end, np.float32(0)).astype(kind).astype(np.float32))
    assert not np.isfinite(end.astype(kind).astype(np.float32))


@pytest.mark.parametrize("dtype", EIGHT)
def test_functions_round_as_numpy_does(dtype: DType, tmp_path: Path) -> None:
    """In ONNX Runtime and in ONNX's own evaluator."""
    one = compile_text(SPEC.format(dtype=dtype.value), "narrowed.yaml")
    x = near_the_end(dtype)
    want = x.astype(numpy_dtype(dtype)).astype(np.float32)
    bounds = evaluate(one.forward, {"x": x}, {})["y"].bounds
    finite = np.isfinite(want)
    assert np.array_equal(bounds.low[finite], want[finite])
    session = load(one, tmp_path)
    call = NodeCall(session.ops[one.name], {"x": x}, {}, None)
    model = call.function_model(session.module)
    for evaluate_model in (session.load_function(call, model), partial(run, inference_session(model, threads=1))):
        found = call.run(evaluate_model)["y"]
        assert np.array_equal(np.asarray(found).astype(np.float32), want, equal_nan=True)
