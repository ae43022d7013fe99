"""Frames of array programs: what axes an expression runs over, and where an operand's axes lie among them.

See `opc.emit.arrays.emitter`, which walks expressions with them.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import TypeAlias

from opc.analysis.patterns import Entry, FactorPattern
from opc.ir.affine import Affine, GroupSize
from opc.ir.expr import Expr, GroupRef, Read, rewrite
from opc.ir.node import remembered
from opc.ir.op import DimSpec, Group, Op
from opc.ir.precedence import CONDITIONAL, NUMPY
from opc.records import dataclass, replace

TERNARY, ATOM = CONDITIONAL, NUMPY.atom
COMPARE, BITOR, BITAND, SUM, PRODUCT, UNARY = (NUMPY.strength[fn] for fn in ("lt", "or", "and", "add", "mul", "neg"))

Frame: TypeAlias = tuple[Entry, ...]
"""The index variables and groups along an array's axes, in order."""


class NotExpressible(Exception):
    """The dialect has no way to say an expression; the message is the reason, for people."""


@dataclass(frozen=True, slots=True)
class PythonText:
    """A Python expression: its text, how strongly its outermost operator binds, and along which axes it has its full size.

    `support` holds index variables, groups as `*A` or `...`, and in an op with broadcasting `...@x` for the share that x has.
    """

    text: str
    strength: int = ATOM
    support: frozenset[str] = frozenset()

    def over(self, support: frozenset[str]) -> PythonText:
        """Return the expression with its full size along other axes."""
        return PythonText(self.text, self.strength, support)

    def at(self, strength: int) -> str:
        """Return the text, in parentheses where it binds weaker than `strength`."""
        return self.text if self.strength >= strength else f"({self.text})"


_ROOTS: Mapping[type[ast.operator], int] = {ast.Add: SUM, ast.Sub: SUM, ast.Mult: PRODUCT, ast.Div: PRODUCT}


@cache
def strength_of(text: str) -> int:
    """Return how strongly a text of the function table binds that is no operator's alone."""
    root = ast.parse(text.format("x", "y"), mode="eval").body
    if not isinstance(root, ast.BinOp) or root.col_offset > 0:
        return ATOM
    return _ROOTS.get(type(root.op), TERNARY)


def size_of(dim: DimSpec) -> Affine:
    """Return the size of a dimension, or the number of points of a group."""
    return dim if isinstance(dim, Affine) else Affine.of(GroupSize(dim.name))


@dataclass(frozen=True, slots=True)
class Position:
    """The place of an axis: so many axes and the axes of `groups` after the first, or, if `end`, so many before the end."""

    fixed: int
    groups: tuple[str, ...] = ()
    end: bool = False


@dataclass(frozen=True, slots=True)
class FrameScope:
    """The frame around an expression, the extents of its index variables, and the conditions under which it is evaluated.

    What does not vary along some of these entries is computed over a frame without them.
    `reduced` are those entries of the points that reductions around the expression run over.
    `own` are the groups of an operand whose axes may be broadcast, where the frame is that operand's and not what all share.
    """

    frame: Frame
    extents: Mapping[str, Affine] = field(default_factory=dict)
    guards: tuple[Expr, ...] = ()
    points: Frame = ()
    reduced: frozenset[Entry] = frozenset()
    own: frozenset[Group] = frozenset()

    def group(self, entry: GroupRef) -> Group:
        """Return whose group an entry of the frame is: that of the operand that the statement assigns, or what operands share."""
        return next((g for g in self.own if g.name == entry.name), Group(entry.name))

    def dims(self, frame: Sequence[Entry]) -> list[DimSpec]:
        """Return the sizes of an array over a frame: extents of indices, and groups."""
        return [self.group(i) if isinstance(i, GroupRef) else self.extents[i] for i in frame]

    @property
    def around(self) -> Frame:
        """Return the entries of all points at which the expression is evaluated."""
        return (*self.frame, *(i for i in self.points if i not in self.frame))

    def under(self, condition: Expr) -> FrameScope:
        """Return the scope of what only counts where a condition holds too."""
        return FrameScope(self.frame, self.extents, (*self.guards, condition), self.points, self.reduced, self.own)


class LocalNames:
    """Local variable names of one generated function."""

    def __init__(self, taken: Sequence[str]) -> None:
        self.taken = set(taken)
        self.count = 0

    def fresh(self, wanted: str | None = None) -> str:
        """Return a name not used yet: `wanted`, or that with underscores, or `t1`, `t2`, ..."""
        if wanted is None:
            self.count += 1
            return self.fresh(f"t{self.count}")
        while wanted in self.taken:
            wanted += "_"
        self.taken.add(wanted)
        return wanted


def bare_entries(e: Read) -> tuple[Entry, ...] | None:
    """Return a read's indices as entries of a frame, or None where one is computed."""
    entries: list[Entry] = []
    for i in e.indices:
        entry = i if isinstance(i, GroupRef) else i.index if isinstance(i, Affine) else None
        if entry is None:
            return None
        entries.append(entry)
    return tuple(entries)


def factor_frame(f: FactorPattern, order: Sequence[Entry]) -> Frame:
    """Return the frame of a contraction's factor: as the operand has its axes where it is one as it stands, else as `order`."""
    entries = bare_entries(f.value) if isinstance(f.value, Read) and f.value.pad is None else None
    if entries is not None and not f.conditions and len(set(entries)) == len(entries):
        return entries
    return tuple(i for i in order if i in f.entries)


def merge(frame: Frame, entries: Sequence[Entry], own: Sequence[Entry]) -> Frame:
    """Return the frame with the `own` entries inserted as `entries` orders them."""
    result = list(frame)
    for k, entry in enumerate(entries):
        if entry not in own:
            continue
        before = [i for i in entries[:k] if i in result]
        after = [i for i in entries[k + 1 :] if i in result]
        at = result.index(before[-1]) + 1 if before else result.index(after[0]) if after else len(result)
        result.insert(at, entry)
    return tuple(result)


def position(frame: Frame, k: int) -> Position:
    """Return the place of entry `k` of a frame: counted from the end where no group follows, else from the start."""
    if not any(isinstance(i, GroupRef) for i in frame[k:]):
        return Position(len(frame) - k, (), end=True)
    return Position(sum(isinstance(i, str) for i in frame[:k]), tuple(i.name for i in frame[:k] if isinstance(i, GroupRef)))


def missing_entries(frame: Frame, entries: Sequence[Entry]) -> list[tuple[Position, str | None]]:
    """Return the places, in the array that broadcasts to the frame, of the frame's entries that an operand lacks.

    Those before the operand's first entry need no place: broadcasting adds them.
    """
    if not entries:
        return []
    first = min(frame.index(i) for i in entries)
    rest = frame[first:]
    return [(position(rest, k), i.name if isinstance(i, GroupRef) else None) for k, i in enumerate(rest) if i not in entries]


@remembered("_ordered")
def with_ordered_temporaries(op: Op) -> Op:
    """Return the op with each temporary's axes in the order that an input has them, where one has them all.

    The order of a temporary's axes is free, and this one avoids transposing groups, whose ranks are not known.
    """
    order: dict[str, list[int]] = {}
    for t in op.temporaries:
        like = next((o for o in op.inputs if all(d in o.dims for d in t.dims)), None)
        if like is not None and len(set(t.dims)) == len(t.dims):
            found = sorted(range(len(t.dims)), key=lambda i: like.dims.index(t.dims[i]))
            if found != list(range(len(t.dims))):
                order[t.name] = found
    if not order:
        return op

    def reordered(e: Expr) -> Expr:
        if isinstance(e, Read) and e.operand in order:
            return replace(e, indices=tuple(e.indices[i] for i in order[e.operand]))
        return e

    body = []
    for s in op.body:
        indices = tuple(s.indices[i] for i in order[s.target]) if s.target in order else s.indices
        body.append(replace(s, indices=indices, value=rewrite(s.value, reordered)))
    temporaries = (replace(t, dims=tuple(t.dims[i] for i in order[t.name])) if t.name in order else t for t in op.temporaries)
    return replace(op, temporaries=tuple(temporaries), body=tuple(body))
