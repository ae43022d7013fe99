"""Programs of ops that have recurrences: the stages of one step in a serial loop, and those of the rest before and behind it.

A step is an op like any other (`opc.transform.steps`), so its sums are contractions in blocks and its rows are vectorised; the
points of a step are split over threads. Where no point of a step needs another, one parallel loop over the points has that over
the steps inside: see `opc.lower.steps_by_points`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from opc.analysis.needs import outputs_that_need
from opc.ir.affine import Affine
from opc.ir.dtypes import DType
from opc.ir.expr import Expr, GroupRef, Present, Read, reads
from opc.ir.op import Assign, Group, Op, Operand
from opc.ir.recurrence import Recurrence, recurrences, recurrent
from opc.lower.ahead_of_steps import with_sums_ahead
from opc.lower.chosen_steps import with_chosen_steps
from opc.lower.loop_ir import ContractionStage, Program, RowStage, Stage, StageOperand, StepLoop, Temporary
from opc.lower.partition import temporary
from opc.lower.steps_by_points import copy_of, verify_by_points, with_points_apart
from opc.records import replace
from opc.transform.indices import INDEX_NAMES, Namer, bare, index_names, op_names, with_operands
from opc.transform.normalize import prune
from opc.transform.scalar import nothing, select
from opc.transform.steps import Steps, in_segments

Lower = Callable[[Op, bool, bool], tuple[Program, Op]]
"""Returns the stages of an op without recurrences, and what became of it."""


def in_steps(op: Op, lazy: bool, lower: Lower, launched: bool = False) -> tuple[Program, Op]:
    """Return the program of an op with recurrences, and the op that its stages are of.

    Stages that are `launched` read tensors of the call where they lie: all points take a step together, from operands that are
    not copied, and what becomes an output is copied to it.
    """
    op = with_sums_ahead(prune(op, [o.name for o in op.outputs]))
    if not launched:
        op = with_chosen_steps(op)
    whole, nests = (
        (in_segments(op), {}) if launched else with_points_apart(op, lambda apart: in_segments(_with_copies(op, apart), apart))
    )
    needs = outputs_that_need(whole.op)
    order = [o.name for o in op.outputs]
    stages: list[Stage] = []
    temporaries: list[Temporary] = []
    loops: list[StepLoop] = []
    made: dict[str, Operand] = {}
    own: dict[str, Operand] = {}
    # Sums that stages add up on their way: no later segment reads them, or calls one of its own so.
    taken: dict[str, Operand] = {}
    body: list[Assign] = []

    def needed_by(name: str) -> tuple[str, ...]:
        return tuple(o for o in order if o in needs.get(name, ()))

    for t in whole.op.temporaries:
        if needed_by(t.name) and any(t.name in (o.name for o in s.op.outputs) or _holds(s.steps, t.name) for s in whole.segments):
            held = any(_holds(s.steps, t.name) for s in whole.segments)
            becomes = copy_of(whole.op, t.name) if held and not launched else None
            temporaries.append(replace(temporary(t, needed_by(t.name)), becomes=becomes))
    for n, segment in enumerate(whole.segments):
        if n in nests:
            program, lowered = Program(segment.op.name, nests[n], ()), segment.op
        else:
            around = replace(segment.op, inputs=(*segment.op.inputs, *made.values(), *taken.values()))
            program, lowered = lower(around, lazy, False)
        parts = {} if segment.steps is None else dict(segment.steps.parts)
        known = {o.name for o in (*op.outputs, *whole.op.temporaries)}

        def users(names: Iterable[str], parts: dict[str, str] = parts) -> tuple[str, ...]:
            wanted = {o for n in names for o in needed_by(parts.get(n, n))}
            return tuple(o for o in order if o in wanted)

        temporaries += [replace(t, needed_by=users(t.needed_by)) for t in program.temporaries]
        if segment.steps is not None:
            s = segment.steps
            for o, axis in zip(segment.op.outputs, s.axes, strict=True):
                temporaries.append(replace(temporary(o, needed_by(parts[o.name])), part_of=parts[o.name], axis=axis))
            loops.append(StepLoop(s.index, s.extent, s.falls, len(stages), len(stages) + len(program.stages), s.by_points))
        stages += [in_whole(s, op) for s in program.stages]
        body += lowered.body
        made |= {t.name: t for t in (*lowered.temporaries, *lowered.outputs) if t.name not in known}
        named = known | made.keys()
        taken |= {t.name: Operand(t.name, DType.FLOAT32, ()) for t in program.temporaries if t.name not in named}
        # What a segment keeps to itself it may store with its axes in another order.
        own |= {t.name: t for t in lowered.temporaries if t.name in known}
    outputs = {o.name for o in op.outputs}
    declared = {t.name: own.get(t.name, t) for t in (*whole.op.temporaries, *made.values()) if t.name not in outputs}
    # That a step is one of its loop's is known in what is computed there.
    facts = dict.fromkeys(r for s in whole.segments for r in s.op.require)
    lowered_op = replace(op, body=tuple(body), temporaries=tuple(declared.values()), require=tuple(facts), inplace=())
    program = Program(op.name, tuple(stages), tuple(temporaries), steps=tuple(loops))
    verify_by_points(lowered_op, program)
    return program, lowered_op


def _with_copies(op: Op, apart: Collection[Recurrence]) -> Op:
    """Return an op with a temporary for each tensor of the call that a recurrence reads step by step, those `apart` aside.

    A nest copies an operand that is strided, or widens it, whole: at each step that would take time with the square of their
    number. A temporary is contiguous, and in the type it is computed in.
    """
    tensors = {o.name: o for o in (*op.inputs, *op.outputs)}
    stepped: dict[str, None] = {}
    stepping = [r for r in recurrences(op) if r not in apart]
    for recurrence in stepping:
        for name in recurrence.targets:
            s = op.assignments[name]
            index = recurrence.index_of(s)
            for r in reads(s.value):
                along = any(isinstance(i, Affine) and index in i.indices() for i in r.indices)
                if along and r.operand in tensors and r.operand not in recurrent(op):
                    stepped.setdefault(r.operand)
    if not stepped:
        return op
    namer = Namer(op_names(op) | index_names(op))
    copies = {n: replace(tensors[n], name=namer.fresh(f"{n}_copy"), optional=False, doc="") for n in stepped}
    names = {n: o.name for n, o in copies.items()}
    inside = {name for r in stepping for name in r.targets}

    def copy(o: Operand) -> Assign:
        indices = tuple(GroupRef(d.name) if isinstance(d, Group) else namer.fresh(*INDEX_NAMES) for d in o.dims)
        value: Expr = Read(o.name, bare(indices), o.type)
        return Assign(copies[o.name].name, indices, select(Present(o.name), value, nothing(o.type)) if o.optional else value)

    inputs = {o.name for o in op.inputs}
    body = [copy(tensors[n]) for n in copies if n in inputs]
    for s in op.body:
        body.append(s.with_value(with_operands(s.value, names)) if s.target in inside else s)
        if s.target in copies:
            body.append(copy(tensors[s.target]))
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *copies.values()))


def _holds(steps: Steps | None, name: str) -> bool:
    return steps is not None and any(whole == name for _, whole in steps.parts)


def in_whole(stage: Stage, op: Op) -> Stage:
    """Return a stage that was lowered from a part of an op with each operand where it is in the whole one."""
    outputs, inputs = {o.name for o in op.outputs}, {o.name for o in op.inputs}

    def place(o: StageOperand) -> StageOperand:
        return replace(o, kind="output" if o.name in outputs else "input" if o.name in inputs else "temporary")

    def placed(s: RowStage) -> RowStage:
        once = None if s.once is None else placed(s.once)
        return replace(s, operands=tuple(map(place, s.operands)), once=once)

    match stage:
        case RowStage():
            return placed(stage)
        case ContractionStage():
            # The sum itself is no operand of the op.
            first, *rest = stage.epilogue.operands
            epilogue = replace(stage.epilogue, operands=(first, *map(place, rest)))
            return replace(stage, epilogue=epilogue)
        case _:
            return stage
