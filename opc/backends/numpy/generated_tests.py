"""The generated test of an op's NumPy functions."""

from __future__ import annotations

from opc.backends import example_text
from opc.backends.example_text import Text
from opc.backends.templates import Templates
from opc.emit.python.text import Bracket, literal, quoted
from opc.ir.op import Attribute, AttributeKind, Family, Operand


def files(family: Family, templates: Templates) -> dict[str, str]:
    """Return the test by its path; empty for an op without examples."""
    op = family.forward
    first = dict(family.examples[0].values) if family.examples else {}
    names = [quoted(o.name) for o in op.inputs if first.get(o.name) is not None]
    return example_text.test_file(
        family,
        templates,
        "numpy",
        examples=example_text.examples(family, absent=True, array=_array, attribute=_attribute),
        each_input=Bracket("@pytest.mark.parametrize(", ['"name"', Bracket("[", names, "]")], ")").render(),
        bad_attributes=[bad for a in op.attributes if (bad := _bad(a)) is not None],
        single=len(op.outputs) == 1,
    )


def _array(operand: Operand, numbers: Text) -> Bracket:
    return Bracket("np.array(", [numbers, f"dtype={quoted(example_text.precise(operand).value)}"], ")")


def _attribute(value: object) -> str:
    return literal(tuple(value) if isinstance(value, list) else value)


def _bad(a: Attribute) -> tuple[str, str, str, str] | None:
    """Return a value that the attribute refuses, with the exception and a part of its message."""
    if a.values:
        return a.name, '"no such value"', "ValueError", a.name
    if a.kind in (AttributeKind.FLOAT, AttributeKind.INT, AttributeKind.AXIS, AttributeKind.BOOL):
        return a.name, '"text"', "TypeError", a.name
    return None
