"""Examples as a wheel tells them, which the proof of NumPy's functions asks for too."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.backends.numpy.checks import NumpyChecks
from opc.backends.shipped.examples import assert_answers
from opc.backends.told_examples import example_binding, told_example
from opc.ir.dtypes import DType
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.references.examples import check_examples

STEPS = """
op: steps
domain: tests
version: 1
doc: At which step a place lies; rounding may decide of that.
types: {T: TYPES}
inputs: {x: 'T[N]'}
outputs: {y: 'int32[N]'}
gradient: none
kernel: y[i] = cast(int32, floor(x[i] / 3 * 3))
examples:
  - {x: [1.0, 2.5], y: [WANTED, 2]}
"""


def steps(wanted: int, types: str = "[float32, float64]") -> Family:
    return compile_text(STEPS.replace("TYPES", types).replace("WANTED", str(wanted)))


def answer(x: Any) -> Any:
    return np.floor(x / 3 * 3).astype("int32")


def checked(family: Family, function: Any) -> None:
    """Run the check that `opc test` has, on a function in place of the one that was built."""
    session: Any = SimpleNamespace(family=family, module=SimpleNamespace(steps=function))
    (found,) = [c for c in NumpyChecks(session).all() if c.name == "examples"]
    found.run()


def test_an_example_that_rounding_may_decide_is_asked_of_the_function() -> None:
    right, wrong = steps(1), steps(0)
    # The oracle can't tell them apart.
    assert [message for f in (right, wrong) for _, message in check_examples(f)] == ["", ""]
    checked(right, answer)
    with pytest.raises(AssertionError, match=r":12: \nArrays are not equal"):
        checked(wrong, answer)


@pytest.mark.parametrize(
    ("types", "dtype"),
    [
        ("floating", DType.FLOAT64),
        ("[float64, float32]", DType.FLOAT64),
        ("[float32, bfloat16]", DType.FLOAT32),
        ("[float16, bfloat16]", DType.BFLOAT16),
        ("[float32, float8]", DType.FLOAT32),
    ],
)
def test_the_widest_floating_dtype_is_taken(types: str, dtype: DType) -> None:
    family = steps(1, types)
    assert example_binding(family.forward, family.examples[0]) == {"T": dtype}


def test_what_an_example_is_told_as() -> None:
    family = compile_text("""
op: pick
domain: tests
version: 1
doc: The numbers above a bound.
types: {T: [float16], U: [int8, uint64]}
inputs: {x: 'T[N]', 'lambda?': 'T[N]', n: 'U[M]', k: 'uint64[]'}
attributes: {count: {type: size}, class: {type: float, default: .inf}}
outputs: {y: 'T[count]', m: 'U[M]'}
gradient: none
kernel: |
  kept[i:N] = cast(int64, x[i] > 0.5)
  count = sum[i](kept[i])
  place[i:N] = sum[j:i](kept[j])
  y[j] = minimum(sum[i](x[i] if kept[i] == 1 and place[i] == j else 0), class)
  m[j] = n[j]
examples:
  - {x: [1.5, -1.0], n: [3, 200], k: 18446744073709551615, y: [1.5], m: [3, -56]}
  - {x: [0.3], n: [], k: 1, count: 1, class: 0.25, y: [0.0], m: []}
""")
    first, second = json.loads(json.dumps([told_example(family.forward, e) for e in family.examples]))
    assert first == {
        "inputs": {
            "x": {"dtype": "float16", "shape": [2], "values": [1.5, -1.0]},
            "lambda_": None,
            "n": {"dtype": "int8", "shape": [2], "values": [3, -56]},
            "k": {"dtype": "uint64", "shape": [], "values": 2**64 - 1},
        },
        "attributes": {},
        "outputs": {
            "y": {"dtype": "float16", "shape": [1], "values": [1.5]},
            "m": {"dtype": "int8", "shape": [2], "values": [3, -56]},
        },
    }
    # 0.3 is no number of float16's: what the body makes of it is left open.
    assert second["outputs"] == {"y": {"dtype": "float16", "shape": [1]}, "m": {"dtype": "int8", "shape": [0]}}
    assert second["attributes"] == {"count": 1, "class_": 0.25}


def told(array: Any) -> dict[str, Any]:
    wide = array.astype("float64") if "float" in array.dtype.name else array.astype("int64")
    return {"dtype": array.dtype.name, "shape": [*array.shape], "values": wide.tolist()}


X = np.array([1.0, 300.0], np.float32)
NARROW = np.array([1.0, np.nan, np.inf], ml_dtypes.float8_e5m2)


@pytest.mark.parametrize(
    ("want", "got", "is_right"),
    [
        (X, X, True),
        (X, X + np.float32(1e-3), True),
        (X, X + np.float32(1), False),
        (X, X.astype("float64"), False),
        (X, X[:1], False),
        (X, X[None], False),
        (np.array([1, 2], np.int64), np.array([1, 3], np.int64), False),
        (np.array([1, 2], ml_dtypes.int4), np.array([1, 2], ml_dtypes.int4), True),
        (np.array([1, 2], ml_dtypes.int4), np.array([1, 1], ml_dtypes.int4), False),
        (NARROW, NARROW, True),
        (NARROW, NARROW[::-1], False),
        (NARROW, np.array([1.0, np.nan, 9.0], NARROW.dtype), False),
        (np.array(2.5), np.array(2.5), True),
        (np.array(2.5), np.array(np.inf), False),
        (np.zeros((0, 2)), np.zeros((0, 2)), True),
    ],
)
def test_what_an_answer_may_be(want: Any, got: Any, is_right: bool) -> None:
    example = {"inputs": {"x": told(X), "y": None}, "attributes": {"n": 1}, "outputs": {"b": told(want)}}

    def function(x: Any, y: Any, n: int) -> Any:
        assert x.tolist() == X.tolist()
        assert (x.dtype, y, n) == (np.float32, None, 1)
        return x, got

    if is_right:
        assert_answers(function, ["a", "b"], example)
    else:
        with pytest.raises(AssertionError):
            assert_answers(function, ["a", "b"], example)
