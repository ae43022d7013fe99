"""Makes sizes fit an op: its requirements hold, its windows lie inside their axes, and the oracle can go through every point.

Drawn sizes know nothing of an op's shape rules. Dimensions that a requirement fixes (`C == I * groups`, `O % groups == 0`) or
bounds (`C <= 2`) are computed from the others, axes on which a window would not fit grow, and the largest axes are halved until
the largest loop of the body has no more points than a limit. What sizes still break a rule are refused as any call is.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from opc.analysis.shapes.inference import ShapeEnv, ShapeError, infer
from opc.analysis.shapes.plan import group_key
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, AttrInt, Dim, Index, Mod, Symbol
from opc.ir.comparisons import excess
from opc.ir.expr import (
    Axis,
    BroadcastAxis,
    Call,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Reduce,
    ReduceAxis,
    Select,
    children,
    walk,
)
from opc.ir.op import Group, Op
from opc.testing.cases.sizes import Shapes, Sizes, dims_of, shapes_of, signs, size_of

POINTS = 40_000
"""The number of points the largest loop of an ordinary case may have."""

ELEMENTS = 4
"""How many elements of an operand count as much as a point of a loop."""

MOST_STEPS = 60
"""How often sizes are halved or grown before they are given up."""


def volume(op: Op, env: ShapeEnv) -> int:
    """Return the number of points of the largest loop of the body in a call, with all reductions inside one another.

    An operand of which loops see few elements, as on a diagonal, counts too: an element is less than a point to the oracle.
    An extent that depends on an index counts as its greatest. An empty one counts as 1, for what is inside may not depend on it
    and be evaluated all the same.
    """
    held = [math.prod(env.shape_of(o)) for o in op.inputs if o.name in env.present]
    known: dict[Affine, int] = {}
    return max([1, *(n // ELEMENTS for n in held), *(_points(env, nest, known) for nest in _nests(op))])


Loop = tuple[str, Affine] | Group | BroadcastAxis
"""A loop of an index to an extent, or the loops along the axes of a group."""


@functools.lru_cache(maxsize=256)
def _nests(op: Op) -> tuple[tuple[Loop, ...], ...]:
    """Return the different nests of loops in the body, each around some expression, from the outermost loop on."""
    found: dict[tuple[Loop, ...], None] = {}

    def loop(axis: ReduceAxis) -> Loop:
        match axis:
            case Axis():
                return axis.index, axis.extent
            case GroupAxis():
                return Group(axis.name)
            case _:
                return axis

    def visit(e: Expr, around: tuple[Loop, ...]) -> None:
        if isinstance(e, Reduce):
            around += tuple(loop(a) for a in e.axes)
        found.setdefault(around)
        for c in children(e):
            visit(c, around)

    for statement in op.body:
        names = [i for i in statement.indices if not isinstance(i, GroupRef)]
        target = op.operand(statement.target).dims
        outer: list[Loop] = list(zip(names, (d for d in target if isinstance(d, Affine))))
        visit(statement.value, (*outer, *(d for d in target if isinstance(d, Group))))
    return tuple(found)


def _points(env: ShapeEnv, nest: tuple[Loop, ...], known: dict[Affine, int]) -> int:
    """Return the number of points of a nest; `known` has the extents of the call so far that no index is in."""
    points, ranges = 1, dict[str, int]()
    for loop in nest:
        match loop:
            case Group():
                points *= _group_size(env, loop)
            case BroadcastAxis():
                points *= _group_size(env, Group(loop.name)) // max(1, _group_size(env, Group(loop.name, loop.operand)))
            case (index, extent):
                ranges[index] = known[extent] if extent in known else _greatest(env, extent, ranges)
                if not extent.indices():
                    known[extent] = ranges[index]
                points *= ranges[index]
    return points


def _greatest(env: ShapeEnv, extent: Affine, ranges: Mapping[str, int]) -> int:
    """Return the greatest value of an extent, which is at one of the two ends of every index in it, or 1."""
    names = sorted(extent.indices())

    def value(last: Mapping[str, bool]) -> int:
        def symbol(s: Symbol) -> int:
            return max(ranges[s.name] - 1, 0) * last[s.name] if isinstance(s, Index) else env.symbol(s)

        return extent.evaluate(symbol)

    try:
        return max(1, *(value(dict(zip(names, ends))) for ends in itertools.product((False, True), repeat=len(names))))
    except ZeroDivisionError:
        return 1


def _group_size(env: ShapeEnv, group: Group) -> int:
    return math.prod(max(size, 1) for size in env.groups.get(group_key(group), ()))


def fit(
    op: Op,
    sizes: Sizes,
    attributes: Mapping[str, Any],
    absent: frozenset[str] = frozenset(),
    *,
    limit: int | None = POINTS,
    keep: Collection[str] = (),
) -> Sizes | None:
    """Return sizes like these that the op takes, with loops of at most `limit` points if one is given; None when none are found.

    The dimensions in `keep` are halved only after all others.
    """
    for _ in range(MOST_STEPS):
        sizes, fixed = _required(op, sizes, attributes, keep)
        try:
            env = infer(op, shapes_within(op, sizes, attributes, absent), attributes)
        except ShapeError:
            grown = _grown(op, sizes, attributes)
            if grown is None:
                return None
            sizes = grown
            continue
        surplus = volume(op, env) // (limit + 1) if limit is not None else 0
        if surplus == 0:
            return sizes
        for _ in range(surplus.bit_length()):
            smaller = _halved(sizes, fixed, keep)
            if smaller is None:
                return None
            sizes = smaller
    return None


def shapes_within(op: Op, sizes: Sizes, attributes: Mapping[str, Any], absent: frozenset[str]) -> Shapes:
    """Return the shapes of the inputs.

    Raises:
        ShapeError: when a size would be negative, or depends on an attribute that is not given.
    """
    try:
        return shapes_of(op, sizes, attributes, absent)
    except (KeyError, TypeError) as error:
        raise ShapeError(str(error)) from None


def _required(op: Op, sizes: Sizes, attributes: Mapping[str, Any], keep: Collection[str]) -> tuple[Sizes, set[str]]:
    """Return the sizes with those dimensions changed that a requirement fixes, by an equation or to a multiple.

    Returned too are the names of the dimensions that equations fix.
    """
    dims, fixed = dict(sizes.dims), set[str]()

    def value(e: Affine) -> int | None:
        try:
            return size_of(op, e, Sizes(dims, sizes.groups, sizes.own), attributes)
        except (ShapeError, KeyError, TypeError):
            return None

    for name, divisors in _multiples(op).items():
        found = [value(divisor) for divisor in divisors]
        d = math.lcm(*(d for d in found if d is not None and d > 0))
        dims[name] = -(-dims[name] // d) * d
    for left, right in _equations(op, attributes, sum(dims.values())):
        difference = left - right
        # A dimension that stands alone on one side first; then any that the difference grows or shrinks with by one.
        alone = [side.single.name for side in (left, right) if isinstance(side.single, Dim)]
        others = sorted((a.name for a in difference.atoms() if isinstance(a, Dim)), key=lambda name: (name in keep, name))
        # Those that it is computed from come last.
        for name in dict.fromkeys([*alone, *others, *sorted(_free(op, difference), key=lambda name: (name in keep, name))]):
            gap = value(difference)
            if gap is None or name not in dims or name in fixed:
                continue
            dims[name] += 1
            after = value(difference)
            dims[name] -= 1
            slope = 0 if after is None else after - gap
            if abs(slope) == 1 and dims[name] - gap * slope >= 0:
                dims[name] -= gap * slope
                fixed.add(name)
                break
    for beyond in _bounds(op, attributes, sum(dims.values())):
        over = value(beyond)
        for name in sorted((a.name for a in beyond.atoms() if isinstance(a, Dim)), key=lambda name: (name in keep, name)):
            # An axis that is to be empty stays so.
            if over is None or over <= 0 or name in fixed or dims.get(name, 0) == 0:
                continue
            dims[name] += 1
            after = value(beyond)
            dims[name] -= 1
            slope = 0 if after is None else after - over
            if abs(slope) == 1 and dims[name] - over * slope > 0:
                dims[name] -= over * slope
                break
    return replace(sizes, dims=dims), fixed


def _free(op: Op, e: Affine) -> set[str]:
    """Return the dimensions of inputs that a size is computed from."""
    derived, names = dict(op.dims), {a.name for a in e.atoms() if isinstance(a, Dim)}
    return {n for name in names for n in (_free(op, derived[name]) if name in derived else {name})}


def _equations(op: Op, attributes: Mapping[str, Any], turn: int = 0) -> list[tuple[Affine, Affine]]:
    """Return both sides of every equation that the op requires; of alternatives one, `turn` says which."""
    return [(left, right) for fn, left, right in _comparisons(op, attributes, turn) if fn == "eq"]


def _bounds(op: Op, attributes: Mapping[str, Any], turn: int = 0) -> list[Affine]:
    """Return of every inequality that the op requires what is at most 0 where it holds."""
    return [-excess(fn, left, right) for fn, left, right in _comparisons(op, attributes, turn) if fn in ("lt", "le", "gt", "ge")]


def _comparisons(op: Op, attributes: Mapping[str, Any], turn: int) -> list[tuple[str, Affine, Affine]]:
    """Return every comparison of sizes that the op requires with these attributes; of alternatives one, `turn` says which."""
    found: list[tuple[str, Affine, Affine]] = []
    env = ShapeEnv(op, {**{a.name: a.default for a in op.attributes if not a.required}, **attributes}, frozenset())

    def decided(e: Expr) -> bool | None:
        """Whether a condition on attributes alone holds; None of any other."""
        sizes = (a for n in walk(e) if isinstance(n, IndexValue) for a in n.value.atoms() if not isinstance(a, AttrInt))
        if next(sizes, None) is not None:
            return None
        try:
            return env.holds(e)
        except (KeyError, TypeError, IndexError):
            return None

    def visit(e: Expr) -> None:
        match e:
            case Call(fn="and", args=args):
                for a in args:
                    visit(a)
            case Call(fn="or", args=args):
                alternatives = [a for a in args if decided(a) is None]
                if alternatives and not any(map(decided, args)):
                    visit(alternatives[turn % len(alternatives)])
            case Select(cond=cond, then=then, other=other):
                if (chosen := decided(cond)) is not None:
                    visit(then if chosen else other)
            case Call(fn=fn, args=(left, right)) if fn in ("eq", "lt", "le", "gt", "ge"):
                sides = affine_of(left), affine_of(right)
                if sides[0] is not None and sides[1] is not None:
                    found.append((fn, sides[0], sides[1]))
            case _:
                pass

    for r in op.require:
        visit(r.condition)
    return found


@functools.lru_cache(maxsize=256)
def _multiples(op: Op) -> dict[str, list[Affine]]:
    """Return the dimensions that must be multiples of something, each with all that it must be a multiple of."""
    free = dims_of(op)
    found: dict[str, list[Affine]] = {}
    for sides in _equations(op, {}):
        for left, right in (sides, sides[::-1]):
            if isinstance(left.single, Mod) and right.constant == 0:
                dim = left.single.numerator.single
                if isinstance(dim, Dim) and dim.name in free:
                    found.setdefault(dim.name, []).append(left.single.denominator)
    return found


def _grown(op: Op, sizes: Sizes, attributes: Mapping[str, Any]) -> Sizes | None:
    """Return sizes on which windows fit better: where a derived dimension is negative, what it grows with is enlarged.

    An axis that is to be empty stays so.
    """
    rises = [d for d, sign in signs(op).items() if sign > 0]
    dims = dict(sizes.dims)
    for _, rule in op.dims:
        try:
            if size_of(op, rule, sizes, attributes) >= 0:
                continue
        except (KeyError, TypeError):
            return None
        except ShapeError:
            pass
        for d in rises:
            if Dim(d) in rule.atoms() and 0 < dims[d] < 200:
                dims[d] = 2 * dims[d] + 1
    return replace(sizes, dims=dims) if dims != dict(sizes.dims) else None


def _halved(sizes: Sizes, fixed: Collection[str], keep: Collection[str]) -> Sizes | None:
    """Return the sizes with the largest axis halved, a kept one only after all others; None when all are 1 or fixed."""
    candidates: list[tuple[bool, int, str, int]] = [
        (name not in keep, size, name, -1) for name, size in sizes.dims.items() if name not in fixed and size > 1
    ]
    candidates += [(True, size, name, k) for name, shape in sizes.groups.items() for k, size in enumerate(shape) if size > 1]
    if not candidates:
        return None
    _, size, name, k = max(candidates)
    half = (size + 1) // 2
    if k < 0:
        return replace(sizes, dims={**sizes.dims, name: half})
    shape = sizes.groups[name]
    groups = {**sizes.groups, name: (*shape[:k], half, *shape[k + 1 :])}
    # Inputs' own shapes follow: an axis of theirs is the common one or 1, aligned at the right.
    own = {o: tuple(s if s == 1 else c for s, c in zip(v, groups[name][len(shape) - len(v) :])) for o, v in sizes.own.items()}
    return Sizes(sizes.dims, groups, own)
