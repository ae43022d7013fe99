"""The loops of a row stage: rows one after the other, in each of which passes follow one another.

This is the plain form, in which nothing is decided: a loop over rows, in it pointers to the operands' rows and values of the row,
and for each pass (`PassGroup`) the values of the row that it begins with and one vector loop along the row.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.ir.affine import Affine
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak
from opc.ir.expr import Call, Const, Expr, IndexValue, Present, reads, types_in, walk
from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.loops.conditions import propagate
from opc.loops.nodes import Accumulate, Body, Comment, How, If, Let, Loop, PassGroup, Statement, Store, Var
from opc.loops.values import (
    Construct,
    Deref,
    Init,
    IntegerChoice,
    Local,
    Member,
    Named,
    Pointer,
    Word,
    call,
    compare,
    number,
    variable,
)
from opc.lower.build.reduction import start_of
from opc.lower.build.row_values import Facts, RowValues
from opc.lower.loop_ir import Action, IndexLoop, Pass, RowAccumulate, RowBuffer, RowLet, RowStage, RowStore, StageOperand
from opc.lower.rows.peel import peeled_point, where

TILE = Word("tile")
"""The argument of a tile function that describes the rows."""

COLUMNS = Member("@tile", "columns")


def loaded(t: ValueType) -> ValueType:
    """Return the type that the elements of an operand's row are loaded as: no compiler vectorises a load of a `bool`."""
    return DType.UINT8 if t is DType.BOOL else t


def type_variables(op: Op, stage: RowStage) -> tuple[TypeVar, ...]:
    """Return the type variables a stage's tile function is a template over, in the order of the spec."""
    used: set[ValueType] = {o.type for o in stage.operands}
    for p in stage.passes:
        for a in (*p.prologue, *p.body):
            used |= {a.type} | types_in(a.value)
    variables = {t.of if isinstance(t, Acc) else t for t in used}
    return tuple(t for t in op.types if t in variables)


def stored_type(of: TypeVar) -> TypeVar:
    """Return what the elements of a type that a function converts are stored as, as a type."""
    return TypeVar(f"{of.name}_stored", of.dtypes)


def wanted(name: str) -> str:
    """Return the flag that says whether a product is wanted."""
    return f"want_{name}"


class RowLoops:
    """Builds the plain form of a row stage.

    A value along the row is the element of a pointer to it; each value of the row is a variable. What runs on `vectors` loads and
    computes whatever is chosen.
    """

    def __init__(self, op: Op, stage: RowStage, vectors: bool = True) -> None:
        self.op, self.stage = op, stage
        loop = stage.row[0] if len(stage.row) == 1 else None
        self.index = loop.index if stage.whole_rows and isinstance(loop, IndexLoop) else "i#0"
        along = frozenset(o.name for o in stage.operands if o.along_row)
        made = frozenset(a.name for p in stage.passes for a in p.body if isinstance(a, RowLet | RowBuffer))
        self.varying = along | made
        self.values = RowValues(op, along, Facts(), vectors)
        self.count = 0
        names = stage.schedule.args("convert")
        self.converts = next((t for t in op.types if t.name in names), None)
        """The type of the elements that the loops take as they are stored, and convert."""

    def fresh(self, wanted: str) -> str:
        """Return the name of a new variable."""
        self.count += 1
        return f"{wanted}#{self.count}"

    def loop(self) -> Loop:
        """Return the loop over rows, without conditions that others around them decide."""
        pointers = tuple(self.pointers())
        groups = tuple(self.group(p) for p in self.stage.passes if p.prologue or p.body)
        body = propagate((*pointers, *groups))
        return Loop(How.SERIAL, "@row", number(0), Member("@tile", "rows"), body)

    # Operands.

    def is_converted(self, o: StageOperand) -> bool:
        """Whether the loops convert the elements of an operand."""
        return self.converts is not None and o.type == self.converts and o.kind != "temporary"

    def pointer(self, o: StageOperand) -> str:
        """Return the pointer to an operand's row; what is also read by name has another name itself."""
        return f"{o.name}_row#0"

    def pointers(self) -> Iterator[Statement]:
        """Yield the pointers to the rows of operands, and the values that these have once a row."""
        for k, o in enumerate(self.stage.operands):
            converts = self.is_converted(o)
            of = o.type if o.written else loaded(o.type)
            if converts:
                assert isinstance(o.type, TypeVar), "no other type is converted"
                of = stored_type(o.type)
            row = call("row", TILE, number(k), variable("@row"), types=(of if o.written else Named("const", (of,)),))
            if converts and o.along_row and not o.written:
                yield Var(self.pointer(o), Named("opc::input_row", (o.type, of)), Init((row,)))
                continue
            if o.written or o.along_row:
                yield Let(self.pointer(o), Pointer(of, not o.written), row)
                continue
            value: Expr = call("load", row, type=o.type) if converts else Deref(row, o.type)
            if any(i.name == o.name and i.optional for i in self.op.inputs):
                value = IntegerChoice(Present(o.name), value, Construct(o.type, Const(0, o.type)))
            yield Let(o.name, o.type, value)
            self.values.values[o.name] = Local(o.name, o.type)

    # Passes.

    def group(self, p: Pass) -> PassGroup:
        """Return a pass."""
        body: list[Statement] = [Comment(t) for t in dict.fromkeys(format_assign(a.source) for a in (*p.prologue, *p.body))]
        for early in p.prologue:
            body += self.action(early, number(0))
        if p.body:
            body += self.inverses(p)
        if p.peeled is not None:
            body += self.peeled(p, p.peeled)
        elif p.body:
            body += [Var(f.name, f.type, start_of(f.kind, f.type)) for f in p.body if isinstance(f, RowAccumulate)]
            body.append(Loop(How.VECTOR, self.index, number(0), COLUMNS, self.along(p.body, p)))
        for a in p.body:
            if isinstance(a, RowAccumulate):
                self.values.values[a.name] = Local(a.name, a.type)
        return PassGroup(tuple(body))

    def peeled(self, p: Pass, cond: Expr) -> Iterator[Statement]:
        """Yield the loops of a pass that has a point by itself: that point, and the points before and behind it."""
        found = peeled_point(cond, self.index)
        assert found is not None, "the condition holds at one point"
        offset, value = found
        one, side, begin, end = (self.fresh(n) for n in ("one", "side", "begin", "end"))
        at: Expr = Construct(Weak.INT, self.values.value(value))
        if offset != Affine.of(0):
            at = Call("sub", (at, IndexValue(offset)), Weak.INT)
        first = compare("eq", variable(side), number(0))
        yield Let(one, Named("opc::peeled_range"), Init((at, COLUMNS)))
        yield Loop(How.LANES, self.index, Member(one, "begin"), Member(one, "end"), self.along(where(p, True), p))
        yield Loop(
            How.SERIAL,
            side,
            number(0),
            number(2),
            (
                Let(begin, Weak.INT, IntegerChoice(first, number(0), Member(one, "end"))),
                Let(end, Weak.INT, IntegerChoice(first, Member(one, "begin"), COLUMNS)),
                Loop(How.VECTOR, self.index, variable(begin), variable(end), self.along(where(p, False), p)),
            ),
        )

    def along(self, actions: Sequence[Action], p: Pass) -> Body:
        """Return what a loop along the row does at a point."""
        at = variable(self.index)
        self.values.varying = self.varying
        body = [*self.loads(actions, p, at)]
        for a in actions:
            body += self.action(a, at)
        self.values.varying = None
        return tuple(body)

    def loads(self, actions: Sequence[Action], p: Pass, at: Expr) -> Iterator[Statement]:
        """Yield the elements that a pass reads at a point.

        They are loaded whatever is chosen: under a choice, a load is a branch to the compiler, which then leaves the loop scalar.
        """
        kept = {a.name: a for q in self.stage.passes for a in q.body if isinstance(a, RowBuffer) and q is not p}
        for name in dict.fromkeys(r.operand for a in actions for r in reads(a.value)):
            if name in kept:
                source, of, local = self.buffer(kept[name]), kept[name].type, f"{name}_here#0"
            elif name in self.varying and any(o.name == name and not o.written for o in self.stage.operands):
                operand = self.stage.operand(name)
                source, of, local = self.pointer(operand), operand.type, name
            else:
                continue
            element: Expr = Local(source, of if name in kept else loaded(of), at)
            if element.type != of:
                element = Call("ne", (element, Const(0, element.type)), DType.BOOL)
            if not self.values.vectors and any(i.name == name and i.optional for i in self.op.inputs):
                element = IntegerChoice(Present(name), element, Construct(of, Const(0, of)))
            yield Let(local, of, element)
            self.values.values[name] = Local(local, of)

    def buffer(self, buffered: RowBuffer) -> str:
        """Return the pointer to the row that a kept value stands in."""
        return buffered.name if buffered.host is None else self.pointer(self.stage.operand(buffered.host))

    def action(self, a: Action, at: Expr) -> Iterator[Statement]:
        """Yield what computes a value at a point, or once a row."""
        value = self.values.value(a.value)
        match a:
            case RowLet():
                yield Let(a.name, a.type, value)
                self.values.values[a.name] = Local(a.name, a.type)
            case RowBuffer():
                target = Local(self.buffer(a), a.type, at)
                self.values.values[a.name] = target
                yield self.if_wanted(Store(target, value), self.stage.needed.get(a.name, frozenset()))
            case RowAccumulate():
                yield Accumulate(Local(a.name, a.type), a.kind, value)
            case RowStore():
                operand = self.stage.operand(a.name)
                target = Local(self.pointer(operand), operand.type, at if operand.along_row else number(0))
                # Partial results take in each row.
                by = "bits" if operand.reduction in ("any", "all") else ""
                store = Accumulate(target, operand.reduction, value, by) if operand.reduction else Store(target, value)
                own = frozenset([a.name]) if self.stage.optional else self.stage.needed.get(a.name, frozenset())
                yield self.if_wanted(store, own)

    def if_wanted(self, s: Statement, needed: frozenset[str]) -> Statement:
        """Return a statement that is carried out where one of some products is wanted."""
        flags = [Local(wanted(n), DType.BOOL) for n in self.stage.optional if n in needed]
        if not flags:
            return s
        cond: Expr = flags[0]
        for f in flags[1:]:
            cond = Call("or", (cond, f), DType.BOOL)
        return If(cond, (s,), static=True)

    def inverses(self, p: Pass) -> Iterator[Statement]:
        """Take in what a pass keeps and reduces, and yield the inverses of sums that it divides by."""
        facts = self.values.facts
        facts.kept |= {a.name: a.value for a in p.body if isinstance(a, RowBuffer)}
        found = dict.fromkeys(facts.divisor(e) for a in p.body for e in walk(a.value))
        self.values.inverses = {name: f"{name}_inverse#0" for name in found if name is not None}
        for name, inverse in self.values.inverses.items():
            of = self.values.values[name].type
            yield Let(inverse, of, Call("div", (Construct(of, Const(1, of)), Local(name, of)), of))
        for a in p.body:
            if isinstance(a, RowAccumulate):
                facts.learn(a)
