"""`opc show`: the stages of a spec as text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from opc.cli_console import OK, WrongUse, say, shown

if TYPE_CHECKING:
    from opc.ir.op import Family, Op

_SAMPLE = 1024
"""Size of every axis in the calls whose cost is shown."""


def show(spec: Path, ir: bool, gradient: bool, loops: bool, c: bool, sharding: bool = False) -> int:
    """Print what was asked for, the typed op when nothing was."""
    from opc.pipeline import load_family

    if spec.is_dir():
        raise WrongUse(f"{shown(spec)} is a folder: name one spec file")
    if not spec.exists():
        raise WrongUse(f"there is no file {shown(spec)}")
    family = load_family(spec)
    sections = []
    if ir or not (gradient or loops or c or sharding):
        sections += [_op(family), *_onnx(family)]
    if gradient:
        sections += _gradient(family)
    if sharding:
        sections += _sharding(family)
    if loops:
        sections += _loops(family)
    if c:
        sections += _kernel(family)
    say("\n".join(sections).rstrip("\n"))
    return OK


def _op(family: Family) -> str:
    from opc.ir.printer import format_op

    return format_op(family.forward)


def _onnx(family: Family) -> Iterator[str]:
    """Yield whether the ops can be written in standard ONNX operators, or why not."""
    from opc.emit.onnx_function import Refusal, function_body

    for op in (op for op in family.ops[:2] if not op.opaque):
        body = function_body(op)
        verdict = f"none: {body.reason}" if isinstance(body, Refusal) else "yes"
        yield f"ONNX function body of {op.name}: {verdict}"


def _gradient(family: Family) -> Iterator[str]:
    """Yield the derived ops, and of the gradient what it saves and costs."""
    from opc.ir.printer import format_op

    if family.backward is None:
        yield f"{family.name} has no gradient"
        return
    yield f"The gradient is {'given by the spec' if family.explicit_backward else 'derived'}."
    yield _costs(family)
    for op in family.ops[1:]:
        yield format_op(op)


def _costs(family: Family) -> str:
    """Return what is saved between forward and backward, and what both cost on a sample."""
    from opc.analysis.cost import saved

    lines = []
    if family.backward is not None:
        kept = [f"{role.value} {name}" for name, role, _ in saved(family.backward)]
        lines.append(f"Saved for the gradient: {', '.join(kept) or 'nothing'}.")
    lines.append(f"Cost in float32 with {_SAMPLE} along every axis:")
    lines += [f"  {_cost(op)}" for op in family.ops]
    return "\n".join(lines) + "\n"


def _cost(op: Op) -> str:
    if op.opaque:
        return f"{op.name}: native code, whose operations nobody counts"
    from opc.analysis.cost import cost
    from opc.analysis.shape import infer
    from opc.analysis.shape_samples import sample
    from opc.ir.dtypes import DType

    binding = {t.name: DType.FLOAT32 if DType.FLOAT32 in t.dtypes else t.dtypes[0] for t in op.types}
    shapes, attributes = sample(op, (_SAMPLE,), (_SAMPLE,))
    found = cost(op, infer(op, shapes, attributes), binding)
    return f"{op.name}: {_count(found.flops)}FLOP, {_count(found.bytes)}B, {found.intensity:.2g} FLOP/B"


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


def _loops(family: Family) -> Iterator[str]:
    from opc.lower.lower import lower
    from opc.lower.printer import format_variant

    native = family.native_for("cpp")
    for op in family.ops:
        if op is family.forward and native is not None:
            yield f"program {op.name}\n  native C++ code of {family.source_name}:{native.code[0].line}\n"
            continue
        yield from (format_variant(variant) for variant in lower(op))
    if (aten := family.native_for("torch")) is not None:
        yield f"program {family.name} on torch\n  native code on at::Tensor of {family.source_name}:{aten.code[0].line}\n"


def _kernel(family: Family) -> Iterator[str]:
    from opc.backends.kernel.backend import KernelBackend

    for path, text in KernelBackend().emit(family).items():
        yield f"// {path}\n{text}"
