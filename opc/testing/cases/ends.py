"""Int attributes at the ends of 64 bits: those that an op leaves free, in calls whose sums the language says to fit.

Whatever the compiler moves from one side of a comparison to the other, or solves for an index, must hold there too. So must what
it does with a step that takes an index out of any axis: in `x[i*step]` of a single i, the step may be any.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from opc.analysis.shapes.environment import ShapeEnv
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import INT64_MIN
from opc.ir.expr import Axis, Expr, Reduce, children, own_affines, walk
from opc.ir.op import Assign, Attribute, AttributeKind, Op
from opc.records import dataclass, replace

LEAST, GREATEST = INT64_MIN, -INT64_MIN - 1

FAR = ("ends", "steps")
"""The kinds of calls with such attributes."""

WIDE = 2**33
"""More than 32 bits have."""

ROOM = 2**16
"""More than any index or size of an ordinary call."""

Span: TypeAlias = tuple[int, int]
"""The least and the greatest value that a number may have."""


def free_attributes(op: Op) -> list[Attribute]:
    """Return the int attributes, and lists of a known length, that may be any number as far as their declarations say."""
    return [
        a
        for a in op.attributes
        if a.kind is AttributeKind.INT
        and a.name not in op.told
        and not a.values
        and a.picks is None
        and a.permutes is None
        and a.among is None
        and (a.length is None or a.length > 0)
    ]


def far_attributes(op: Op, written: Sequence[Op]) -> Iterator[dict[str, Any]]:
    """Yield attributes at the ends: all at one or at both by turns, then each alone.

    `written` are the ops whose bodies the spec has: what they compute is specified where all sums in them fit.
    """
    free = free_attributes(op)
    turns = [(GREATEST, GREATEST), (LEAST, LEAST), (GREATEST, LEAST), (LEAST, GREATEST)]
    together = [{a.name: _value(a, turn[k % 2]) for k, a in enumerate(free)} for turn in turns]
    alone = [{a.name: _value(a, end)} for a in free for end in (GREATEST, LEAST)]
    seen: list[dict[str, Any]] = []
    for chosen in (*together, *alone, *_wide(free)):
        if chosen and chosen not in seen and all(fits(o, chosen) for o in written):
            seen.append(chosen)
            yield chosen


def far_steps(op: Op, written: Sequence[Op]) -> Iterator[dict[str, Any]]:
    """Yield attributes at the ends and beside them of which sums fit in some calls only (`fits_in`): each alone, then all."""
    free = free_attributes(op)
    alone = [{a.name: _value(a, end)} for end in (GREATEST, GREATEST - 1, 2**62 + 1, LEAST) for a in free]
    together = [{a.name: _value(a, end) for a in free} for end in (GREATEST, LEAST)] if len(free) > 1 else []
    yield from (c for c in (*alone, *together, *_wide(free)) if not all(fits(o, c) for o in written))


def _wide(free: Sequence[Attribute]) -> Iterator[dict[str, Any]]:
    """Yield attributes beyond 32 bits, each alone, and two, which may make up for one another."""
    for a in free:
        yield {a.name: _value(a, WIDE)}
        yield {a.name: _value(a, -WIDE)}
    for a, b in itertools.combinations(free, 2):
        yield {a.name: _value(a, WIDE), b.name: _value(b, WIDE)}
        yield {a.name: _value(a, WIDE), b.name: _value(b, -WIDE)}


def _value(attribute: Attribute, end: int) -> Any:
    return end if attribute.length is None else (end,) * attribute.length


def fits(op: Op, attributes: Mapping[str, Any]) -> bool:
    """Whether all sums and products of sizes, indices and int attributes in a body fit into 64 bits.

    Indices and sizes are any up to `ROOM`, and attributes that are not given are small. Rules of sizes are exact, and tell
    themselves of a call whether what comes out fits.
    """
    values = [a for s in op.body for e in walk(s.value) for a in own_affines(e)]
    spans = _Spans(attributes, dict(op.dims), narrow=True)
    return all(spans.of(e) is not None for e in values)


def fits_in(op: Op, env: ShapeEnv) -> bool:
    """Whether all of them fit at every point of a call."""
    spans = _Spans(env.attributes, {}, narrow=True, sizes=env.dims)
    return all(_fits(s.value, replace(spans, ranges=_ranges(op, s, spans))) for s in op.body)


def _ranges(op: Op, s: Assign, spans: _Spans) -> dict[str, Span]:
    pairs = zip(s.indices, op.operand(s.target).dims)
    return {i: spans.range(d) for i, d in pairs if isinstance(i, str) and isinstance(d, Affine)}


def _fits(e: Expr, spans: _Spans) -> bool:
    if any(spans.of(a) is None for a in own_affines(e)):
        return False
    if isinstance(e, Reduce):
        ranges = dict(spans.ranges or {})
        for a in e.axes:
            if isinstance(a, Axis):
                ranges[a.index] = replace(spans, ranges=ranges).range(a.extent)
        spans = replace(spans, ranges=ranges)
    return all(_fits(c, spans) for c in children(e))


@dataclass(frozen=True, slots=True)
class _Spans:
    """The ends of expressions under some attributes and rules of sizes; `narrow` where no part may have more than 64 bits.

    In a call `sizes` has the dimensions, and `ranges` the ends of indices, those that are known.
    """

    attributes: Mapping[str, Any]
    rules: Mapping[str, Affine]
    narrow: bool
    sizes: Mapping[str, int] | None = None
    ranges: Mapping[str, Span] | None = None

    def range(self, extent: Affine) -> Span:
        """Return the ends of an index over an extent."""
        span = self.of(extent)
        return 0, ROOM if span is None else max(span[1] - 1, 0)

    def of(self, e: Affine) -> Span | None:
        """Return the ends of an expression; None where a part of it, however its terms are added, may have too many bits."""
        low = high = 0
        span: Span | None = (0, 0)
        for monomial, coefficient in e.terms:
            span = (coefficient, coefficient)
            for atom in monomial:
                factor = self.of_atom(atom)
                span = None if factor is None else self.ends([a * b for a, b in itertools.product(span, factor)])
                if span is None:
                    return None
            low, high = low + min(span[0], 0), high + max(span[1], 0)
        return self.ends([low, high]) and (span if len(e.terms) == 1 else (low, high))

    def of_atom(self, atom: Atom) -> Span | None:
        match atom:
            case AttrInt(flag=False) if atom.name in self.attributes:
                value = self.attributes[atom.name]
                number = int(value if atom.element < 0 else value[atom.element])
                return number, number
            case AttrInt():
                return (0, 1) if atom.flag else (-ROOM, ROOM)
            case Dim() if self.sizes is not None and atom.name in self.sizes:
                return self.sizes[atom.name], self.sizes[atom.name]
            case Index() if self.ranges is not None and atom.name in self.ranges:
                return self.ranges[atom.name]
            case Dim() if atom.name in self.rules:
                size = replace(self, narrow=False).of(self.rules[atom.name])
                return None if size is None else (min(max(size[0], 0), GREATEST), min(max(size[1], 0), GREATEST))
            case Index() | Dim() | GroupSize():
                return 0, ROOM
            case FloorDiv() | Mod():
                numerator, denominator = self.of(atom.numerator), self.of(atom.denominator)
                if numerator is None or denominator is None:
                    return None
                # A divisor that may be 0 is told apart from others by conditions that are not looked at here.
                divisors = [d for d in (*denominator, 1, -1) if denominator[0] <= d <= denominator[1] and d != 0]
                if not divisors:
                    return None
                if isinstance(atom, FloorDiv):
                    return self.ends([n // d for n, d in itertools.product(numerator, divisors)])
                return min(0, min(divisors) + 1), max(0, max(divisors) - 1)
            case Minimum():
                left, right = self.of(atom.left), self.of(atom.right)
                return None if left is None or right is None else (min(left[0], right[0]), min(left[1], right[1]))

    def ends(self, values: list[int]) -> Span | None:
        low, high = min(values), max(values)
        return (low, high) if not self.narrow or LEAST <= low <= high <= GREATEST else None


__all__ = ["FAR", "GREATEST", "LEAST", "far_attributes", "far_steps", "fits", "fits_in", "free_attributes"]
