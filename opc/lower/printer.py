"""The loop IR as text: what `opc show --loops` prints and golden tests of lowering compare."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.arrangement import arrangement
from opc.ir.dtypes import is_floating
from opc.ir.expr import Axis
from opc.ir.op import Op
from opc.ir.printer import format_assign, format_dims, format_expr
from opc.loops.nodes import Kernel
from opc.loops.printer import format_kernel
from opc.lower.build.stage import stage_kernel
from opc.lower.contractions.factors import AxisIndex, Factor
from opc.lower.loop_ir import (
    Action,
    ContractionStage,
    GroupLoop,
    NestStage,
    Pass,
    Program,
    RowAccumulate,
    RowBuffer,
    RowLet,
    RowStage,
    StageOperand,
    Temporary,
)
from opc.lower.lower import SpecialisedProgram
from opc.lower.specialise import Among, Equal, Specialisation, Value


def format_variant(variant: SpecialisedProgram, loops: bool = False) -> str:
    """Return the program of one case of attribute values and, with `loops`, its loops, ending in a line break."""
    values = format_values(variant.case)
    return format_program(variant.case.op, variant.program, f" when {values}" if values else "", loops)


def format_values(case: Specialisation) -> str:
    """Return what holds in a case: values of attributes, what is empty, and where axes lie; empty where it is the only one."""
    found = [_value(case, name, value) for name, value in case.values]
    found += [" or ".join(f"{extent} is empty" for extent in case.empty)] if case.empty else []
    how = arrangement(case.op)
    where = "across memory or apart" if case.apart else "across memory"
    found += [f"{how.axes} lie {where}"] if case.across and how is not None else []
    found += [str(sizes) for sizes in case.pays]
    return " and ".join(found)


def _value(case: Specialisation, name: str, value: Value) -> str:
    if isinstance(value, Equal | Among):
        return f"{name} {value}"
    if isinstance(value, bool):
        return name if value else f"not {name}"
    return f"{name} == {case.op.attribute(name).values[value]!r}"


def format_program(op: Op, program: Program, when: str = "", loops: bool = False) -> str:
    """Return a program, one pass or action a line, and with `loops` what the C++ is printed from, ending in a line break."""
    lines = [f"program {program.name}{when}"]
    if program.schedule.steps:
        lines.append(f"  schedule: {program.schedule}")
    if (rows := program.fused) is not None:
        before = rows.leading if rows.group is None else (str(GroupLoop(rows.group)),)
        of = f" of each point of {', '.join(before)}" if before else ""
        lines.append(f"  for each block of rows along {rows.dim}, from {rows.first} on,{of}:")
    if (columns := program.columns) is not None:
        names = (*columns.finite, *columns.after)
        finite = f", if {' and '.join(names)} {'is' if len(names) == 1 else 'are'} finite" if names else ""
        lines.append(f"  only the first {columns.count} points along {columns.dim}{finite}")
    lines += [f"  temporary {t.name}: {t.type}{_loops(t.loops)}{_memory(t)}{_when(op, t)}" for t in program.temporaries]
    around = {n: loop for loop in program.steps for n in range(loop.first, loop.end)}
    for n, stage in enumerate(program.stages):
        kernel = stage_kernel(op, stage)
        match stage:
            case RowStage():
                text = list(_rows(stage))
            case ContractionStage():
                text = list(_contraction(stage))
            case _:
                text = list(_nest(stage, kernel))
        if (calls := program.when.get(stage.name)) is not None:
            text.insert(1, f"    when {calls.text(op)}")
        if loops:
            text += [f"    {line}" for line in format_kernel(stage.name, kernel)]
        loop = around.get(n)
        if loop is not None and n == loop.first:
            points = "for a few rows of points at a time, in parallel, " if loop.by_points else ""
            falling = ", falling" if loop.falls else ""
            lines.append(f"  {points}for {loop.index} in 0 .. {loop.extent}{falling}, one after the other:")
        lines += text if loop is None else [f"  {line}" for line in text]
    return "\n".join(lines) + "\n"


def _memory(t: Temporary) -> str:
    if t.host is not None:
        return f", in the memory of {t.host}"
    if t.part_of is not None:
        return f", the present step of {t.part_of}"
    if t.becomes is not None:
        return f", in the memory of {t.becomes} if that has its type"
    return "" if t.stored else ", in no memory"


def _when(op: Op, t: Temporary) -> str:
    return "" if t.when is None else f", when {t.when.text(op)}"


def _loops(loops: tuple[object, ...]) -> str:
    return f"[{', '.join(str(loop) for loop in loops)}]"


def _rows(stage: RowStage) -> Iterator[str]:
    """Yield a row stage: the parallel loop, the operands it walks, and its passes along the row."""
    along = "whole rows" if stage.whole_rows else "rows"
    outer = f" of {_loops(stage.outer)}" if stage.outer else ""
    yield f"  parallel {along}{outer} along {_loops(stage.row)}: {stage.name}"
    yield f"    schedule: {stage.schedule}"
    for operand in stage.operands:
        yield f"    {_operand(operand)}"
    for one in stage.passes:
        yield from _pass(stage, one)
    if stage.once is not None:
        invariant = ", ".join(o.name for o in stage.once.operands if not o.along_row)
        yield f"    or, where rows along {_loops(stage.once.row)} are long, with {invariant} once a row"
        for one in stage.once.passes:
            yield from (f"  {line}" for line in _pass(stage.once, one))


def _operand(o: StageOperand) -> str:
    access = "write" if o.written else "read"
    reduced = f", {o.reduction} over points" if o.reduction else ""
    return f"{access} {o.kind} {o.name}: {o.type}{_loops(o.loops)}{'' if o.along_row else ', once a row'}{reduced}"


def _contraction(stage: ContractionStage) -> Iterator[str]:
    """Yield a contraction: the terms of the sum, and the value that is written."""
    indices = format_dims(tuple(stage.assign.indices)) if stage.assign.indices else "[()]"  # type: ignore[arg-type]  # indices print as dims do
    yield f"  contraction in blocks {indices}: {stage.name}"
    for term in stage.terms:
        axes = ", ".join(f"{a.index} in 0..{a.extent}" if isinstance(a, Axis) else str(a) for a in term.axes)
        left, right = (_factor(stage, f) for f in term.factors)
        when = "".join(f"  if {format_expr(c)}" for c in term.conditions)
        yield f"    for {axes}: {stage.total} += {left} * {right}{when}"
        for f in term.factors:
            guards = [str(i) for i, a in zip(f.read.indices, f.axes) if isinstance(a, AxisIndex) and a.guarded]
            guards += [" + ".join(p.index for p in g.parts) for g in f.guards]
            if guards:
                yield f"      {f.read.operand} guarded in {', '.join(guards)}"
    (store,) = stage.epilogue.passes[0].body
    yield f"    {_action(stage.epilogue, store)}"


def _factor(stage: ContractionStage, f: Factor) -> str:
    read = format_expr(f.read)
    return read if is_floating(f.read.type) or not is_floating(stage.type) else f"cast({stage.type}, {read})"


def _pass(stage: RowStage, one: Pass) -> Iterator[str]:
    for action in one.prologue:
        yield f"    {_action(stage, action)}"
    if one.body:
        yield "    for each point of the row"
        yield from (f"      {_action(stage, action)}" for action in one.body)


def _action(stage: RowStage, action: Action) -> str:
    needed = stage.needed.get(action.name)
    condition = f"  if {' or '.join(sorted(needed))} wanted" if needed and stage.optional else ""
    # Every operand is read at one place only, which its own line above tells.
    value = format_expr(action.value).replace("[()]", "")
    match action:
        case RowLet():
            text = f"let {action.name}: {action.type} = {value}"
        case RowBuffer():
            where = "" if action.host is None else f" in {action.host}"
            text = f"buffer {action.name}{where}: {action.type} = {value}"
        case RowAccumulate():
            text = f"accumulate {action.name}: {action.type} = {action.kind}({value})"
        case _:
            text = f"store {action.name}: {action.type} = {value}"
    return text + condition


def _nest(stage: NestStage, kernel: Kernel) -> Iterator[str]:
    """Yield a loop nest: the points of the target, and the statement."""
    s = stage.assign
    indices = format_dims(tuple(s.indices)) if s.indices else "[()]"  # type: ignore[arg-type]  # indices print as dims do
    yield f"  parallel {indices}: {stage.name}"
    yield f"    schedule: {kernel.schedule}"
    yield f"    {format_assign(s)}"
    if stage.sum is not None:
        yield f"    write temporary {stage.sum}, sum over points"
