"""The generated test of an op's NumPy functions."""

from __future__ import annotations

import math
from typing import Any

from opc.backends.example_text import precise
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.op import Attribute, AttributeKind, Example, Family


def values(family: Family) -> dict[str, object]:
    """Return what the test's template needs beyond names; the spec must have an example."""
    examples = Bracket("EXAMPLES = [", [_example(family, e) for e in family.examples], "]")
    first = dict(family.examples[0].values)
    names = [quoted(o.name) for o in family.forward.inputs if first.get(o.name) is not None]
    return {
        "examples": examples.render(),
        "each_input": Bracket("@pytest.mark.parametrize(", ['"name"', Bracket("[", names, "]")], ")").render(),
        "bad_attributes": [bad for a in family.forward.attributes if (bad := _bad(a)) is not None],
        "outputs": Bracket("OUTPUTS = [", [quoted(o.name) for o in family.forward.outputs], "]").render(),
        "single": len(family.forward.outputs) == 1,
    }


def _example(family: Family, example: Example) -> Bracket:
    given = dict(example.values)
    forward = family.forward
    inputs: list[str | Bracket] = []
    for o in forward.inputs:
        dtype = precise(o).value
        if given.get(o.name) is None:
            inputs.append(f"{quoted(o.name)}: None")
        else:
            inputs.append(Bracket(f"{quoted(o.name)}: np.array(", [_number(given[o.name]), f"dtype={quoted(dtype)}"], ")"))
    attributes = [f"{quoted(a.name)}: {_attribute(given[a.name])}" for a in forward.attributes if a.name in given]
    outputs = [_entry(o.name, given[o.name]) for o in forward.outputs if o.name in given]
    return Bracket("(", [Bracket("{", inputs, "}"), Bracket("{", attributes, "}"), Bracket("{", outputs, "}")], ")")


def _entry(name: str, value: object) -> str | Bracket:
    number = _number(value)
    if isinstance(number, Bracket):
        return Bracket(f"{quoted(name)}: {number.head}", number.items, number.tail)
    return f"{quoted(name)}: {number}"


def _number(value: Any) -> str | Bracket:
    if isinstance(value, list | tuple):
        return Bracket("[", [_number(v) for v in value], "]")
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    return literal(value)


def _attribute(value: Any) -> str:
    return literal(tuple(value) if isinstance(value, list) else value)


def _bad(a: Attribute) -> tuple[str, str, str, str] | None:
    """Return a value that the attribute refuses, with the exception and a part of its message."""
    if a.values:
        return a.name, '"no such value"', "ValueError", a.name
    if a.kind in (AttributeKind.FLOAT, AttributeKind.INT, AttributeKind.AXIS, AttributeKind.BOOL):
        return a.name, '"text"', "TypeError", a.name
    return None
