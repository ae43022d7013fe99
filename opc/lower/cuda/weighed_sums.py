"""The kernel of a weighed sum: what the runtime's tiles of weights ask for, as functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ValueType, Weak, is_floating
from opc.ir.expr import (
    AttrRef,
    Call,
    Const,
    Expr,
    GroupIndex,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    children,
    free_groups,
    free_indices,
    rewrite,
    walk,
    with_children,
)
from opc.ir.printer import format_expr
from opc.loops.nodes import Body, Comment, Do, Kernel, Let, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import (
    Address,
    Construct,
    Intrinsic,
    Load,
    Local,
    Member,
    Named,
    Product,
    StoredType,
    call,
    group_offsets,
    number,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.lower.cuda.products import HALVES
from opc.lower.cuda.weigh import Weighed, columns_needed, lies_along

SHAPES = ("64 x 64 x 64", "64 x 64 x 128", "128 x 64 x 64", "128 x 64 x 128")
"""Rows, columns and elements across of the tiles that kernels may have, as the runtime's `shape_of_weights` has them: two of
float32, and two of elements that tensor cores multiply."""

MOST_PLACES = 4
"""How many places a tile finds ahead of its scores at most: as many as the runtime's `digits` have."""


def weighed_kernel(nest: Nest, weighed: Weighed) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceWeights(nest, weighed).kernel()


class _DeviceWeights(DevicePoints):
    """Makes the functions that find elements, make scores and weights of sums, and store the points of a tile."""

    def __init__(self, nest: Nest, weighed: Weighed) -> None:
        super().__init__(nest)
        self.weighed = weighed
        self.type = weighed.sum.type
        self.indices = self.stage.assign.indices
        self.row, self.across = str(self.indices[weighed.row]), str(self.indices[weighed.across])
        self.ahead: list[Let] = []
        """What is the same at all points."""

    def kernel(self) -> Kernel:
        """Return the function."""
        w, of = self.weighed, self.type
        left, right = w.factors
        functions: list[LocalFunction] = []
        arguments: list[Expr] = [NEST]
        term, column = w.term.index, w.column.index
        for name, element, point, along in (
            ("left", left, self.row, term),
            ("right", right, column, term),
            ("weighed", w.weighed, self.across, column),
        ):
            functions += (self._element(name, element, point, along), self._place(f"{name}_at", element, (point, along)))
            arguments += map(ref, (functions[-2].name, functions[-1].name))
        made = (*self._scores(), self._shift(), self._weight(), self._needed(), self._finish())
        functions += made
        arguments += (ref(f.name) for f in made)
        lies = (lies_along(e, t) for e, t in ((left, term), (right, term), (w.weighed, column)))
        along_ = (Named(f"opc::along_{'terms' if by_terms else 'points'}") for by_terms in lies)
        stored = "void" if w.stored is None else StoredType(w.stored, self.nest.operands[0])
        tiles = Do(call("weigh_rows", *arguments, types=(of, stored, "Tiles", *along_)))
        return self.function((*map(Comment, self._comments()), *self.ahead, *functions, tiles), self._schedule())

    def _comments(self) -> Iterator[str]:
        w = self.weighed
        others = ", ".join(str(self.indices[n]) for n in w.batch)
        row = f"{others}, {self.row}" if others else self.row
        column = w.column.index
        names = {w.score: f"score[{row}, {column}]", w.shift: f"shift[{row}]", w.weight: f"weight[{row}, {column}]"}
        values = {e: Local(name, self.type) for e, name in names.items()}
        extent = f"[{column}:{w.column.extent}]"
        greatest, sum_ = (Local(f"{kind}{extent}({names[e]})", self.type) for kind, e in (("max", w.score), ("sum", w.weight)))
        total = Local(f"sum{extent}({format_expr(with_children(w.sum.body, (values[w.weight], w.weighed)))})", self.type)
        weight = self._weight_of(values[w.score], values[w.shift])
        yield f"{names[w.score]} = {format_expr(w.score)}"
        yield f"{names[w.shift]} = {format_expr(_replaced(w.shift, {w.greatest: greatest}))}"
        yield f"{names[w.weight]} = {format_expr(weight)}"
        target = ", ".join(map(str, self.indices))
        value = _replaced(self.stage.assign.value, self._results(total, greatest, sum_))
        yield f"{self.stage.assign.target}[{target}] = {format_expr(value)}"

    def _weight_of(self, score: Expr, shift: Expr) -> Expr:
        weight = self.weighed.weight
        return with_children(weight, (with_children(weight.args[0], (score, shift)),))

    def _results(self, total: Expr, greatest: Expr, sum_: Expr) -> Mapping[Expr, Expr]:
        w = self.weighed
        return {w.sum: total, **dict.fromkeys(w.maxima, greatest), **dict.fromkeys(w.sums, sum_)}

    def _schedule(self) -> Schedule:
        w = self.weighed
        types = getattr(w.stored, "dtypes", (w.stored,))
        halves = tuple(str(d) for d in types if d in HALVES)
        steps = [
            Transformation("bind", ("tiles of rows to blocks",)),
            Transformation("fuse", ("scores", "weights", "sums")),
            Transformation("rescale", ("running maximum",)),
            Transformation("tile", SHAPES if halves else SHAPES[:2]),
        ]
        if halves:
            steps.append(Transformation("tensor", halves))
        if w.needed is not None:
            steps.append(Transformation("leave_out", ("columns",)))
        return Schedule(tuple(steps))

    def _batches(self, batch: str) -> tuple[Let, ...]:
        entries, found = self.weighed.batch, dict[int, Expr]()
        for k, n in enumerate(entries):
            behind = [Member("@nest", "size", m) for m in entries[k + 1 :]]
            whole = len(entries) == 1
            found[n] = variable(batch) if whole else place_of(variable(batch), behind, Member("@nest", "size", n))
        return self.places(found)

    def _function(
        self,
        name: str,
        params: tuple[tuple[object, str], ...],
        places: tuple[Let, ...],
        result: Expr,
        of: ValueType | None,
    ) -> LocalFunction:
        """Return a function of what was made since the last one: the statements that its result needs."""
        body: Body = tuple(self.lines)
        self.lines = []
        used = used_places(places, (*body, Do(call("store", result))))[:-1]
        return LocalFunction(self.nest.fresh(name), params, used, result, of)  # type: ignore[arg-type]  # types of parameters

    def _element(self, name: str, element: Read, point: str, along: str) -> LocalFunction:
        """Return the function of an element's value at a batch, a point and a term."""
        names = {k: self.nest.fresh(k) for k in ("batch", "point", "term")}
        places = (*self._batches(names["batch"]), *_lets({point: names["point"], along: names["term"]}))
        result = Construct(self.type, self.value(element))
        return self._function(name, tuple((Weak.INT, n) for n in names.values()), places, result, self.type)

    def _place(self, name: str, element: Read, along: tuple[str, ...]) -> LocalFunction:
        """Return the function that tells where a batch's element of the first point and term lies."""
        batch = self.nest.fresh("batch")
        places = (*self._batches(batch), *(Let(n, Weak.INT, number(0)) for n in along))
        found = self.value(element)
        assert isinstance(found, Load), "elements lie in steps"
        return self._function(name, ((Weak.INT, batch),), places, Address(found.view, found.offset), None)

    def _scores(self) -> tuple[LocalFunction, LocalFunction]:
        """Return the functions of places that are the same for all scores of a batch, and of a score, of a sum of products."""
        names = {k: self.nest.fresh(k) for k in ("batch", "places", "row", "column", "total")}
        batch = self.nest.fresh("batch")
        total = Local(names["total"], self.type)
        score = self._with_values_ahead(_replaced(self.weighed.score, {self.weighed.products: total}), self.type)
        own = self._batches(names["batch"])
        places = (*own, *_lets({self.row: names["row"], self.weighed.column.index: names["column"]}))
        value = self.value(score)
        offsets = tuple(dict.fromkeys(group_offsets(value)))
        if self.lines or len(offsets) > MOST_PLACES:
            offsets = ()
        kept = {e: Member(names["places"], "at", k) for k, e in enumerate(offsets)}
        result = rewrite(value, lambda e: kept.get(e, e) if isinstance(e, Intrinsic) else e)
        params = tuple(
            (Named("opc::digits") if k == "places" else self.type if k == "total" else Weak.INT, n) for k, n in names.items()
        )
        made = self._function("score", params, places, Construct(self.type, result), self.type)
        # The places along the target's entries have names of their own: those that offsets were made with.
        again = tuple(Let(let.name, Weak.INT, _renamed(let.value, names["batch"], batch)) for let in own)
        used = used_places(again, (Do(call("store", *offsets)),))[:-1]
        return LocalFunction(self.nest.fresh("ahead"), ((Weak.INT, batch),), used, call("digits", *offsets)), made

    def _with_values_ahead(self, e: Expr, of: ValueType) -> Expr:
        """Return an expression, which stands in one of type `of`, with variables for what is the same at all points."""
        if _is_fixed(e):
            name = self.nest.fresh("fixed")
            self.ahead.append(Let(name, of, Construct(of, self.value(e))))
            return Local(name, of)
        return with_children(e, tuple(self._with_values_ahead(c, e.type) for c in children(e)))

    def _shift(self) -> LocalFunction:
        name = self.nest.fresh("greatest")
        value = self.value(_replaced(self.weighed.shift, {self.weighed.greatest: Local(name, self.type)}))
        return self._function("shift", ((self.type, name),), (), Construct(self.type, value), self.type)

    def _weight(self) -> LocalFunction:
        score, shift = self.nest.fresh("score"), self.nest.fresh("shift")
        value = self.value(self._weight_of(Local(score, self.type), Local(shift, self.type)))
        return self._function("weight", ((self.type, score), (self.type, shift)), (), Construct(self.type, value), self.type)

    def _needed(self) -> LocalFunction:
        first, rows = self.nest.fresh("first"), self.nest.fresh("rows")
        w = self.weighed
        count: Expr = Member("@nest", "columns")
        if w.needed is not None:
            places = Affine.of(Index(first)), Affine.of(Index(rows))
            count = IndexValue(columns_needed(w.needed, self.row, w.column.index, *places))
        return self._function("needed", ((Weak.INT, first), (Weak.INT, rows)), (), count, None)

    def _finish(self) -> LocalFunction:
        names = {k: self.nest.fresh(k) for k in ("batch", "row", "across", "total", "greatest", "sum")}
        w = self.weighed
        batches = self._batches(names["batch"])
        own = _lets({self.row: names["row"], self.across: names["across"]})
        results = (Local(names[k], self.type) for k in ("total", "greatest", "sum"))
        value = self.value(_replaced(self.stage.assign.value, self._results(*results)))
        whole = [*zip(w.batch, (let.name for let in batches), strict=True), (w.row, self.row), (w.across, self.across)]
        terms = [Product((variable(name), Member("@nest", "after", n))) for n, name in sorted(whole)]
        body = (*self.lines, self.stored(sum_of(terms), value))
        self.lines = []
        params = tuple((Weak.INT if k in ("batch", "row", "across") else self.type, n) for k, n in names.items())
        return LocalFunction(self.nest.fresh("finish"), params, used_places((*batches, *own), body))


def _lets(places: Mapping[str, str]) -> tuple[Let, ...]:
    return tuple(Let(index, Weak.INT, variable(param)) for index, param in places.items())


def _replaced(e: Expr, values: Mapping[Expr, Expr]) -> Expr:
    """Return an expression with others in place of some parts, the largest first."""
    if e in values:
        return values[e]
    return with_children(e, tuple(_replaced(c, values) for c in children(e)))


def _renamed(e: Expr, name: str, new: str) -> Expr:
    return rewrite(e, lambda x: variable(new) if x == variable(name) else x)


def _is_fixed(e: Expr) -> bool:
    """Whether an expression is computed and the same at all points: it is made of attributes and sizes."""
    if not isinstance(e, Call | Select) or not is_floating(e.type) or free_indices(e) or free_groups(e):
        return False
    parts = list(walk(e))
    if any(isinstance(p, Read | Reduce | GroupIndex | Local) for p in parts):
        return False
    return all(isinstance(p, Call | Select | Const | AttrRef | IndexValue | Present) for p in parts)
