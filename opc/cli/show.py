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
    from opc.compiler import Compiled
    from opc.ir.op import Family


class KernelTarget(Enum):
    """What a kernel runs on."""

    CPU = "cpu"
    CUDA = "cuda"
    POPLAR = "poplar"


Sizes: TypeAlias = Mapping[str, int]


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
    from opc.spec.files import file_of

    if spec.is_dir():
        raise WrongUse(f"{shown(spec)} is a folder: name one spec file")
    if not file_of(spec).exists():
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

    sizes = family.forward.sizes
    return "\n".join(format_op(op) for op in (family.forward, sizes) if op is not None)


def _onnx(family: Family) -> Iterator[str]:
    """Yield whether the ops can be written in standard ONNX operators, or why not."""
    from opc.emit.onnx.function import NoBody, function_body

    for op in (op for op in family.ops[:2] if not op.opaque):
        body = function_body(op)
        verdict = f"none: {body.reason}" if isinstance(body, NoBody) else "yes"
        yield f"ONNX function body of {op.name}: {verdict}"


def _gradient(family: Family, sizes: Sizes) -> Iterator[str]:
    """Yield the derived ops, and of the gradient its verdict, what it saves and what it costs."""
    from opc.editor.cost_text import costs_text, verdict
    from opc.editor.gradient_text import gradient_text
    from opc.ir.printer import format_op

    if family.backward is None:
        yield f"{family.name} has no gradient"
        return
    yield f"The gradient is {family.gradient_origin}: {verdict(family.backward)}."
    try:
        yield costs_text(family, sizes)
    except ValueError as error:
        raise WrongUse(str(error)) from None
    yield gradient_text(family.backward)
    for op in family.ops[2:]:
        if op is not family.forward.sizes:
            yield format_op(op)


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
