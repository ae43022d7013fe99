"""The spec's examples as ONNX models of one node in one dtype, for checks of ONNX runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from opc.backends.base import Unsupported
from opc.backends.checks import Sample, array_of
from opc.backends.node_call import node_attributes
from opc.emit.onnx.types import used_variables
from opc.ir.dtypes import DType, resolve
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array


class ExampleCall:
    """An example of the spec as a call in one dtype, float32 where the op has it."""

    def __init__(self, family: Family, values: Mapping[str, Any], dtype: str | None = None) -> None:
        op = family.forward
        self.op = op
        binding = {v.name: _choose(v.dtypes, dtype) for v in used_variables(op)}
        for a in op.attributes:
            if a.binds in binding:
                binding[a.binds] = DType(str(values.get(a.name, a.default)))
        self.dtypes = {name: d.value for name, d in binding.items()}
        given = [x for x in op.inputs if values.get(x.name) is not None]
        self.feeds: dict[str, Array] = {x.name: array_of(values[x.name], resolve(x.type, binding)) for x in given}
        self.absent = tuple(x.name for x in op.inputs if x not in given)
        self.given = {a.name: values[a.name] for a in op.attributes if a.name in values}
        self.attributes = node_attributes(op, self.given, {})

    @property
    def sample(self) -> Sample:
        """The call as other checks have it."""
        return Sample(self.feeds, self.attributes)

    def shapes(self, symbolic: bool = False) -> dict[str, list[Any]]:
        """Return the inputs' sizes, or (`symbolic`) a name for each size: equal names for equal sizes."""
        return {n: [f"size_{s}" if symbolic else s for s in a.shape] for n, a in self.feeds.items()}

    def model(self, module: Any, **options: Any) -> Any:
        """Return the call as a model of one node."""
        return module.make_model(self.op.class_name, dtypes=self.dtypes, absent=self.absent, **options, **self.attributes)


def _choose(dtypes: Sequence[DType], wanted: str | None) -> DType:
    by_name = {d.value: d for d in dtypes}
    # Runtimes lack types of fewer bits than a byte has.
    return by_name.get(wanted or "float32") or next((d for d in reversed(dtypes) if not d.is_small), dtypes[-1])


def example_calls(family: Family, dtype: str | None = None) -> list[ExampleCall]:
    """Return the spec's examples as calls.

    Raises:
        Unsupported: when there is none.
    """
    if not family.examples:
        raise Unsupported("the spec has no example to check this on")
    return [ExampleCall(family, dict(e.values), dtype) for e in family.examples]
