"""Runs an example of a spec, as ops.json of a wheel tells it, on NumPy's arrays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


def dtype_of(name: str) -> np.dtype[Any]:
    """Return a dtype by its name; those that NumPy lacks are of ml_dtypes."""
    try:
        return np.dtype(name)
    except TypeError:
        import ml_dtypes

        found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name))
        return found


def array_of(told: Mapping[str, Any] | None) -> Any:
    """Return an operand as an array; None for one that is absent."""
    if told is None:
        return None
    dtype = dtype_of(told["dtype"])
    return np.array(told["values"], dtype).reshape(told["shape"])


def rounding_of(dtype: np.dtype[Any]) -> float:
    """Return how far apart 1 and the next number of a dtype are; 0 for integers."""
    if "float" not in dtype.name:
        return 0.0
    if dtype.isbuiltin == 1:
        return float(np.finfo(dtype).eps)
    import ml_dtypes

    return float(ml_dtypes.finfo(dtype).eps)


def assert_close(
    found: Any, told: Mapping[str, Any], inputs: Sequence[Any], name: str
) -> None:
    """Assert that an output is what is told of it, within half of the digits that the
    dtypes have, at most six; integers are to be the same.
    """
    kind = dtype_of(told["dtype"]), tuple(told["shape"])
    assert (found.dtype, found.shape) == kind, name
    if "values" not in told:
        return
    expected = array_of(told)
    if rounding_of(expected.dtype) == 0:
        np.testing.assert_array_equal(found, expected, err_msg=name)
        return
    arrays = [expected, *inputs]
    error = max(1e-6, max(rounding_of(a.dtype) for a in arrays) ** 0.5)
    wide = [a.astype("float64") for a in arrays]
    largest = max(np.abs(a[np.isfinite(a)]).max(initial=1.0) for a in wide)
    np.testing.assert_allclose(
        found.astype("float64"), wide[0], rtol=0, atol=error * largest, err_msg=name
    )


def assert_answers(
    function: Callable[..., Any], outputs: Sequence[str], example: Mapping[str, Any]
) -> None:
    """Assert that the function of an op answers as an example tells."""
    inputs = {name: array_of(told) for name, told in example["inputs"].items()}
    found = function(**inputs, **example["attributes"])
    present = [a for a in inputs.values() if a is not None]
    values = found if len(outputs) > 1 else (found,)
    for name, value in zip(outputs, values, strict=True):
        if name in example["outputs"]:
            assert_close(value, example["outputs"][name], present, name)
