"""Batched rows: as many short rows at once as a vector has lanes, transposed in registers, so that each row is a lane.

The values of the rows stand transposed in arrays, column by column; so do values of the row, one a lane. A loop along the row is
then a loop over columns, in each of which a loop over the lanes is one vector operation, reductions included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import Expr, Present, children, with_children
from opc.loops.nodes import (
    Body,
    Buffer,
    Comment,
    Do,
    How,
    If,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Statement,
    Store,
    Var,
    bodies,
    own_values,
    values_of,
    with_bodies,
    with_own_values,
)
from opc.loops.row_loops import parameter, reduction_type, reductions_of, taken
from opc.loops.values import (
    Construct,
    IntegerChoice,
    Local,
    Member,
    Named,
    Pointer,
    Product,
    Static,
    Word,
    call,
    number,
    ref,
    variable,
    variables,
    zero,
)
from opc.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class BatchOperand:
    """An operand of a tile: the pointer to its row or the variable of its value, the type of an element, its position, whether it
    varies along the row, is written, or may be absent, and the flag that says whether it is wanted."""

    name: str
    type: ValueType
    position: int
    along: bool
    written: bool
    optional: str = ""
    flag: str = ""


def batch(
    groups: list[PassGroup],
    rows: list[BatchOperand],
    buffers: list[tuple[str, ValueType]],
    fresh: Callable[[str], str],
    lanes: Expr,
    vectors: int,
) -> Body:
    """Return groups of statements on one row as loops over several rows at a time.

    `buffers` are row buffers; `lanes` is how many rows go together, `vectors` how many vectors long rows are at most; `fresh`
    names new variables.
    """
    return _Batch(rows, fresh, lanes, vectors).run(groups, buffers)


class _Batch:
    def __init__(self, rows: list[BatchOperand], fresh: Callable[[str], str], lanes: Expr, vectors: int) -> None:
        self.rows, self.fresh, self.count, self.vectors = rows, fresh, lanes, vectors
        self.lanes, self.first, self.lane, self.place = (fresh(n) for n in ("lanes", "first", "lane", "at"))
        self.columns: set[str] = set()
        self.arrays: dict[str, tuple[str, ValueType]] = {}
        self.written: dict[str, str] = {}
        self.reductions: dict[str, str] = {}

    def run(self, groups: list[PassGroup], buffers: list[tuple[str, ValueType]]) -> Body:
        """Return the function's body."""
        head: list[Statement] = [Let(self.lanes, Named("int"), self.count)]
        for r in self.rows:
            if r.along:
                head += self._columns(r.name, r.type)
            else:
                array = self.fresh(r.name.partition("#")[0] if r.written else f"{r.name}_of")
                head.append(Buffer(array, r.type, variable(self.lanes), aligned=True))
                if r.written:
                    self.written[r.name] = array
                else:
                    self.arrays[r.name] = (array, r.type)
        for name, of in buffers:
            head += self._columns(name, of)
        for g in groups:
            for name, of in self._row_values(g):
                self.arrays[name] = (self.fresh(f"{name.partition('#')[0]}_of"), of)
                head.append(Buffer(self.arrays[name][0], of, variable(self.lanes), aligned=True))
        body = [*self._taken(), *(s for g in groups for s in self._group(g)), *self._stores()]
        loop = Loop(How.SERIAL, self.first, number(0), Member("@tile", "rows"), tuple(body), step=variable(self.lanes))
        return (*head, loop)

    def _columns(self, name: str, of: ValueType) -> Iterator[Statement]:
        """Yield an array of columns, and the pointer it is used by."""
        array = self.fresh(f"{name.partition('#')[0]}_columns")
        most = Static(Named("opc::max_batched_columns", (ref(self.lanes), self.vectors)), "", Weak.INT)
        yield Buffer(array, of, Product((most, variable(self.lanes))), aligned=True)
        yield Let(name, Pointer(of), call("columns_at", ref(array), type=of))
        self.columns.add(name)

    def _row_values(self, g: PassGroup) -> Iterator[tuple[str, ValueType]]:
        """Yield the values of the row that need an array: other reductions than extremes are in their partial results."""
        reductions = {name: f for s in g.body if isinstance(s, Loop) for name, f in reductions_of(s).items()}
        for s in g.body:
            if isinstance(s, Let) and not isinstance(s.kind, Named | Pointer):
                yield s.name, s.kind
            elif isinstance(s, Var) and s.name in reductions and reductions[s.name].kind in ("max", "min"):
                yield s.name, reductions[s.name].target.type

    def _args(self, r: BatchOperand) -> tuple[Expr, ...]:
        target = r.name if r.along else self.written.get(r.name) or self.arrays[r.name][0]
        return Word("tile"), number(r.position), variable(self.first), ref(target)

    def _taken(self) -> Iterator[Statement]:
        for r in self.rows:
            if not r.written:
                take = Do(call("load_batch" if r.along else "load_values", *self._args(r), types=(ref(self.lanes),)))
                yield If(Present(r.optional), (take,)) if r.optional else take

    def _stores(self) -> Iterator[Statement]:
        for r in self.rows:
            if r.written:
                store = Do(call("store_batch" if r.along else "store_values", *self._args(r), types=(ref(self.lanes),)))
                yield If(Local(r.flag, DType.BOOL), (store,), static=True) if r.flag else store

    def _group(self, g: PassGroup) -> Iterator[Statement]:
        """Yield a pass."""
        yield from (s for s in g.body if isinstance(s, Comment))
        early = [s for s in g.body if not isinstance(s, Comment | Loop | Var)]
        if early:
            yield Loop(How.VECTOR, self.lane, number(0), variable(self.lanes), tuple(self._early(early)), short=True)
        for loop in g.body:
            if isinstance(loop, Loop):
                yield from self._along(loop)

    def _early(self, early: Sequence[Statement]) -> Iterator[Statement]:
        made = {s.name for s in early if isinstance(s, Let)}
        yield from self._values_here(early, made)
        for s in early:
            yield self._at_lane(s, variable(self.lane))
            if isinstance(s, Let) and s.name in self.arrays:
                array, of = self.arrays[s.name]
                yield Store(Local(array, of, variable(self.lane)), Local(s.name, of))

    def _along(self, loop: Loop) -> Iterator[Statement]:
        reductions = reductions_of(loop)
        for name, f in reductions.items():
            self.reductions[name] = self.fresh(f"{name.partition('#')[0]}_reduction")
            yield Var(self.reductions[name], reduction_type(f, ref(self.lanes)))
        step = self.fresh("step")
        params = (("int64_t", loop.index), ("int64_t", self.place), ("int", self.lane))
        body = [
            *self._values_here(loop.body, set(reductions)),
            *(self._at_lane(s, variable(self.place)) for s in taken(loop.body, self.fresh)),
        ]
        yield LocalFunction(step, (*params, *((parameter(f), n) for n, f in reductions.items())), tuple(body), inlined=True)
        own = tuple(ref(self.reductions[n]) for n in reductions)
        yield Do(call("reduce_batch", loop.high, ref(step), *own, types=(ref(self.lanes),)))
        for name, f in reductions.items():
            if name in self.arrays:
                yield Do(call("values_of", ref(self.reductions[name]), ref(self.arrays[name][0])))
            else:  # a copy would be one of integers, for which what loads it as a vector would wait
                self.arrays[name] = (f"{self.reductions[name]}", f.target.type)

    def _values_here(self, body: Sequence[Statement], made: set[str]) -> Iterator[Statement]:
        """Yield the declarations of the values of the row that statements use and do not make."""
        used = dict.fromkeys(v for e in values_of(tuple(body)) for v in variables(e))
        optional = {r.name: r.optional for r in self.rows if r.optional}
        for name in used:
            if name not in self.arrays or name in made:
                continue
            array, of = self.arrays[name]
            value: Expr = Local(array, of, variable(self.lane), "lane" if array in self.reductions.values() else "")
            if name in optional:
                value = IntegerChoice(Present(optional[name]), value, Construct(of, zero(of)))
            yield Let(name, of, value)

    def _at_lane(self, s: Statement, at: Expr) -> Statement:
        """Return a statement at a place of the columns, or at a lane."""

        def moved(e: Expr) -> Expr:
            if isinstance(e, Local) and e.name in self.columns and e.index is not None:
                return replace(e, index=at)
            if isinstance(e, Local) and e.name in self.written:
                return Local(self.written[e.name], e.type, variable(self.lane))
            return with_children(e, tuple(map(moved, children(e))))

        s = with_own_values(s, tuple(map(moved, own_values(s))))
        return with_bodies(s, tuple(tuple(self._at_lane(t, at) for t in b) for b in bodies(s)))
