"""Specs of real size, which once took minutes or did not end: what is made of them is counted, not timed.

A count says the same on every machine. It is that of the nodes of all derived ops, of the proofs that were looked for, and of the
nodes that lowering makes of the op and its gradient in all cases of their attributes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.analysis.bounds.checker import Knowledge
from opc.ir.expr import size
from opc.ir.op import Op
from opc.lower.lower import lower
from opc.pipeline import load_family

SPECS = Path(__file__).parent / "growth"


def nodes(*ops: Op) -> int:
    return sum(size(s.value) for op in ops for s in op.body)


@pytest.mark.parametrize(
    ("name", "most", "proofs", "lowered"),
    [
        ("add_layer_norm", 1_000, 10, 200),
        ("deform_conv2d", 2_000, 140, 500),
        ("grid_reflect", 5_500, 180, 2_000),
        ("roi_align", 5_000, 120, 2_000),
        ("upsample_bicubic", 3_000, 500, 1_200),
    ],
)
def test_what_is_made_of_a_spec(name: str, most: int, proofs: int, lowered: int, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_for: list[object] = []
    prove = Knowledge._nonnegative

    def counted(self: Knowledge, *asked: object) -> bool:
        looked_for.append(asked)
        return prove(self, *asked)

    monkeypatch.setattr(Knowledge, "_nonnegative", counted)
    family = load_family(SPECS / f"{name}.yaml")
    cases = [case for op in family.ops[:2] for case in lower(op)]
    assert nodes(*family.ops) <= most
    assert len(looked_for) <= proofs
    assert nodes(*(c.case.op for c in cases)) <= lowered


def test_a_proof_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each question, of a family and of all that lowering makes of it, has one answer, which is found once."""
    looked_for: list[object] = []
    prove = Knowledge._nonnegative

    def counted(self: Knowledge, f: object, ranges: dict[str, object], conditions: object) -> bool:
        looked_for.append((id(self._proved), f, tuple(ranges.items()), conditions))
        return prove(self, f, ranges, conditions)

    monkeypatch.setattr(Knowledge, "_nonnegative", counted)
    for op in load_family(SPECS / "deform_conv2d.yaml").ops:
        lower(op)
    assert len(looked_for) == len(set(looked_for)) > 0
