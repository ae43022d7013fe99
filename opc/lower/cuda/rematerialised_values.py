"""The kernel of a reduction over values that are made anew: what the runtime's tiles ask for, as functions."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import IndexValue, Read
from opc.ir.printer import format_expr
from opc.loops.nodes import Comment, Do, Kernel, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Local, Member, Named, StoredType, call, number, ref
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.products import HALVES
from opc.lower.cuda.rematerialised import Rematerialised
from opc.lower.cuda.tiles import DeviceTiles, replaced
from opc.lower.cuda.weigh import lies_along
from opc.lower.cuda.weighed_sums import SHAPES


def rematerialised_kernel(nest: Nest, found: Rematerialised) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceValues(nest, found).kernel()


class _DeviceValues(DeviceTiles):
    """Makes the functions that find elements, make values of sums of products, and store the points of a tile."""

    def __init__(self, nest: Nest, found: Rematerialised) -> None:
        super().__init__(nest, found.reduction.type, found.batch, found.others)
        self.found = found
        self.row = str(self.indices[found.row])

    def kernel(self) -> Kernel:
        """Return the function."""
        f, column = self.found, self.found.column.index
        functions, pairs = list[LocalFunction](), []
        for n, (left, right) in enumerate(f.factors):
            term = f.term(n).index
            own = [*self.factor("left", left, self.row, term), *self.factor("right", right, column, term)]
            functions += own
            types = self._along(left, term), self._along(right, term)
            pairs.append(call("factors", *(ref(x.name) for x in own), types=types))
        if f.weighed is not None and f.across is not None:
            own = [*self.factor("weighed", f.weighed, str(self.indices[f.across]), column)]
            functions += own
            pairs.append(call("weighed", *(ref(x.name) for x in own), types=(self._along(f.weighed, column),)))
        entries = {f.row: "row"} if f.across is None else {f.row: "row", f.across: "across"}
        stored = "void" if f.stored is None else StoredType(f.stored, f.factors[0][0].operand)
        if f.reduction.kind == "sum":
            self.near = (stored, "Tiles")
        made = [*self.values("value", f.value, f.products, self.row, column, f.scaled), *self._needed()]
        made.append(self.finish(entries, {"total": (f.reduction,)}))
        functions += made
        name = "multiply_rematerialised" if f.weighed is not None else "reduce_rematerialised"
        shrinks = sum(1 << n for n, p in enumerate(f.products) if any(x.args[0] == p for x in f.scaled))
        kind = str(shrinks) if f.weighed is not None else f"opc::joins_{f.reduction.kind}"
        arguments = (NEST, *pairs, *(ref(x.name) for x in made))
        tiles = Do(call(name, *arguments, types=(self.type, stored, "Tiles", kind)))
        return self.function((*map(Comment, self._comments()), *self.ahead, *dict.fromkeys(functions), tiles), self._schedule())

    @staticmethod
    def _along(element: Read, term: str) -> Named:
        return Named(f"opc::along_{'terms' if lies_along(element, term) else 'points'}")

    def _comments(self) -> Iterator[str]:
        f = self.found
        indices = [*(str(self.indices[n]) for n in f.batch), self.row, f.column.index]
        value = Local(f"value[{', '.join(indices)}]", self.type)
        yield f"{value.name} = {format_expr(f.value)}"
        target = ", ".join(map(str, self.indices))
        yield f"{self.stage.assign.target}[{target}] = {format_expr(replaced(self.stage.assign.value, {f.value: value}))}"

    def _schedule(self) -> Schedule:
        f = self.found
        types = getattr(f.stored, "dtypes", (f.stored,))
        halves = tuple(str(d) for d in types if d in HALVES)
        shapes = SHAPES if halves else SHAPES[:2]
        steps = [
            Transformation("bind", ("tiles of rows to blocks",)),
            Transformation("rematerialise", ("factor" if f.weighed is not None else "terms",)),
            Transformation("products", (str(len(f.products)),)),
            Transformation("tile", shapes if f.weighed is not None else shapes[::2]),
        ]
        if halves:
            steps.append(Transformation("tensor", halves))
        if f.needed is not None:
            steps.append(Transformation("leave_out", ("columns",)))
        return Schedule(tuple(steps))

    def _needed(self) -> tuple[LocalFunction, LocalFunction]:
        """Return the functions of the first column that some of so many rows need, and of where these columns end."""
        needed, found = self.found.needed, []
        for name, starts in (("begin", True), ("end", False)):
            first, rows = self.nest.fresh("first"), self.nest.fresh("rows")
            bound = Member("@nest", "columns") if not starts else number(0)
            if needed is not None and needed.starts == starts:
                places = Affine.of(Index(first)), Affine.of(Index(rows))
                bound = IndexValue(needed.bound(self.row, self.found.column.index, *places))
            found.append(self.made(name, ((Weak.INT, first), (Weak.INT, rows)), (), bound))
        return found[0], found[1]
