"""The spec's examples as Python text, for generated tests of ONNX runtimes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from opc.emit.onnx.types import used_variables
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.dtypes import DType, TypeVar, candidates, resolve
from opc.ir.op import AttributeKind, Example, Family, Operand

TESTED = (DType.FLOAT32, DType.FLOAT64, DType.FLOAT16)
"""The dtypes that examples are run in; an op that has none of them is run in the last of its own."""


def examples(family: Family) -> str:
    """Return the assignment of EXAMPLES: inputs, attributes and outputs of each."""
    return Bracket("EXAMPLES = [", [_example(family, e) for e in family.examples], "]").render()


def types(family: Family) -> str:
    """Return the assignment of TYPES: by a dtype, those of all inputs and of all outputs when the op computes in it."""
    rows = []
    for name, binding in _bindings(family):
        of = (Bracket("{", [f"{quoted(o.name)}: {quoted(_dtype(o, binding))}" for o in side], "}") for side in _sides(family))
        rows.append(Bracket(f"{quoted(name)}: (", list(of), ")"))
    return Bracket("TYPES = {", rows, "}").render()


def several_variables(family: Family) -> str:
    """Return the assignment of VARIABLES: by the same dtypes, what the type variables stand for; empty where there is one."""
    if len(used_variables(family.forward)) < 2:
        return ""
    rows = []
    for name, binding in _bindings(family):
        rows.append(Bracket(f"{quoted(name)}: {{", [f"{quoted(v)}: {quoted(d.value)}" for v, d in binding.items()], "}"))
    return Bracket("VARIABLES = {", rows, "}").render()


def _bindings(family: Family) -> list[tuple[str, dict[str, DType]]]:
    variables = used_variables(family.forward)
    every = tuple(dict.fromkeys(d for v in variables for d in v.dtypes))
    chosen = [d for d in TESTED if d in every] or list(every)[-1:]
    return [(d.value, bound(variables, d)) for d in chosen] or [("own", {})]


def bound(variables: Sequence[TypeVar], dtype: DType) -> dict[str, DType]:
    """Return type variables bound to a dtype, those that do not have it to the first of their own."""
    return {v.name: dtype if dtype in v.dtypes else v.dtypes[0] for v in variables}


def _sides(family: Family) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    return family.forward.inputs, family.forward.outputs


def _dtype(o: Operand, binding: Mapping[str, DType]) -> str:
    return resolve(o.type, binding).value


def _example(family: Family, example: Example) -> Bracket:
    given = dict(example.values)
    parts = []
    for names in (
        [o.name for o in family.forward.inputs if given.get(o.name) is not None],
        [a.name for a in family.forward.attributes if a.name in given],
        [o.name for o in family.forward.outputs if o.name in given],
    ):
        parts.append(Bracket("{", [_entry(name, given[name]) for name in names], "}"))
    return Bracket("(", parts, ")")


def _entry(name: str, value: object) -> str | Bracket:
    shown = number(value)
    if isinstance(shown, Bracket):
        return Bracket(f"{quoted(name)}: {shown.head}", shown.items, shown.tail)
    return f"{quoted(name)}: {shown}"


def precise(o: Operand) -> DType:
    """Return the dtype that holds an example's numbers of an operand best: float64, else the first of the operand's own."""
    dtypes = candidates(o.type)
    return DType.FLOAT64 if DType.FLOAT64 in dtypes else dtypes[0]


def number(value: object) -> str | Bracket:
    """Return a number, string, or nested list of them."""
    if isinstance(value, list | tuple):
        return Bracket("[", [number(v) for v in value], "]")
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return literal(value)


def wrong_attribute(family: Family) -> str | None:
    """Return an attribute's name and a value of a type it does not take, as arguments; None for an op without attributes."""
    for a in family.forward.attributes:
        return f"{quoted(a.name)}, {'1.5' if a.kind is AttributeKind.STR else quoted('text')}"
    return None


def defaults(family: Family) -> str:
    """Return the assignment of DEFAULTS, the attributes' defaults."""
    items = [f"{quoted(a.name)}: {number(a.default)}" for a in family.forward.attributes if not a.required]
    return Bracket("DEFAULTS = {", items, "}").render()
