"""What an op computes when every device has a piece of one dimension: abstract interpretation of its body.

See `opc.analysis.sharding` for what a cut is.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from opc.ir.affine import Affine, Dim, GroupSize, Symbol
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, is_floating, is_integer
from opc.ir.expr import (
    NOTHING,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    asked_for,
    conjuncts,
    reads,
)
from opc.ir.op import Assign, Group, Op, Operand
from opc.ir.recurrence import recurrent
from opc.records import dataclass


class Placement(Enum):
    """Where an operand of a sharded call is.

    `OWN` is the placement of the gradient of an operand that broadcasts: cut where the operand has the axis, a partial sum where
    it is broadcast along it.
    """

    REPLICATE = "replicate"
    SHARD = "shard"
    SUM = "sum"
    MAX = "max"
    MIN = "min"
    OWN = "own"

    __hash__ = object.__hash__


def is_along(d: Affine | Group, along: Dim | GroupSize) -> bool:
    """Whether an entry of a shape is the dimension or group that is cut."""
    return isinstance(along, GroupSize) and d.name == along.name if isinstance(d, Group) else d.single == along


def mentions(size: Affine, symbol: Symbol) -> bool:
    """Whether an integer expression holds a symbol."""
    return symbol in size.atoms()


class _SpreadError(Exception):
    """A value would need other devices' values."""


@dataclass(frozen=True, slots=True)
class _State:
    """What a value is on each device: its part of a result over `partial`; else a function of the cut indices `at`.

    A value at no cut index is the same everywhere. `own` names the operand that the sum over broadcast axes fits. `zero` says
    that the value is 0, as are the terms of absent inputs: it then is its own part of a sum.
    """

    at: frozenset[str] = frozenset()
    partial: Placement | None = None
    own: str | None = None
    zero: bool = False

    @property
    def whole(self) -> bool:
        """Whether it is the same on every device."""
        return not self.at and self.partial is None and self.own is None


_WHOLE = _State()
_ZERO = _State(zero=True)
_KINDS = {"sum": Placement.SUM, "max": Placement.MAX, "min": Placement.MIN}
_Indices: TypeAlias = frozenset[str]
Free: TypeAlias = tuple[Placement | None, ...]
"""Placements, None where any will do: of an absent input, and of an output that is 0."""


Known: TypeAlias = dict[tuple[str, frozenset[str], tuple[_State | None, ...]], tuple[_State | None, dict[str, Placement]]]
"""What statements' targets are, None where they can't be cut, and the inputs taken as partial, by all that tells it: the target,
what its value asks for and is absent, and what it reads."""


@dataclass(slots=True)
class Cut:
    """One dimension cut, with some optional inputs absent.

    `known`, and `entries`, what of each operand is cut, may be shared by cuts of one op along one dimension: calls differ in what
    few statements ask of optional inputs.
    """

    op: Op
    along: Dim | GroupSize
    absent: frozenset[str]
    known: Known = field(default_factory=dict)
    entries: dict[str, int | None] = field(default_factory=dict)
    states: dict[str, _State] = field(default_factory=dict)
    partial_inputs: dict[str, Placement] = field(default_factory=dict)
    values: dict[tuple[Expr, _Indices], _State] = field(default_factory=dict)

    def placements(self) -> tuple[Free, Free] | None:
        """Return the placements of inputs and outputs; None when the dimension can't be cut."""
        try:
            for statement in self.op.body:
                self.states[statement.target] = self.assigned(statement)
        except _SpreadError:
            return None
        if any(self.states[name].partial is not None or self.states[name].own is not None for name in recurrent(self.op)):
            return None  # each step would need the sum of what devices have of the step before
        inputs = tuple(None if o.name in self.absent else self.input_placement(o) for o in self.op.inputs)
        return inputs, tuple(self.output_placement(o) for o in self.op.outputs)

    def input_placement(self, operand: Operand) -> Placement:
        """Return the placement of an input that is there."""
        if operand.name in self.partial_inputs:
            return self.partial_inputs[operand.name]
        return Placement.REPLICATE if self.cut(operand) is None else Placement.SHARD

    def output_placement(self, operand: Operand) -> Placement | None:
        """Return the placement of an output."""
        state = self.states[operand.name]
        if state.own is not None:
            return Placement.OWN
        if self.cut(operand) is not None:
            return self.own_entry(operand)
        return None if state.zero else state.partial or Placement.REPLICATE

    def own_entry(self, operand: Operand) -> Placement:
        """Return the placement of a cut output that is no sum over broadcast axes."""
        entry = operand.dims[self.cut(operand) or 0]
        return Placement.OWN if isinstance(entry, Group) and entry.of is not None else Placement.SHARD

    def cut(self, operand: Operand) -> int | None:
        """Return the entry of an operand's shape that is cut."""
        name = operand.name
        if name not in self.entries:
            self.entries[name] = next((n for n, d in enumerate(operand.dims) if is_along(d, self.along)), None)
        return self.entries[name]

    # Statements

    def assigned(self, statement: Assign) -> _State:
        """Return what the target of a statement is on each device, as another call may have found out."""
        read = tuple([self.states.get(r.operand) for r in reads(statement.value)])
        given = statement.target, self.absent & asked_for(statement.value), read
        found = self.known.get(given)
        if found is None:
            before, self.partial_inputs = self.partial_inputs, {}
            made: _State | None = None
            with suppress(_SpreadError):
                made = self.assign(statement)
            found = self.known[given] = made, self.partial_inputs
            self.partial_inputs = before
        state, partial = found
        if state is None:
            raise _SpreadError
        self.partial_inputs |= partial
        return state

    def assign(self, statement: Assign) -> _State:
        """Return what the target of a statement is on each device."""
        target = self.op.operand(statement.target)
        entry = self.cut(target)
        index = None if entry is None else str(statement.indices[entry])
        state = self.value(statement.value, frozenset() if index is None else frozenset((index,)))
        if index is None:
            if state.at or state.own is not None:
                raise _SpreadError
            return state
        own = target.dims[entry].of if entry is not None and isinstance(target.dims[entry], Group) else None
        if state.partial is not None or (state.own is not None and state.own != own):
            raise _SpreadError
        return state if state.own is not None else _State(frozenset((index,)), zero=state.zero)

    # Values

    def value(self, e: Expr, cut: _Indices) -> _State:
        """Return what `e` is on each device, where `cut` are the index variables in scope that run over the device's piece.

        Raises:
            _SpreadError: when it needs other devices' values.
        """
        found = self.values.get((e, cut))
        if found is None:
            found = self.values[e, cut] = self._value(e, cut)
        return found

    def _value(self, e: Expr, cut: _Indices) -> _State:
        match e:
            case Const():
                return _ZERO if not isinstance(e.value, bool) and e.value == 0 else _WHOLE
            case IndexValue():
                self.uncut(e.value, cut)
                return _WHOLE
            case GroupIndex():
                if GroupSize(e.group) == self.along:
                    raise _SpreadError
                return _WHOLE
            case Read():
                return self.read(e, cut)
            case Call():
                return self.call(e, cut)
            case Cast():
                state = self.value(e.arg, cut)
                if state.partial is not None and not _additive(e.arg.type, e.type):
                    raise _SpreadError
                return state
            case Select():
                return self.select(e, cut)
            case Reduce():
                return self.reduce(e, cut)
            case _:
                return _WHOLE

    def uncut(self, value: Affine, cut: _Indices) -> None:
        """Check that an integer expression is the same on every device."""
        if value.indices() & cut or mentions(value, self.along):
            raise _SpreadError

    def read(self, e: Read, cut: _Indices) -> _State:
        """Return the state of a read: a cut axis may only be read at a cut index, bare."""
        operand = self.op.operand(e.operand)
        entry, at = self.cut(operand), _WHOLE
        for n, index in enumerate(e.indices):
            if isinstance(index, GroupRef):
                if n == entry:
                    at = self.join([at, _State(frozenset((str(index),)))])
            elif isinstance(index, Affine):
                if n == entry:
                    if index.index is None or index.index not in cut:
                        raise _SpreadError
                    at = self.join([at, _State(frozenset((index.index,)))])
                else:
                    self.uncut(index, cut)
            else:
                if n == entry:
                    raise _SpreadError
                at = self.join([at, self.value(index, cut)])
        if e.pad is not None:
            at = self.join([at, self.value(e.pad, cut)])
        stored = self.states.get(e.operand)
        if stored is not None and stored.zero:
            return _ZERO
        if stored is not None and stored.own is not None:
            raise _SpreadError
        if stored is not None and stored.partial is not None:
            if not at.whole:
                raise _SpreadError
            return stored
        return at

    def call(self, e: Call, cut: _Indices) -> _State:
        """Return the state of a function of values."""
        known = self.truth(e)
        if known is not None or any(isinstance(a, StrConst) for a in e.args):
            return _WHOLE
        states = [self.value(a, cut) for a in e.args]
        if e.fn in ("add", "sub", "neg"):
            # What is 0 counts for nothing in a sum, wherever the rest is.
            states = [s for s in states if not s.zero] or [_ZERO]
            if len(states) == 1:
                return states[0] if states[0].partial in (Placement.SUM, None) else self.refuse()
        elif (e.fn == "mul" and any(s.zero for s in states)) or (e.fn == "div" and states[0].zero):
            return _ZERO
        if any(s.partial is not None or s.own is not None for s in states):
            return self.linear(e, states)
        return self.join(states)

    def linear(self, e: Call, states: list[_State]) -> _State:
        """Return the state of a function of partial results: those that may be applied to the parts."""
        kinds = {s.partial for s in states} | {s.own for s in states}
        if e.fn in ("add", "sub") and Placement.SUM in kinds:
            for arg, state in zip(e.args, states):
                if state.partial is not Placement.SUM:
                    self.count_partial(self.chosen(arg), state)
            return _State(partial=Placement.SUM)
        if states[0] == states[-1] and (e.fn in ("neg", "add", "sub") and states[0].partial in (Placement.SUM, None)):
            return states[0]
        if (e.fn, states[0].partial) in (("maximum", Placement.MAX), ("minimum", Placement.MIN)) and states[0] == states[1]:
            return states[0]
        factors = [s for s in states if not s.whole]
        if e.fn in ("mul", "div") and len(factors) == 1 and factors[0] is not states[1 if e.fn == "div" else -2]:
            pass
        if (
            len(factors) == 1
            and (e.fn == "mul" or (e.fn == "div" and states[1].whole))
            and factors[0].partial in (Placement.SUM, None)
        ):
            return factors[0]
        raise _SpreadError

    def count_partial(self, e: Expr, state: _State) -> None:
        """Take an input that is added to a partial sum, and read nowhere else, as partial."""
        if not (state.whole and isinstance(e, Read)) or all(o.name != e.operand for o in self.op.inputs):
            raise _SpreadError
        if sum(r.operand == e.operand for s in self.op.body for r in reads(s.value)) != 1 or not all(
            isinstance(i, Affine | GroupRef) for i in e.indices
        ):
            raise _SpreadError
        self.partial_inputs[e.operand] = Placement.SUM

    def select(self, e: Select, cut: _Indices) -> _State:
        """Return the state of a conditional."""
        if self.truth(e.cond) is not None:
            return self.value(self.chosen(e), cut)
        then, other = self.value(e.then, cut), self.value(e.other, cut)
        asked = conjuncts(e.cond)
        if other.zero and not then.whole:
            # A piece without a point has no part in what is 0 where there is no point at all.
            asked = [c for c in asked if not self.is_not_empty(c)]
        cond = self.join([self.value(c, cut) for c in asked])
        if cond.partial is not None or cond.own is not None:
            raise _SpreadError
        sides = [s for s in (then, other) if not s.zero] or [_ZERO]
        if any(s.partial is not None or s.own is not None for s in sides):
            if not cond.whole or any(s != sides[0] for s in sides) or sides[0].partial not in (Placement.SUM, None):
                raise _SpreadError
            return sides[0]
        return self.join([cond, then, other])

    def is_not_empty(self, cond: Expr) -> bool:
        """Whether a condition says no more than that what is cut has a point."""
        match cond:
            case Call(fn="gt", args=(IndexValue(value=value), Const(value=0))):
                return value.single == self.along
            case _:
                return False

    def reduce(self, e: Reduce, cut: _Indices) -> _State:
        """Return the state of a reduction: over a cut index, a part of the result."""
        own: set[str] = set()
        sums_broadcast = None
        for axis in e.axes:
            match axis:
                case Axis() if axis.extent.single == self.along:
                    own.add(axis.index)
                case Axis():
                    self.uncut(axis.extent, cut)
                case GroupAxis() if GroupSize(axis.name) == self.along:
                    own.add(str(axis))
                case BroadcastAxis() if GroupSize(axis.name) == self.along:
                    sums_broadcast = axis.operand
        state = self.value(e.body, cut | own)
        if state.zero and e.kind == "sum":
            return _ZERO
        if sums_broadcast is not None:
            if e.kind != "sum" or own or state.partial is not None or state.own is not None:
                raise _SpreadError
            return _State(own=sums_broadcast)
        if not own:
            if state.own is not None or (state.partial is not None and state.partial is not _KINDS.get(e.kind)):
                raise _SpreadError
            return state
        if e.kind not in _KINDS or state.partial is not None or state.own is not None or not state.at <= own:
            raise _SpreadError
        return _State(partial=_KINDS[e.kind])

    def refuse(self) -> _State:
        """Give up: the value would need other devices' values."""
        raise _SpreadError

    def join(self, states: list[_State]) -> _State:
        """Return the state of a function of values none of which is partial."""
        at = NOTHING
        for s in states:
            if s.partial is not None or s.own is not None:
                raise _SpreadError
            at |= s.at
        return _State(at) if at else _WHOLE

    # Which optional inputs there are

    def truth(self, e: Expr) -> bool | None:
        """Return the value of a condition that only depends on which optional inputs are present."""
        match e:
            case Present():
                return e.operand not in self.absent if any(o.name == e.operand and o.optional for o in self.op.inputs) else True
            case Const(value=bool() as value):
                return value
            case Call(fn="not", args=(a,)):
                inner = self.truth(a)
                return None if inner is None else not inner
            case Call(fn="and" | "or" as fn, args=(a, b)):
                sides = (self.truth(a), self.truth(b))
                if (fn == "or") in sides:
                    return fn == "or"
                return None if None in sides else fn == "and"
            case _:
                return None

    def chosen(self, e: Expr) -> Expr:
        """Return the side of a conditional that is chosen by which optional inputs are present."""
        while isinstance(e, Select) and (known := self.truth(e.cond)) is not None:
            e = e.then if known else e.other
        return e


def _additive(source: ValueType, target: ValueType) -> bool:
    """Whether conversion carries sums to sums: between floating types but for rounding, between integers that wrap exactly."""
    if (is_floating(source) and is_floating(target)) or (is_integer(source) and is_integer(target)):
        return True
    variable = source.of if isinstance(source, Acc) else source
    return isinstance(variable, TypeVar) and variable == target and DType.BOOL not in variable.dtypes
