"""Values of attributes that choose between ways to compute: each beside each value of another is in some call.

Most faults need no more than two choices to show (Kuhn, Wallace and Gallo, Software fault interactions and implications for
software testing, 2004), and there are far fewer pairs than combinations.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from opc.ir.op import AttributeKind, Op

Choice: TypeAlias = tuple[str, Any]
"""An attribute and one of its values."""


def choices_of(op: Op, good: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Return the `good` values, more than one, of each attribute of an op that names one of a few values, or is a bool."""
    some = [a.name for a in op.attributes if a.values or (a.kind is AttributeKind.BOOL and a.length is None)]
    found = {name: list(dict.fromkeys(good.get(name, ()))) for name in some}
    return {name: values for name, values in found.items() if len(values) > 1}


def pairs_in(attributes: Mapping[str, Any], choices: Mapping[str, Sequence[Any]]) -> set[tuple[Choice, Choice]]:
    """Return the pairs of choices that a call with these attributes has, its defaults among them."""
    own = [(name, attributes[name]) for name in choices if name in attributes]
    return set(itertools.combinations(own, 2))


def missing_pairs(calls: Iterable[Mapping[str, Any]], choices: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return the pairs of choices that no call has, each as attributes, in the order of the op's attributes."""
    seen = set[tuple[Choice, Choice]]().union(*(pairs_in(c, choices) for c in calls))
    every = (
        ((a, x), (b, y)) for a, b in itertools.combinations(choices, 2) for x, y in itertools.product(choices[a], choices[b])
    )
    return [dict(pair) for pair in every if pair not in seen]


__all__ = ["choices_of", "missing_pairs", "pairs_in"]
