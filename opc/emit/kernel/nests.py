"""How the entry function of an op describes a loop nest over rows and runs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from opc.emit.cpp.expressions import compute_types
from opc.emit.cpp.loops import KernelText
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.shapes.cpp import group_member, type_member
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak
from opc.ir.expr import Axis, Reduce, walk
from opc.ir.op import Group, Op
from opc.lower.build.context import Nest
from opc.lower.loop_ir import NestStage, Temporary
from opc.lower.nest_plans import OrderPlan, ScanPlan, ScatterPlan, VectorPlan


def dtype_text(t: ValueType) -> str:
    """Return the C++ expression of the dtype values of type `t` are computed in, for a call."""
    match t:
        case Weak.INT:
            return "opc::dtype_int64"
        case Weak.FLOAT:
            return "opc::dtype_float64"
        case DType():
            return f"opc::dtype_{t.compute}"
        case TypeVar():
            return f"opc::compute_dtype(call.{type_member(t.name)}.element)"
        case Acc(of=DType() as of):
            return f"opc::dtype_{of.accumulator}"
        case Acc(of=of):
            return f"opc::accumulator_dtype(call.{type_member(of.name)}.element)"


def tensor_text(op: Op, name: str) -> str | None:
    """Return the C++ expression of an operand's tensor, None for a temporary, which has none."""
    for list_name, operands in (("inputs", op.inputs), ("outputs", op.outputs)):
        for n, operand in enumerate(operands):
            if operand.name == name:
                return f"{list_name}[{n}]"
    return None


def memory_text(name: str) -> str:
    """Return the C++ name of a temporary's memory. No other variable of an entry function begins so, whatever temporaries are
    called."""
    return f"memory_{name}"


def row_nest_lines(op: Op, s: NestStage, text: KernelText, scalar: CppScalarText) -> Iterator[str]:
    """Yield the lines that describe a nest's operands and run it; they set `code`, or return it where it is an error."""
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    yield f"  opc::flat_operand operands[{len(nest.operands)}];"
    yield "  opc::nest_fault fault;"
    yield "  opc::nest_copies copies;"
    yield "  opc::row_nest nest;"
    yield "  opc::start(nest, context, loops.rows, operands, fault);"
    yield from _operand_lines(op, s, text)
    index = _copy_index(text)
    if all(isinstance(p, VectorPlan) and not p.looked_up for p in s.plans):
        yield _rows_line(s, nest)
    else:
        plans: Sequence[VectorPlan | ScatterPlan | ScanPlan | OrderPlan] = s.plans
        for n, plan in enumerate(plans):
            condition = ("if (nest.alone) " if n == 1 else "if (!nest.alone) ") if len(plans) > 1 else ""
            yield f"  {condition}{{"
            yield from (f"    {line}" for line in _target_lines(s, plan, nest, scalar))
            yield "  }"
    if isinstance(s.plans[0], ScatterPlan | ScanPlan):
        kind = "scatter" if isinstance(s.plans[0], ScatterPlan) else "scan"
        yield f"  code = opc::run_{kind}(nest, copies, loops.{s.name}{index}, &arguments);"
        return
    if isinstance(s.plans[0], OrderPlan):
        elements = f"({scalar.integer(s.plans[0].ordering.extent, bare=True)}).value"
        yield f"  code = opc::run_order(nest, loops.{s.name}{index}, &arguments, {elements});"
        return
    yield from _channel_lines(text)
    sums = "" if s.sum is None else f", {memory_text(s.sum)}.data"
    yield f"  code = opc::run{'_sums' if sums else ''}(nest, loops.{s.name}{index}, &arguments, {steps(s, scalar)}{sums});"


def step_nest_lines(op: Op, s: NestStage, text: KernelText, scalar: CppScalarText, part: Temporary, step: str) -> Iterator[str]:
    """Yield the lines that describe a nest of a loop over steps, each of which computes the present one of `part`.

    They stand outside of the loop over the size `step`.
    """
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    function = f"loops.{s.name}{_copy_index(text)}"
    yield f"  opc::row_nest &nest = loop.next(context, loops.rows, {function}, {len(nest.operands)}, {steps(s, scalar, step)});"
    yield "  const opc::flat_operand *operands = nest.operands;"
    yield from _operand_lines(op, s, text, part)
    yield _rows_line(s, nest)
    yield from _channel_lines(text)


def _copy_index(text: KernelText) -> str:
    return "".join(f"[index_{t.name}]" for t in text.types if len(compute_types(t)) > 1)


def _operand_lines(op: Op, s: NestStage, text: KernelText, part: Temporary | None = None) -> Iterator[str]:
    """Yield the lines that add a nest's operands, the target last: the present step of a temporary if that is a `part`."""
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    several = len(s.plans) > 1
    if several:
        last = nest.declared.dims[-1]
        assert isinstance(last, Group), "the target ends in a group"
        yield f"  nest.alone = opc::count(call.{group_member((last.name, None))}) == 1;"
    copies = "copies" if part is None else "loop.copies[loop.count - 1]"
    for n, name in enumerate(nest.operands):
        declared = text.op.operand(name)
        ranks = [f"call.{group_member((d.name, None))}.rank" if isinstance(d, Group) else "1" for d in declared.dims]
        yield f"  const int32_t axes_{n}[] = {{{', '.join(ranks or ['0'])}}};"
        how = "stored" if name in nest.gathered or n == len(nest.operands) - 1 else "widened"
        units = [str(nest.unit(name, alone)) for alone in ((False, True) if several else (False,))]
        unit = units[0] if len(set(units)) == 1 else f"nest.alone ? {units[1]} : {units[0]}"
        anyhow = n == len(nest.operands) - 1 or any(isinstance(p, OrderPlan) for p in s.plans)
        unit = "-1" if anyhow else unit
        rest = f"{len(ranks)}, axes_{n}, {unit}"
        if (tensor := tensor_text(op, name)) is not None:
            yield f"  code = opc::add_flat(nest, {copies}, {tensor}, opc::passed::{how}, {rest});"
            yield "  if (code != OPC_OK) return code;"
        elif part is not None and part.part_of is not None and name == part.name:
            before = " + ".join(ranks[: part.axis]) or "0"
            whole, kind = memory_text(part.part_of), dtype_text(declared.type)
            yield f"  opc::add_step(nest, {whole}, {kind}, {len(ranks)}, axes_{n}, {before});"
        else:
            kind = dtype_text(declared.type)
            yield f"  opc::add_temporary(nest, {memory_text(name)}, {kind}, {len(ranks)}, axes_{n});"


def _rows_line(s: NestStage, nest: Nest) -> str:
    """Return the line that sets the target of a nest over rows."""
    several, (first, *_) = len(s.plans) > 1, s.plans
    entries = len(nest.declared.dims)
    vector_axis = entries - 1 if first.vector_axis is not None else -1
    other = entries - 2 if several and s.plans[-1].vector_axis is not None else -1
    where = f"nest.alone ? {other} : {vector_axis}" if several else str(vector_axis)
    return f"  opc::set_target(nest, operands[{len(nest.operands) - 1}], {entries}, {where});"


def _channel_lines(text: KernelText) -> Iterator[str]:
    if text.kernel.channel is not None:
        yield f"  opc::keep_channels(nest, {text.kernel.channel}{', true' if text.kernel.short_rows else ''});"


def _target_lines(
    s: NestStage, plan: VectorPlan | ScatterPlan | ScanPlan | OrderPlan, nest: Nest, scalar: CppScalarText
) -> Iterator[str]:
    """Yield the lines that set the target of one plan of a nest: which entries are outer loops, and what the others are."""
    entries = plan.statement.indices
    vector_axis = -1 if plan.vector_axis is None else entries.index(plan.vector_axis)
    first = f"nest, operands[{len(nest.operands) - 1}], {len(nest.declared.dims)}"
    if isinstance(plan, VectorPlan) and not plan.looked_up:
        yield f"opc::set_target({first}, {vector_axis});"
        return
    named = [entries.index(i) for i in plan.named] if isinstance(plan, ScatterPlan) else []
    match plan:
        case VectorPlan():
            outer = [entries.index(i) for i in plan.outer]
        case ScatterPlan():
            outer = [k for k, i in enumerate(entries) if i != plan.vector_axis and k not in named]
        case ScanPlan() | OrderPlan():
            outer = [k for k, i in enumerate(entries) if i not in (plan.vector_axis, plan.index)]
    yield f"const int32_t outer[] = {{{', '.join(map(str, outer or [0]))}}};"
    first += f", {len(outer)}, outer"
    match plan:
        case VectorPlan():
            yield f"opc::set_gather_target({first}, {len(plan.inner)}, {len(entries) - 1});"
        case OrderPlan():
            along = -1 if plan.index is None else entries.index(plan.index)
            yield f"opc::set_order({first}, {along}, {vector_axis});"
        case ScanPlan():
            yield f"opc::set_scan({first}, {entries.index(plan.index)}, {vector_axis});"
        case ScatterPlan():
            yield f"const int32_t indices[] = {{{', '.join(map(str, named))}}};"
            yield f"opc::set_scatter({first}, {len(named)}, indices, {vector_axis}, {steps(s, scalar)}, {plan.parts});"
            if not plan.starts_from_zero:
                yield "nest.starts_parts = true;"
            if plan.shared:
                extents = [f"({scalar.integer(a.extent, bare=True)}).value" for a in plan.reduction.axes if isinstance(a, Axis)]
                yield f"const int64_t terms[] = {{{', '.join(extents)}}};"
                yield f"opc::share_terms(nest, {len(extents)}, terms);"


def steps(s: NestStage, scalar: CppScalarText, varying: str = "") -> str:
    """Return about how many elements go into one point of the target; `varying` is a size that is not known there."""
    found = []
    for e in walk(s.plans[0].statement.value):
        if isinstance(e, Reduce):
            extents = e.extents.values()
            size = Affine.of(1)
            for extent in extents:
                varies = extent.indices() or Dim(varying) in extent.atoms()
                size = size * (16 if varies else extent)
            found.append(size)
    total = Affine.of(1)
    for size in found:
        total = total + size
    return f"({scalar.integer(total, bare=True)}).value"
