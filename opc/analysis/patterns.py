"""Recognises in index notation what has a name: contractions, scans, scatters, windows.

Pure analysis of the IR: nothing here knows a framework or how a pattern is computed. Each function takes a reduction and returns
what it is, or None; a pattern holds expressions of the body itself, so that whoever uses it computes those as it likes.

The patterns, over indices `i`, reduced indices `k` and groups of axes of any rank:

| pattern | in the body |
|---|---|
| `Contraction` | `sum[k](f(i, k) * g(j, k))`, with conditions on which the product counts |
| `ScanPattern` | `sum[k:i + 1](f(k))`: a cumulative reduction; `sum[k](f(k) if k > i else 0)` is one from the end |
| `ScatterPattern` | `sum[n](f(n, d) if ids[n] == v else 0)`: what is added where computed indices say |

`opc.analysis.windows` recognises convolutions and pooling, which are made of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from string import ascii_lowercase
from types import MappingProxyType
from typing import TypeAlias

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Index
from opc.ir.comparisons import excess
from opc.ir.dtypes import DType, is_integer
from opc.ir.expr import (
    VARYING,
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Reduce,
    Select,
    conjuncts,
    free_groups,
    free_indices,
    map_affine,
    traits,
)
from opc.ir.identity import IDENTITY, is_identity
from opc.ir.rules import converted
from opc.records import dataclass, replace

Entry: TypeAlias = str | GroupRef
"""One axis or group of axes that an expression runs over: an index variable's name, or a group."""


def entries_of(e: Expr) -> frozenset[Entry]:
    """Return the index variables and groups that an expression runs over."""
    return frozenset(free_indices(e)) | frozenset(GroupRef(g) for g in free_groups(e))


def own_entries(e: Reduce) -> tuple[Entry, ...]:
    """Return the axes of a reduction, those of broadcasting left out."""
    return tuple(a.index if isinstance(a, Axis) else GroupRef(a.name) for a in e.axes if not isinstance(a, BroadcastAxis))


def is_uniform(e: Expr) -> bool:
    """Whether an expression reads no element and no index: it has one value in a whole call."""
    return not traits(e) & VARYING


def is_number(e: Expr, value: float) -> bool:
    """Whether an expression is a literal of that value."""
    return isinstance(e, Const) and not isinstance(e.value, bool) and e.value == value


def conjunction(parts: Sequence[Expr]) -> Expr:
    """Return the conditions joined by `and`; there is at least one."""
    joined = parts[0]
    for part in parts[1:]:
        joined = Call("and", (joined, part), DType.BOOL)
    return joined


def factors(e: Expr) -> list[Expr]:
    """Return the expressions whose product `e` is: those that `*` joins, and 1 / y for a division by y. Signs are kept."""
    match e:
        case Call(fn="mul", args=(left, right)):
            return [*factors(left), *factors(right)]
        case Call(fn="neg", args=(inner,)):
            first, *rest = factors(inner)
            # A number or an index beside values of a type has none itself, and negated neither.
            return [replace(e, args=(first,), type=first.type), *rest]
        case _:
            return [e]


def guarded(e: Expr, kind: str = "sum") -> tuple[list[Expr], Expr]:
    """Return the conditions under which `e` counts, and what it is there: elsewhere a reduction of the kind ignores it. No
    condition where it is always."""
    if isinstance(e, Select) and is_identity(kind, e.other, e.type):
        conditions, inner = guarded(e.then, kind)
        return [*conjuncts(e.cond), *conditions], inner
    if isinstance(e, Select) and is_identity(kind, e.then, e.type):
        conditions, inner = guarded(e.other, kind)
        return [Call("not", (e.cond,), DType.BOOL), *conditions], inner
    return [], e


# ---- contractions --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FactorPattern:
    """One factor of a contraction, and conditions over its entries without which a term does not count."""

    value: Expr
    conditions: tuple[Expr, ...]
    entries: frozenset[Entry]

    @property
    def expr(self) -> Expr:
        """The factor as one expression, 0 where a condition does not hold."""
        if not self.conditions:
            return self.value
        return Select(conjunction(self.conditions), self.value, Const(0, self.value.type), self.value.type)


@dataclass(frozen=True, slots=True)
class Contraction:
    """A sum over `axes` of a product of factors, each over entries of its own.

    A term only counts where the conditions of all factors hold. A sum of all terms with factors that are 0 elsewhere is the same
    for finite values only: 0 times an infinity is none; `is_conditional` says whether there is such a condition.
    """

    factors: tuple[FactorPattern, ...]
    axes: tuple[Entry, ...]
    extents: Mapping[str, Affine]

    @property
    def is_conditional(self) -> bool:
        """Whether some terms do not count."""
        return any(f.conditions for f in self.factors)

    def outer(self, frame: Sequence[Entry]) -> tuple[Entry, ...]:
        """Return the entries of a frame that the result runs over, in the frame's order."""
        return tuple(i for i in frame if i not in self.axes and any(i in f.entries for f in self.factors))

    def equation(self, frame: Sequence[Entry]) -> str:
        """Return the contraction in einsum's notation, for factors whose axes stand in the order of `frame`, then `axes`.

        A group that is kept is `...`; there is at most one where the notation can say it, else groups have a letter as one axis.
        """
        order = [*self.outer(frame), *self.axes]
        groups = [i for i in order if isinstance(i, GroupRef)]
        ellipsis = groups[0] if len(groups) == 1 and groups[0] not in self.axes else None
        letters = {i: "..." if i == ellipsis else ascii_lowercase[k] for k, i in enumerate(order)}
        terms = ["".join(letters[i] for i in order if i in f.entries) for f in self.factors]
        return f"{','.join(terms)}->{''.join(letters[i] for i in self.outer(frame))}"

    @property
    def roles(self) -> Roles | None:
        """What each entry is to a product of matrices; None unless there are two factors and each axis is in both."""
        if len(self.factors) != 2:
            return None
        left, right = (f.entries for f in self.factors)
        summed = frozenset(self.axes)
        if not summed <= left & right:
            return None
        return Roles((left & right) - summed, left - right, right - left, summed)


@dataclass(frozen=True, slots=True)
class Roles:
    """The entries of a product of matrices.

    `batch` are those that both factors and the result have, `rows` only the first, `columns` only the second factor.
    """

    batch: frozenset[Entry]
    rows: frozenset[Entry]
    columns: frozenset[Entry]
    summed: frozenset[Entry]


def contraction(e: Reduce) -> Contraction | None:
    """Return a sum of products as a contraction; None where no two factors run over different entries.

    A condition of the terms belongs to the smallest factor that runs over all its entries; a reduction with a condition that
    belongs to none is no contraction. A factor that is itself a choice stays one: where it is 0, the others still count.
    """
    if e.kind != "sum" or any(isinstance(a, BroadcastAxis) for a in e.axes):
        return None
    if any(isinstance(a, Axis) and a.extent.indices() for a in e.axes):
        return None
    conditions, body = guarded(e.body)
    values = _merged(factors(body))
    if len(values) < 2:
        return None
    runs = [entries_of(v) for v in values]
    if not set(own_entries(e)) <= frozenset().union(*runs):
        return None
    held: list[list[Expr]] = [[] for _ in values]
    for condition in conditions:
        needed = entries_of(condition)
        homes = [k for k, r in enumerate(runs) if needed <= r]
        if not homes:
            return None
        held[min(homes, key=lambda k: len(runs[k]))].append(condition)
    found = tuple(FactorPattern(v, tuple(c), r) for v, c, r in zip(values, held, runs, strict=True))
    return Contraction(found, own_entries(e), e.extents)


def _merged(values: Sequence[Expr]) -> list[Expr]:
    """Return the factors, each multiplied with those that run over no entry but its own."""
    result: list[Expr] = []
    for value in sorted(values, key=lambda v: -len(entries_of(v))):
        home = next((k for k, other in enumerate(result) if entries_of(value) <= entries_of(other)), None)
        if home is None:
            result.append(value)
        else:
            other = result[home]
            result[home] = value if is_number(other, 1) else Call("mul", (other, value), other.type)
    return result


# ---- scans ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScanPattern:
    """A cumulative reduction of `body` over `axis`, which has `size` elements: at each point over those before `bound`.

    With `reverse` it runs over those from `bound` on. The body does not run over the indices in `bound`.
    """

    kind: str
    axis: str
    size: Affine
    body: Expr
    bound: Affine
    reverse: bool

    @property
    def index(self) -> str | None:
        """The index that is the last to count (or with `reverse` the first), where it is a bare one."""
        return (self.bound if self.reverse else self.bound - 1).index


def scan(e: Reduce, extents: Mapping[str, Affine], size_of: Callable[[Affine, Affine], Affine]) -> ScanPattern | None:
    """Return a reduction over one axis up to some place, or from one on, as a scan; None when it is none.

    `extents` are those of the indices around it. `size_of` tells how many elements an extent counts at most where it runs over
    the index of the second one, which that is to be preferred to.
    """
    if len(e.axes) != 1 or not isinstance(e.axes[0], Axis) or e.kind not in ("sum", "prod", "max", "min"):
        return None
    axis = e.axes[0]
    if axis.extent.indices():
        around = [i for i in sorted(axis.extent.indices()) if i in extents]
        if len(around) != 1:
            return None
        size = size_of(axis.extent, extents[around[0]])
        if around[0] not in free_indices(e.body):
            return ScanPattern(e.kind, axis.index, size, e.body, axis.extent, reverse=False)
        # `sum[k:N - i](f(i + k))` is the sum of f from i on.
        first = size - axis.extent
        shifted = _renamed(e.body, axis.index, Affine.of(Index(axis.index)) - first)
        return None if around[0] in free_indices(shifted) else ScanPattern(e.kind, axis.index, size, shifted, first, reverse=True)
    conditions, body = guarded(e.body)
    if e.kind != "sum" or len(conditions) != 1:
        return None
    found = _side(conditions[0], axis.index)
    if found is None or found[0].indices() & free_indices(body):
        return None
    return ScanPattern(e.kind, axis.index, axis.extent, body, *found)


def _renamed(e: Expr, index: str, value: Affine) -> Expr:
    """Return an expression with an index replaced by an integer expression."""
    return map_affine(e, lambda a: a.at(index, value))


def _side(condition: Expr, axis: str) -> tuple[Affine, bool] | None:
    """Return a comparison of an axis with one other index as a bound: the axis lies before it, or, if True, at it or behind."""
    match condition:
        case Call(fn="lt" | "le" | "gt" | "ge" as fn, args=(IndexValue(value=left), IndexValue(value=right))):
            # The condition is: difference >= 0.
            difference = excess(fn, left, right)
            coefficient = difference.coefficient(axis)
            if coefficient is None or coefficient.constant not in (1, -1):
                return None
            reverse = coefficient.constant == 1
            rest = difference - Index(axis) if reverse else difference + Index(axis)
            if len(rest.indices()) != 1:
                return None
            return (-rest, True) if reverse else (rest + 1, False)
        case _:
            return None


# ---- scatters ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScatterPattern:
    """A reduction over `axes` of `value`, each term at the place where every one of `indices` is its of `positions`.

    A term only counts where `conditions` hold. Positions, value and conditions run over none of the indices.
    """

    indices: tuple[str, ...]
    positions: tuple[Expr, ...]
    value: Expr
    conditions: tuple[Expr, ...]
    axes: tuple[Entry, ...]


def scatter(e: Reduce, frame: Sequence[Entry], extents: Mapping[str, Affine] = MappingProxyType({})) -> ScatterPattern | None:
    """Return a reduction of terms that count where an index has one value as a scatter; `frame` is what stands around it, with
    the `extents` that are known."""
    if e.kind not in IDENTITY or any(
        isinstance(a, BroadcastAxis) or (isinstance(a, Axis) and a.extent.indices()) for a in e.axes
    ):
        return None
    conditions, body = guarded(e.body, e.kind)
    conditions = with_digits(conditions, {i: extents[i] for i in frame if isinstance(i, str) and i in extents})
    places: dict[str, Expr] = {}
    rest = list(conditions)
    for condition in conditions:
        for index, position in equalities(condition):
            if index in frame and index not in places and set(own_entries(e)) & entries_of(position):
                places[index] = position
                rest.remove(condition)
                break
    used = entries_of(body).union(*map(entries_of, (*rest, *places.values())))
    if not places or places.keys() & used:
        return None
    return ScatterPattern(tuple(places), tuple(places.values()), body, tuple(rest), own_entries(e))


def equalities(condition: Expr) -> Iterator[tuple[str, Expr]]:
    """Yield what an equality says of a bare index: its name and the integer that it is equal to."""
    match condition:
        case Call(fn="eq", args=(left, right)):
            for one, other in ((left, right), (right, left)):
                name = one.value.index if isinstance(one, IndexValue) else None
                if name is not None and name not in free_indices(other) and is_integer(other.type):
                    yield name, other


def with_digits(conditions: Sequence[Expr], extents: Mapping[str, Affine]) -> list[Expr]:
    """Return conditions with those that number the points of several indices row by row, `at == i*W + j` where j runs to W, as
    one for each index: `i == at // W` and `j == at % W`. Another condition, `j < W`, may say so of the longer range of an index.
    """
    bounds = {i: {extent, *(b for c in conditions if (b := _bound(c, i)) is not None)} for i, extent in extents.items()}
    return [part for c in conditions for part in _digits(c, bounds)]


def _bound(c: Expr, index: str) -> Affine | None:
    """Return what a condition says that an index is less than."""
    if not isinstance(c, Call) or c.fn not in ("lt", "le", "gt", "ge"):
        return None
    left, right = (affine_of(a) for a in c.args)
    if left is None or right is None:
        return None
    bound = excess(c.fn, left, right) + Index(index) + 1
    return None if bound.indices() else bound


def _digits(c: Expr, bounds: Mapping[str, Set[Affine]]) -> list[Expr]:
    if not isinstance(c, Call) or c.fn != "eq":
        return [c]
    for one, other in (c.args, c.args[::-1]):
        number = affine_of(one)
        if number is None or affine_of(other) is not None or not is_integer(other.type):
            continue
        # What the other side runs over as well is known where that is read.
        slopes = {i: number.coefficient(i) for i in number.indices() & bounds.keys() - free_indices(other)}
        rest, order, counts = number, list[tuple[str, Affine]](), {Affine.of(1)}
        while (found := next(((i, s) for i, s in slopes.items() if (i, s) not in order and s in counts), None)) is not None:
            index, count = found
            assert count is not None, "a slope that is none is no count"
            order.append((index, count))
            rest = rest - count * Index(index)
            counts = {count * bound for bound in bounds[index]}
        if len(order) < 2 or len(order) < len(slopes):
            continue
        value = converted(other, DType.INT64)
        value = value if rest.constant == 0 else Call("sub", (value, IndexValue(rest)), DType.INT64)
        parts: list[Expr] = []
        for n, (index, count) in enumerate(order):
            last = n + 1 == len(order)
            size = IndexValue(next(b for b in bounds[index] if last or b * count == order[n + 1][1]))
            digit = value if last else Call("mod", (value, size), DType.INT64)
            parts.insert(0, Call("eq", (IndexValue(Affine.of(Index(index))), digit), DType.BOOL))
            value = value if last else Call("floordiv", (value, size), DType.INT64)
        return parts
    return [c]


__all__ = [
    "Contraction",
    "Entry",
    "FactorPattern",
    "Roles",
    "ScanPattern",
    "ScatterPattern",
    "conjunction",
    "contraction",
    "entries_of",
    "equalities",
    "factors",
    "guarded",
    "is_number",
    "is_uniform",
    "own_entries",
    "scan",
    "scatter",
    "with_digits",
]
