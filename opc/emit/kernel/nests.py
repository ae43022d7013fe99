"""How the entry function of an op describes a loop nest over rows and runs it."""

from __future__ import annotations

from collections.abc import Iterator

from opc.emit.cpp.expressions import compute_types
from opc.emit.cpp.loops import KernelText
from opc.emit.cpp.scalars import CppScalarText
from opc.emit.shapes.cpp import group_member, type_member
from opc.ir.affine import Affine
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak
from opc.ir.expr import Axis, Reduce, walk
from opc.ir.op import Group, Op
from opc.lower.loop_ir import NestStage, ScanPlan, ScatterPlan, VectorPlan


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


def row_nest_lines(op: Op, s: NestStage, text: KernelText, scalar: CppScalarText) -> Iterator[str]:
    """Yield the lines that describe a nest's operands and run it; they set `code`, or return it where it is an error."""
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    yield f"  opc::flat_operand operands[{len(nest.operands)}];"
    yield "  opc::nest_fault fault;"
    yield "  opc::nest_copies copies;"
    yield "  opc::row_nest nest;"
    yield "  opc::start(nest, context, loops.rows, operands, fault);"
    target = nest.declared.dims
    several = len(s.plans) > 1
    if several:
        last = target[-1]
        assert isinstance(last, Group), "the target ends in a group"
        yield f"  nest.alone = opc::count(call.{group_member((last.name, None))}) == 1;"
    inputs, outputs = [i.name for i in op.inputs], [o.name for o in op.outputs]
    for n, name in enumerate(nest.operands):
        declared = text.op.operand(name)
        ranks = [f"call.{group_member((d.name, None))}.rank" if isinstance(d, Group) else "1" for d in declared.dims]
        yield f"  const int32_t axes_{n}[] = {{{', '.join(ranks or ['0'])}}};"
        how = "stored" if name in nest.gathered or n == len(nest.operands) - 1 else "widened"
        units = [str(nest.unit(name, alone)) for alone in ((False, True) if several else (False,))]
        unit = units[0] if len(set(units)) == 1 else f"nest.alone ? {units[1]} : {units[0]}"
        unit = "-1" if n == len(nest.operands) - 1 else unit
        rest = f"{len(ranks)}, axes_{n}, {unit}"
        if name in inputs or name in outputs:
            tensor = f"inputs[{inputs.index(name)}]" if name in inputs else f"outputs[{outputs.index(name)}]"
            yield f"  code = opc::add_flat(nest, copies, {tensor}, opc::passed::{how}, {rest});"
            yield "  if (code != OPC_OK) return code;"
        else:
            yield f"  opc::add_temporary(nest, {name}, {dtype_text(declared.type)}, {len(ranks)}, axes_{n});"
    entries = len(target)
    vector_axis = entries - 1 if s.plans[0].vector_axis is not None else -1
    other = entries - 2 if several and s.plans[-1].vector_axis is not None else -1
    if isinstance(s.plans[0], ScatterPlan):
        yield from _scatter_lines(s, text, scalar)
        return
    if isinstance(s.plans[0], ScanPlan):
        yield from _scan_lines(s, text)
        return
    if any(isinstance(p, VectorPlan) and p.looked_up for p in s.plans):
        yield from _gather_lines(s, text)
    else:
        where = f"nest.alone ? {other} : {vector_axis}" if several else str(vector_axis)
        yield f"  opc::set_target(nest, operands[{len(nest.operands) - 1}], {entries}, {where});"
    if text.kernel.channel is not None:
        yield f"  opc::keep_channels(nest, {text.kernel.channel}{', true' if text.kernel.short_rows else ''});"
    index = "".join(f"[index_{t.name}]" for t in text.types if len(compute_types(t)) > 1)
    sums = "" if s.sum is None else f", {s.sum}.data"
    yield f"  code = opc::run{'_sums' if sums else ''}(nest, loops.{s.name}{index}, &arguments, {steps(s, scalar)}{sums});"


def _gather_lines(s: NestStage, text: KernelText) -> Iterator[str]:
    """Yield the lines that set the target of a nest whose lanes find indices."""
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    entries, target = len(nest.declared.dims), len(nest.operands) - 1
    for n, plan in enumerate(s.plans):
        assert isinstance(plan, VectorPlan), "all plans of a nest are of one kind"
        condition = ("if (nest.alone) " if n == 1 else "if (!nest.alone) ") if len(s.plans) > 1 else ""
        yield f"  {condition}{{"
        if plan.looked_up:
            outer = [plan.statement.indices.index(i) for i in plan.outer]
            yield f"    const int32_t outer[] = {{{', '.join(map(str, outer or [0]))}}};"
            counts = f"{entries}, {len(outer)}, outer, {len(plan.inner)}, {len(plan.statement.indices) - 1}"
            yield f"    opc::set_gather_target(nest, operands[{target}], {counts});"
        else:
            vector_axis = len(plan.statement.indices) - 1 if plan.vector_axis is not None else -1
            yield f"    opc::set_target(nest, operands[{target}], {entries}, {vector_axis});"
        yield "  }"


def _scatter_lines(s: NestStage, text: KernelText, scalar: CppScalarText) -> Iterator[str]:
    """Yield the lines that run a scatter."""
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    index = "".join(f"[index_{t.name}]" for t in text.types if len(compute_types(t)) > 1)
    target = len(nest.operands) - 1
    for n, plan in enumerate(s.plans):
        assert isinstance(plan, ScatterPlan), "all plans of a scatter are scatters"
        entries = plan.statement.indices
        scatter_indices = [entries.index(i) for i, _ in plan.scatter_indices]
        outer = [k for k, i in enumerate(entries) if i != plan.vector_axis and k not in scatter_indices]
        vector_axis = -1 if plan.vector_axis is None else len(entries) - 1
        lists = [f"  const int32_t outer[] = {{{', '.join(map(str, outer or [0]))}}};"]
        lists.append(f"  const int32_t indices[] = {{{', '.join(map(str, scatter_indices))}}};")
        counts = f"{len(nest.declared.dims)}, {len(outer)}, outer, {len(scatter_indices)}, indices, {vector_axis}"
        call = f"opc::set_scatter(nest, operands[{target}], {counts}, {steps(s, scalar)});"
        if len(s.plans) > 1:
            yield "  if (nest.alone) {" if n == 1 else "  if (!nest.alone) {"
        else:
            yield "  {"
        yield from (f"  {line}" for line in lists)
        yield f"    {call}"
        if plan.shared:
            extents = [f"({scalar.integer(a.extent, bare=True)}).value" for a in plan.sum.axes if isinstance(a, Axis)]
            yield f"    const int64_t terms[] = {{{', '.join(extents)}}};"
            yield f"    opc::share_terms(nest, {len(extents)}, terms);"
        yield "  }"
    yield f"  code = opc::run_scatter(nest, copies, loops.{s.name}{index}, &arguments);"


def _scan_lines(s: NestStage, text: KernelText) -> Iterator[str]:
    """Yield the lines that run a scan."""
    nest = text.nest
    assert nest is not None, "a nest stage has the text of a nest"
    index = "".join(f"[index_{t.name}]" for t in text.types if len(compute_types(t)) > 1)
    target = len(nest.operands) - 1
    for n, plan in enumerate(s.plans):
        assert isinstance(plan, ScanPlan), "all plans of a scan are scans"
        entries = plan.statement.indices
        outer = [k for k, i in enumerate(entries) if i not in (plan.vector_axis, plan.index)]
        vector_axis = -1 if plan.vector_axis is None else entries.index(plan.vector_axis)
        condition = ("if (nest.alone) " if n == 1 else "if (!nest.alone) ") if len(s.plans) > 1 else ""
        yield f"  {condition}{{"
        yield f"    const int32_t outer[] = {{{', '.join(map(str, outer or [0]))}}};"
        counts = f"{len(nest.declared.dims)}, {len(outer)}, outer, {entries.index(plan.index)}, {vector_axis}"
        yield f"    opc::set_scan(nest, operands[{target}], {counts});"
        yield "  }"
    yield f"  code = opc::run_scan(nest, copies, loops.{s.name}{index}, &arguments);"


def steps(s: NestStage, scalar: CppScalarText) -> str:
    """Return the number of elements that go into one point of the target."""
    found = []
    for e in walk(s.plans[0].statement.value):
        if isinstance(e, Reduce):
            extents = [a.extent for a in e.axes if isinstance(a, Axis)]
            size = Affine.of(1)
            for extent in extents:
                size = size * (extent if not extent.indices() else 16)
            found.append(size)
    total = Affine.of(1)
    for size in found:
        total = total + size
    return f"({scalar.integer(total, bare=True)}).value"
