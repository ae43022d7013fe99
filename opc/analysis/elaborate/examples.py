"""The examples of a spec: values by name that fit the signature."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

from opc.analysis.elaborate.attribute_types import AttributeTyper
from opc.analysis.shapes.attributes import ShapeError
from opc.analysis.shapes.inference import infer
from opc.diagnostics import Diagnostics, one_of
from opc.ir.dtypes import candidates
from opc.ir.op import Example, Op, Operand
from opc.spec.loader import Spec

MOST_SHOWN = 40
"""The number below which a size is tried that an example's outputs may show."""


class ExampleTyper:
    """Checks the examples of one spec against its op."""

    def __init__(self, spec: Spec, op: Op, attributes: AttributeTyper, found: Diagnostics) -> None:
        self.spec = spec
        self.op = op
        self.attributes = attributes
        self.found = found

    def examples(self) -> tuple[Example, ...]:
        """Return the examples that fit, in order; mistakes in the others are recorded."""
        every = [self._example(i, values) for i, values in enumerate(self.spec.model.examples)]
        return tuple(e for e in every if e is not None)

    def _example(self, position: int, values: dict[str, Any]) -> Example | None:
        op, spec, path = self.op, self.spec, ("examples", position)
        before = len(self.found.items)
        operands = {o.name: o for o in (*op.inputs, *op.outputs)}
        attributes = {a.name: a for a in op.attributes}
        kept: list[tuple[str, object]] = []
        shapes: dict[str, tuple[int, ...] | None] = {o.name: None for o in op.inputs}
        for name, value in values.items():
            if name in operands:
                shape = self._array(operands[name], value, (*path, name))
                if shape is not None:
                    shapes[name] = shape
                    kept.append((name, value))
            elif name in attributes:
                kept.append((name, self.attributes.convert(attributes[name], value, (*path, name), "the value")))
            else:
                hint = one_of(name, [*operands, *attributes], "names here")
                self.found.error(f"'{name}' is no operand or attribute", spec.key_span(*path, name), hint)
        for o in op.inputs:
            if o.name not in values and not o.optional:
                self.found.error(
                    f"the example lacks the input '{o.name}'", spec.span(*path), f"give it: {o.name}: ..., or declare '{o.name}?'"
                )
        for a in op.attributes:
            if a.name not in values and a.required and a.name not in op.told:
                self.found.error(f"the example lacks the attribute '{a.name}'", spec.span(*path), "give it, or declare a default")
        if not any(o.name in values for o in op.outputs):
            self.found.error("the example says no output", spec.span(*path), "say what an output must be")
        if len(self.found.items) > before:
            return None
        shown = _shown(op, shapes, values)
        for name in op.told:
            if name not in values and name not in shown:
                message = f"no size '{name}' gives what the example says, or several do"
                self.found.error(message, spec.span(*path), f"give {name}, or an output with such an axis")
                return None
        example = Example((*kept, *shown.items()), tuple(shown), spec.span(*path))
        return example if self._fits(shapes, dict(example.values), path) else None

    def _array(self, operand: Operand, value: object, path: tuple[str | int, ...]) -> tuple[int, ...] | None:
        """Return the shape of nested lists of numbers; None, recorded, when they are no array of the operand's type."""
        spec = self.spec
        if isinstance(value, list):
            shapes = [self._array(operand, v, (*path, i)) for i, v in enumerate(value)]
            if any(s is None for s in shapes):
                return None
            for i, shape in enumerate(shapes):
                if shape != shapes[0]:
                    self.found.error(
                        f"the rows of '{operand.name}' have different lengths",
                        spec.span(*path, i),
                        "all rows of a tensor have one length",
                    )
                    return None
            return (len(value), *(shapes[0] or ())) if shapes else (0,)
        dtypes = candidates(operand.type)
        span = spec.span(*path)
        if isinstance(value, bool):
            if all(d.value != "bool" for d in dtypes):
                self.found.error(
                    f"'{operand.name}' is {operand.type}, not a boolean", span, "write 0 or 1, or declare it as bool"
                )
                return None
        elif not isinstance(value, int | float):
            self.found.error(f"'{operand.name}' holds numbers", span, "infinity is .inf and not-a-number .nan")
            return None
        elif spec.is_beyond_float64(value, *path):
            self.found.error("this number is beyond 1.8e308, the largest of float64", span, "infinity is written .inf")
            return None
        elif not any(d.is_floating for d in dtypes) and _whole(value) and not -(2**63) <= value < 2**64:
            hint = f"'{operand.name}' is {operand.type}: int64 holds numbers to 2**63 - 1, uint64 to 2**64 - 1"
            self.found.error("this number does not fit in 64 bits", span, hint)
            return None
        elif isinstance(value, float) and not any(d.is_floating for d in dtypes) and not _whole(value):
            self.found.error(
                f"'{operand.name}' is {operand.type}, not a fraction",
                span,
                "write a whole number, or give an input of floating type a number with a point",
            )
            return None
        return ()

    def _fits(self, shapes: dict[str, tuple[int, ...] | None], values: dict[str, object], path: tuple[str | int, ...]) -> bool:
        """Whether the shapes of an example meet the op's rules, outputs included."""
        op = self.op
        inputs = {o.name: shapes[o.name] for o in op.inputs}
        given = {a.name: values[a.name] for a in op.attributes if a.name in values}
        try:
            outputs = infer(op, inputs, given).outputs
        except ShapeError as error:
            self.found.error(
                f"the example does not fit: {error}", self.spec.span(*path), "give inputs of sizes that the op takes"
            )
            return False
        for o in op.outputs:
            shape = shapes.get(o.name)
            if shape is not None and shape != outputs[o.name]:
                message = f"'{o.name}' has the shape {_shape(shape)}, and the op gives {_shape(outputs[o.name])}"
                self.found.error(message, self.spec.span(*path, o.name), "write what the op gives of these inputs")
                return False
        return True


def _shown(op: Op, shapes: Mapping[str, tuple[int, ...] | None], values: Mapping[str, object]) -> dict[str, int]:
    """Return the sizes that data tells and `values` lack as the outputs of an example show them; none where they show none."""
    missing = [name for name in op.told if name not in values]
    inputs = {o.name: shapes[o.name] for o in op.inputs}
    outputs = {o.name: shape for o in op.outputs if (shape := shapes.get(o.name)) is not None}
    given = {a.name: values[a.name] for a in op.attributes if a.name in values}
    sizes = range(min(MOST_SHOWN, max((size for shape in outputs.values() for size in shape), default=0) + 1))
    fitting = []
    for tried in itertools.product(sizes, repeat=len(missing)) if missing else ():
        found = dict(zip(missing, tried))
        try:
            known = infer(op, inputs, {**given, **found}).outputs
        except ShapeError:
            continue
        if all(known[name] == shape for name, shape in outputs.items()):
            fitting.append(found)
    return fitting[0] if len(fitting) == 1 else {}


def _whole(value: float) -> bool:
    return math.isfinite(value) and value == int(value)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"
