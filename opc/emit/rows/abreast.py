"""Short rows abreast as C++: a second form of row stages that fold, in which a row is a lane of a vector.

The values of as many rows stand turned over in arrays, column by column; so do values of the row, one a lane. A loop along the
row is then a loop over columns, in each of which a loop over the lanes is one vector operation, folds included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from opc.emit.cpp.expressions import c_compute
from opc.emit.cpp.text import comment
from opc.emit.rows.actions import loaded
from opc.emit.rows.folds import fold_type, is_slow, parameter, partial
from opc.emit.rows.tiles import TileText
from opc.ir.expr import reads, walk
from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.lower.loop_ir import Action, Fold, Keep, Let, Pass, Put, RowStage
from opc.lower.rows.streams import runs_often


def tile_text(op: Op, stage: RowStage) -> TileText:
    """Return the tile function of a stage in all its forms. Short rows have no long stretches."""
    return TileText(op, stage, AbreastText(op, replace(stage, still=())) if goes_abreast(op, stage) else None)


def goes_abreast(op: Op, stage: RowStage) -> bool:
    """Whether short rows of a stage go abreast: whole rows with folds, of ops and their gradients.

    Derivatives of these seldom run on much, and a form more of a loop takes its time to compile. Products that several rows are
    added to, and points of a row that are treated apart, have loops of their own.
    """
    folds = any(isinstance(a, Fold) for p in stage.passes for a in p.body)
    added = any(o.written and o.reduction is not None for o in stage.operands)
    return (
        runs_often(op)
        and stage.whole_rows
        and stage.once is None
        and folds
        and not added
        and all(p.apart is None for p in stage.passes)
    )


class AbreastText(TileText):
    """The form of a tile function for rows abreast."""

    @property
    def function(self) -> str:
        """The name of the function."""
        return f"abreast_{self.stage.name}"

    def taken_of(self, tile: str) -> str:
        """Return the C++ condition under which this form of a function is called for a tile."""
        whole = "" if self._turns_over_little() else ", false"
        return f"opc::goes_abreast<{self._count()}, {self._vectors()}{whole}>({tile})"

    def _turns_over_little(self) -> bool:
        """Whether to turn the rows over costs less than to join the lanes of their folds, also where no lane is idle."""
        folds = [a for p in self.stage.passes for a in p.body if isinstance(a, Fold)]
        return sum(o.along_row for o in self.stage.operands) <= 2 * len(folds)

    def _loops(self) -> Iterator[str]:
        """Yield the arrays of the operands and of values of the row, and the loop over rows, several at a time."""
        self.margin = " " * 4
        self.lanes, self.lane, self.place = (self.names.fresh(n) for n in ("lanes", "lane", "at"))
        self.first = self.names.fresh("first")
        self.once_place = f"[{self.lane}]"
        self.arrays: dict[str, tuple[str, str]] = {}
        yield f"  constexpr int {self.lanes} = {self._count()};"
        for o in self.stage.operands:
            name, kind = self.pointers[o.name], loaded(c_compute(o.type)) if o.along_row else c_compute(o.type)
            if not o.along_row and not o.written:
                name = self.pointers[o.name] = self.names.fresh(f"{o.name}_of")
                self.arrays[o.name] = (name, kind)
            yield from self._columns(kind, name) if o.along_row else [self._array(kind, name)]
        for keep in self.stage.keeps:
            yield from self._columns(c_compute(keep.type), keep.name)
        for a in (a for p in self.stage.passes for a in (*p.prologue, *p.body)):
            if (isinstance(a, Let) and a.name not in self.varying) or (isinstance(a, Fold) and a.kind in ("max", "min")):
                self.arrays[a.name] = (self.names.fresh(f"{a.name}_of"), c_compute(a.type))
                yield self._array(*reversed(self.arrays[a.name]))
        yield f"  for (int64_t {self.first} = 0; {self.first} < {self.tile}.rows; {self.first} += {self.lanes}) {{"
        for k, o in enumerate(self.stage.operands):
            if not o.written:
                take = "take_abreast" if o.along_row else "take_values"
                optional = any(i.name == o.name and i.optional for i in self.op.inputs)
                test = f"if ({self._present(o.name)}) " if optional else ""
                target = self.pointers[o.name]
                yield f"{self.margin}{test}opc::{take}<{self.lanes}>({self.tile}, {k}, {self.first}, {target});"
        for p in self.stage.passes:
            yield from self._pass(p)
        for k, o in enumerate(self.stage.operands):
            if o.written:
                put = "put_abreast" if o.along_row else "put_values"
                statement = f"opc::{put}<{self.lanes}>({self.tile}, {k}, {self.first}, {self.pointers[o.name]});"
                yield self._wanted(o.name, self.margin, statement, put=True)
        yield "  }"

    def _values_here(self, actions: Sequence[Action], inverses: Collection[str]) -> Iterator[str]:
        """Yield the declarations of the values of the row that actions read, and of the divisors or their inverses."""
        made = {a.name for a in actions if not isinstance(a, Put)}
        read = [r.operand for a in actions for r in reads(a.value)]
        for name in dict.fromkeys((*read, *inverses)):
            if name not in self.arrays or name in made:
                continue
            array, kind = self.arrays[name]
            value = f"{array}[{self.lane}]"
            if any(i.name == name and i.optional for i in self.op.inputs):
                value = f"{self._present(name)} ? {value} : {kind}(0)"
            yield f"{self.margin}  const {kind} {name} = {value};"

    def _count(self) -> str:
        """Return how many rows go abreast: as many as the widest of the values along them has lanes."""
        kinds = [c_compute(o.type) for o in self.stage.operands if o.along_row]
        for p in self.stage.passes:
            kinds += [partial(a) if isinstance(a, Fold) else c_compute(a.type) for a in p.body if isinstance(a, Fold | Keep)]
        return f"opc::count_lanes<{', '.join(dict.fromkeys(kinds))}>()"

    def _vectors(self) -> int:
        """Return how many vectors long the rows are that go abreast no more, as their lanes are in use as they lie.

        Where a fold takes long, what is left of these is a greater loss: it goes through the fold one by one.
        """
        folding = [p for p in self.stage.passes if any(isinstance(a, Fold) for a in p.body)]
        return 4 if any(is_slow(e) for p in folding for a in p.body for e in walk(a.value)) else 3

    def _array(self, kind: str, name: str) -> str:
        return f"  alignas(opc::line_bytes) {kind} {name}[{self.lanes}];"

    def _columns(self, kind: str, name: str) -> Iterator[str]:
        """Yield an array of columns, and the pointer it is used by."""
        array = self.names.fresh(f"{name}_columns")
        yield f"  alignas(opc::line_bytes) {kind} {array}[opc::columns_abreast<{self.lanes}, {self._vectors()}> * {self.lanes}];"
        yield f"  {kind} *const {name} = opc::columns_at({array});"

    def _pass(self, p: Pass) -> Iterator[str]:
        for text in dict.fromkeys(format_assign(a.source) for a in (*p.prologue, *p.body)):
            yield comment(text, len(self.margin))
        yield from self._prologue_of(p)
        if not p.body:
            return
        folds = [a for a in p.body if isinstance(a, Fold)]
        for f in folds:
            self.folds[f.name] = self.names.fresh(f"{f.name}_fold")
            yield f"{self.margin}{fold_type(f, self.lanes)} {self.folds[f.name]};"
        step = self.names.fresh("step")
        parameters = "".join(f", {parameter(f)}" for f in folds)
        yield (
            f"{self.margin}const auto {step} = [&](int64_t {self.index}, int64_t {self.place}, int {self.lane}{parameters})"
            " OPC_INLINED {"
        )
        yield from self._values_here(p.body, self.expr.inverses.values())
        yield from self._loop_body(p)
        yield f"{self.margin}}};"
        names = "".join(f", {self.folds[f.name]}" for f in folds)
        yield f"{self.margin}opc::fold_abreast<{self.lanes}>({self.tile}.columns, {step}{names});"
        for f in folds:
            if f.name in self.arrays:
                yield f"{self.margin}opc::values_of({self.folds[f.name]}, {self.arrays[f.name][0]});"
            else:  # a copy would be one of integers, for which what loads it as a vector would wait
                self.arrays[f.name] = (f"{self.folds[f.name]}.lane", c_compute(f.type))
        self._know(p)

    def _prologue_of(self, p: Pass) -> Iterator[str]:
        """Yield the loop over lanes that computes the values of the row a pass begins with."""
        lines: list[str] = []
        for early in p.prologue:
            lines += self._action(early, f"{self.margin}  ", self.once_place)
            if isinstance(early, Let):
                lines.append(f"{self.margin}  {self.arrays[early.name][0]}[{self.lane}] = {early.name};")
        made = [f"  {line}" for line in self._inverses(p)]
        for divisor, inverse in self.expr.inverses.items():
            kind = c_compute(self.values[divisor].type)
            self.arrays[inverse] = (self.names.fresh(f"{inverse}_of"), kind)
            yield f"  {self._array(kind, self.arrays[inverse][0])}"
            made.append(f"{self.margin}  {self.arrays[inverse][0]}[{self.lane}] = {inverse};")
        if not lines and not made:
            return
        yield f"{self.margin}OPC_SIMD"
        yield f"{self.margin}for (int {self.lane} = 0; {self.lane} < {self.lanes}; ++{self.lane}) {{"
        yield from self._values_here(p.prologue, self.expr.inverses)
        yield from (*lines, *made)
        yield f"{self.margin}}}"
