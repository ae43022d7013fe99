"""Many layers in one op: their row stages would take more operands than a stage can have, so that the op is taken in parts."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.lower import partition
from opc.lower.loop_ir import NestStage, RowStage, Stage, Temporary
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


def exponentials(count: int) -> str:
    """Return a spec of so many layers whose gradients add something at one point of each row, which data name."""
    names = [*(f"t{k}" for k in range(count)), "y"]
    lines = [f"  {there}[b, n] = exp({here}[b, n] - max[m]({here}[b, m]))" for here, there in zip(["x", *names], names)]
    return f"{HEAD}outputs: {{y: 'T[B, N]'}}\nkernel: |\n" + "\n".join(lines) + "\n"


def test_what_names_a_point_of_a_row_is_in_row_stages_however_many_there_are() -> None:
    family = compile_text(exponentials(24), "exponentials.yaml")
    assert family.backward is not None
    (variant,) = lower(family.backward)
    nests = [s.assign.target for s in variant.program.stages if isinstance(s, NestStage)]
    searches = [target for target in nests if "argmax" in target]
    assert len(searches) == 25
    # Where a stage is full, one may find the rows that it stands in done.
    assert len(nests) - len(searches) <= 1


def test_the_work_on_parts_grows_as_the_op_does(monkeypatch: pytest.MonkeyPatch) -> None:
    work = {}
    for count in (16, 32):
        scheduled: list[int] = []

        def counted(op: Op, steps: tuple[Step, ...], taken: frozenset[str], to: list[int] = scheduled) -> object:
            to.append(len(steps))
            return schedule(op, steps, taken)

        monkeypatch.setattr(partition, "schedule", counted)
        backward = compile_text(exponentials(count), "exponentials.yaml").backward
        assert backward is not None
        lower(backward)
        work[count] = sum(scheduled)
    assert work[32] < 3 * work[16]
