"""Functions that kernels of tiles of rows and columns are made of: of elements, of where they lie, and of values at a point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from opc.ir.affine import Affine, Index, Symbol
from opc.ir.dtypes import DType, ValueType, Weak, is_floating
from opc.ir.expr import (
    AttrRef,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    IndexValue,
    Present,
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
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Operand
from opc.ir.promotion import join
from opc.loops.nodes import Body, Do, Let, LocalFunction, Statement
from opc.loops.values import (
    Address,
    Construct,
    Intrinsic,
    Kind,
    Load,
    Local,
    Member,
    Named,
    Product,
    Sum,
    call,
    compare,
    group_offsets,
    number,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.context import Nest
from opc.lower.columns import gap
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.records import dataclass, replace

Params: TypeAlias = tuple[tuple[Kind, str], ...]

MOST_PLACES = 4
"""How many places a tile finds ahead of its values at most: as many as the runtime's `digits` have."""


class DeviceTiles(DevicePoints):
    """Makes functions of the batches that entries of the target count, and of the terms along further axes of a reduction."""

    def __init__(self, nest: Nest, of: ValueType, batch: tuple[int, ...], others: tuple[ReduceAxis, ...] | None = None) -> None:
        super().__init__(nest)
        self.type, self.batch, self.others = of, batch, others
        self.indices = self.stage.assign.indices
        self.ahead: list[Let] = []
        """What is the same at all points."""
        self.near: tuple[Any, ...] = ()
        """The types by which an exponential that is a factor of values may be less exact, where these are added up with many."""

    def starts(self) -> tuple[Params, tuple[Let, ...]]:
        """Return what a function's parameters begin with, a batch and a term along other axes, and the places that these are."""
        batch = self.nest.fresh("batch")
        places = self.batches(batch)
        if self.others is None:
            return ((Weak.INT, batch),), places
        along = self.nest.fresh("along")
        before, self.lines = self.lines, []
        loops = [self.loop_over(axis) for axis in self.others]
        sizes = [loop.high for loop in loops]
        found = (place_of(variable(along), sizes[k + 1 :], size) for k, size in enumerate(sizes))
        terms = [variable(along)] if len(loops) == 1 else [*found]
        own = (Let(loop.index, Weak.INT, place) for loop, place in zip(loops, terms, strict=True))
        # Behind these are the places of what is broadcast.
        further = (s for s in self.lines if isinstance(s, Let))
        places = (*places, *own, *further)
        self.lines = before
        return ((Weak.INT, batch), (Weak.INT, along)), places

    def batches(self, batch: str) -> tuple[Let, ...]:
        """Return the places along entries of the target that the number of a batch is."""
        found = dict[int, Expr]()
        for k, n in enumerate(self.batch):
            behind = [Member("@nest", "size", m) for m in self.batch[k + 1 :]]
            whole = len(self.batch) == 1
            found[n] = variable(batch) if whole else place_of(variable(batch), behind, Member("@nest", "size", n))
        return self.places(found)

    def made(
        self, name: str, params: Params, places: tuple[Let, ...], result: Expr, of: ValueType | None = None
    ) -> LocalFunction:
        """Return a function of what was made since the last one: the statements that its result needs."""
        body: Body = tuple(self.lines)
        self.lines = []
        used = used_places(places, (*body, Do(call("store", result))))[:-1]
        return LocalFunction(self.nest.fresh(name), params, used, result, of)

    def factor(self, name: str, element: Read, point: str, along: str) -> tuple[LocalFunction, LocalFunction]:
        """Return the functions of an element's value at a point and a term, and of where that of the first ones lies."""
        params, places = self.starts()
        names = self.nest.fresh("point"), self.nest.fresh("term")
        places = (*places, *lets({point: names[0], along: names[1]}))
        result = Construct(self.type, self.value(element))
        value = self.made(name, (*params, *((Weak.INT, n) for n in names)), places, result, self.type)
        params, places = self.starts()
        found = self.value(element)
        assert isinstance(found, Load), "elements lie in steps"
        places = (*places, *(Let(n, Weak.INT, number(0)) for n in (point, along)))
        return value, self.made(f"{name}_at", params, places, Address(found.view, found.offset))

    def values(
        self, name: str, e: Expr, products: tuple[Reduce, ...], row: str, column: str, scaled: tuple[Expr, ...] | None = None
    ) -> tuple[LocalFunction, ...]:
        """Return the functions of places that are the same for all values of a batch; of a value, of sums of products; of the
        same without what holds at all points of most tiles; and of whether it does, at some rows and columns. Parts of a value
        that are `scaled` are in a unit, which is a parameter then."""
        params, own = self.starts()
        plain, conditions = inner_value(e, row, column)
        never = any({row, column} <= free_indices(r) for r in reads(replaced(plain, dict.fromkeys(products, number(0)))))
        if never:
            # Elements of rows and columns are read a few at a time: there are no registers for all of a tile.
            plain = e
        texts = [self._value_text(x, products, scaled) for x in dict.fromkeys((e, plain))]
        found = dict.fromkeys(x for text in texts for x in group_offsets(text.value))
        alike = {x: self._first_alike(x, tuple(found)) for x in found}
        offsets = tuple(dict.fromkeys(alike.values()))
        lines = [text.lines for text in texts]
        if any(lines) or len(offsets) > MOST_PLACES:
            alike, offsets = {}, ()
        functions = []
        for text, word in zip(texts, (name, "inner"), strict=False):
            places, at_row, at_column = (self.nest.fresh(k) for k in ("places", "row", "column"))
            kept = {x: Member(places, "at", offsets.index(first)) for x, first in alike.items()}
            again, at = self._anew(params, own)
            self.lines = text.lines
            functions.append(
                self.made(
                    word,
                    (*again, (Named("opc::digits"), places), (Weak.INT, at_row), (Weak.INT, at_column), *text.params),
                    (*at, *lets({row: at_row, column: at_column})),
                    Construct(self.type, _with_places(text.value, kept)),
                    self.type,
                )
            )
        again, at = self._anew(params, own)
        used = used_places(at, (Do(call("store", *offsets)),))[:-1]
        ahead = LocalFunction(self.nest.fresh("ahead"), again, used, call("digits", *offsets))
        return ahead, functions[0], functions[-1], self._inside(conditions, row, column, never=never)

    def _value_text(self, e: Expr, products: tuple[Reduce, ...], scaled: tuple[Expr, ...] | None) -> _Value:
        """Return a value with parameters in place of sums of products."""
        totals: dict[Expr, Local] = {p: Local(self.nest.fresh("total"), self.type) for p in products}
        unit = Local(self.nest.fresh("unit"), self.type)
        e = replaced(e, {x: Call("mul", (x, unit), x.type) for x in scaled or ()})
        value = self.value(self._with_values_ahead(replaced(e, totals), self.type))
        value = self._near(value) if self.near else value
        lines, self.lines = self.lines, []
        units = [] if scaled is None else [(self.type, unit.name)]
        return _Value(value, lines, (*units, *((self.type, t.name) for t in totals.values())))

    def _near(self, e: Expr) -> Expr:
        """Return a value with exponentials that are factors of it as those of sums of many terms."""
        match e:
            case Call(fn="exp", args=(x,)):
                return call("exp_in_sum", x, type=e.type, types=self.near)
            case Call(fn="mul", args=(a, b)):
                return with_children(e, (self._near(a), self._near(b)))
            case Call(fn="div", args=(a, b)):
                return with_children(e, (self._near(a), b))
        return e

    def _anew(self, params: Params, places: tuple[Let, ...]) -> tuple[Params, tuple[Let, ...]]:
        """Return parameters of new names, and the places that are found of them."""
        again = tuple((kind, self.nest.fresh(n.partition("#")[0])) for kind, n in params)
        names = {old: new for (_, old), (_, new) in zip(params, again, strict=True)}
        return again, tuple(Let(let.name, Weak.INT, _renamed(let.value, names)) for let in places)

    def _inside(self, conditions: tuple[Affine | str, ...], row: str, column: str, *, never: bool) -> LocalFunction:
        """Return the function that tells whether conditions hold at all of some rows and columns: that an affine function is at
        least 0, and that an operand is absent; or that they `never` do."""
        names = [self.nest.fresh(n) for n in ("first", "rows", "column", "columns")]
        first, rows, left, columns = (Affine.of(Index(n)) for n in names)
        found: Expr = Const(not never, DType.BOOL)
        for c in () if never else conditions:
            if isinstance(c, str):
                holds: Expr = Call("not", (Present(c),), DType.BOOL)
            else:
                ends: dict[Symbol, Affine] = {}
                for index, start, count in ((row, first, rows), (column, left, columns)):
                    times = c.coefficient(index)
                    falls = times is not None and times.constant is not None and times.constant < 0
                    ends[Index(index)] = start + count - 1 if falls else start
                holds = compare("ge", IndexValue(c.substitute(ends.get)), number(0))
            found = holds if isinstance(found, Const) else Call("and", (found, holds), DType.BOOL)
        return self.made("inside", tuple((Weak.INT, n) for n in names), (), found)

    def finish(self, entries: Mapping[int, str], results: Mapping[str, tuple[Expr, ...]]) -> LocalFunction:
        """Return the function that stores a point, at a batch and places by entries of the target, of results by their names,
        each with what it stands for in the value of the statement."""
        batch = self.nest.fresh("batch")
        batches = self.batches(batch)
        names = {n: self.nest.fresh(word) for n, word in entries.items()}
        own = lets({str(self.indices[n]): name for n, name in names.items()})
        found = {name: self.nest.fresh(name) for name in results}
        values = {e: Local(found[name], self.type) for name, es in results.items() for e in es}
        value = self.value(replaced(self.stage.assign.value, values))
        whole = [*zip(self.batch, (let.name for let in batches), strict=True), *((n, str(self.indices[n])) for n in entries)]
        terms = [Product((variable(name), Member("@nest", "after", n))) for n, name in sorted(whole)]
        body = (*self.lines, self.stored(sum_of(terms), value))
        self.lines = []
        params = [(Weak.INT, batch), *((Weak.INT, n) for n in names.values()), *((self.type, n) for n in found.values())]
        return LocalFunction(self.nest.fresh("finish"), tuple(params), used_places((*batches, *own), body))

    def _first_alike(self, offset: Intrinsic, offsets: tuple[Intrinsic, ...]) -> Intrinsic:
        """Return the first of some offsets that is the same: temporaries of the same shape lie alike."""
        own, rest = self._temporary(offset.args[0]), offset.args[1:]
        for other in offsets:
            of = self._temporary(other.args[0])
            if own is not None and of is not None and of.dims == own.dims and other.args[1:] == rest:
                return other
        return offset

    def _temporary(self, view: Expr) -> Operand | None:
        """Return the temporary that a view is of, which is dense; None where it is of another operand."""
        return next((t for t in self.op.temporaries if view == ref(t.name)), None)

    def read(self, e: Read) -> Expr:
        """As `PointLoops` says: along their last axis the elements of a temporary are neighbours."""
        found = super().read(e)
        if not isinstance(found, Load) or self._temporary(ref(e.operand)) is None or not isinstance(found.offset, Sum):
            return found
        match found.offset.terms:
            case (*terms, Product(factors=(at, Member()))):
                return replace(found, offset=Sum((*terms, at)))
        return found

    def _with_values_ahead(self, e: Expr, of: ValueType) -> Expr:
        """Return an expression, which stands in one of type `of`, with variables for what is the same at all points."""
        if _is_fixed(e):
            found = Construct(of, self.value(e))
            known = next((let.name for let in self.ahead if let.kind == of and let.value == found), None)
            if known is None:
                known = self.nest.fresh("fixed")
                self.ahead.append(Let(known, of, found))
            return Local(known, of)
        inside = _computed_in(e)
        return with_children(e, tuple(self._with_values_ahead(c, inside or c.type) for c in children(e)))


@dataclass(frozen=True, slots=True)
class _Value:
    """A value with parameters in place of sums of products, and the statements that it needs before it."""

    value: Expr
    lines: list[Statement]
    params: Params


def inner_value(e: Expr, row: str, column: str) -> tuple[Expr, tuple[Affine | str, ...]]:
    """Return a value as it is in most tiles: without optional operands, and where conditions on a row and a column hold; and
    these, as functions that are at least 0 and operands that are absent then."""
    conditions: dict[Affine | str, None] = {}

    def rule(x: Expr) -> Expr:
        match x:
            case Select(cond=Present(name), other=other):
                conditions[name] = None
                return other
            case Select(cond=cond, then=then) if (f := gap(cond)) is not None and f.indices() and f.indices() <= {row, column}:
                times = (f.coefficient(i) for i in f.indices())
                if all(t is not None and t.constant is not None for t in times):
                    conditions[f] = None
                    return then
        return x

    return rewrite(e, rule), tuple(conditions)


def lets(places: Mapping[str, str]) -> tuple[Let, ...]:
    """Return variables of these names for parameters."""
    return tuple(Let(index, Weak.INT, variable(param)) for index, param in places.items())


def replaced(e: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with others in place of some parts, the largest first."""
    if e in values:
        return values[e]
    return with_children(e, tuple(replaced(c, values) for c in children(e)))


def _with_places(e: Expr, kept: Mapping[Intrinsic, Member]) -> Expr:
    return rewrite(e, lambda x: kept.get(x, x) if isinstance(x, Intrinsic) else x)


def _renamed(e: Expr, names: Mapping[str, str]) -> Expr:
    found: dict[Expr, Expr] = {variable(old): variable(new) for old, new in names.items()}
    return rewrite(e, lambda x: found.get(x, x) if isinstance(x, IndexValue) else x)


def _computed_in(e: Expr) -> ValueType | None:
    """Return the type that what stands in an expression is computed in: of a comparison that of both sides; None for its own."""
    if isinstance(e, Cast):
        return None
    if not isinstance(e, Call) or FUNCTIONS[e.fn].types not in ("compare", "test"):
        return e.type
    common: ValueType | None = e.args[0].type
    for a in e.args[1:]:
        common = join(common, a.type) if common is not None else None
    return common


def _is_fixed(e: Expr) -> bool:
    """Whether an expression is computed and the same at all points: it is made of attributes and sizes."""
    if not isinstance(e, Call | Select) or not is_floating(e.type) or free_indices(e) or free_groups(e):
        return False
    parts = list(walk(e))
    if any(isinstance(p, Read | Reduce | GroupIndex | Local) for p in parts):
        return False
    return all(isinstance(p, Call | Select | Const | AttrRef | IndexValue | Present) for p in parts)
