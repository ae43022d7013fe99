"""Many layers in one op: their row stages would take more operands than a stage can have, so that the op is taken in parts."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.lower import partition
from opc.lower.loop_ir import RowStage, Stage, Temporary
from opc.lower.lower import lower
from opc.lower.rows.flatten import Step
from opc.lower.rows.schedule import MOST_OPERANDS, schedule
from opc.pipeline import compile_text

HEAD = "op: layers\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\ninputs: {x: 'T[B, N]'}\n"


def layers(count: int) -> str:
    """Return a spec of so many layers, each of which divides rows by their length."""
    lines = []
    for k in range(count):
        here, there = "x" if k == 0 else f"h{k}", "y" if k == count - 1 else f"h{k + 1}"
        lines += [f"  m{k}[b] = mean[n]({here}[b, n] * {here}[b, n])", f"  {there}[b, n] = {here}[b, n] * rsqrt(m{k}[b] + 1)"]
    return f"{HEAD}outputs: {{y: 'T[B, N]'}}\nkernel: |\n" + "\n".join(lines) + "\n"


def test_parts_are_as_large_as_fit_and_found_in_few_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts: list[int] = []

    def counted(op: Op, steps: tuple[Step, ...], taken: frozenset[str]) -> tuple[tuple[Stage, ...], tuple[Temporary, ...]]:
        attempts.append(len(op.body))
        return schedule(op, steps, taken)

    monkeypatch.setattr(partition, "schedule", counted)
    op = compile_text(layers(10), "layers.yaml").backward_backward
    assert op is not None
    (variant,) = lower(op)
    stages = [s for s in variant.program.stages if isinstance(s, RowStage)]
    assert stages == list(variant.program.stages)
    assert all(len(s.operands) <= MOST_OPERANDS for s in stages)
    assert len(attempts) < 15 < len(op.body) // 4
    assert len(stages) < 25
