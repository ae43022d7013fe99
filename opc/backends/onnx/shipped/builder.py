"""Writes the nodes of an ONNX function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    FunctionProto,
    NodeProto,
    TensorProto,
    helper,
    numpy_helper,
)
from onnx.defs import OpSchema

OPSET = 21
"""The version of the standard operators that functions are written in."""

HALF = {"float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}


def first(*values: str | None) -> str:
    """Return the first value that is given."""
    return next(value for value in values if value is not None)


class Body:
    """Collects nodes.

    A method named like an operator, `body.Add(a, b)`, adds a node and returns the name
    of its output; a node that is there already is not added again. A `like` is the name
    of a tensor whose type is meant, or an element type of ONNX.
    """

    def __init__(self, schema: OpSchema, dtypes: Mapping[str, str]) -> None:
        self._schema = schema
        self._half = {t: HALF[dtype] for t, dtype in dtypes.items() if dtype in HALF}
        self._nodes: list[NodeProto] = []
        self._known: dict[str, str] = {}
        self._taken = {p.name for p in (*schema.inputs, *schema.outputs)}

    def __getattr__(self, op_type: str) -> Callable[..., str]:
        if not op_type[0].isupper():
            raise AttributeError(op_type)

        def add(*inputs: str, **attributes: Any) -> str:
            return self._node(helper.make_node(op_type, inputs, [], **attributes))

        return add

    def _node(self, node: NodeProto) -> str:
        key = node.SerializeToString(deterministic=True).hex()
        if key not in self._known:
            name = f"{node.op_type.lower()}_{len(self._nodes)}"
            while name in self._taken:
                name += "_"
            node.output.append(name)
            self._nodes.append(node)
            self._known[key] = name
        return self._known[key]

    # ---- values ----

    def number(self, value: float, like: str | int | None = None) -> str:
        """Add a number, an int64 or double one unless `like` tells another type."""
        dtype = np.float64 if isinstance(value, float) else np.int64
        constant = self.Constant(value=numpy_helper.from_array(np.array(value, dtype)))
        return constant if like is None else self.cast(constant, like)

    def attribute(self, name: str, like: str | int, element: int | None = None) -> str:
        """Add the value of an attribute of the function, or of one element."""
        value = self._schema.attributes[name].type.name.lower()
        node = helper.make_node("Constant", [], [])
        kind = getattr(AttributeProto, value.upper())
        reference = AttributeProto(name=f"value_{value}", type=kind, ref_attr_name=name)
        node.attribute.append(reference)
        constant = self._node(node)
        if element is not None:
            constant = self.Gather(constant, self.number(element))
        return self.cast(constant, like)

    def cast(self, x: str, like: str | int) -> str:
        """Add the conversion to another type."""
        return (
            self.CastLike(x, like) if isinstance(like, str) else self.Cast(x, to=like)
        )

    def compute(self, x: str | None, variable: str) -> str | None:
        """Bring an input to the type it is computed in: float32 for the half types."""
        if x is None or variable not in self._half:
            return x
        return self.Cast(x, to=TensorProto.FLOAT)

    def store(self, x: str, kind: str | int) -> str:
        """Bring an output to its own type; an accumulator is computed in its own."""
        if isinstance(kind, int):
            return self.Cast(x, to=kind)
        return self.Cast(x, to=self._half[kind]) if kind in self._half else x

    # ---- shapes ----

    def vector(self, *parts: str | int) -> str:
        """Add an int64 vector of numbers, scalars and vectors."""
        if all(isinstance(part, int) for part in parts):
            numbers = np.array(parts, np.int64)
            return self.Constant(value=numpy_helper.from_array(numbers))
        flat = [
            self.vector(part)
            if isinstance(part, int)
            else self.Reshape(part, self.vector(-1))
            for part in parts
        ]
        return flat[0] if len(flat) == 1 else self.Concat(*flat, axis=0)

    def axis(self, name: str, x: str) -> str:
        """Add an axis attribute's value, counted from the front of x."""
        given = self.attribute(name, TensorProto.INT64)
        counted = self.Add(given, self.rank(x))
        return self.Where(self.Less(given, self.number(0)), counted, given)

    def rank(self, x: str) -> str:
        """Add the number of axes of x."""
        return self.Size(self.Shape(x))

    def dim(self, x: str, axis: str | int) -> str:
        """Add one size of x, a scalar."""
        index = axis if isinstance(axis, str) else self.number(axis)
        return self.Gather(self.Shape(x), index)

    def shape(self, x: str, start: str | int, stop: str | int | None = None) -> str:
        """Add the sizes of the axes from `start` to before `stop`."""
        if isinstance(start, int) and not isinstance(stop, str):
            end = {} if stop is None else {"end": stop}
            return self.Shape(x, start=start, **end)
        stop = self.rank(x) if stop is None else stop
        return self.Slice(self.Shape(x), self.vector(start), self.vector(stop))

    def group_axes(
        self, x: str, start: str | int, stop: str | int | None = None
    ) -> str:
        """Add the numbers of the axes of x from `start` to before `stop`."""
        bounds = []
        for bound in (start, 0 if stop is None else stop):
            from_end = isinstance(bound, int) and (bound < 0 or bound is not start)
            if isinstance(bound, str):
                bounds.append(bound)
            elif from_end:
                bounds.append(self.Add(self.rank(x), self.number(bound)))
            else:
                bounds.append(self.number(bound))
        return self.Range(*bounds, self.number(1))

    def arange(self, count: str) -> str:
        """Add the numbers from 0 to before `count`."""
        return self.Range(self.number(0), count, self.number(1))

    def broadcast_shape(self, *tensors: str | None) -> str:
        """Add the shape that the given tensors broadcast to."""
        given = [x for x in tensors if x is not None]
        total = given[0]
        for x in given[1:]:
            total = self.Expand(total, self.Shape(x))
        return self.Shape(total)

    # ---- functions ----

    def reduce_max(self, x: str, *axes: str) -> str:
        """Add the maximum over axes; a nan among the elements is the result."""
        return self._with_nan(self.ReduceMax(x, *axes, keepdims=0), x, axes)

    def reduce_min(self, x: str, *axes: str) -> str:
        """Add the minimum over axes; a nan among the elements is the result."""
        return self._with_nan(self.ReduceMin(x, *axes, keepdims=0), x, axes)

    def _with_nan(self, value: str, x: str, axes: tuple[str, ...]) -> str:
        # Runtimes differ in whether ReduceMax keeps a nan.
        return self.Where(
            self.reduce_any(self.IsNaN(x), *axes), self.number(float("nan"), x), value
        )

    def reduce_any(self, x: str, *axes: str) -> str:
        """Add whether any element along axes is true."""
        count = self.ReduceSum(self.Cast(x, to=TensorProto.INT32), *axes, keepdims=0)
        return self.Cast(count, to=TensorProto.BOOL)

    def reduce_all(self, x: str, *axes: str) -> str:
        """Add whether all elements along axes are true."""
        return self.Not(self.reduce_any(self.Not(x), *axes))

    def sum_to(self, x: str, shape: str) -> str:
        """Add the sum over the axes along which a tensor of `shape` was broadcast."""
        missing = self.Sub(self.rank(x), self.Size(shape))
        ones = self.Expand(self.vector(1), self.vector(missing))
        repeated = self.Equal(self.Concat(ones, shape, axis=0), self.number(1))
        axes = self.Reshape(self.NonZero(repeated), self.vector(-1))
        total = self.ReduceSum(x, axes, keepdims=1, noop_with_empty_axes=1)
        return self.Reshape(total, shape, allowzero=1)

    def expm1(self, x: str) -> str:
        """Add exp(x) - 1, which tanh(x/2) * (exp(x) + 1) is without cancellation."""
        half = self.Tanh(self.Mul(x, self.number(0.5, x)))
        return self.Mul(half, self.Add(self.Exp(x), self.number(1.0, x)))

    def log1p(self, x: str) -> str:
        """Add log(1 + x) by Kahan's log(u) * x / (u - 1) with u = 1 + x rounded."""
        one = self.number(1.0, x)
        u = self.Add(x, one)
        quotient = self.Div(self.Mul(self.Log(u), x), self.Sub(u, one))
        finite = self.Where(self.Equal(u, one), x, quotient)
        return self.Where(self.IsInf(u), self.Log(u), finite)

    def exp2(self, x: str) -> str:
        """Add 2 to the power of x."""
        return self.Pow(self.number(2.0, x), x)

    def log2(self, x: str) -> str:
        """Add the logarithm to base 2."""
        return self.Div(self.Log(x), self.number(float(np.log(2.0)), x))

    def log10(self, x: str) -> str:
        """Add the logarithm to base 10."""
        return self.Div(self.Log(x), self.number(float(np.log(10.0)), x))

    def trunc(self, x: str) -> str:
        """Add x rounded towards 0."""
        return self.Mul(self.Sign(x), self.Floor(self.Abs(x)))

    def mod(self, x: str, y: str) -> str:
        """Add the remainder of integers, which has the sign of y."""
        return self.Mod(x, y)

    def floordiv(self, x: str, y: str) -> str:
        """Add the quotient of integers, rounded to minus infinity."""
        return self.Div(self.Sub(x, self.Mod(x, y)), y)

    # ---- the function ----

    def function(self, outputs: Iterable[str | None]) -> FunctionProto:
        """Return the function with these values as outputs; None for one not wanted."""
        schema = self._schema
        for parameter, value in zip(schema.outputs, outputs, strict=True):
            made = self.Constant(value_floats=[]) if value is None else value
            self._nodes.append(helper.make_node("Identity", [made], [parameter.name]))
        attributes = schema.attributes.values()
        return helper.make_function(
            schema.domain,
            schema.name,
            [p.name for p in schema.inputs],
            [p.name for p in schema.outputs],
            self._nodes,
            [helper.make_opsetid("", OPSET)],
            [a.name for a in attributes if a.required],
            [a.default_value for a in attributes if not a.required],
            schema.doc,
        )
