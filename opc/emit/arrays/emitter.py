"""From index notation to whole arrays: what the NumPy and the ONNX emitters share.

An expression of the IR is a value at one point; an array program computes it at all points at once. `ArrayEmitter` walks a
statement with a frame: the index variables and axis groups that the statement (and the reductions around an expression) run over,
in the order of the array's axes. Every subexpression becomes the text of a Python expression whose value broadcasts, by NumPy's
rules, to the frame.

A subclass writes the leaves and operations of its dialect. Text that would not fit a line goes into a local variable first, so
that generated code is formatted as `ruff format` would.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import ClassVar

from opc.analysis.patterns import Entry, conjunction
from opc.emit.arrays.frames import (
    ATOM,
    BITOR,
    COMPARE,
    TERNARY,
    Frame,
    FrameScope,
    NotExpressible,
    Position,
    PythonText,
    bare_entries,
    missing_entries,
    with_ordered_temporaries,
)
from opc.emit.arrays.lines import LIMIT, Lines
from opc.emit.python.text import quoted
from opc.ir.affine import Affine
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import DType
from opc.ir.expr import (
    TYPE,
    AttrRef,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    TypeIs,
    conjuncts,
    is_same_value,
    may_refuse,
    reads,
    traits,
)
from opc.ir.op import Assign, DimSpec, Group, Op, Operand
from opc.ir.ordering import with_whole_orders
from opc.ir.recurrence import recurrences
from opc.records import replace
from opc.transform.scalar import negation
from opc.transform.steps import Segment, SegmentedOp, in_segments

_COMPARISON = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}


class ArrayEmitter(Lines, ABC):
    """Writes one op as a Python function body over whole arrays; see the module's docstring."""

    def __init__(self, op: Op, reserved: Sequence[str]) -> None:
        super().__init__(reserved)
        op = with_ordered_temporaries(with_whole_orders(op))
        self.segmented = self.segments(op) if recurrences(op) else SegmentedOp(op, (Segment(op),))
        op = self.segmented.joined if recurrences(op) else op
        self.op = op
        operands = op.operands
        self.local = {o.name: self.names.fresh(o.name) for o in operands}
        self.attribute_local = {a.name: self.names.fresh(a.name) for a in op.attributes}
        self.operands = {o.name: o for o in operands}
        self.arrangement = arrangement(op)

    def segments(self, op: Op) -> SegmentedOp:
        """Return an op with recurrences in segments."""
        return in_segments(op)

    # ---- the dialect -------------------------------------------------------------------------------------------------

    @abstractmethod
    def constant(self, e: Const) -> PythonText:
        """A literal."""

    @abstractmethod
    def attribute(self, e: AttrRef) -> PythonText:
        """An attribute's value."""

    @abstractmethod
    def affine(self, value: Affine, index: Mapping[str, PythonText] | None = None) -> PythonText:
        """An integer expression over sizes and attributes, with the given texts for its index variables."""

    @abstractmethod
    def index(self, name: str, scope: FrameScope) -> PythonText:
        """The values of an index variable, along its axis of the frame."""

    @abstractmethod
    def place_of(self, e: GroupIndex, scope: FrameScope) -> PythonText:
        """Which point of a group this is."""

    @abstractmethod
    def call(self, e: Call, arguments: Sequence[PythonText]) -> PythonText:
        """A function of the table."""

    @abstractmethod
    def where(self, condition: PythonText, then: PythonText, other: PythonText, e: Select) -> PythonText:
        """`then` where the condition holds, else `other`, point by point."""

    @abstractmethod
    def cast(self, e: Cast, argument: PythonText) -> PythonText:
        """A conversion."""

    @abstractmethod
    def transpose(self, text: str, order: tuple[int, ...]) -> str:
        """The array with its axes in another order; no groups among them."""

    @abstractmethod
    def expand(self, text: str, positions: Sequence[tuple[Position, str | None]]) -> str:
        """The array with axes of size 1 inserted at places of the result: one axis, or as many as the named group has."""

    @abstractmethod
    def gather(self, e: Read, scope: FrameScope) -> PythonText:
        """A read at computed indices, or with padding."""

    @abstractmethod
    def reduction(self, e: Reduce, scope: FrameScope) -> PythonText:
        """A reduction over axes, whole groups, or the axes an operand was broadcast along."""

    REPEAT: ClassVar[str]
    """The function that repeats an array to a shape."""

    @abstractmethod
    def shape(self, dims: Sequence[DimSpec]) -> str:
        """A shape."""

    @abstractmethod
    def is_static(self, condition: Expr) -> bool:
        """Whether the condition is the same at every point and known where Python runs: a plain `if` of Python."""

    def call_pattern(self, e: Expr, scope: FrameScope) -> PythonText | None:
        """A function of the table together with its arguments, where the dialect has a name for that; else None."""
        return None

    # ---- statements --------------------------------------------------------------------------------------------------

    def statement(self, s: Assign) -> PythonText:
        """Return the value of a statement at every point of its target."""
        target = self.operands[s.target]
        scope = self.scope_of(s)
        value = self.assigned(s, target, scope)
        if self.is_full(value, self.wanted(target, scope.frame)):
            return value
        return self.composed([value], lambda parts: self.broadcast_target(parts[0], target))

    def broadcast(self, body: PythonText, scope: FrameScope) -> PythonText:
        """Return the array repeated to the full size of the frame."""
        support = frozenset[str]().union(*(self.full_in(i, scope) for i in scope.frame))
        return PythonText(f"{self.REPEAT}({body.text}, {self.shape(scope.dims(scope.frame))})", ATOM, support)

    def broadcast_target(self, value: PythonText, target: Operand) -> PythonText:
        """Return the array repeated to the target's shape."""
        if not target.dims:
            return value
        text = self.of_type(value, target).text
        return PythonText(f"{self.REPEAT}({text}, {self.shape(target.dims)})", ATOM, frozenset(("all",)))

    def of_type(self, value: PythonText, target: Operand) -> PythonText:
        """Return what a statement assigns as an array of the target's type."""
        return value

    def scope_of(self, s: Assign) -> FrameScope:
        """Return the scope of a statement's value."""
        target = self.operands[s.target]
        own = frozenset(d for d in target.dims if isinstance(d, Group) and d.of is not None)
        return FrameScope(s.indices, self.extents_of(target, s.indices), own=own)

    def extents_of(self, target: Operand, indices: Sequence[str | GroupRef]) -> dict[str, Affine]:
        """Return the extent of each index variable of a statement."""
        return {i: d for i, d in zip(indices, target.dims, strict=True) if isinstance(i, str) and not isinstance(d, Group)}

    def is_read(self, target: str) -> bool:
        """Whether a later statement reads an output."""
        return target in self.read_anywhere

    @cached_property
    def read_anywhere(self) -> frozenset[str]:
        """The operands that statements read."""
        return frozenset(r.operand for s in self.op.body for r in reads(s.value))

    def sharers(self, group: str) -> Sequence[str]:
        """Return whose own groups a group is broadcast from, as `Group.of` names them; empty where nothing is broadcast."""
        return self._sharers.get(group, ())

    @cached_property
    def _sharers(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for o in (*self.op.inputs, *self.op.outputs):
            for d in o.dims:
                if isinstance(d, Group) and d.of is not None and d.of not in found.setdefault(d.name, []):
                    found[d.name].append(d.of)
        return found

    def is_broadcast(self, group: Group) -> bool:
        """Whether a group is what several operands broadcast to, and no operand that is always given has it as it is."""
        return group.of is None and bool(self.sharers(group.name)) and all(o.optional for o in self.op.inputs if group in o.dims)

    def sharing(self, name: str) -> list[Group]:
        """Return the groups whose sizes broadcast to a group's: operands' own, and it itself where operands have it."""
        groups = [*(Group(name, of) for of in self.sharers(name)), Group(name)]
        return [g for g in groups if any(g in o.dims for o in self.op.inputs)]

    def tells(self, o: Operand, group: str) -> bool:
        """Whether a group's rank follows from the shape of one operand."""
        return [d.name for d in o.dims if isinstance(d, Group)] == [group] or self.is_mixed(o)

    def is_mixed(self, o: Operand) -> bool:
        """Whether the body sees the axes of an input or output in another order than its callers."""
        return self.arrangement is not None and self.arrangement.is_mixed(o)

    def is_told(self, groups: Sequence[str]) -> bool:
        """Whether the ranks of groups follow from inputs that are always given."""
        return all(any(self.tells(o, g) for o in self.op.inputs if not o.optional) for g in groups)

    def wanted(self, target: Operand, frame: Frame) -> list[set[str]]:
        """Return for each axis of a target the support any superset of which is its full size."""
        result = []
        for entry, dim in zip(frame, target.dims, strict=True):
            if isinstance(dim, Group) and dim.of is not None:
                result.append({f"{entry}@{dim.of}"})
            else:
                result.append(self.full(entry))
        return result

    def full(self, entry: Entry) -> set[str]:
        """Return the support that means an entry of a frame has its full size."""
        sharers = self.sharers(entry.name) if isinstance(entry, GroupRef) else []
        return {f"{entry}@{name}" for name in sharers} or {str(entry)}

    def full_in(self, entry: Entry, scope: FrameScope) -> set[str]:
        """As `full`, in a frame that may be one operand's own."""
        group = scope.group(entry) if isinstance(entry, GroupRef) else None
        return self.full(entry) if group is None or group.of is None else {f"{entry}@{group.of}"}

    def full_support(self, frame: Sequence[Entry]) -> frozenset[str]:
        """Return the support of a value with its full size along a frame."""
        return frozenset[str]().union(*(self.full(i) for i in frame))

    def is_full(self, value: PythonText, wanted: Sequence[set[str]]) -> bool:
        """Whether a value has its full size along every axis."""
        return all(w <= value.support for w in wanted)

    # ---- expressions -------------------------------------------------------------------------------------------------

    def expr(self, e: Expr, scope: FrameScope) -> PythonText:
        """Return the text of an expression over a frame."""
        match e:
            case Const():
                return self.constant(e)
            case AttrRef():
                return self.attribute(e)
            case IndexValue():
                return self.affine(e.value, {i: self.index(i, scope) for i in sorted(e.value.indices())})
            case GroupIndex():
                return self.place_of(e, scope)
            case Read():
                return self.read(e, scope)
            case Present() | TypeIs():
                return self.truth(e)
            case Call(args=args) if any(isinstance(a, StrConst) for a in args):
                return self.truth(e)
            case Call() if (found := self.call_pattern(e, scope)) is not None:
                return found
            case Call(fn="and" | "or", args=(first, second)) if self.is_static(first) and self.is_conditional(second):
                then, other = (second, first) if e.fn == "and" else (first, second)
                return self.choice(Select(first, then, other, DType.BOOL), scope)
            case Call():
                arguments = [self.argument(a, e, self.of_argument(e, n, scope)) for n, a in enumerate(e.args)]
                support = frozenset[str]().union(*(a.support for a in arguments))
                return self.composed(arguments, lambda parts: self.call(e, parts)).over(support)
            case Select() if self.is_static(e.cond):
                return self.choice(e, scope)
            case Select(cond=Call(fn="and")) if any(self.is_static(c) for c in conjuncts(e.cond)):
                return self.expr(self.static_first(e), scope)
            case Select():
                parts = [self.expr(e.cond, scope), self.side(e.then, e, scope.under(e.cond))]
                parts.append(self.side(e.other, e, scope.under(negation(e.cond))))
                support = frozenset[str]().union(*(p.support for p in parts))
                return self.composed(parts, lambda p: self.where(p[0], p[1], p[2], e)).over(support)
            case Reduce():
                return self.reduction(e, scope)
            case Cast() if is_same_value(e) and not isinstance(e.arg, Const):
                return self.expr(e.arg, scope)
            case Cast():
                argument = self.expr(e.arg, scope)
                return self.composed([argument], lambda parts: self.cast(e, parts[0])).over(argument.support)
            case _:
                raise NotExpressible("a string is no array")

    @abstractmethod
    def truth(self, e: Expr) -> PythonText:
        """A condition that Python decides, as a value among others."""

    @abstractmethod
    def type_is(self, e: TypeIs) -> str:
        """Return the question whether a type variable stands for one of some dtypes, in plain Python."""

    def static(self, condition: Expr) -> str:
        """Return a condition for a plain `if`."""
        return self.static_text(condition).text

    def static_text(self, e: Expr) -> PythonText:
        """Return a condition over attributes, sizes and presence, in plain Python."""
        match e:
            case Present():
                return PythonText(f"{self.local[e.operand]} is not None", COMPARE)
            case TypeIs():
                return PythonText(self.type_is(e), COMPARE)
            case StrConst():
                return PythonText(quoted(e.value))
            case Const(value=bool()):
                return PythonText(repr(e.value))
            case Const():
                return self.constant(e)
            case AttrRef():
                name = self.attribute_local[e.name]
                return PythonText(name if e.element < 0 else f"{name}[{e.element}]")
            case IndexValue():
                return self.affine(e.value)
            case Call(fn="and" | "or"):
                return PythonText(f" {e.fn} ".join(self.static_text(a).at(COMPARE) for a in e.args), TERNARY)
            case Call(fn="not", args=(Present() as inner,)):
                return PythonText(f"{self.local[inner.operand]} is None", COMPARE)
            case Call(fn="not", args=(inner,)):
                return PythonText(f"not {self.static_text(inner).at(COMPARE)}", TERNARY)
            case Call() if e.fn in _COMPARISON:
                left, right = (self.static_text(a).at(BITOR) for a in e.args)
                return PythonText(f"{left} {_COMPARISON[e.fn]} {right}", COMPARE)
            case _:
                value = self.expr(e, FrameScope(()))
                return PythonText(f"({value.text})") if value.strength == TERNARY else value

    def is_conditional(self, e: Expr) -> bool:
        """Whether a condition can only be asked where another one holds: it may refuse the call, or read what may be absent."""
        optional = {o.name for o in self.op.inputs if o.optional}
        return may_refuse(e) or any(r.operand in optional for r in reads(e))

    def static_first(self, e: Select) -> Select:
        """Return a conditional on `a and b` as nested ones, the outer on what Python decides.

        What the inner one chooses from may read an operand that is only there where the outer condition holds.
        """
        parts = conjuncts(e.cond)
        outer = [c for c in parts if self.is_static(c)]
        inner = [c for c in parts if not self.is_static(c)]
        return replace(e, cond=conjunction(outer), then=replace(e, cond=conjunction(inner)))

    def choice(self, e: Select, scope: FrameScope) -> PythonText:
        """A conditional that Python itself decides: only the chosen side is computed."""
        condition = self.static(e.cond)
        sides = ((e.then, scope.under(e.cond)), (e.other, scope.under(negation(e.cond))))
        ways: list[tuple[list[str], PythonText]] = []
        lacking: list[NotExpressible] = []
        for side, under in sides:
            try:
                ways.append(self.capture(partial(self.side, side, e, under)))
            except NotExpressible as lack:
                lacking.append(lack)
                ways.append(([], self.lacking(lack)))
        if not traits(e.cond) & TYPE or len(lacking) == len(sides):
            # What is there for some types is there; an attribute makes no such difference.
            for refusal in lacking:
                raise refusal
        (then_lines, then), (other_lines, other) = ways
        short = len(then.text) + len(condition) + len(other.text) <= LIMIT
        if not then_lines and not other_lines and short:
            return PythonText(f"{then.at(COMPARE)} if {condition} else {other.text}", TERNARY, then.support & other.support)
        return self.either(condition, *ways)

    def lacking(self, reason: NotExpressible) -> PythonText:
        """What stands for a side that can't be said, for types with which a call then says so."""
        raise reason

    def side(self, side: Expr, e: Select, scope: FrameScope) -> PythonText:
        """One side of a conditional."""
        return self.expr(side, scope)

    def of_argument(self, e: Call, n: int, scope: FrameScope) -> FrameScope:
        """Return the scope of an argument: the second of `and` and `or` is evaluated where the first does not decide."""
        if n == 0 or e.fn not in ("and", "or") or not may_refuse(e.args[1]):
            return scope
        return scope.under(e.args[0] if e.fn == "and" else negation(e.args[0]))

    def is_guarded(self, scope: FrameScope) -> bool:
        """Whether something is evaluated at some points only, by a condition that Python does not decide."""
        return not all(self.is_static(g) for g in scope.guards)

    def argument(self, argument: Expr, e: Call, scope: FrameScope) -> PythonText:
        """One argument of a function."""
        return self.expr(argument, scope)

    def reduced(self, e: Reduce, scope: FrameScope) -> PythonText:
        """What a reduction runs over."""
        return self.expr(e.body, scope)

    def assigned(self, s: Assign, target: Operand, scope: FrameScope) -> PythonText:
        """What a statement computes."""
        return self.expr(s.value, scope)

    def read(self, e: Read, scope: FrameScope) -> PythonText:
        """A read: the array itself, transposed and expanded to the frame, where every index is bare."""
        entries = bare_entries(e)
        operand = self.operands[e.operand]
        name = self.local[e.operand]
        if entries is None or e.pad is not None or not set(entries) <= set(scope.frame) or len(set(entries)) < len(entries):
            return self.gather(e, scope)
        if any(isinstance(i, str) and not self.is_whole(scope.extents[i], d) for i, d in zip(entries, operand.dims, strict=True)):
            return self.gather(e, scope)
        order = sorted(range(len(entries)), key=lambda i: scope.frame.index(entries[i]))
        text = name
        if order != list(range(len(entries))):
            if any(isinstance(i, GroupRef) for i in entries):
                return self.gather(e, scope)
            text = self.transpose(text, tuple(order))
        missing = missing_entries(scope.frame, entries)
        if missing:
            text = self.expand(text, missing)
        return PythonText(text, ATOM, self.support_of(operand, entries))

    def is_whole(self, extent: Affine, dim: DimSpec) -> bool:
        """Whether an index of this extent may be taken to run over the whole of an axis."""
        return extent == dim

    def support_of(self, operand: Operand, entries: Sequence[Entry]) -> frozenset[str]:
        """Return the axes along which an operand read at bare indices has its full size."""
        result: set[str] = set()
        for entry, dim in zip(entries, operand.dims, strict=True):
            if isinstance(dim, Group) and dim.of is not None:
                result.add(f"{entry}@{dim.of}")
            else:
                result |= self.full(entry)
        return frozenset(result)
