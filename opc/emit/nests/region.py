"""Ranges of the vectorised loop of a nest: an expression over [low, high) of the lane, split where a condition changes.

A condition that is affine in the lane splits the range, one that doesn't depend on it becomes a branch around the loop, and what
is left is tested lane by lane.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from opc.analysis.value_types import presence
from opc.emit.nests.base import parenthesised
from opc.emit.nests.leaf import Leaf, Local, Range, Scope
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ElementType
from opc.ir.expr import Call, Const, Expr, Present, Read, Reduce, Select, children, free_indices, reads, walk
from opc.lower.guards import Guard, guard_indices, guards, inside, is_known_inside, is_zero, one_place, replace_node
from opc.lower.rows.streams import runs_often

__all__ = ["Leaf", "Local", "Range", "Regions", "RowStore", "Sink"]

_MOST_SPLITS = 3
"""A range is split by so many conditions inside one another; further ones are tested lane by lane."""

_MANY_SPLITS = 3
"""With so many reads that may fall outside, the part where none does gets a loop, and in the rest each is tested lane by lane."""


class Sink(Protocol):
    """What happens to the values of a range; where it `overwrites`, only the last value of a lane counts.

    Where it is `ordered`, the values of a lane before another's are to come before them: of equal ones, the first counts.
    """

    overwrites: bool
    ordered: bool

    def loop(self, e: Expr, leaf: Leaf, over: Range) -> list[str]:
        """Return the lines of the loop that computes `e`, whose text `leaf` writes."""

    def ignores(self, e: Expr) -> bool:
        """Whether `e` changes nothing."""


@dataclass(frozen=True, slots=True)
class RowStore:
    """Values go to the row `out`, as results of type `target`; `lane` is the C++ variable that counts its elements.

    If it is `zeroed`, the row holds zeros before; else it has no values.
    """

    overwrites = True
    ordered = False

    lane: str
    target: ElementType
    zeroed: bool = False

    def ignores(self, e: Expr) -> bool:
        """Whether `e` changes nothing."""
        return self.zeroed and is_zero(e)

    def loop(self, e: Expr, leaf: Leaf, over: Range) -> list[str]:
        """Return the lines of the loop that computes `e`, whose text `leaf` writes."""
        text = leaf.convert(e, self.target).text
        head = f"for (int64_t {self.lane} = {over.low}; {self.lane} < {over.high}; ++{self.lane})"
        return ["OPC_SIMD", f"{head} out[{self.lane}] = {text};"]


@dataclass(slots=True)
class Regions(Scope):
    """Writes expressions over ranges of a lane."""

    def write(self, e: Expr, over: Range, sink: Sink, splits: int = _MOST_SPLITS) -> None:
        """Write the loops that compute `e` over a range."""
        if splits and isinstance(e, Select) and (one := self._one(e.cond, over.lane)) is not None:
            self._around(e, one, over, sink, splits)
            return
        node = self._split(e, over.lane, e) if splits else None
        if node is None:
            self._leaf(e, over, sink)
            return
        if splits == _MOST_SPLITS and self._inside_or_not(e, over, sink):
            return
        w = self.writer
        found = self._guards(node)
        then, other = (replace(node, pad=None), node.pad) if isinstance(node, Read) else (node.then, node.other)
        assert other is not None, "a node that splits a range has two sides"
        yes, no = replace_node(e, node, then), replace_node(e, node, other)
        skip = sink.ignores(no)
        if not any(over.lane in guard_indices(g) for g in found):
            before = self.given
            self.given = before | (presence(node.cond, True) if isinstance(node, Select) else frozenset())
            with w.block(f"if ({self.condition(found)})"):
                self.write(yes, over, sink, splits - 1)
            self.given = before
            if not skip:
                w.lines.pop()
                with w.block("} else"):
                    self.write(no, over, sink, splits - 1)
            return
        low, high = w.names.fresh("low"), w.names.fresh("high")
        with w.block(""):
            self.narrow(found, over, low, high)
            parts = [(yes, Range(over.lane, low, high))]
            if not skip:
                parts += [(no, Range(over.lane, over.low, low)), (no, Range(over.lane, high, over.high))]
            for value, part in _turns(parts, sink):
                self.write(value, part, sink, splits - 1)

    def _one(self, cond: Expr, lane: str) -> tuple[Affine, Expr] | None:
        """Return what a condition asks of the lane where one lane alone may hold it: the lane plus the first is the second."""

        def is_known(value: Expr) -> bool:
            if not isinstance(value, Read | Call) or lane in free_indices(value):
                return False
            return not any(isinstance(e, Reduce) or (isinstance(e, Read) and not self._is_known(e, lane)) for e in walk(value))

        return one_place(cond, lane, is_known)

    def is_mostly_zero(self, e: Expr, lane: str) -> bool:
        """Whether a value is zero at all lanes but one."""
        return isinstance(e, Select) and is_zero(e.other) and self._one(e.cond, lane) is not None

    def _is_known(self, r: Read, lane: str) -> bool:
        """Whether what a read finds is known ahead of the lane, wherever it stands."""
        return r.pad is None and self._stands(r, lane)

    def excluded(self, g: Guard, lane: str) -> str | None:
        """Return the name of the one lane at which a guard doesn't hold, whose place is written, None for other guards."""
        if not isinstance(g, Call) or g.fn not in ("not", "ne"):
            return None
        one = self._one(g.args[0] if g.fn == "not" else replace(g, fn="eq"), lane)
        if one is None:
            return None
        name = self.writer.names.fresh("but")
        self._place(name, one)
        return name

    def _place(self, name: str, one: tuple[Affine, Expr]) -> None:
        """Write the declaration of the lane that is asked for."""
        leaf = Leaf(self, Range("", "", ""))
        value = leaf.expr(one[1]).text
        rest = "" if one[0] == Affine.of(0) else f" - {parenthesised(leaf.affine(one[0]))}"
        self.writer.put(*leaf.before, f"const int64_t {name} = int64_t({value}){rest};")

    def _around(self, e: Select, one: tuple[Affine, Expr], over: Range, sink: Sink, splits: int) -> None:
        """Write a choice of one lane: that lane, and the loops before and behind it, which test nothing.

        Where all the others are alike, the whole range is filled, and then that lane.
        """
        w = self.writer
        alike = over.lane not in free_indices(e.other) and all(self._is_known(r, over.lane) for r in reads(e.other))
        fills = sink.overwrites and alike and not isinstance(e.other, Select)
        if fills and not sink.ignores(e.other):
            self.write(e.other, over, sink, splits - 1)
        at, low, high = w.names.fresh("at_one"), w.names.fresh("low"), w.names.fresh("high")
        with w.block(""):
            self._place(at, one)
            w.put(f"const int64_t {low} = {at} >= {over.low} && {at} < {over.high} ? {at} : {over.high};")
            w.put(f"const int64_t {high} = {low} < {over.high} ? {low} + 1 : {low};")
            parts = [(e.then, Range(over.lane, low, high))]
            if not fills and not sink.ignores(e.other):
                parts += [(e.other, Range(over.lane, over.low, low)), (e.other, Range(over.lane, high, over.high))]
            for value, part in _turns(parts, sink):
                if value is e.then:
                    self._leaf(value, part, sink, short=True)
                else:
                    self.write(value, part, sink, splits - 1)

    def _inside_or_not(self, e: Expr, over: Range, sink: Sink) -> bool:
        """Write one loop for where all of several reads are inside and one for the rest, unless the reads are few."""
        found: list[Guard] = []
        inner, count = e, 0
        while (node := self._split(inner, over.lane, inner)) is not None:
            guard = self._guards(node)
            if not _is_inside(node, guard, over.lane):
                return False  # the rest may be as long
            found += guard
            inner = replace_node(inner, node, replace(node, pad=None) if isinstance(node, Read) else node.then)
            count += 1
        if count < _MANY_SPLITS or sink.ordered:
            return False
        w = self.writer
        low, high, side = (w.names.fresh(n) for n in ("low", "high", "side"))
        with w.block(""):
            self.narrow(_least(found), over, low, high)
            self._leaf(inner, Range(over.lane, low, high), sink)
            with w.block(f"for (int64_t {side} = 0; {side} < 2; ++{side})"):
                begin, end = w.names.fresh("begin"), w.names.fresh("end")
                w.put(f"const int64_t {begin} = {side} == 0 ? {over.low} : {high};")
                w.put(f"const int64_t {end} = {side} == 0 ? {low} : {over.high};")
                self._leaf(e, Range(over.lane, begin, end), sink, short=True)
        return True

    def narrow(self, found: tuple[Guard, ...], over: Range, low: str, high: str) -> None:
        """Write the declarations of the bounds of the part of a range where the guards hold."""
        w = self.writer
        w.put(f"int64_t {low} = {over.low}, {high} = {over.high};")
        for g in found:
            self.clip(g, over.lane, low, high)

    def clip(self, g: Guard, index: str, low: str, high: str, known: tuple[Affine, str] | None = None) -> None:
        """Write the narrowing of a range of an index to where a guard holds; one that is no expression must not depend on it.

        `known` is a number and a name by which the compiler may know it as a constant.
        """
        text = Leaf(self, Range("", "", ""))
        if not isinstance(g, Affine):
            self.writer.put(f"if (!{parenthesised(text.condition(g))}) {high} = {low};")
            return
        coefficient = g.coefficient(index)
        assert coefficient is not None, "a guard that narrows a range is affine in its index"
        rest = g - coefficient * Affine.of(Index(index))
        factor = text.affine(coefficient)
        if known is not None and coefficient in (known[0], -known[0]):
            factor = known[1] if coefficient == known[0] else f"-{known[1]}"
        self.writer.put(f"opc::clip({low}, {high}, {factor}, {text.affine(rest)});")

    def condition(self, found: tuple[Guard, ...]) -> str:
        """Return guards as a C++ condition."""
        leaf = Leaf(self, Range("", "", ""))
        leaf.lazy = True
        texts = [f"{leaf.affine(g)} >= 0" if isinstance(g, Affine) else leaf.condition(g) for g in found]
        return " && ".join(t if len(texts) == 1 or ("||" not in t and "?" not in t) else f"({t})" for t in texts) or "true"

    def _guards(self, node: Select | Read) -> tuple[Guard, ...]:
        if isinstance(node, Select):
            return guards(node.cond, self.positive)
        return inside(node, self.writer.sizes(node.operand), self.bounded)

    def _split(self, e: Expr, lane: str, root: Expr) -> Select | Read | None:
        """Return the outermost part of `e` by whose condition the range can be split."""
        if isinstance(e, Select):
            found = self._guards(e)
            if all(self.is_solvable(g, lane) for g in found) and (e is root or self._worth(e, found, lane)):
                return e
            return self._split(e.cond, lane, root) or self._given_or_not(e, lane)
        if isinstance(e, Read) and e.pad is not None and e.operand not in self.locals:
            found = self._guards(e) if all(isinstance(i, Affine) for i in e.indices) else ()
            if found and all(self.is_solvable(g, lane) for g in found):
                return e
        if isinstance(e, Call) and e.fn in ("and", "or"):
            return self._split(e.args[0], lane, root)
        for c in children(e):
            node = self._split(c, lane, root)
            if node is not None:
                return node
        return None

    def _given_or_not(self, e: Select, lane: str) -> Select | None:
        """Return a choice inside a choice made lane by lane that hangs on whether an operand was given: it is made ahead."""
        inner = (s for side in (e.then, e.other) for s in walk(side) if isinstance(s, Select))
        return next((s for s in inner if _is_presence(s.cond) and self._worth(s, (), lane)), None)

    def _worth(self, e: Select, found: tuple[Guard, ...], lane: str) -> bool:
        """Whether a choice inside an expression is worth a loop for each side: its sides read along the lane."""
        sides = [r for side in (e.then, e.other) for r in reads(side) if r.operand not in self.locals]
        return any(lane in free_indices(r) for r in sides)

    def is_solvable(self, g: Guard, lane: str) -> bool:
        """Whether a guard is one of ranges of the lane, or doesn't depend on it and may be tested early."""
        if isinstance(g, Affine):
            coefficient = g.coefficient(lane)
            return coefficient is not None
        if lane in free_indices(g):
            return False
        return all(self._stands(r, lane) for r in reads(g))

    def _stands(self, r: Read, lane: str) -> bool:
        """Whether a read may be carried out ahead of the loop over the lane."""
        if r.operand in self.locals:
            return not self.locals[r.operand].row
        return is_known_inside(r, self.writer.sizes(r.operand), self.bounded) and lane not in free_indices(r)

    def _leaf(self, e: Expr, over: Range, sink: Sink, short: bool = False) -> None:
        """Write the loop that computes `e` over a range; a short one is not worth a copy for each step of its reads."""
        w = self.writer
        leaf = Leaf(self, over)
        if not short:
            leaf.find_step(e)
        lines = sink.loop(e, leaf, over)
        looked_up = [w.view(name) for name in self.gathered if any(f"{w.view(name)}.at(" in line for line in lines)]
        with w.block(f"if ({over.low} < {over.high})"):
            w.put(*leaf.before)
            if leaf.step is not None:
                with w.block(f"opc::with_step({leaf.step_text}, [&](auto {leaf.step})", "});"):
                    w.put(*lines)
            elif len(looked_up) == 1 and not short and runs_often(w.op):
                # What the operand is stored as is asked ahead of the loop: the price is a copy of that for each type. A loop that
                # may have to report a place is no vector loop.
                if any("opc::report(" in line for line in lines):
                    lines = ["OPC_UNROLLED" if line == "OPC_SIMD" else line for line in lines]
                with w.block(f"opc::with_stored({looked_up[0]}, [&](auto {looked_up[0]}) OPC_INLINED", "});"):
                    w.put(*lines)
            else:
                w.put(*lines)


def _turns(parts: list[tuple[Expr, Range]], sink: Sink) -> list[tuple[Expr, Range]]:
    """Return the part within a range, that before and that behind it in the order in which they are written."""
    return [parts[1], parts[0], parts[2]] if sink.ordered and len(parts) == 3 else parts


def _is_presence(cond: Expr) -> bool:
    """Whether a condition is that an operand was given, or was not."""
    return isinstance(cond, Present) or (isinstance(cond, Call) and cond.fn == "not" and _is_presence(cond.args[0]))


def _is_inside(node: Select | Read, found: tuple[Guard, ...], lane: str) -> bool:
    """Whether a condition may be that a read is inside: it bounds the lane on both sides, if at all."""
    if isinstance(node, Select) and not isinstance(node.other, Const):
        return False
    bounds = [g for g in found if lane in guard_indices(g)]
    return all(isinstance(g, Affine) for g in found) and len(bounds) != 1


def _least(found: list[Guard]) -> tuple[Guard, ...]:
    """Return guards without those that others imply: of those that differ by a number, the least."""
    kept: dict[Affine | Expr, Guard] = {}
    for g in found:
        if not isinstance(g, Affine):
            kept[g] = g
            continue
        moving = g - dict(g.terms).get((), 0)
        known = kept.get(moving)
        if not isinstance(known, Affine) or ((g - known).constant or 0) < 0:
            kept[moving] = g
    return tuple(kept.values())
