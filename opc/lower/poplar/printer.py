"""Programs for Poplar as text: what `opc show --loops --target poplar` prints, from which the C++ is printed too."""

from __future__ import annotations

from collections.abc import Iterator

from opc.ir.affine import Affine, Index
from opc.ir.expr import Expr
from opc.ir.printer import format_assign, format_expr
from opc.loops.printer import format_kernel
from opc.lower.loop_ir import IndexLoop, Loop
from opc.lower.poplar.nodes import (
    Along,
    AxisRole,
    Case,
    Codelet,
    Convolution,
    Let,
    Map,
    Picked,
    PoplarProgram,
    Product,
    Reduce,
    Refuse,
    Step,
    Store,
    Taken,
    TensorStage,
    Window,
)
from opc.lower.printer import format_values


def format_poplar(program: PoplarProgram) -> str:
    """Return a program, each case of its attributes by itself, ending in a line break."""
    return "\n".join("\n".join([*_case(program.name, case)]) + "\n" for case in program.cases)


def _case(name: str, case: Case) -> Iterator[str]:
    values = format_values(case.case)
    yield f"program {name} for Poplar{f' when {values}' if values else ''}"
    yield from (f"  temporary {t.name}: {t.type}" for t in case.tensors if not t.output)
    for stage in case.stages:
        yield from _codelet(stage) if isinstance(stage, Codelet) else _tensors(stage)


def _tensors(stage: TensorStage) -> Iterator[str]:
    yield f"  tensors over [{', '.join(map(str, stage.loops))}]: {stage.name}"
    for v in stage.views:
        name = "" if v.name == v.tensor else f" as {v.name}"
        yield f"    view {v.tensor}[{_axes(stage, v.axes)}]{name}"
    for name, place in stage.indices:
        yield f"    index {name} of {stage.loops[place]}"
    yield from (f"    {_step(stage, s)}" for s in stage.steps)


def _axes(stage: TensorStage, axes: tuple[Along | Picked, ...]) -> str:
    texts = []
    for a in axes:
        if isinstance(a, Picked):
            texts.append(str(a.index))
            continue
        loop = stage.loops[a.loop]
        if a.taken is not None:
            texts.append(f"{_taken(loop, a.taken)} of {loop}")
        elif a.own is None:
            texts.append(f"{loop}{' in part' if a.part else ''}")
        else:
            texts.append(f"{a.own} along {loop}" if isinstance(a.own, Affine) else str(a.own))
    return ", ".join(texts)


def _taken(loop: Loop, t: Taken) -> Affine:
    assert isinstance(loop, IndexLoop), "single axes are taken from"
    inside = t.step * Affine.of(Index(loop.index)) + t.offset
    return inside // t.divisor


def _step(stage: TensorStage, s: Step) -> str:
    needed = f"  if {' or '.join(s.needed)} wanted" if s.needed else ""
    match s:
        case Let():
            text = f"let {s.name}: {s.type} = {_value(s.value)}"
        case Map():
            text = f"map {s.name}: {s.type} = {_value(s.value)}"
        case Reduce():
            over = ", ".join(str(stage.loops[n]) for n in s.over)
            text = f"reduce {s.name}: {s.type} = {s.kind}[{over}]({_value(s.value)})"
        case Product():
            given = "".join(f" if {format_expr(c)}" for c in s.given)
            kept = _axes(stage, s.kept)
            over = ", ".join(str(stage.loops[n]) for n in s.over)
            text = f"matMul {s.name}[{kept}]: {s.type} = sum[{over}]({_value(s.left)} * {_value(s.right)}){given}"
        case Convolution():
            given = "".join(f" if {format_expr(c)}" for c in s.given)
            groups = "" if s.groups[0] == s.groups[1] else f" in {s.groups[0]} / ({s.groups[1]}) groups"
            windows = ", ".join(map(_window, s.windows))
            factors = f"{s.input}[{_roles(s.input_axes)}], {s.kernel}[{_roles(s.kernel_axes)}]"
            text = f"convolution {s.name}[{_roles(s.result)}]: {s.type} = {factors} at {windows}{groups}{given}"
        case Store():
            over = ", ".join(str(stage.loops[n]) for n in s.over)
            reduction = f"{s.reduction} over points of [{over}] of " if s.reduction else ""
            text = f"store {s.target.tensor}[{_axes(stage, s.target.axes)}]: {s.type} = {reduction}{_value(s.value)}"
        case Refuse():
            empty = " or ".join(f"{stage.loops[n]} is empty" for n in s.empty)
            text = f"refuse where {empty} and {' or '.join(s.users)} has elements: {s.text}"
    return text + needed


def _roles(axes: tuple[AxisRole, ...]) -> str:
    return ", ".join(f"{'grouped ' if a.grouped else ''}{a.role} {a.place}" for a in axes)


def _window(w: Window) -> str:
    if w.transposed:
        return f"(i - ({w.dilation})*p + {w.offset}) / ({w.step})"
    return f"({w.step})*i + ({w.dilation})*p + {w.offset}{' padded' if w.padded else ''}"


def _value(e: Expr) -> str:
    return format_expr(e).replace("[()]", "")


def _codelet(codelet: Codelet) -> Iterator[str]:
    s = codelet.stage
    needed = f"  if {' or '.join(codelet.needed)} wanted" if codelet.needed else ""
    yield f"  codelet of [{', '.join(f'{i}:{extent}' for i, extent in s.indices)}]: {s.name}{needed}"
    yield f"    {format_assign(s.assign)}"
    if codelet.total is not None:
        yield f"    write temporary {codelet.total}, sum over points"
    yield from (f"    {line}" for line in format_kernel(s.name, s.kernel))
