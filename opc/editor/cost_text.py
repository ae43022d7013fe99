"""What ops cost, save and scatter as text, for `opc show` and for the gallery."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from opc.analysis.cost import cost, saved, scatters
from opc.analysis.shapes.attributes import ShapeError
from opc.analysis.shapes.inference import ShapeEnv, infer
from opc.analysis.shapes.samples import sample
from opc.ir.dtypes import DType
from opc.ir.op import Family, Op
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.lower.nest_plans import ScatterPlan
from opc.records import dataclass

Sizes: TypeAlias = Mapping[str, int]
"""Sizes of dimensions and values of int attributes by name."""

SAMPLE = 1024
"""Size of every axis in the calls whose cost is told, unless it is given."""


@dataclass(frozen=True, slots=True)
class OpCost:
    """What a call of an op costs: numbers with a decimal prefix such as `1.05 M`, and the formulas they come from."""

    op: str
    flops: str
    bytes: str
    intensity: str
    work: str
    traffic: str


def verdict(op: Op) -> str:
    """Return whether an op gathers or scatters, and whether it adds in a fixed order."""
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


def costs_text(family: Family, sizes: Sizes) -> str:
    """Return what is saved between forward and backward, and what every op of the family costs, in float32.

    Sizes that nobody gave need not fit together; then the text says so in place of the cost.

    Raises:
        ValueError: when the op refuses the sizes.
    """
    lines = []
    if family.backward is not None:
        kept = [f"{role.value} {name}" for name, role, _ in saved(family.backward)]
        lines.append(f"Saved for the gradient: {', '.join(kept) or 'nothing'}.")
    try:
        told = [*costs(family, sizes)]
    except ValueError as error:
        if sizes:
            raise
        why = error.__cause__ or error
        return "\n".join([*lines, f"Cost: {SAMPLE} along every axis is refused: {why}; --size gives others."]) + "\n"
    given = "".join(f"{name} = {value}, " for name, value in sizes.items())
    lines.append(f"Cost in float32, with {given}{SAMPLE} along every {'other ' if sizes else ''}axis:")
    lines += [f"  {op.name}: native code, whose operations nobody counts" for op in family.ops if op.opaque]
    for c in told:
        lines.append(f"  {c.op}: {c.flops}FLOP, {c.bytes}B, {c.intensity} FLOP/B")
        lines += [f"    FLOP: {c.work}", f"    bytes: {c.traffic}"]
    return "\n".join(lines) + "\n"


def costs(family: Family, sizes: Sizes) -> Iterator[OpCost]:
    """Yield what each op of a family costs, native code without a body left out.

    Raises:
        ValueError: when an op refuses the sizes.
    """
    for op in family.ops:
        if op.opaque:
            continue
        call = _call(op, sizes)
        binding = {t.name: DType.FLOAT32 if DType.FLOAT32 in t.dtypes else t.dtypes[0] for t in op.types}
        found = cost(op, call, binding)
        yield OpCost(
            op.name, _count(found.flops), _count(found.bytes), f"{found.intensity:.2g}", str(found.work), str(found.traffic)
        )
        if op is family.forward:
            sizes = {**call.dims, **sizes}


def _call(op: Op, sizes: Sizes) -> ShapeEnv:
    """Return a call of the op with these sizes and int attributes."""
    attributes = {a.name: sizes[a.name] for a in op.attributes if a.name in sizes}
    try:
        shapes, given = sample(op, (SAMPLE,), (SAMPLE,), attributes=attributes, known=sizes)
        return infer(op, shapes, given)
    except ShapeError as error:
        raise ValueError(f"{op.name} refuses these sizes: {error}") from error


def _count(number: int) -> str:
    """Return a number with its decimal prefix: `1.05 M`."""
    for limit, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= limit:
            return f"{number / limit:.3g} {prefix}"
    return f"{number} "
