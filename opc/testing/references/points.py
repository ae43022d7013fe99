"""Where derived gradients are proved: small calls of the forward op, and values of its inputs at which it has a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.testing.cases.arguments import random_values
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import derived_inputs, family_volume, is_integer
from opc.testing.cases.sizes import table_sizes
from opc.testing.cases.table import Table
from opc.testing.oracle.bounds import Array, Bounds
from opc.testing.oracle.evaluation import DomainError, evaluate
from opc.testing.references.sharpness import narrow

Point = tuple[dict[str, Array | None], dict[str, Any]]
"""Inputs, the floating ones in float64, and attributes."""

SMALL = 1500
"""The number of points the largest loop may have where a gradient is proved."""

SMALLEST = 200
"""The same where an attribute or optional input changes no call that is small enough otherwise."""

FEWER = (48, 6, 2)
"""The same, in turn, where larger calls decide nothing: each step of a recurrence may make the enclosures wider."""

SMALL_DERIVED = 60_000
"""The number of points it may have in the ops of a family that are derived."""

FEW = 2
"""At how many points a sample of calls proves gradients."""

PLAIN = ("sizes", "attribute", "attributes", "without", "axis", "broadcast")
"""The kinds of calls at which gradients are proved: others differ from these in dtypes, layouts or special values."""

ENOUGH = 6
"""From how many points on the default of an attribute, which other calls have, is none of its own."""

LEAST = 4
"""At how many points all calls prove them at least, where an op has so many."""

MOST_ELEMENTS = 600
"""The number of elements that the inputs may have together where a gradient is proved."""

DOMAINS: tuple[Callable[[Array], Array], ...] = (np.abs, lambda x: np.abs(x) / (1 + np.abs(x)), lambda x: 1 + np.abs(x))
"""What brings random values into the domain of a function that is not defined everywhere: x > 0, 0 < x < 1 and x > 1."""


def binding_of(op: Op) -> dict[str, DType]:
    """Return a binding with every type variable floating that can be, float64 where it can."""
    return {t.name: next((d for d in reversed(t.dtypes) if d.is_floating), t.dtypes[0]) for t in op.types}


def points(op: Op, count: int = 14, *, family: Family | None = None, limit: int | None = None) -> Iterator[Case]:
    """Yield small calls of an op to differentiate at: some sizes, `count` at most, then every choice of optional inputs and the
    values of each attribute: all of a text or bool, two of a number.

    With its `family`, calls at which the ops derived from it would take long are left out; with a `limit`, those of more points.
    """
    kinds: Counter[str] = Counter()
    texts: set[tuple[str, Any] | None] = set()
    for case in _small(op, kinds) if limit is None else Table(op, limit=limit).table():
        if case is None:
            continue
        kind = _kind(op, case)
        size = sum(a.data.size for a in case.inputs.values() if a is not None)
        first = kind.split("-")[0]
        if first not in PLAIN or "special" in kind or not 0 < size <= MOST_ELEMENTS or kinds[kind] >= _most(op, kind):
            continue
        if (text := _text(op, kind, case)) in texts:
            continue
        if kinds.total() >= count and first in ("sizes", "broadcast"):
            continue
        if first == "attribute" and _default(op, kind, case):
            if kinds.total() >= ENOUGH:
                continue  # it is that of other calls
            kind = "attribute"
        if family is not None and family_volume(family, case) > SMALL_DERIVED:
            continue
        kinds[kind] += 1
        texts |= {text} - {None}
        yield case


def _kind(op: Op, case: Case) -> str:
    """Return what a case is named for, without its number and dtypes, such as `attribute-alpha`."""
    return case.name.split("/")[1].split("-", 1)[1].rsplit("-", len(op.types))[0]


def _most(op: Op, kind: str) -> int:
    """Return at how many calls of a kind to differentiate: at one for each value of a text, and two of other kinds."""
    return max([2, *(len(a.values or ()) for a in op.attributes if kind == f"attribute-{a.name}")])


def _default(op: Op, kind: str, case: Case) -> bool:
    """Whether the attribute that a case is for has its default."""
    named = [a for a in op.attributes if kind == f"attribute-{a.name}" and not a.required]
    return all(case.attributes.get(a.name, a.default) == a.default for a in named) and bool(named)


def _text(op: Op, kind: str, case: Case) -> tuple[str, Any] | None:
    """Return the attribute that a case is for, with its value, where that is a text: other dtypes are not of interest here."""
    return next(
        ((a.name, case.attributes.get(a.name, a.default)) for a in op.attributes if a.values and kind == f"attribute-{a.name}"),
        None,
    )


def _small(op: Op, kinds: Counter[str]) -> Iterator[Case | None]:
    """Yield the table of small calls; then, if few became points, as `kinds` counts them, of smaller ones.

    So it is with calls for an attribute or without an input none of which became one. The largest loop of an op that copies has
    no more points than there are elements.
    """
    yield from Table(op, limit=SMALL).table()
    named = [f"attribute-{a.name}" for a in op.attributes] + [f"without-{o.name}" for o in op.inputs if o.optional]
    texts = [f"attribute-{a.name}" for a in op.attributes if a.values]
    for limit in (MOST_ELEMENTS, SMALLEST):
        few, missing = kinds.total() < LEAST, [kind for kind in named if not kinds[kind]]
        for case in Table(op, limit=limit).table() if few or missing else ():
            kind = None if case is None else _kind(op, case)
            # Such calls are of large ops: one is enough for each number.
            if few or (kind in missing and (not kinds[kind] or kind in texts)):
                yield case
    yield from _chosen(op, named, kinds)


def _chosen(op: Op, named: Collection[str], kinds: Counter[str]) -> Iterator[Case | None]:
    """Yield calls of those kinds among `named` that have no point yet, of the sizes that other small calls have.

    For an op may refuse the sizes of the table's such calls: they all have the same, and are too large where others must fit.
    """
    maker = Table(op, limit=MOST_ELEMENTS)
    for sizes in table_sizes(op):
        missing = {kind for kind in named if not kinds[kind]}
        if not missing or maker.make("sizes", sizes) is None:
            continue
        for a in op.attributes:
            for value in maker.good.get(a.name, ()) if f"attribute-{a.name}" in missing else ():
                yield maker.with_attribute(a.name, value, sizes)
        if any(kind.startswith("without-") for kind in missing):
            yield from maker.optional(sizes)


def drawn(op: Op, cases: Iterable[Case]) -> list[Point]:
    """Return points with the sizes and attributes of some calls and ordinary values.

    Where an output has elements without value at a point, such as the logarithms of negative numbers, there follows another with
    inputs from the domain in which most have one.
    """
    rng = np.random.default_rng(3)
    result: list[Point] = []
    for case in cases:
        inputs, attributes = _inputs(case, rng), dict(case.attributes)
        result.append((inputs, attributes))
        lost = _without_value(op, inputs, attributes)
        if lost:
            moved = [{n: _moved(v, into) for n, v in inputs.items()} for into in DOMAINS]
            counts = [_without_value(op, m, attributes) for m in moved]
            if min(counts) < lost:
                result.append((moved[counts.index(min(counts))], attributes))
    return result


def _inputs(case: Case, rng: np.random.Generator) -> dict[str, Array | None]:
    """Return a case's inputs with the floating ones as ordinary float64 values."""
    result: dict[str, Array | None] = {}
    for name, array in case.arrays().items():
        if array is not None and not is_integer(array):
            array = random_values(rng, array.shape, DType.FLOAT64)
        result[name] = array
    return result


def _moved(values: Array | None, into: Callable[[Array], Array]) -> Array | None:
    return values if values is None or values.dtype != np.float64 else np.asarray(into(values))


def _without_value(op: Op, inputs: dict[str, Array | None], attributes: dict[str, Any]) -> int:
    """Return how many elements of outputs have no finite value at a point; none where the op refuses it as a whole."""
    try:
        outputs = evaluate(op, inputs, attributes, binding=binding_of(op), precise=True)
    except (DomainError, ShapeError):
        return 0
    return sum(int(np.count_nonzero(~finite(v.bounds))) for v in outputs.values())


def finite(values: Bounds) -> Array:
    """Return where a set surely holds a finite number."""
    return np.asarray(np.isfinite(values.low) & np.isfinite(values.high) & ~values.nan)


def second_order_points(op: Op, backward: Op, cases: list[Point]) -> list[Point]:
    """Return points of the backward op: a forward point's inputs, its outputs where they are saved, and random cotangents.

    Where some outputs are too wide to differentiate at, there follows another point, at which these have the cotangent 0.
    """
    rng = np.random.default_rng(17)
    binding = binding_of(op)
    result: list[Point] = []
    for inputs, attributes in cases:
        try:
            outputs = evaluate(op, inputs, attributes, binding=binding, precise=True)
        except (DomainError, ShapeError):
            continue
        values = {n: v.value for n, v in outputs.items()}
        floating = {n: v.bounds for n, v in outputs.items() if v.bounds.is_float}
        cotangents = {n: rng.standard_normal(v.low.shape) for n, v in floating.items()}
        clear = {n: narrow(v) for n, v in floating.items()}
        chosen = [cotangents]
        if any(c.any() for c in clear.values()) and not all(c.all() for c in clear.values()):
            chosen.append({n: np.where(clear[n], u, 0.0) for n, u in cotangents.items()})
        for u in chosen:
            given = derived_inputs(backward, inputs, {**values}, {**u})
            result.append(({n: None if v is None else np.asarray(v) for n, v in given.items()}, attributes))
    return result


__all__ = ["FEW", "Point", "binding_of", "drawn", "finite", "points", "second_order_points"]
