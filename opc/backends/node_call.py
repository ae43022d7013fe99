"""A call of an op as an ONNX model of one node, and the session that makes such calls: what the ONNX runtimes share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.analysis.shapes.inference import infer_types
from opc.backends import package as packages
from opc.backends.base import OpError, Session, Unsupported
from opc.backends.derived import required_outputs
from opc.emit.dtypes import type_variable
from opc.emit.onnx.types import TENSOR_TYPE, attribute_type
from opc.ir.dtypes import DTYPES, Acc, DType, TypeVar, candidates
from opc.ir.op import AttributeKind, Family, Op, Operand

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

OPSET = 21
"""The version of the standard operators that models import."""

IR_VERSION = 10
"""The version of the file format."""


class NodeCall:
    """One call of an op. Inputs of the model have any rank, so that one model serves all calls that differ in sizes only."""

    def __init__(self, op: Op, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None) -> None:
        """Describe a call.

        Raises:
            Unsupported: when a value of an attribute can't be held in a model.
        """
        self.op = op
        self.feeds = {o.name: array for o in op.inputs if (array := inputs.get(o.name)) is not None}
        self.wanted = required_outputs(op, self.feeds, attributes, only)
        self.dtypes = {name: array.dtype.name for name, array in self.feeds.items()}
        self.given = dict(attributes)
        self.attributes = node_attributes(op, attributes, self.dtypes)

    @property
    def key(self) -> object:
        """What calls that the same model serves have in common."""
        attributes = tuple((name, tuple(v) if isinstance(v, list) else v, str(type(v))) for name, v in self.attributes.items())
        return self.op.name, tuple(self.dtypes.items()), self.wanted, attributes

    @property
    def function_key(self) -> object:
        """What calls that the same model with a function serves have in common."""
        return "function", self.key, tuple(array.ndim for array in self.feeds.values())

    def model(self) -> Any:
        """Return the `ModelProto`.

        Raises:
            OpError: when a dtype or an attribute can't be written into a model.
        """
        from onnx import ValueInfoProto, helper

        def value(name: str, dtype: str) -> Any:
            info = ValueInfoProto(name=name)
            info.type.tensor_type.elem_type = _element_type(dtype)
            return info

        op = self.op
        try:
            node = helper.make_node(
                op.class_name,
                trimmed([o.name if o.name in self.feeds else "" for o in op.inputs]),
                trimmed([o.name if o.name in self.wanted else "" for o in op.outputs]),
                domain=op.domain,
            )
            node.attribute.extend(self._attribute(name, value) for name, value in self.attributes.items())
            inputs = [value(name, dtype) for name, dtype in self.dtypes.items()]
            outputs = [value(o.name, self._output_dtype(o)) for o in op.outputs if o.name in self.wanted]
        except (KeyError, TypeError, ValueError) as error:
            raise OpError(f"{op.name}: {error}") from error
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(op.domain, op.version)]
        return helper.make_model(
            helper.make_graph([node], op.class_name, inputs, outputs), opset_imports=opsets, ir_version=IR_VERSION
        )

    def function_model(self, module: Any) -> Any:
        """Return the call as a model that holds the op's body in standard operators, for inputs of its ranks and any sizes.

        `module` is the package's ONNX module.

        Raises:
            Unsupported: when the op has no such body, or an attribute's value is not the one that a model can hold.
        """
        given = {o.name: DType(self.dtypes[o.name]) if o.name in self.dtypes else None for o in self.op.inputs}
        whole = dict.fromkeys(self.op.told, 0) | self.given
        binding = {name: dtype.value for name, dtype in infer_types(self.op, given, whole).items()}
        # What is given, and a default, is of single precision in a function.
        values = (self.given.get(a.name, a.default) for a in self.op.attributes if a.kind is AttributeKind.FLOAT)
        inexact = [v for d in values for v in (d if isinstance(d, tuple) else (d,)) if _is_inexact(v)]
        if inexact and "float64" in self.dtypes.values():
            raise Unsupported(f"a function's attribute is held in float32, which does not represent {inexact[0]}")
        absent = tuple(o.name for o in self.op.inputs if o.name not in self.feeds)
        try:
            return module.make_model(
                self.op.class_name,
                dtypes=binding,
                shapes={name: [None] * array.ndim for name, array in self.feeds.items()},
                absent=absent,
                outputs=self.wanted,
                function=True,
                **self.attributes,
            )
        except NotImplementedError as reason:
            raise Unsupported(str(reason)) from reason

    def _attribute(self, name: str, value: Any) -> Any:
        """Return an attribute; the type of an empty list is that which the op declares."""
        from onnx import AttributeProto, helper

        declared = next((a for a in self.op.attributes if a.name == name), None)
        if value == [] and declared is not None:
            return helper.make_attribute(name, value, attr_type=AttributeProto.AttributeType.Value(attribute_type(declared)))
        if isinstance(value, list | tuple):
            # ONNX has no attributes of type bool.
            value = [int(v) if isinstance(v, bool) else v for v in value]
        return helper.make_attribute(name, value)

    def _output_dtype(self, o: Operand) -> str:
        """Return the dtype an output has by the inputs' dtypes and the attributes, right or wrong."""
        variable = type_variable(o.type)
        bound = next((self.dtypes[i.name] for i in self.op.inputs if i.type == variable and i.name in self.dtypes), None)
        for a in self.op.attributes:
            if bound is None and variable is not None and a.kind is AttributeKind.DTYPE and a.binds == variable.name:
                chosen = str(self.given.get(a.name, a.default))
                bound = chosen if chosen in {d.value for d in DTYPES} else None
        if variable is None or bound is None:
            return candidates(o.type)[0].value
        if isinstance(o.type, TypeVar):
            return bound
        known = DType(bound) if bound in {d.value for d in DTYPES} else candidates(variable)[0]
        return candidates(Acc(known))[0].value

    def run(self, evaluate: Evaluate) -> dict[str, Array]:
        """Return the outputs by name.

        Raises:
            OpError: when the runtime refuses the call, with the innermost of its messages.
        """
        try:
            return dict(zip(self.wanted, evaluate(self.feeds), strict=True))
        except (OpError, Unsupported):
            raise
        except Exception as error:
            # Runtimes raise classes of their own, which derive from nothing but Exception.
            inner: BaseException = error
            while inner.__cause__ is not None:
                inner = inner.__cause__
            raise OpError(str(inner)) from error


Evaluate = Callable[[dict[str, "Array"]], Sequence["Array"]]
"""A model that is loaded: from its inputs by name to its outputs in order."""


class NodeSession(Session):
    """Runs each call as a model of one node; calls that differ in sizes only share one."""

    has_functions = True
    tells_sizes = True

    def __init__(self, family: Family, package: Path) -> None:
        """Remember the family and its package."""
        super().__init__(family, package)
        self._loaded: dict[object, Evaluate] = {}

    @abstractmethod
    def load(self, call: NodeCall) -> Evaluate:
        """Load the model of a call.

        Raises:
            OpError: when the runtime refuses it.
        """

    @abstractmethod
    def load_function(self, call: NodeCall, model: Any) -> Evaluate:
        """Load the model of a call that holds the op's body in standard operators, without the op itself.

        Raises:
            Unsupported: when the runtime lacks one of these.
        """

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        call = NodeCall(self.ops[op], inputs, attributes, only)
        if call.key not in self._loaded:
            self._loaded[call.key] = self.load(call)
        return call.run(self._loaded[call.key])

    def function_call(
        self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None
    ) -> dict[str, Array]:
        """Run one op by its body in standard operators; Unsupported where the package holds no such body."""
        if not (self.package / "onnx").is_dir():
            raise Unsupported("the package has no part for ONNX, which holds the body in standard operators")
        call = NodeCall(self.ops[op], inputs, attributes, only)
        if call.function_key not in self._loaded:
            model = call.function_model(packages.load(self.package, "onnx"))
            self._loaded[call.function_key] = self.load_function(call, model)
        return call.run(self._loaded[call.function_key])


def trimmed(names: list[str]) -> list[str]:
    """Return the names without the empty ones at the end, which stand for operands that are left out."""
    while names and not names[-1]:
        names = names[:-1]
    return names


def _element_type(dtype: str) -> int:
    """Return ONNX's number of a dtype, that of one no op takes too.

    Raises:
        Unsupported: when ONNX has no such dtype.
    """
    known = next((d for d in DTYPES if d.value == dtype), None)
    if known is not None and known.row.onnx is None:
        raise Unsupported(f"ONNX has no tensors of {known}")
    if known is not None and known.row.onnx is not None:
        return known.row.onnx[1]
    import numpy as np
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))


def node_attributes(op: Op, attributes: Mapping[str, Any], dtypes: Mapping[str, str]) -> dict[str, Any]:
    """Return attributes as `onnx.helper.make_node` takes them; one of a wrong type stays as it is.

    Raises:
        Unsupported: when float64 is computed with an attribute that float32, as which ONNX holds it, does not represent.
    """
    import numpy as np
    from onnx import TensorProto

    known = {a.name: a for a in op.attributes}
    result: dict[str, Any] = {}
    for name, value in attributes.items():
        a = known.get(name)
        elements = list(value) if isinstance(value, tuple | list) else [value]
        if a is not None and a.kind is AttributeKind.DTYPE:
            elements = [TensorProto.DataType.Value(TENSOR_TYPE[DType(v)]) for v in elements]
        elif a is not None and a.kind is AttributeKind.FLOAT and all(_is_number(v) for v in elements):
            elements = [float(v) for v in elements]
            inexact = [v for v in elements if v == v and np.float32(v) != v and v != a.default]
            if inexact and "float64" in dtypes.values():
                raise Unsupported(f"ONNX holds {name} in float32, which does not represent {inexact[0]}")
        result[name] = elements if isinstance(value, tuple | list) else elements[0]
    return result


def _is_inexact(value: object) -> bool:
    """Whether float32 does not represent a number."""
    import numpy as np

    return isinstance(value, float) and value == value and float(np.float32(value)) != value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
