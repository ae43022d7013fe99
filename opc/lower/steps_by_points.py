"""Recurrences whose points need nothing of one another: `h[t, d] = a[t, d]*h[t - 1, d] + b[t, d]` at each d by itself.

The loop over the steps is then inside of the parallel loop over points: a thread takes a few rows of points through all steps,
while what they carry along stays in its first caches. Threads start once, and not at each step. Each statement of a step is a
nest, whose units of work are those of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opc.ir.access import Access, accesses, place
from opc.ir.affine import Affine, Dim
from opc.ir.expr import Read, reads
from opc.ir.op import Assign, Op
from opc.ir.recurrence import Recurrence, recurrences
from opc.ir.verify import VerifyError
from opc.lower.build.kernel import nest_kernel
from opc.lower.loop_ir import NestStage, Program, StepLoop
from opc.lower.nest_plans import VectorPlan
from opc.lower.statement import lower_statement
from opc.transform.indices import bare
from opc.transform.steps import SegmentedOp


def with_points_apart(
    op: Op, in_segments: Callable[[Sequence[Recurrence]], SegmentedOp]
) -> tuple[SegmentedOp, Mapping[int, tuple[NestStage, ...]]]:
    """Return an op in segments, given those recurrences that are by points, and the nests of each segment of these."""
    # One of whose statements is not computed row by row takes its steps with all points together.
    apart = [r for r in recurrences(op) if has_points_apart(op, r) and None not in _nests_of(in_segments([r])).values()]
    whole = in_segments(apart)
    return whole, {n: found for n, found in _nests_of(whole).items() if found is not None}


def _nests_of(whole: SegmentedOp) -> dict[int, tuple[NestStage, ...] | None]:
    return {n: _nests(s.op) for n, s in enumerate(whole.segments) if s.steps is not None and s.steps.by_points}


def has_points_apart(op: Op, recurrence: Recurrence) -> bool:
    """Whether each value of a recurrence reads the others at its own indices, but for that of the steps."""
    shapes = set()
    for name, axis in zip(recurrence.targets, recurrence.axes, strict=True):
        s, dims = op.assignments[name], op.operand(name).dims
        shapes.add((*dims[:axis], *dims[axis + 1 :]))
        own = bare(s.indices)
        for r in reads(s.value):
            if r.operand in recurrence.targets:
                k = recurrence.axis_of(r.operand)
                if (*r.indices[:k], *r.indices[k + 1 :]) != (*own[:axis], *own[axis + 1 :]):
                    return False
    return len(shapes) == 1


def _nests(op: Op) -> tuple[NestStage, ...] | None:
    """Return the nests of the statements of a step, None where they do not all compute rows, cut alike."""
    nests = tuple(lower_statement(op, s, f"{op.name}_{s.target}") for s in op.body)
    # One that no loop over rows can express goes point by point, whatever is planned.
    return nests if _has_units_alike(nests) and all(nest_kernel(op, n).form != "nest" for n in nests) else None


def _has_units_alike(nests: Sequence[NestStage]) -> bool:
    forms = set()
    for nest in nests:
        if not nest.plans or nest.sum is not None or not nest.stored:
            return False
        if not all(isinstance(p, VectorPlan) and not p.looked_up for p in nest.plans):
            return False
        forms.add(tuple(p.vector_axis is None for p in nest.plans if isinstance(p, VectorPlan)))
    return len(forms) == 1


def copy_of(op: Op, name: str) -> str | None:
    """Return an output that is a copy of a temporary and has its shape, None where there is none.

    An op with a recurrence writes no output over an input, so that nothing else needs the output's memory.
    """
    for s in op.body:
        read = s.value
        if not isinstance(read, Read) or read.operand != name or read.pad is not None or read.indices != bare(s.indices):
            continue
        output = next((o for o in op.outputs if o.name == s.target), None)
        held = op.operand(name)
        if output is not None and (output.type, output.dims) == (held.type, held.dims):
            return output.name
    return None


def verify_by_points(op: Op, program: Program) -> None:
    """Check that the stages of a loop over steps that is by points read, of what the loop computes, their own points alone.

    Raises:
        VerifyError: with the stage and what it reads.
    """
    parts = {t.name: t for t in program.temporaries if t.part_of is not None}
    for loop in (x for x in program.steps if x.by_points):
        stages = program.stages[loop.first : loop.end]
        nests = [s for s in stages if isinstance(s, NestStage)]
        if len(nests) != len(stages) or not _has_units_alike(nests):
            raise VerifyError(f"{stages[0].name} and the stages of its steps do not compute rows, cut alike")
        if len({op.operand(s.assign.target).dims for s in nests}) != 1:
            raise VerifyError(f"{stages[0].name} and the stages of its steps do not have the same points")
        made = {parts[s.assign.target].part_of: parts[s.assign.target].axis for s in nests}
        for stage in nests:
            for r in _strays(op, stage.assign, made, loop):
                raise VerifyError(f"{stage.name} reads {r.operand} at other points than its own")


def _strays(op: Op, s: Assign, made: Mapping[str | None, int], loop: StepLoop) -> list[Read]:
    own, now = bare(s.indices), Affine.of(Dim(loop.index))

    def is_own(access: Access) -> bool:
        read, axis = access.read, made[access.read.operand]
        at = place(read.indices[axis])
        if (*read.indices[:axis], *read.indices[axis + 1 :]) != own or at is None:
            return False
        return access.is_most(now - at if loop.falls else at - now, 0)

    return [a.read for a in accesses(op, s.value) if a.read.operand in made and not is_own(a)]
