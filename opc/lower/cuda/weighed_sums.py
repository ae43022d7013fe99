"""The kernel of a weighed sum: what the runtime's tiles of weights ask for, as functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import Expr, IndexValue, with_children
from opc.ir.printer import format_expr
from opc.loops.nodes import Comment, Do, Kernel, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Construct, Local, Member, Named, StoredType, call, ref
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.products import HALVES
from opc.lower.cuda.tiles import DeviceTiles, replaced
from opc.lower.cuda.weigh import Weighed, lies_along

SHAPES = ("64 x 64 x 64", "64 x 64 x 128", "128 x 64 x 64", "128 x 64 x 128")
"""Rows, columns and elements across of the tiles that kernels may have, as the runtime's `shape_of_weights` has them: two of
float32, and two of elements that tensor cores multiply."""


def weighed_kernel(nest: Nest, weighed: Weighed) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceWeights(nest, weighed).kernel()


class _DeviceWeights(DeviceTiles):
    """Makes the functions that find elements, make scores and weights of sums, and store the points of a tile."""

    def __init__(self, nest: Nest, weighed: Weighed) -> None:
        super().__init__(nest, weighed.sum.type, weighed.batch)
        self.weighed = weighed
        self.row, self.across = str(self.indices[weighed.row]), str(self.indices[weighed.across])

    def kernel(self) -> Kernel:
        """Return the function."""
        w, of = self.weighed, self.type
        left, right = w.factors
        functions: list[LocalFunction] = []
        term, column = w.term.index, w.column.index
        for name, element, point, along in (
            ("left", left, self.row, term),
            ("right", right, column, term),
            ("weighed", w.weighed, self.across, column),
        ):
            functions += self.factor(name, element, point, along)
        functions += self.values("score", w.score, (w.products,), self.row, column)
        entries = {w.row: "row", w.across: "across"}
        results = {"total": (w.sum,), "greatest": w.maxima, "sum": w.sums}
        functions += self._shift(), self._weight(), self._needed(), self.finish(entries, results)
        lies = (lies_along(e, t) for e, t in ((left, term), (right, term), (w.weighed, column)))
        along_ = (Named(f"opc::along_{'terms' if by_terms else 'points'}") for by_terms in lies)
        stored = "void" if w.stored is None else StoredType(w.stored, self.nest.operands[0])
        arguments = (NEST, *(ref(f.name) for f in functions))
        tiles = Do(call("weigh_rows", *arguments, types=(of, stored, "Tiles", *along_)))
        return self.function((*map(Comment, self._comments()), *self.ahead, *dict.fromkeys(functions), tiles), self._schedule())

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
        yield f"{names[w.shift]} = {format_expr(replaced(w.shift, {w.greatest: greatest}))}"
        yield f"{names[w.weight]} = {format_expr(weight)}"
        target = ", ".join(map(str, self.indices))
        results: Mapping[Expr, Expr] = {w.sum: total, **dict.fromkeys(w.maxima, greatest), **dict.fromkeys(w.sums, sum_)}
        yield f"{self.stage.assign.target}[{target}] = {format_expr(replaced(self.stage.assign.value, results))}"

    def _weight_of(self, score: Expr, shift: Expr) -> Expr:
        weight = self.weighed.weight
        return with_children(weight, (with_children(weight.args[0], (score, shift)),))

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

    def _shift(self) -> LocalFunction:
        name = self.nest.fresh("greatest")
        value = self.value(replaced(self.weighed.shift, {self.weighed.greatest: Local(name, self.type)}))
        return self.made("shift", ((self.type, name),), (), Construct(self.type, value), self.type)

    def _weight(self) -> LocalFunction:
        score, shift = self.nest.fresh("score"), self.nest.fresh("shift")
        value = self.value(self._weight_of(Local(score, self.type), Local(shift, self.type)))
        return self.made("weight", ((self.type, score), (self.type, shift)), (), Construct(self.type, value), self.type)

    def _needed(self) -> LocalFunction:
        first, rows = self.nest.fresh("first"), self.nest.fresh("rows")
        w = self.weighed
        count: Expr = Member("@nest", "columns")
        if w.needed is not None:
            places = Affine.of(Index(first)), Affine.of(Index(rows))
            count = IndexValue(w.needed.bound(self.row, w.column.index, *places))
        return self.made("needed", ((Weak.INT, first), (Weak.INT, rows)), (), count)
