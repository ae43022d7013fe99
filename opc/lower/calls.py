"""Which calls something is for, by the values of attributes that stand for few things: strings of a list, and bools."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import product

from opc.ir.op import Attribute, AttributeKind, Op
from opc.records import dataclass

Values = tuple[int | bool, ...]
"""A value for each of some attributes: a position among the strings of its list, or a bool."""


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls in which one of `cases` holds: each attribute that it names has one of the values beside it."""

    cases: tuple[tuple[tuple[str, Values], ...], ...]

    def text(self, op: Op) -> str:
        """Return the calls as a condition in the language of specs."""
        return " or ".join(" and ".join(_text(op.attribute(name), values) for name, values in case) for case in self.cases)

    def words(self, op: Op) -> str:
        """Return what tells the calls apart in a name, empty where that is no word."""
        if len(self.cases) != 1 or any(len(values) != 1 for _, values in self.cases[0]):
            return ""
        found = "_".join(_word(op.attribute(name), value) for name, (value,) in self.cases[0])
        return found if found.isidentifier() else ""


def _text(a: Attribute, values: Values) -> str:
    if a.kind is AttributeKind.BOOL:
        return a.name if values[0] else f"not {a.name}"
    words = [f"{a.name} == {a.values[v]!r}" for v in values]
    return words[0] if len(words) == 1 else f"({' or '.join(words)})"


def _word(a: Attribute, value: int | bool) -> str:
    if a.kind is AttributeKind.BOOL:
        return a.name if value else f"not_{a.name}"
    return a.values[value]


def values_of(attributes: Collection[Attribute]) -> tuple[Values, ...]:
    """Return all values of some attributes, the last one's changing first."""
    own = ((True, False) if a.kind is AttributeKind.BOOL else range(len(a.values)) for a in attributes)
    return tuple(product(*own))


def put(attributes: Collection[Attribute], values: Values) -> Mapping[str, str | bool]:
    """Return the values of some attributes by their names, as conditions compare them."""
    return {a.name: bool(v) if a.kind is AttributeKind.BOOL else a.values[v] for a, v in zip(attributes, values, strict=True)}


def calls_of(attributes: Collection[Attribute], values: Collection[Values]) -> Calls | None:
    """Return the calls in which attributes have one of `values`, None where they are all calls.

    An attribute that changes nothing is left out, and values of one after which the others' are alike stand together.
    """
    found = _cases(tuple(attributes), frozenset(values))
    return None if found == ((),) else Calls(found)


def _cases(attributes: tuple[Attribute, ...], values: frozenset[Values]) -> tuple[tuple[tuple[str, Values], ...], ...]:
    if not attributes:
        return ((),) if values else ()
    first, rest = attributes[0], attributes[1:]
    alike: dict[frozenset[Values], list[int | bool]] = {}
    for (v,) in values_of((first,)):
        alike.setdefault(frozenset(x[1:] for x in values if x[0] == v), []).append(v)
    if len(alike) == 1:
        return _cases(rest, next(iter(alike)))
    return tuple(((first.name, tuple(own)), *case) for left, own in alike.items() for case in _cases(rest, left))
