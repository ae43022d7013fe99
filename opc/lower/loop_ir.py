"""The loop IR: what a kernel does, loop by loop, in no particular language.

A `Program` is a sequence of stages. A `RowStage` is one parallel loop over points (`outer`), each of which owns a row of values
along the axes `row`; its passes are the loops over that row, fused as far as dependences allow. An elementwise op is the special
case in which rows mean nothing and may be cut anywhere (`whole_rows` False). A `NestStage` is a plain loop nest, one statement
at a time, for everything whose accesses are not bare indices: windows, shifts, gathers, diagonals.

Expressions are those of `opc.ir.expr` with the indices dropped from reads of a row stage: there every operand is accessed in one
way only, which its `StageOperand` tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from opc.ir.affine import Affine
from opc.ir.dtypes import ValueType
from opc.ir.expr import Expr, GroupRef, ReduceAxis, reads
from opc.ir.op import Assign, DimSpec, Group
from opc.loops.schedule import Schedule
from opc.lower.calls import Calls
from opc.lower.contractions.factors import Factor
from opc.lower.nest_plans import OrderPlan, ScanPlan, ScatterPlan, VectorPlan
from opc.lower.places import Places
from opc.lower.summed import Summed
from opc.records import dataclass


@dataclass(frozen=True, slots=True, order=True)
class GroupLoop:
    """All axes of a group; `of` names the input whose own group it is in a broadcast op."""

    name: str
    of: str | None = None

    def __str__(self) -> str:
        return str(Group(self.name, self.of))


@dataclass(frozen=True, slots=True)
class IndexLoop:
    """One axis. Loops of equal extent are one axis of a stage, whatever the statements call their index.

    `along` is the extent of the axis that this one is broadcast along: it has as many points, or one.
    """

    index: str = field(compare=False)
    extent: Affine
    along: Affine | None = None

    def __str__(self) -> str:
        return f"{self.index}:{self.extent}" + ("" if self.along is None else f" along {self.along}")


Loop: TypeAlias = GroupLoop | IndexLoop


def loop_of(dim: DimSpec) -> Loop:
    """Return the loop over an entry of a shape."""
    return GroupLoop(dim.name, dim.of) if isinstance(dim, Group) else IndexLoop(str(dim), dim)


def joint(loop: Loop) -> Loop:
    """Return the loop that an operand's own loop is broadcast along, or the loop itself."""
    if isinstance(loop, GroupLoop):
        return GroupLoop(loop.name)
    return loop if loop.along is None else IndexLoop(loop.index, loop.along)


@dataclass(frozen=True, slots=True)
class Reduction:
    """How a step reduces: `kind` is sum, prod, max, min, any or all; `loops` are the axes that vanish.

    `broadcast` names the input, or the size, along whose broadcast axes the step sums beside `loops`.
    """

    kind: str
    loops: tuple[Loop, ...]
    broadcast: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """`target[loops] = value`, or the reduction of `value` over further loops. `value` holds no reduction.

    A maximum or minimum is `asked` for at all points of some loops, at each point that no condition leaves out.
    """

    target: str
    type: ValueType
    loops: tuple[Loop, ...]
    value: Expr
    reduction: Reduction | None
    source: Assign
    asked: tuple[tuple[Loop, ...], ...] = ()

    @property
    def domain(self) -> tuple[Loop, ...]:
        """Every loop the step runs over: its own, then those it reduces."""
        return self.loops if self.reduction is None else (*self.loops, *self.reduction.loops)


@dataclass(frozen=True, slots=True)
class StageOperand:
    """A tensor of a stage.

    `kind` is "input", "output", or "temporary" for one that lives between stages. `loops` are its axes in order, and `along_row`
    tells whether it varies along the row. `written` operands are the stage's products; `reduction` is the kind of a product that
    reduces over the points of the stage.
    """

    name: str
    kind: str
    type: ValueType
    loops: tuple[Loop, ...]
    along_row: bool
    written: bool = False
    reduction: str | None = None


@dataclass(frozen=True, slots=True)
class RowLet:
    """A local value, at each point of the row or (in a pass's prologue) once a row."""

    name: str
    type: ValueType
    value: Expr
    source: Assign


@dataclass(frozen=True, slots=True)
class RowBuffer:
    """A value of each point of the row, kept for later passes: in a row buffer, or in the row of the product `host`, which is
    written only when the value is no longer needed."""

    name: str
    type: ValueType
    value: Expr
    source: Assign
    host: str | None = None


@dataclass(frozen=True, slots=True)
class RowAccumulate:
    """A reduction along the row; its result is a value of the row once the pass is over."""

    name: str
    kind: str
    type: ValueType
    value: Expr
    source: Assign


@dataclass(frozen=True, slots=True)
class RowStore:
    """Stores a product: `value` to the operand's element."""

    name: str
    type: ValueType
    value: Expr
    source: Assign


Action: TypeAlias = RowLet | RowBuffer | RowAccumulate | RowStore


@dataclass(frozen=True, slots=True)
class Pass:
    """Values of the row (`prologue`), then one loop along it (`body`), which may be empty.

    Where the condition `peeled` holds, at one point of a row at most, that point is computed by itself.
    """

    prologue: tuple[RowLet | RowStore, ...]
    body: tuple[Action, ...]
    peeled: Expr | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """What has no value: the reduction `kind` over `loops`, where one of them is empty and all that `asked` names are not.

    The statement with the target `target` asks for it.
    """

    target: str
    kind: str
    loops: tuple[Loop, ...]
    asked: tuple[Loop, ...]


@dataclass(frozen=True, slots=True)
class RowStage:
    """One parallel loop over rows.

    `optional` lists every product when the caller may leave one of several out: the stage runs for those that are wanted, and an
    action that stands in `needed` is done only for the products listed there. A single product that may be left out needs no
    such care, since nothing runs without it.

    `once` is the same stage with rows along the last axis only, where some operands lack that axis: what depends on them alone is
    computed once a row there. It runs in calls in which those rows are long.

    `schedule` is what its loops go through.

    `refusals` tell when the stage has no value, so that the call is refused.
    """

    name: str
    outer: tuple[Loop, ...]
    row: tuple[Loop, ...]
    whole_rows: bool
    operands: tuple[StageOperand, ...]
    passes: tuple[Pass, ...]
    optional: tuple[str, ...]
    needed: Mapping[str, frozenset[str]]
    once: RowStage | None = None
    schedule: Schedule = field(default_factory=Schedule)
    refusals: tuple[Refusal, ...] = ()

    @property
    def buffers(self) -> tuple[RowBuffer, ...]:
        """The values that need a row buffer."""
        return tuple(a for p in self.passes for a in p.body if isinstance(a, RowBuffer) and a.host is None)

    @property
    def products(self) -> tuple[StageOperand, ...]:
        """The operands the stage writes."""
        return tuple(o for o in self.operands if o.written)

    def operand(self, name: str) -> StageOperand:
        """Return the operand of that name; KeyError when there is none."""
        return {o.name: o for o in self.operands}[name]


@dataclass(frozen=True, slots=True)
class NestStage:
    """One statement as a loop nest.

    `plans` says how; a second plan is for calls in which the group that the target ends in has one point. Without plans the
    statement is evaluated point by point. The temporary `sum` gets the sum of what is computed at all points; where the target is
    not `stored`, that is all it is computed for.
    """

    name: str
    assign: Assign
    plans: tuple[VectorPlan, ...] | tuple[ScatterPlan, ...] | tuple[ScanPlan, ...] | tuple[OrderPlan, ...] = ()
    sum: str | None = None
    stored: bool = True


@dataclass(frozen=True, slots=True)
class PointGroups:
    """The groups that the points of some loops are in, of which each is a contraction of its own.

    The temporary `numbers` has the group of each point, along `loops`; there are `count` of them. The matrices of the groups lie
    along an axis of a factor, `of` its operand, outside of which no number may be; or, where that is None, along the loop `batch`
    of the target, whose points get the sums of their own groups.
    """

    numbers: str
    loops: tuple[str | GroupRef, ...]
    count: Affine
    of: tuple[str, int] | None
    batch: str | None


@dataclass(frozen=True, slots=True)
class Term:
    """A product of two factors, summed over `axes`; it counts where all `conditions`, which a call fixes, hold."""

    conditions: tuple[Expr, ...]
    axes: tuple[ReduceAxis, ...]
    factors: tuple[Factor, Factor]
    groups: PointGroups | None = None


@dataclass(frozen=True, slots=True)
class ContractionStage:
    """A sum of products at each point of a target, in blocks, and what is done with it.

    `epilogue` is the elementwise stage that takes strips of the sum, its first operand, and writes the target, its last;
    `operand_indices` are those of each other operand, in terms of the target's.
    """

    name: str
    assign: Assign
    total: str
    type: ValueType
    terms: tuple[Term, ...]
    epilogue: RowStage
    operand_indices: tuple[tuple[str, tuple[Affine | GroupRef, ...]], ...]

    @property
    def groups(self) -> PointGroups | None:
        """The groups of its points, which are the same for all terms; None where there are none."""
        return self.terms[0].groups


Stage: TypeAlias = RowStage | NestStage | ContractionStage


def read_by(stage: Stage) -> tuple[str, ...]:
    """Return the operands that a stage reads, as often as it reads them."""
    if isinstance(stage, RowStage):
        return tuple(o.name for o in stage.operands if not o.written)
    return tuple(r.operand for r in reads(stage.assign.value))


def written_by(stage: Stage) -> tuple[str, ...]:
    """Return the operands that a stage writes; the sum of a nest is not among them."""
    return tuple(o.name for o in stage.products) if isinstance(stage, RowStage) else (stage.assign.target,)


@dataclass(frozen=True, slots=True)
class Temporary:
    """A tensor in memory between stages; `needed_by` lists the outputs that it is there for.

    One that is not `stored` has no memory: the nest that computes it just adds it up. One with a `host` is in the memory of that
    temporary, whose values nothing needs any more; one that is `part_of` another is the part of its memory that the present step
    of a recurrence computes, along the entry `axis` of its loops. One that is `copied` holds elements as an input has them. One
    that `becomes` an output, of which that is a copy, is in the output's memory in calls in which both are stored alike. There is
    one in the calls `when`, None for all.
    """

    name: str
    type: ValueType
    loops: tuple[Loop, ...]
    needed_by: tuple[str, ...]
    stored: bool = True
    host: str | None = None
    copied: bool = False
    part_of: str | None = None
    axis: int = 0
    becomes: str | None = None
    when: Calls | None = None


@dataclass(frozen=True, slots=True)
class StepLoop:
    """A serial loop around stages: a recurrence, of which they compute one step.

    The stages from `first` on, before `end`, run for each value of the size `index` below `extent`, which only loops know; from
    the last one down if the recurrence `falls`. With `by_points` they are nests that compute points alike, of which each needs
    nothing of the others: threads take points, and run the loop for a few of them, which stay in the caches, after others.
    """

    index: str
    extent: Affine
    falls: bool
    first: int
    end: int
    by_points: bool = False


@dataclass(frozen=True, slots=True)
class FusedRows:
    """The axis whose points all stages of a program take in blocks, of which each runs through all stages before the next one.

    The axis has the size `dim`; it is the first one behind those of `group`, None where there is no group, or behind `leading`
    axes of these sizes, of which a block has one point. Where inputs have that point is in `places`. `first` is a size of the
    call that only loops know: the point that a block begins with. So are those of `whole`, each with the axis whose size it is:
    what numbers are made of, as a block has fewer points there. Blocks add up what is `summed`; all other results have rows.
    """

    group: str | None
    dim: str
    first: str
    leading: tuple[str, ...] = ()
    places: Places | None = None
    whole: tuple[tuple[str, str], ...] = ()
    summed: Summed | None = None

    def has(self, target: str) -> bool:
        """Whether what a statement computes has rows."""
        return self.summed is None or target not in self.summed.outputs

    @property
    def at(self) -> int:
        """The position of the axis in what a statement computes."""
        return len(self.leading) + (self.group is not None)

    @property
    def sizes(self) -> Mapping[str, str | None]:
        """The sizes that only loops know, with the axes whose sizes they are: None for the beginning of a block."""
        return {self.first: None, **dict(self.whole)}


@dataclass(frozen=True, slots=True)
class NeededColumns:
    """The columns that stages on a block of rows need: the first `count` points of the axis with the size `dim`, at least one.

    All others are dropped in every row of the block by a condition: they add 0 to sums where all elements of the operands
    `finite` are finite, and those of the temporaries `after`, which stages compute. Anywhere else 0 times them is not 0, and all
    columns are needed.
    """

    dim: str
    count: Affine
    finite: tuple[str, ...]
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Program:
    """The stages of one op, in order, and the temporaries between them.

    With `fused` the stages are those of one block of rows, and temporaries have as many rows as a block; with `columns` they have
    as many columns as the block needs. `steps` are the serial loops around some of the stages. A stage that `when` names runs in
    these calls only; of several that write the same, one runs.
    """

    name: str
    stages: tuple[Stage, ...]
    temporaries: tuple[Temporary, ...]
    fused: FusedRows | None = None
    columns: NeededColumns | None = None
    steps: tuple[StepLoop, ...] = ()
    when: Mapping[str, Calls] = field(default_factory=dict)
    schedule: Schedule = field(default_factory=Schedule)
