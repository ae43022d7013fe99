"""What the loops of one statement are built with: its operands, what is known of them, and names for variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TypeAlias

from opc.analysis.bounds.inside import ReadsInside
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak
from opc.ir.expr import Axis, Call, Const, Expr, GroupRef, IndexValue, Read, Reduce, StrConst, reads, types_in, walk
from opc.ir.op import Group, Op, Operand
from opc.loops.nodes import Var
from opc.loops.schedule import Decisions, Override
from opc.loops.values import Integer, Intrinsic, Member, Named, Rank, Word, call, number, sum_of
from opc.lower.loop_ir import NestStage
from opc.lower.nests.flat import is_positive
from opc.lower.nests.windowed import Facts
from opc.records import dataclass
from opc.transform.indices import substitute


class UnsupportedForm(Exception):
    """A statement that a form of loop nest can't express; the message says what in it."""


@dataclass(frozen=True, slots=True)
class VectorRange:
    """A part of a vector loop: the index that it runs over, in the IR, and its bounds. There is none where the index is empty."""

    vector_axis: str
    low: Expr
    high: Expr


NO_RANGE = VectorRange("", number(0), number(1))


@dataclass(frozen=True, slots=True)
class Variable:
    """A value that was computed before: a variable, or an array of one element a lane."""

    name: str
    type: ValueType
    row: bool
    member: str = ""
    """The function of the variable's that returns its value, of one that is no plain value."""


GatherKey: TypeAlias = tuple[str, tuple[tuple[int, Affine | GroupRef | Expr], ...]]
"""An operand, and the entries of a read of it that make its place in a row."""


class Nest:
    """The operands of a statement, the names of its variables, and what is proved of its sizes."""

    def __init__(self, op: Op, stage: NestStage, overrides: tuple[Override, ...] = ()) -> None:
        self.op, self.stage = op, stage
        self.decisions = Decisions(stage.name, overrides)
        self.declared = op.operand(stage.assign.target)
        self.operands = (*dict.fromkeys(r.operand for r in reads(stage.assign.value)), stage.assign.target)
        self.gathered = gathered(stage)
        self._padded: dict[ValueType, str] = {}
        self._count = 0
        self.proofs = ReadsInside(op)

    @property
    def types(self) -> tuple[TypeVar, ...]:
        """The type variables of what the statement computes."""
        used = types_in(self.stage.assign.value) | {self.op.operand(n).type for n in self.operands}
        variables = {t.of if isinstance(t, Acc) else t for t in used}
        return tuple(t for t in self.op.types if t in variables)

    def fresh(self, wanted: str) -> str:
        """Return the name of a new variable, which is called `wanted` where nothing else is."""
        self._count += 1
        return f"{wanted.partition('#')[0]}#{self._count}"

    def fresh_result(self, kind: str) -> str:
        """Return the name of a new variable for what a reduction of some kind gives."""
        return self.fresh({"sum": "total", "prod": "product"}.get(kind, kind))

    def padded_rows(self, of: ValueType) -> str:
        """Return the variable that holds padded rows of elements of a type, which the function declares."""
        if of not in self._padded:
            self._padded[of] = self.fresh("padded")
        return self._padded[of]

    @property
    def memory(self) -> tuple[Var, ...]:
        """The declarations of what all units of work of the function use."""
        return tuple(Var(name, Named("opc::padded_windows", (of,))) for of, name in self._padded.items())

    def positive(self, size: Affine) -> bool:
        """Whether a size is known to be greater than zero."""
        return is_positive(self.op, size)

    def sizes(self, operand: str) -> tuple[Affine, ...]:
        """Return the size of each entry of an operand's shape."""
        return self.op.operand(operand).sizes

    def is_optional(self, operand: str) -> bool:
        """Whether an operand is an input that may be absent."""
        return any(i.name == operand and i.optional for i in self.op.inputs)

    def number_of(self, operand: str) -> Expr:
        """Return the position of an operand among those of the function."""
        return number(self.operands.index(operand))

    def axis_of(self, operand: Operand, entry: int) -> Expr:
        """Return the position of an operand's first axis that one entry of its dims describes."""
        before = operand.dims[:entry]
        ranks: list[Expr] = [Rank(d.name, d.of) for d in before if isinstance(d, Group)]
        return sum_of([*ranks, number(len(before) - len(ranks))])

    def unit(self, operand: str, alone: bool) -> int:
        """Return the entry along which an operand is contiguous; `alone` when the trailing group has one point."""
        dims = self.op.operand(operand).dims
        trailing = self.declared.dims[-1] if alone else None
        kept = [n for n, d in enumerate(dims) if d != trailing]
        return kept[-1] if kept else len(dims) - 1

    def outside(self, operand: str, entry: int, at: Expr) -> Intrinsic:
        """Return the report of an index outside of its axis."""
        axis = self.axis_of(self.op.operand(operand), entry)
        return call("report", NEST, self.told(operand), axis, at, self.size(operand, entry))

    def told(self, operand: str) -> StrConst:
        """Return what an operand is called in messages: a temporary by the op's name too, for callers know none of its names."""
        given = {o.name for o in (*self.op.inputs, *self.op.outputs)}
        return StrConst(operand if operand in given else f"{operand} in {self.op.name}")

    def nothing(self, kind: str, over: str) -> Intrinsic:
        """Return the report of a reduction over nothing that has no value there."""
        message = StrConst(f"{self.op.name}: {kind} over {over}")
        return call("report", NEST, message, number(-1), number(0), number(0))

    @staticmethod
    def size(operand: str, entry: int) -> Integer:
        """Return the size of an entry of an operand, as the call has it."""
        return Member(operand, "size", entry)

    @staticmethod
    def stride(operand: str, entry: int) -> Integer:
        """Return the stride of an entry of an operand."""
        return Member(operand, "stride", entry)


NEST = Word("nest")
"""The argument of a kernel's function that describes the nest."""


@dataclass(slots=True)
class LoopContext:
    """What is known where loops are built.

    `bounded` maps indices to the extents that they are within; `locals` are values already computed, which the IR reads as
    operands of that name; `units` is the entry along which each operand is contiguous; `given` are the optional operands known to
    be present; `row_axis` is the vector axis that has no more than `row_size` points; `indices` are the variables that hold rows
    of indices, found before, by what finds them.
    """

    nest: Nest
    units: Mapping[str, int]
    bounded: dict[Affine, Affine] = field(default_factory=dict)
    locals: dict[str, Variable] = field(default_factory=dict)
    given: frozenset[str] = frozenset()
    row_axis: str = ""
    row_size: str = "opc::nest_columns"
    indices: dict[GatherKey, str] = field(default_factory=dict)

    @property
    def positive(self) -> Callable[[Affine], bool]:
        """Whether a size is known to be greater than zero."""
        return self.nest.positive

    @property
    def facts(self) -> Facts:
        """What the recogniser of windows asks."""
        return Facts(self.nest.sizes, self.bounded, self.nest.positive)

    def bound(self, index: str, extent: Affine) -> None:
        """Note that an index is within an extent."""
        self.bounded[Affine.of(Index(index))] = extent

    def finds(self, e: Expr) -> bool:
        """Whether what a value reads is inside wherever the indices that are known so far are within their extents."""
        ranges = {i.index: extent for i, extent in self.bounded.items() if i.index is not None}
        return all(r.operand not in self.locals and not self.nest.proofs.axes_outside(r, ranges, ()) for r in reads(e))

    def reads_inside(self, e: Expr, under: Iterable[Affine]) -> bool:
        """Whether what a value and its reductions read is inside at all lanes where `under` are not negative."""
        ranges: dict[str, Affine] = {}
        known: list[Expr] = [Call("ge", (IndexValue(g), Const(0, Weak.INT)), DType.BOOL) for g in under]
        for n, (at, extent) in enumerate(self.bounded.items()):
            if at.index is not None:
                ranges[at.index] = extent
                continue
            for lane in at.indices():
                if lane not in (at - Index(lane)).indices():
                    # A lane is known by where it is from the first of a row on.
                    place = f"place#{n}"
                    found = {lane: Affine.of(Index(place)) + Index(lane) - at}
                    e, known, ranges[place] = substitute(e, found), [substitute(c, found) for c in known], extent
                    break
        ranges |= {a.index: a.extent for r in walk(e) if isinstance(r, Reduce) for a in r.axes if isinstance(a, Axis)}
        said, proofs = tuple((c, True) for c in known), self.nest.proofs
        return all(r.operand in self.locals or not proofs.axes_outside(r, ranges, said) for r in reads(e))

    def local(self, variable: Variable, vector_axis: str) -> Read:
        """Return the read that stands for a variable in expressions of the op."""
        name = f"#{variable.name}"
        self.locals[name] = variable
        return Read(name, (Affine.of(Index(vector_axis)),) if variable.row else (), variable.type)


def gathered(stage: NestStage) -> frozenset[str]:
    """Return the operands that a statement reads at data-dependent places: of those no copy is worth making."""
    found = (r for r in reads(stage.assign.value) if any(not isinstance(i, Affine | GroupRef) for i in r.indices))
    return frozenset(r.operand for r in found)
