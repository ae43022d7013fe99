"""Codelets: statements as loops over a box of their targets, which a vertex of Poplar's computes on its tile.

A vertex is given the part of each operand that the points of its box can read, as rows of elements side by side, and computes in
float and int. Where in its operand a part lies, how large the operand is, and what else a call fixes, are fields of the vertex.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from opc.ir.affine import Affine, AttrInt, Dim, GroupSize, Index
from opc.ir.dtypes import DType, ElementType, TypeVar, ValueType, Weak
from opc.ir.expr import (
    SEARCHES,
    AttrRef,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    children,
    reads,
    walk,
    with_children,
)
from opc.ir.op import Assign, AttributeKind, Op
from opc.ir.printer import format_assign
from opc.loops.conditions import propagate
from opc.loops.names import PARAMETERS, named
from opc.loops.nodes import (
    Accumulate,
    Body,
    Buffer,
    Comment,
    Do,
    How,
    If,
    Kernel,
    Let,
    Loop,
    Refuse,
    Statement,
    Var,
    View,
    Yield,
    bodies,
    own_values,
    values_of,
    with_bodies,
    with_own_values,
)
from opc.loops.values import (
    Address,
    Block,
    Construct,
    Intrinsic,
    Load,
    Local,
    Member,
    Named,
    Pointer,
    Static,
    Word,
    call,
    number,
    product_of,
    sum_of,
    variable,
)
from opc.loops.verify import verify_kernel
from opc.lower.build.context import Nest, UnsupportedForm
from opc.lower.build.kernel import spec_names
from opc.lower.build.points import PointLoops
from opc.lower.loop_ir import NestStage
from opc.lower.nests.flat import is_positive
from opc.lower.poplar.entries import Entries, ViewEntry, entries_of, group_word
from opc.records import dataclass, replace
from opc.transform.indices import Namer, index_names, op_names, substitute

STATUS = "status"
"""The field in which a vertex says what it found wrong: the number of a refusal, 0 for none, and the value that it is about."""


@dataclass(frozen=True, slots=True)
class CodeletOperand:
    """A tensor of a codelet.

    `view` tells what its axes are of the operand's own, `extents` are their sizes. `reads` are the indices of each read, None
    where one is computed; a vertex is given the box that all of them can reach. A `kept` operand, a temporary, is stored in the
    type that values are computed in. An `optional` one may be absent.
    """

    name: str
    field: str
    type: ElementType
    view: tuple[ViewEntry, ...]
    extents: tuple[Affine, ...]
    reads: tuple[tuple[Affine | None, ...], ...] = ()
    kept: bool = False
    optional: bool = False


Fixed: TypeAlias = Member | Dim | GroupSize | AttrRef | Present
"""What a field of a vertex holds: where its box or a part lies, a size, an attribute, or whether an operand is there."""


@dataclass(frozen=True, slots=True)
class Field:
    """A number or bool that a vertex is given; `kind` is int, float or bool."""

    name: str
    kind: str
    what: Fixed


@dataclass(frozen=True, slots=True)
class Outside:
    """An index of an operand that lies outside of the entry `entry` of its shape."""

    operand: str
    entry: int


@dataclass(frozen=True, slots=True)
class OfNothing:
    """The reduction `kind` over axes, as `over` names them, that turn out to be empty where it has no value then."""

    kind: str
    over: str


@dataclass(frozen=True, slots=True)
class Nonempty:
    """A reduction that each point of the target asks for, so that the host tells by `extents` whether it is one of nothing."""

    of: OfNothing
    extents: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class CodeletStage:
    """One statement as a codelet: vertices of the class `name` compute a box of the target each.

    `indices` are the target's, outermost first, and `ranges` the axes of reductions, with their extents; `work` are the axes of
    each reduction and of those around it. `refusals` are what a status of 1, 2, ... stands for; `nonempty` is asked before the
    graph is made.
    """

    name: str
    assign: Assign
    op: Op
    target: CodeletOperand
    operands: tuple[CodeletOperand, ...]
    indices: tuple[tuple[str, Affine], ...]
    ranges: tuple[tuple[str, Affine], ...]
    work: tuple[tuple[str, ...], ...]
    fields: tuple[Field, ...]
    refusals: tuple[Outside | OfNothing, ...]
    nonempty: tuple[Nonempty, ...]
    kernel: Kernel

    @property
    def types(self) -> tuple[TypeVar, ...]:
        """The type variables that the class is a template over."""
        return self.kernel.types


def codelet_stage(op: Op, assign: Assign, name: str) -> CodeletStage:
    """Return the codelet of a statement of an op, whose class is to be called `name`.

    Raises:
        UnsupportedForm: when the statement asks for what a codelet can't tell.
    """
    return _Codelet(op, assign, name).built()


class _Codelet(PointLoops):
    def __init__(self, op: Op, assign: Assign, name: str) -> None:
        self.source, self.entries = op, _with_own_names(entries_of(op, assign))
        self.name, self.original = name, assign
        nest = Nest(self.entries.op, NestStage(name, self.entries.assign))
        super().__init__(nest)
        self.refusals: dict[Outside | OfNothing, int] = {}
        self.always = frozenset(_always(self.entries.assign.value))
        self.nonempty: dict[Nonempty, None] = {}

    def built(self) -> CodeletStage:
        """Return the codelet."""
        assign, entries = self.entries.assign, self.entries
        kernel = self.kernel()
        kernel = replace(kernel, body=_narrowed(propagate(kernel.body), assign.value))
        fields, operands = self._fields(kernel.body)
        taken = {f.name for f in fields} | set(operands.values()) | spec_names(self.source)
        kernel = named(kernel, taken)
        verify_kernel(kernel, PARAMETERS)
        target = entries.op.operand(assign.target)
        indices = tuple((str(i), d) for i, d in zip(assign.indices, target.dims, strict=True) if isinstance(d, Affine))
        found = [self._operand(n, operands[n]) for n in self.nest.operands]
        work = tuple(_work(assign.value, ()))
        return CodeletStage(
            self.name,
            self.original,
            entries.op,
            found[-1],
            tuple(found[:-1]),
            indices,
            tuple(dict.fromkeys(axis for e, _ in work for axis in e)),
            tuple(tuple(index for index, _ in (*around, *e)) for e, around in work),
            fields,
            tuple(self.refusals),
            tuple(self.nonempty),
            kernel,
        )

    def kernel(self) -> Kernel:
        """Return the function: loops over a box of the target, whose points are stored side by side."""
        assign, nest = self.entries.assign, self.nest
        target = nest.declared
        value = self.value(assign.value)
        element = nest.fresh("element")
        store = Do(call("store", Address(target.name, variable(element)), Construct(target.type, value)))
        body: Body = (*self.lines, store, Accumulate(Local(element, Weak.INT), "sum", number(1)))
        for n, index in reversed([*enumerate(assign.indices)]):
            low, high = (Member(target.name, end, n) for end in ("begin", "end"))
            body = (Loop(How.SERIAL, str(index), low, high, body),)
        start: Body = (Do(call("report", Word(STATUS), number(0), number(0))),) if self.refusals else ()
        body = (*start, Comment(format_assign(self.original)), Var(element, Weak.INT, number(0)), *body)
        views = tuple(View(name, self.op.operand(name).type, True, n) for n, name in enumerate(nest.operands))
        return Kernel("codelet", nest.operands, nest.types, body, views, span=assign.span)

    def read(self, e: Read) -> Expr:
        """Return the load of an element, with the tests that it needs."""
        terms: list[Expr] = []
        body: list[Statement] = []
        checks: list[tuple[int, Expr]] = []
        for n, index in enumerate(e.indices):
            assert not isinstance(index, GroupRef), "groups are single axes here"
            at: Expr = IndexValue(index) if isinstance(index, Affine) else self.value(index)
            if e.pad is not None or n in e.checked or not isinstance(at, IndexValue):
                name = self.nest.fresh(f"at_{n}")
                body.append(Let(name, DType.INT64 if at.type is DType.INT64 else Weak.INT, at))
                at = variable(name)
                checks.append((n, at))
            last = n == len(e.indices) - 1
            terms.append(product_of(at, None if last else Member(e.operand, "stride", n)))
        terms.append(Member(e.operand, "first"))
        load: Expr = Load(e.operand, sum_of(terms), e.type, True)
        if self.nest.is_optional(e.operand) and e.operand not in self.given:
            load = Select(Present(e.operand), load, Const(0, e.type), e.type)
        for n, place in checks:
            outside = call("outside", place, Member(e.operand, "size", n), type=DType.BOOL)
            if e.pad is not None:
                body.append(If(outside, (Yield(self.lazy(e.pad)),)))
            else:
                body.append(Refuse(outside, self._report(Outside(e.operand, self._entry(e.operand, n)), place)))
        return Block(tuple(body), load, e.type) if checks else load

    def may_be_of_nothing(self, e: Reduce) -> bool:
        """As `PointLoops` says: of a reduction that every point asks for, the host knows."""
        extents = tuple(a.extent for a in e.axes if isinstance(a, Axis))
        if all(is_positive(self.source, x) for x in extents if not x.indices()) and not any(x.indices() for x in extents):
            return False
        if e not in self.always or any(x.indices() for x in extents):
            return True
        self.nonempty[Nonempty(OfNothing(e.kind, _over(e)), extents)] = None
        return False

    def nothing(self, kind: str, over: str) -> Intrinsic:
        """As `PointLoops` says."""
        return self._report(OfNothing(kind, over), number(0))

    def _report(self, what: Outside | OfNothing, value: Expr) -> Intrinsic:
        code = self.refusals.setdefault(what, len(self.refusals) + 1)
        return call("report", Word(STATUS), number(code), value)

    def _entry(self, operand: str, axis: int) -> int:
        """Return the entry of an operand's shape that an axis of its view is of."""
        axes = [n for n, v in enumerate(self.entries.views[operand]) for _ in range(1 if v.parts is None else 2)]
        return axes[axis]

    def _operand(self, name: str, field: str) -> CodeletOperand:
        declared = self.entries.op.operand(name)
        found = dict.fromkeys(
            tuple(i if isinstance(i, Affine) else None for i in r.indices)
            for r in reads(self.entries.assign.value)
            if r.operand == name
        )
        return CodeletOperand(
            name,
            field,
            declared.type,
            self.entries.views[name],
            tuple(d for d in declared.dims if isinstance(d, Affine)),
            tuple(found),
            any(o.name == name for o in self.source.temporaries),
            self.nest.is_optional(name),
        )

    def _fields(self, body: Body) -> tuple[tuple[Field, ...], dict[str, str]]:
        """Return the numbers that a body is given, and what the operands are called."""
        namer = Namer({"compute", STATUS, "half", "opc", "poplar", *spec_names(self.source), *index_names(self.entries.op)})
        namer.taken |= {name for o in (self.source, self.entries.op) for name in op_names(o)}
        namer.taken |= {a.name for e in _nodes(body) if isinstance(e, IndexValue) for a in e.value.atoms() if isinstance(a, Dim)}
        own = {"compute", STATUS, "half", "opc", "poplar"}
        operands = {n: namer.fresh(f"{n}_part") if n in own else n for n in self.nest.operands}
        fields = {}
        for what in dict.fromkeys(_fixed(body)):
            fields[what] = Field(self._name(what, operands, own, namer), self._kind(what), what)
        order = {Member: 0, Dim: 1, GroupSize: 1, AttrRef: 2, Present: 3}
        ranked = sorted(fields.values(), key=lambda f: order[type(f.what)])
        return tuple(ranked), operands

    def _name(self, what: Fixed, operands: dict[str, str], own: set[str], namer: Namer) -> str:
        match what:
            case Member(owner=owner, field="begin" | "end" as end, entry=int() as n):
                return namer.fresh(f"{self.entries.assign.indices[n]}_{end}")
            case Member(owner=owner, field=field, entry=n):
                return namer.fresh(f"{operands[owner]}_{field}" + ("" if n is None else f"_{n}"))
            case Dim(name=name) | AttrRef(name=name, element=-1):
                return namer.fresh(f"{name}_size") if name in own else name
            case AttrRef(name=name, element=n):
                return namer.fresh(f"{name}_{n}")
            case GroupSize(name=name):
                return namer.fresh(f"{group_word(name)}_points")
            case Present(operand=operand):
                return namer.fresh(f"has_{operand}")

    def _kind(self, what: Fixed) -> str:
        if isinstance(what, AttrRef):
            attribute = self.source.attribute(what.name)
            if attribute.kind is AttributeKind.STR and not attribute.values:
                raise UnsupportedForm(f"the text of {what.name}")
            return {AttributeKind.FLOAT: "float", AttributeKind.BOOL: "bool"}.get(attribute.kind, "int")
        return "bool" if isinstance(what, Present) else "int"


_Axes: TypeAlias = tuple[tuple[str, Affine], ...]


def _work(e: Expr, around: _Axes) -> Iterator[tuple[_Axes, _Axes]]:
    """Yield the axes of each reduction with those around it, outer ones first."""
    inside = around
    if isinstance(e, Reduce):
        own = tuple((a.index, a.extent) for a in e.axes if isinstance(a, Axis))
        yield own, around
        inside = (*around, *own)
    for c in children(e):
        yield from _work(c, inside)


def _over(e: Reduce) -> str:
    return ", ".join(a.index if isinstance(a, Axis) else str(a) for a in e.axes)


def _with_own_names(entries: Entries) -> Entries:
    """Return a statement in which the axes of each reduction have names that no others have."""
    namer = Namer(op_names(entries.op) | {str(i) for i in entries.assign.indices})

    def renamed(e: Expr) -> Expr:
        if not isinstance(e, Reduce):
            return with_children(e, tuple(map(renamed, children(e))))
        names = {a.index: Affine.of(Index(namer.fresh(a.index))) for a in e.axes if isinstance(a, Axis)}
        axes, known = list[Axis](), dict[str, Affine]()
        for a in e.axes:
            assert isinstance(a, Axis), "groups are single axes here"
            extent = substitute(IndexValue(a.extent), known)
            assert isinstance(extent, IndexValue), "it stays one"
            known[a.index] = names[a.index]
            axes.append(Axis(names[a.index].index or "", extent.value))
        return replace(e, axes=tuple(axes), body=renamed(substitute(e.body, names)))

    assign = entries.assign.with_value(renamed(entries.assign.value))
    return Entries(entries.op.with_body((assign,)), assign, entries.views)


def _always(e: Expr) -> Iterator[Reduce]:
    """Yield the reductions that a value asks for whatever its operands hold."""
    match e:
        case Reduce():
            yield e
        case Select():
            yield from _always(e.cond)
        case Call(fn="and" | "or", args=(first, *_)):
            yield from _always(first)
        case Read():
            for index in e.indices:
                if not isinstance(index, Affine | GroupRef):
                    yield from _always(index)
        case _:
            for c in children(e):
                yield from _always(c)


# Integers of 32 bits: what a tile holds has no more elements, and the host sees to it that indices and attributes fit.


def _narrowed(body: Body, value: Expr) -> Body:
    """Return loops whose variables of whole numbers are int32, and those of numbers of no other type float32.

    Of int64, sums and what a cast asks for stay; other values of that type are those of operands, which Poplar has in 32 bits.
    """
    narrow: dict[ValueType, ValueType] = {} if _is_wide(value) else {DType.INT64: DType.INT32}
    declared = {Weak.INT: DType.INT32, Weak.FLOAT: DType.FLOAT32, **narrow}

    def rule(e: Expr) -> Expr:
        match e:
            case Const(type=DType.INT64 | Weak.INT, value=int() as literal) if not -(2**31) <= literal < 2**31:
                raise UnsupportedForm(f"the number {literal}, which has more than 32 bits")
            case Block():
                return replace(e, body=in_body(e.body), value=over(e.value), type=narrow.get(e.type, e.type))
            case Static() if isinstance(e.owner, Named):
                return replace(e, owner=replace(e.owner, of=tuple(narrow.get(t, t) for t in e.owner.of)))
            case Construct() if not isinstance(e.kind, Named | Pointer):
                return replace(e, kind=narrow.get(e.kind, e.kind))
            case Const() | AttrRef() | Call() | Select() | Cast() | Local() | Load() | Intrinsic():
                return replace(e, type=narrow.get(e.type, e.type))
            case _:
                return e

    def over(e: Expr) -> Expr:
        return rule(e if isinstance(e, Block) else with_children(e, tuple(map(over, children(e)))))

    def in_statement(s: Statement) -> Statement:
        s = with_own_values(s, tuple(map(over, own_values(s))))
        if isinstance(s, Let | Var | Buffer) and not isinstance(s.kind, Named | Pointer):
            s = replace(s, kind=declared.get(s.kind, s.kind))
        return with_bodies(s, tuple(map(in_body, bodies(s))))

    def in_body(body: Body) -> Body:
        return tuple(map(in_statement, body))

    return in_body(body)


def _is_wide(value: Expr) -> bool:
    """Whether a value has sums of int64, or what is cast to it."""
    sums = (e for e in walk(value) if isinstance(e, Cast) or (isinstance(e, Reduce) and e.kind not in SEARCHES))
    return any(e.type is DType.INT64 for e in sums)


# What a body is given.


def _nodes(body: Body) -> Iterator[Expr]:
    for v in values_of(body):
        yield from walk(v)


def _fixed(body: Body) -> Iterator[Fixed]:
    """Yield what a body uses that a call or a tile fixes."""
    for e in _nodes(body):
        match e:
            case Member() | Present():
                yield e
            case AttrRef():
                yield attribute_field(e.name, e.element)
            case IndexValue():
                for a in sorted(e.value.atoms(), key=str):
                    if isinstance(a, Dim | GroupSize):
                        yield a
                    elif isinstance(a, AttrInt):
                        yield attribute_field(a.name, a.element)


def attribute_field(name: str, element: int) -> AttrRef:
    """Return what stands for an attribute, or an element of one, wherever it is used."""
    return AttrRef(name, Weak.INT, element)
