"""The spec's examples as calls in one dtype, and the comparison of two ways to compute them, for checks of ONNX runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.node_call import node_attributes
from opc.emit.onnx.types import used_variables
from opc.ir.dtypes import DType, numpy_dtype, resolve
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array


class ExampleCall:
    """An example of the spec as a call in one dtype, float32 where the op has it."""

    def __init__(self, family: Family, values: Mapping[str, Any], dtype: str | None = None) -> None:
        import numpy as np

        op = family.forward
        self.op = op
        self.binding = {v.name: _choose(v.dtypes, dtype) for v in used_variables(op)}
        self.dtypes = {name: d.value for name, d in self.binding.items()}
        self.feeds: dict[str, Array] = {}
        for o in op.inputs:
            if values.get(o.name) is not None:
                self.feeds[o.name] = np.asarray(values[o.name]).astype(numpy_dtype(resolve(o.type, self.binding)))
        self.absent = tuple(o.name for o in op.inputs if o.name not in self.feeds)
        given = {a.name: values[a.name] for a in op.attributes if a.name in values}
        self.attributes = node_attributes(op, given, {})
        self.outputs = {o.name: values[o.name] for o in op.outputs if o.name in values}

    def shapes(self, symbolic: bool = False) -> dict[str, list[Any]]:
        """Return the inputs' sizes, or (`symbolic`) a name for each size: equal names for equal sizes."""
        return {n: [f"size_{s}" if symbolic else s for s in a.shape] for n, a in self.feeds.items()}

    def model(self, module: Any, **options: Any) -> Any:
        """Return the call as a model of one node."""
        return module.make_model(self.op.class_name, dtypes=self.dtypes, absent=self.absent, **options, **self.attributes)


def _choose(dtypes: Sequence[DType], wanted: str | None) -> DType:
    by_name = {d.value: d for d in dtypes}
    return by_name.get(wanted or "float32") or dtypes[-1]


def example_calls(family: Family, dtype: str | None = None) -> list[ExampleCall]:
    """Return the spec's examples as calls.

    Raises:
        Unsupported: when there is none.
    """
    if not family.examples:
        raise Unsupported("the spec has no example to check this on")
    return [ExampleCall(family, dict(e.values), dtype) for e in family.examples]


def rounding_error(array: Array, rounds: int = 16) -> float:
    """Return so many roundings of an array's dtype, relative to its largest finite number."""
    import ml_dtypes
    import numpy as np

    if array.dtype.kind in "iub":
        return 0.0
    wide = np.abs(array.astype(np.float64))
    return float(rounds * float(ml_dtypes.finfo(array.dtype).eps) * max(1.0, wide[np.isfinite(wide)].max(initial=0.0)))


def assert_alike(got: Mapping[str, Array], expected: Mapping[str, Array]) -> None:
    """Compare two ways to compute the same outputs: equal but for a few roundings."""
    import numpy as np

    for name, value in expected.items():
        assert got[name].dtype == value.dtype, f"{name}: {got[name].dtype} is not {value.dtype}"
        a, b = (v.astype(np.float64) for v in (got[name], value))
        np.testing.assert_allclose(a, b, rtol=0, atol=rounding_error(value), err_msg=name)
