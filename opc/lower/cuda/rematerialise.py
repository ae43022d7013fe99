"""Reductions over values that are made anew of sums of products, tile by tile, and never stored.

The gradient of a softmax between two sums of products, as in attention, has a value for each row and column: exponentials of
scores, and what these are multiplied with. They have many more elements than what they are made of, or what is made of them.
Where a value of rows and columns is a factor of another sum of products, or what a row's greatest or sum is of, it is made anew
in that statement: a tile of rows passes over the columns, makes the sums of products that values are made of as it goes, and
reduces them. What values of a row alone are used, such as the greatest score, are stored. The rule looks at what statements say
and asks for no op by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import Affine, Index, Symbol
from opc.ir.dtypes import DType, TypeVar, is_floating
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    GroupRef,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    children,
    free_groups,
    free_indices,
    reads,
    rewrite,
    walk,
    with_children,
)
from opc.ir.op import Assign, Op, Operand
from opc.loops.values import computed_as
from opc.lower.columns import gap
from opc.lower.cuda.products import HALVES, steps_of, stored_alike
from opc.lower.cuda.weigh import is_sum_of_weights, weighed_of, weights_of
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.lower.nests.flat import is_positive
from opc.records import dataclass, replace
from opc.transform import scalar
from opc.transform.indices import Namer, bare, index_names, op_names, rename_bound
from opc.transform.normalize import placed, prune, put

MOST_PRODUCTS = 2
"""Of how many sums of products a value is made at most."""

_MINUS_INFINITY = float("-inf")


@dataclass(frozen=True, slots=True)
class Needed:
    """Which columns of a row count: those at which `gap` is not negative. It `rises` with rows, or falls; columns count up to some
    point on, or from it on where `starts`. What else is zero is so where all elements of `finite` are finite."""

    gap: Affine
    rises: bool
    starts: bool
    finite: tuple[str, ...]

    def bound(self, row: str, column: str, first: Affine, rows: Affine) -> Affine:
        """Return where columns end, or start, that some of these rows need."""
        best = first + rows - 1 if self.rises else first
        ends: Mapping[Symbol, Affine] = {Index(row): best, Index(column): Affine.of(0)}
        found = self.gap.substitute(ends.get)
        return found * -1 if self.starts else found + 1


@dataclass(frozen=True, slots=True)
class Rematerialised:
    """A reduction over columns of values that are made of sums of products.

    `row` and `across` are entries of the target, `batch` the others; `column` is the index of the reduction that goes over
    columns, and `others` are its other axes. `value` is what is made at a row and a column, of `products` whose `factors` are
    those of rows and of columns. `weighed` is what values are multiplied with, None where they are reduced alone.
    """

    reduction: Reduce
    value: Expr
    products: tuple[Reduce, ...]
    factors: tuple[tuple[Read, Read], ...]
    weighed: Read | None
    column: Axis
    others: tuple[ReduceAxis, ...]
    batch: tuple[int, ...]
    row: int
    across: int | None
    stored: TypeVar | DType | None
    """The type of the elements of inputs or outputs that the factors and what is weighed are, where it is one."""
    needed: Needed | None

    @property
    def scaled(self) -> tuple[Call, ...]:
        """The quotients and products of a sum of products and what does not vary along its terms, wherever it stands in the value."""
        found = []
        for p in self.products:
            around = [e for e in walk(self.value) if p in children(e)]
            calls = [e for e in dict.fromkeys(around) if isinstance(e, Call) and e.args[0] == p and _is_scale(e)]
            found += calls if len(calls) == len({*around}) else ()
        return tuple(found)

    def kinds(self, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
        """Return which of the shapes of the runtime's `shape_of_weights` stand for each: others would be the same function."""
        stored = dtypes.get(self.stored) if isinstance(self.stored, TypeVar) else self.stored
        of = computed_as(self.reduction.type)
        computed = dtypes.get(of) if isinstance(of, TypeVar) else of
        narrow = stored in HALVES or (isinstance(computed, DType) and computed.compute is DType.FLOAT32)
        return (0, 1, 1) if narrow and self.weighed is not None else (0, 0, 0)

    def term(self, n: int) -> Axis:
        """The axis of the terms of a sum of products."""
        (axis,) = self.products[n].axes
        assert isinstance(axis, Axis), "it is one index"
        return axis


def rematerialised_of(op: Op, stage: NestStage) -> Rematerialised | None:
    """Return the reduction of values made anew that a statement computes, None where it does anything else."""
    found = [*dict.fromkeys(_outermost(stage.assign.value))]
    if len(found) != 1 or found[0].kind not in ("sum", "max") or not is_floating(found[0].type) or stage.plans:
        return None
    (e,) = found
    products = tuple(dict.fromkeys(r for r in walk(e.body) if isinstance(r, Reduce)))
    if not 0 < len(products) <= MOST_PRODUCTS or len({e.type, stage.assign.value.type, *(p.type for p in products)}) != 1:
        return None
    own = [i.name if isinstance(i, GroupRef) else i for i in stage.assign.indices]
    for column in e.axes:
        if not isinstance(column, Axis) or any(isinstance(a, Axis) and a.extent.indices() for a in e.axes):
            continue
        for row, entry in enumerate(stage.assign.indices):
            if isinstance(entry, str) and (factors := _factors(op, products, entry, column.index)) is not None:
                value, weighed, across = _weighed(e, own, row, column.index)
                others = tuple(a for a in e.axes if a != column)
                batch = tuple(n for n in range(len(own)) if n not in (row, across))
                stored = _stored(op, factors, weighed)
                needed = _needed(op, e.kind, value, weighed, entry, column.index)
                return _checked(
                    op,
                    stage,
                    Rematerialised(
                        e, value, products, factors, weighed, column, others, batch, row, across, stored, needed
                    ),
                )
    return None


def _is_scale(e: Call) -> bool:
    return e.fn == "div" or (e.fn == "mul" and isinstance(e.args[1], Read))


def _outermost(e: Expr) -> Iterator[Reduce]:
    """Yield the reductions in an expression that stand in no other one."""
    if isinstance(e, Reduce):
        yield e
        return
    for c in children(e):
        yield from _outermost(c)


def _checked(op: Op, stage: NestStage, found: Rematerialised) -> Rematerialised | None:
    """Return what has been found if tiles can make it."""
    extents = [found.column.extent, *(found.term(n).extent for n in range(len(found.products)))]
    if any(x.indices() for x in extents) or any(r.pad is not None or r.checked or not placed(r) for r in reads(found.value)):
        return None
    if found.weighed is None:
        # Values of rows are one to a row: columns would be read anew for each point of others.
        alone = all(isinstance(i, GroupRef) or n == found.row for n, i in enumerate(stage.assign.indices))
        return found if alone and not found.others and (found.reduction.kind == "sum" or is_positive(op, extents[0])) else None
    if found.across is None or found.reduction.kind != "sum":
        return None
    across = stage.assign.indices[found.across]
    names = {str(across), found.column.index}
    return found if isinstance(across, str) and steps_of(op, found.weighed, names) is not None else None


def _factors(op: Op, products: tuple[Reduce, ...], row: str, column: str) -> tuple[tuple[Read, Read], ...] | None:
    """Return the factors of sums of products, those of rows first, None where one is no such sum."""
    found = []
    for p in products:
        match p:
            case Reduce(kind="sum", axes=(Axis(index=term),), body=Call(fn="mul", args=(Read() as a, Read() as b))):
                left, right = (a, b) if row in free_indices(a) else (b, a)
                if column in free_indices(left) or row in free_indices(right):
                    return None
                steps = steps_of(op, left, (row, term)), steps_of(op, right, (column, term))
                if any(s is None or len(s) != 2 for s in steps):
                    return None
                found.append((left, right))
            case _:
                return None
    return tuple(found)


def _weighed(e: Reduce, own: list[str], row: int, column: str) -> tuple[Expr, Read | None, int | None]:
    """Return what is made at a row and a column, what it is multiplied with, and which entry of the target only that has."""
    match e.body:
        case Call(fn="mul", args=(a, b)):
            for value, other in ((a, b), (b, a)):
                if not isinstance(other, Read) or any(isinstance(r, Reduce) for r in walk(other)):
                    continue
                names = _names(other) - _names(value)
                across = [n for n, name in enumerate(own) if name in names]
                if len(across) == 1 and column in _names(other) and own[row] not in _names(other):
                    return value, other, across[0]
    return e.body, None, None


def _names(e: Expr) -> frozenset[str]:
    return frozenset(free_indices(e) | free_groups(e))


def _stored(op: Op, factors: tuple[tuple[Read, Read], ...], weighed: Read | None) -> TypeVar | DType | None:
    first, *rest = [f for pair in factors for f in pair] + ([] if weighed is None else [weighed])
    found = {stored_alike(op, first, f) for f in rest}
    return found.pop() if len(found) == 1 else None


def _needed(op: Op, kind: str, value: Expr, weighed: Read | None, row: str, column: str) -> Needed | None:
    """Return which columns a condition leaves in a row: where it drops a value, that is nothing to the reduction.

    0 times what is weighed is 0 where that is finite, which is looked for when the op runs.
    """
    found = _dropped(value, _MINUS_INFINITY if kind == "max" else 0.0)
    if found is None or (f := gap(found[0])) is None or f.indices() != {row, column}:
        return None
    by_row, by_column = f.coefficient(row), f.coefficient(column)
    rises = None if by_row is None else by_row.constant
    if not rises or by_column not in (Affine.of(-1), Affine.of(1)):
        return None
    finite = (*found[1], *((weighed,) if weighed is not None else ()))
    # What a row's values have in common makes all of them no numbers, or none.
    names = dict.fromkeys(r.operand for r in finite if r is weighed or column in free_indices(r))
    if any(i.optional and i.name in names for i in op.inputs):
        return None
    return Needed(f, rises > 0, by_column == Affine.of(1), tuple(names))


def _dropped(e: Expr, nothing: float) -> tuple[Expr, tuple[Read, ...]] | None:
    """Return the condition without which a value is `nothing`, if what some elements are made of is finite."""
    match e:
        case Select(cond=cond, other=Const(value=value)) if value == nothing:
            return cond, ()
        case Call(fn="exp", args=(Call(fn="sub", args=(score, shift)),)) if nothing == 0:
            found = _dropped(score, _MINUS_INFINITY)
            return None if found is None else (found[0], (*found[1], *reads(shift)))
        case Call(fn="div", args=(a, b)) if nothing == 0 and (found := _dropped(a, nothing)) is not None:
            return found[0], (*found[1], *reads(b))
    return None


def with_rematerialised(op: Op) -> tuple[Op, frozenset[str]]:
    """Return an op whose reductions make values of rows and columns anew, and the statements that do."""
    if not runs_often(op):
        return op, frozenset()
    return _Rule(op).result()


class _Rule:
    """Looks for statements that may make a factor anew."""

    def __init__(self, op: Op) -> None:
        temporaries = {t.name for t in op.temporaries}
        self.op = op
        self.body = {s.target: s for s in op.body}
        self.temporaries = {name: s for name, s in self.body.items() if name in temporaries and s.indices}
        self.found: dict[str, Assign] = {}
        self.namer = Namer(op_names(op) | index_names(op))
        self.inverses: dict[Expr, tuple[Operand, Assign]] = {}
        """Of each divisor that a row has, the temporary that holds 1 divided by it."""

    def result(self) -> tuple[Op, frozenset[str]]:
        """Return the op, and the targets of what has been changed in it."""
        for s in self.op.body:
            made = self._product(s)
            if made is None:
                continue
            rows = self._values_of_rows(made)
            if rows is not None:
                self.found |= {made.target: made, **rows}
        if not self.found:
            return self.op, frozenset()
        made: dict[str, Assign] = {}
        for s in (self.found.get(s.target, s) for s in self.op.body):
            used = {r.operand for r in reads(s.value)}
            made |= {u.target: u for _, u in self.inverses.values() if u.target in used}
            made[s.target] = s
        inverses = [o for o, _ in self.inverses.values()]
        changed = replace(self.op, body=tuple(made.values()), temporaries=(*self.op.temporaries, *inverses))
        return prune(changed, [o.name for o in self.op.outputs]), frozenset((*self.found, *(o.name for o in inverses)))

    def _product(self, s: Assign) -> Assign | None:
        """Return a statement whose factor, a temporary of rows and columns, is made anew; None where it has none."""
        match [*_outermost(s.value)]:
            case [Reduce(kind="sum", body=Call(fn="mul", args=(Read() as a, Read() as b))) as e]:
                pass
            case _:
                return None
        inner = weights_of(self.op, stage := NestStage(s.target, s, ()))
        if inner is not None and weighed_of(self.op, replace(stage, assign=inner[1])) is not None:
            return None  # one pass makes all of it
        own = {str(i) for i in s.indices if isinstance(i, str)}
        columns = {a.index for a in e.axes if isinstance(a, Axis)}
        for factor, other in ((a, b), (b, a)):
            rows = free_indices(factor) & own - free_indices(other)
            over = free_indices(factor) & columns
            if factor.operand not in self.temporaries or len(rows) != 1 or len(over) != 1:
                continue
            names = frozenset((*rows, *over))
            value = self._made(s, factor, names)
            value, other = self._without_scale(value, other, names)
            made = s.with_value(_replaced(s.value, e, replace(e, body=scalar.raw("mul", value, other))))
            if rematerialised_of(self.op, NestStage(s.target, made, ())) is not None:
                return made
        return None

    def _made(self, s: Assign, e: Expr, names: frozenset[str]) -> Expr:
        """Return a value with what temporaries that have these indices, of a row and a column, are made of in their place."""
        namer = Namer(op_names(self.op) | {n for n in s.indices if isinstance(n, str)} | free_indices(s.value) | names)
        namer.taken |= {a.index for r in _outermost(s.value) for a in r.axes if isinstance(a, Axis)}
        known: dict[Read, Expr] = {}

        def rule(e: Expr) -> Expr:
            if isinstance(e, Read) and e.operand in self.temporaries and names <= free_indices(e) and placed(e) and e.pad is None:
                if e not in known:
                    known[e] = rewrite(rename_bound(put(self.temporaries[e.operand], e), namer), rule)
                return known[e]
            return self._scaled(e) if isinstance(e, Reduce) else _with_factor_outside(e)

        return rewrite(e, rule)

    def _scaled(self, e: Reduce) -> Expr:
        """Return a sum of products with what a factor's elements are all divided by, or multiplied with, outside of it."""
        match e:
            case Reduce(kind="sum", axes=(Axis(index=term),), body=Call(fn="mul", args=(Read() as a, Read() as b))):
                for factor, other in ((a, b), (b, a)):
                    parts = self._parts(factor, term)
                    if parts is not None:
                        fn, element, scale = parts
                        return self._times(fn, replace(e, body=scalar.raw("mul", other, element)), scale)
        return e

    def _times(self, fn: str, e: Expr, scale: Expr) -> Expr:
        """Return a value divided by what a row has, or multiplied with it; with 1 divided by that, computed once for a row, where it
        is of a sum of weights, the greatest of which is 1."""
        found = {r.operand: r for r in reads(scale)}
        if fn != "div" or len(found) != 1 or not is_sum_of_weights(self.temporaries, *found):
            return scalar.raw(fn, e, scale)
        ((name, read),) = found.items()
        own = self.temporaries[name]
        if read.indices != bare(own.indices):
            return scalar.raw(fn, e, scale)
        if scale not in self.inverses:
            temporary = replace(self.op.operand(name), name=self.namer.fresh(f"{name}_inverse"))
            value = scalar.raw("div", Const(1, scale.type), scale)
            self.inverses[scale] = temporary, replace(own, target=temporary.name, value=value)
        return scalar.raw("mul", e, replace(read, operand=self.inverses[scale][0].name))

    def _without_scale(self, value: Expr, other: Read, names: frozenset[str]) -> tuple[Expr, Read]:
        """Return a factor and another with what all elements of that along its own index are divided by, or multiplied with."""
        own = free_indices(other) - names
        parts = self._parts(other, *own) if len(own) == 1 else None
        if parts is None:
            return value, other
        fn, element, scale = parts
        return self._times(fn, value, scale), element

    def _parts(self, e: Read, *over: str) -> tuple[str, Read, Expr] | None:
        """Return the element and the scale that a temporary is the quotient or the product of, which does not have an index."""
        if e.operand not in self.temporaries or not placed(e) or e.pad is not None:
            return None
        match put(self.temporaries[e.operand], e):
            case Call(fn=("div" | "mul") as fn, args=(Read() as element, scale)):
                stored = element.operand not in self.temporaries and element.type == scale.type == e.type
                if stored and not set(over) & free_indices(scale) and not any(isinstance(r, Reduce) for r in walk(scale)):
                    return fn, element, scale
        return None

    def _values_of_rows(self, made: Assign) -> Mapping[str, Assign] | None:
        """Return the statements that a statement depends on which reduce values of rows and columns, with these made anew; None
        where one does anything else with them, so that they would be stored all the same."""
        found: dict[str, Assign] = {}
        left = [r.operand for r in reads(made.value)]
        while left:
            s = self.temporaries.get(left.pop())
            if s is None or s.target in found or s.target in self.found:
                continue
            s = self._with_reduction(s)
            own, value = {i for i in s.indices if isinstance(i, str)}, s.value
            for e in dict.fromkeys(_outermost(s.value)):
                over = {a.index for a in e.axes if isinstance(a, Axis)}
                both = [n & (own | over) for n in map(free_indices, reads(e.body)) if n & own and n & over]
                body = self._made(s, e.body, both[0]) if both else e.body
                if any(isinstance(r, Reduce) for r in walk(body)):
                    value = _replaced(value, e, replace(e, body=body))
            if value != s.value:
                s = s.with_value(value)
                if rematerialised_of(self.op, NestStage(s.target, s, ())) is None:
                    return None
                found[s.target] = s
            left += [r.operand for r in reads(s.value)]
        return found

    def _with_reduction(self, s: Assign) -> Assign:
        """Return a statement without reductions with the one in it that it alone reads."""
        if any(isinstance(e, Reduce) for e in walk(s.value)):
            return s
        for name in dict.fromkeys(r.operand for r in reads(s.value)):
            inner = self.temporaries.get(name)
            users = [u for u in self.op.body if any(r.operand == name for r in reads(u.value))]
            if inner is None or users != [s] or not isinstance(inner.value, Reduce):
                continue
            if all(placed(r) and r.pad is None for r in reads(s.value) if r.operand == name):

                def rule(e: Expr, name: str = name, inner: Assign = inner) -> Expr:
                    return put(inner, e) if isinstance(e, Read) and e.operand == name else e

                return s.with_value(rewrite(s.value, rule))
        return s


def _with_factor_outside(e: Expr) -> Expr:
    """Return a choice of two products as the product of what they share and a choice."""
    match e:
        case Select(then=Call(fn="mul", args=(a, x)), other=Call(fn="mul", args=(b, y))) if x == y and a.type == b.type:
            return scalar.raw("mul", replace(e, then=a, other=b, type=a.type), x)
    return e


def _replaced(e: Expr, old: Expr, new: Expr) -> Expr:
    return new if e == old else with_children(e, tuple(_replaced(c, old, new) for c in children(e)))
