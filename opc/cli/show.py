"""`opc show`: the stages of a spec as text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from opc.cli import completion
from opc.cli.console import OK, WrongUse, say, shown
from opc.cli.schedule import Schedules, check_stages, rescheduled, stage_names

if TYPE_CHECKING:
    from opc.analysis.shapes.inference import ShapeEnv
    from opc.compiler import Compiled
    from opc.ir.op import Family, Op


class KernelTarget(Enum):
    """What a kernel runs on."""

    CPU = "cpu"
    CUDA = "cuda"
    POPLAR = "poplar"


Sizes: TypeAlias = Mapping[str, int]

_SAMPLE = 1024
"""Size of every axis in the calls whose cost is shown, unless it is given."""


def show(
    spec: Annotated[
        Path, typer.Argument(metavar="SPEC", help="The spec file.", show_default=False, autocompletion=completion.specs)
    ],
    ir: Annotated[bool, typer.Option("--ir", help="The typed op. This is what is shown by default.")] = False,
    gradient: Annotated[bool, typer.Option("--gradient", help="The derived ops, what they save and cost.")] = False,
    loops: Annotated[bool, typer.Option("--loops", help="The loops the kernel runs.")] = False,
    target: Annotated[KernelTarget, typer.Option("--target", help="Whose loops --loops and --c show.")] = KernelTarget.CPU,
    schedule: Schedules = None,
    sharding: Annotated[bool, typer.Option("--sharding", help="How the op may be spread over devices.")] = False,
    c: Annotated[bool, typer.Option("--c", help="The kernel's C++.")] = False,
    size: Annotated[
        list[str] | None, typer.Option("--size", help="A size in the costs of --gradient, as N=8; may be repeated.")
    ] = None,
) -> int:
    """Show what opc makes of a spec."""
    from opc.compiler import Stage, compile_spec

    if spec.is_dir():
        raise WrongUse(f"{shown(spec)} is a folder: name one spec file")
    if not spec.exists():
        raise WrongUse(f"there is no file {shown(spec)}")
    if schedule and not (loops or c):
        raise WrongUse("--schedule says how loops are made, which --loops and --c show")
    with rescheduled(schedule or ()) as changes:
        compiled = compile_spec(spec, to=Stage.FILES if c else Stage.PROGRAMS if loops else Stage.FAMILY)
        family = compiled.family
        check_stages(changes, stage_names(compiled))
        sizes = _sizes(family, size or ())
        sections = []
        if ir or not (gradient or loops or c or sharding):
            sections += [_op(family), *_onnx(family)]
        if gradient:
            sections += _gradient(family, sizes)
        if sharding:
            sections += _sharding(family)
        if loops:
            shown_loops = {KernelTarget.CPU: _loops, KernelTarget.CUDA: _cuda_loops, KernelTarget.POPLAR: _poplar_loops}
            sections += shown_loops[target](compiled)
        if c and target is KernelTarget.CPU:
            sections += (f"// {path}\n{text}" for path, text in compiled.package.files.items() if path.startswith("kernel/"))
        elif c:
            sections += _cuda(family) if target is KernelTarget.CUDA else _poplar(family)
        text = "\n".join(sections).rstrip("\n")
    say(text)
    return OK


def _sizes(family: Family, texts: Sequence[str]) -> Sizes:
    """Return the sizes and int attributes that texts such as `N=8` name."""
    from opc.ir.affine import Affine, Dim
    from opc.ir.op import AttributeKind

    op = family.forward
    dims = {d.single.name for o in op.inputs for d in o.dims if isinstance(d, Affine) and isinstance(d.single, Dim)}
    known = dims | {a.name for a in op.attributes if a.kind is AttributeKind.INT and a.length is None}
    sizes: dict[str, int] = {}
    for text in texts:
        name, _, value = text.partition("=")
        if name not in known:
            raise WrongUse(
                f"--size {text}: {family.name} has no size or int attribute '{name}'; it has {', '.join(sorted(known))}"
            )
        if not value.isdecimal():
            raise WrongUse(f"--size {text}: write a whole number, as in {name}=8")
        sizes[name] = int(value)
    return sizes


def _op(family: Family) -> str:
    from opc.ir.printer import format_op

    return format_op(family.forward)


def _onnx(family: Family) -> Iterator[str]:
    """Yield whether the ops can be written in standard ONNX operators, or why not."""
    from opc.emit.onnx.function import NoBody, function_body

    for op in (op for op in family.ops[:2] if not op.opaque):
        body = function_body(op)
        verdict = f"none: {body.reason}" if isinstance(body, NoBody) else "yes"
        yield f"ONNX function body of {op.name}: {verdict}"


def _gradient(family: Family, sizes: Sizes) -> Iterator[str]:
    """Yield the derived ops, and of the gradient its verdict, what it saves and what it costs."""
    from opc.editor.gradient_text import gradient_text
    from opc.ir.printer import format_op

    if family.backward is None:
        yield f"{family.name} has no gradient"
        return
    yield f"The gradient is {'given by the spec' if family.explicit_backward else 'derived'}: {_verdict(family.backward)}."
    yield _costs(family, sizes)
    yield gradient_text(family.backward)
    for op in family.ops[2:]:
        yield format_op(op)


def _verdict(op: Op) -> str:
    """Return whether an op gathers or scatters, and whether it adds in a fixed order."""
    from opc.analysis.cost import scatters
    from opc.lower.loop_ir import NestStage, ScatterPlan
    from opc.lower.lower import lower

    found = scatters(op)
    if op.opaque or not found:
        return "it gathers only, and is deterministic"
    targets = ", ".join(dict.fromkeys(found))
    if any(
        isinstance(p, ScatterPlan) and p.shared
        for v in lower(op)
        for s in v.program.stages
        if isinstance(s, NestStage)
        for p in s.plans
    ):
        return f"it scatters into {targets}, by atomic additions in no fixed order"
    return f"it scatters into {targets}, in a fixed order, so it is deterministic"


def _costs(family: Family, sizes: Sizes) -> str:
    """Return what is saved between forward and backward, and what every op of the family costs."""
    from opc.analysis.cost import saved

    lines = []
    if family.backward is not None:
        kept = [f"{role.value} {name}" for name, role, _ in saved(family.backward)]
        lines.append(f"Saved for the gradient: {', '.join(kept) or 'nothing'}.")
    given = "".join(f"{name} = {value}, " for name, value in sizes.items())
    lines.append(f"Cost in float32, with {given}{_SAMPLE} along every {'other ' if sizes else ''}axis:")
    for op in family.ops:
        lines += _cost(op, sizes)
        if op is family.forward and not op.opaque:
            sizes = {**_call(op, sizes).dims, **sizes}
    return "\n".join(lines) + "\n"


def _cost(op: Op, sizes: Sizes) -> Iterator[str]:
    if op.opaque:
        yield f"  {op.name}: native code, whose operations nobody counts"
        return
    from opc.analysis.cost import cost
    from opc.ir.dtypes import DType

    binding = {t.name: DType.FLOAT32 if DType.FLOAT32 in t.dtypes else t.dtypes[0] for t in op.types}
    found = cost(op, _call(op, sizes), binding)
    yield f"  {op.name}: {_count(found.flops)}FLOP, {_count(found.bytes)}B, {found.intensity:.2g} FLOP/B"
    yield f"    FLOP: {found.work}"
    yield f"    bytes: {found.traffic}"


def _call(op: Op, sizes: Sizes) -> ShapeEnv:
    """Return a call of the op with these sizes and int attributes."""
    from opc.analysis.shapes.attributes import ShapeError
    from opc.analysis.shapes.inference import infer
    from opc.analysis.shapes.samples import sample

    attributes = {a.name: sizes[a.name] for a in op.attributes if a.name in sizes}
    try:
        shapes, given = sample(op, (_SAMPLE,), (_SAMPLE,), attributes=attributes, known=sizes)
        return infer(op, shapes, given)
    except ShapeError as error:
        raise WrongUse(f"{op.name} refuses these sizes: {error}") from None


def _count(number: int) -> str:
    """Return a number with its decimal prefix: `1.05 M`."""
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g} {prefix}"
    return f"{number} "


def _sharding(family: Family) -> Iterator[str]:
    """Yield how the op and its gradient may be spread over devices."""
    from opc.analysis.sharding import format_shardings

    yield from (format_shardings(op) for op in family.ops[:2])


def _loops(compiled: Compiled) -> Iterator[str]:
    from opc.lower.printer import format_variant

    family = compiled.family
    if (native := family.native_for("cpp")) is not None:
        yield f"program {family.name}\n  native C++ code of {family.source_name}:{native.code[0].line}\n"
    yield from (format_variant(variant, loops=True) for variants in compiled.programs.values() for variant in variants)
    if (aten := family.native_for("torch")) is not None:
        yield f"program {family.name} on torch\n  native code on at::Tensor of {family.source_name}:{aten.code[0].line}\n"


def _cuda_loops(compiled: Compiled) -> Iterator[str]:
    """Yield the loops of each stage on a device, or why a family has none."""
    from opc.emit.cuda.files import refused
    from opc.loops.printer import format_kernel
    from opc.lower.cuda.kernels import cuda_kernel
    from opc.lower.cuda.stages import device_programs

    if reasons := refused(compiled.family):
        yield from (f"CUDA can't carry {compiled.family.name}: {reason.message}\n" for reason in reasons)
        return
    for variant in (v for op in compiled.family.ops for v in device_programs(op)):
        for stage in variant.program.stages:
            kernel = cuda_kernel(variant.case.op, stage)
            yield "\n".join([f"schedule: {kernel.schedule}", *format_kernel(stage.name, kernel)]) + "\n"


def _cuda(family: Family) -> Iterator[str]:
    """Yield the files of a family's kernels on a device, or why there are none."""
    from opc.emit.cuda.files import cuda_files, refused

    if reasons := refused(family):
        yield from (f"// CUDA can't carry {family.name}: {reason.message}" for reason in reasons)
        return
    yield from (f"// {path}\n{text}" for path, text in cuda_files(family).items())


def _poplar_loops(compiled: Compiled) -> Iterator[str]:
    """Yield the steps on tensors and the codelets of each op that reverse mode reaches, or why Poplar can't compute it."""
    from opc.emit.poplar.files import reached, refused
    from opc.lower.poplar.lower import poplar_program
    from opc.lower.poplar.printer import format_poplar

    if reasons := refused(compiled.family):
        yield from (f"Poplar can't carry {compiled.family.name}: {reason.message}" for reason in reasons)
        return
    yield from (format_poplar(poplar_program(op)) for op in reached(compiled.family))


def _poplar(family: Family) -> Iterator[str]:
    """Yield the files of `poplar/`, or why there are none."""
    from opc import config
    from opc.emit.poplar.files import poplar_files, refused

    if reasons := refused(family):
        yield from (f"// Poplar can't carry {family.name}: {reason.message}" for reason in reasons)
        return
    yield from (f"// {path}\n{text}" for path, text in poplar_files(family, sdk=config.load().sdk).items())
