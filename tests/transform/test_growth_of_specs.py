"""Specs of real size, which once took minutes or did not end: what is made of them is counted, not timed.

A count says the same on every machine. It is that of the nodes of all derived ops, of the proofs that were looked for, of the
nodes that lowering makes of the op and its gradient in all cases of their attributes, and of what is computed once and shared.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from opc.analysis.bounds.knowledge import Knowledge
from opc.analysis.cut import Cut
from opc.analysis.sharding import shardings
from opc.backends import derivatives
from opc.ir.expr import Expr, asked_for, reads, size
from opc.ir.op import Assign, Op
from opc.lower import alone, specialise, statement
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parent / "growth"


def nodes(*ops: Op) -> int:
    return sum(size(s.value) for op in ops for s in op.body)


@pytest.mark.parametrize(
    ("name", "most", "proofs", "lowered"),
    [
        ("add_layer_norm", 1_000, 10, 200),
        ("deform_conv2d", 2_000, 140, 500),
        ("grid_modes", 11_500, 170, 1_500),
        ("grid_reflect", 5_500, 180, 2_000),
        ("grid_volumes", 2_800, 140, 1_250),
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


def test_statements_are_asked_once_for_how_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of calls with and without optional inputs, those alike in all that a statement asks for and reads find out once."""
    asked: list[tuple[object, ...]] = []
    assign = Cut.assign

    def counted(self: Cut, s: Assign) -> object:
        read = tuple(self.states.get(r.operand) for r in reads(s.value))
        asked.append((self.op.name, self.along, s.target, self.absent & asked_for(s.value), read))
        return assign(self, s)

    monkeypatch.setattr(Cut, "assign", counted)
    family = load_family(SPECS / "grid_modes.yaml")
    for op in family.ops:
        shardings(op)
    assert len(asked) == len(set(asked))
    assert max(Counter(key[:3] for key in asked).values()) <= 4
    assert len(asked) <= 650


def test_cases_share_the_statements_that_do_not_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values of attributes are put into those statements alone that ask for them."""
    asked: list[Expr] = []
    decided = specialise._simplified

    def counted(e: Expr, values: dict[str, object]) -> Expr:
        asked.append(e)
        return decided(e, values)

    monkeypatch.setattr(specialise, "_simplified", counted)
    op = load_family(SPECS / "grid_volumes.yaml").ops[2]
    cases = specialise.specialise(op)
    different = sum(len({id(s.value) for s in same}) > 1 for same in zip(*(c.op.body for c in cases), strict=True))
    assert 0 < different < len(op.body) / 2
    assert len(asked) <= len(op.body) + len(cases) * different


@pytest.mark.parametrize("name", ["grid_volumes", "grid_reflect", "roi_align"])
def test_a_statement_is_lowered_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Passes that leave a statement as it is, and cases that do not differ in it, take what was found of it before."""
    asked: list[Assign] = []
    decided = statement.with_simplified_conditions

    def counted(op: Op, s: Assign) -> Assign:
        asked.append(s)
        return decided(op, s)

    monkeypatch.setattr(statement, "with_simplified_conditions", counted)
    alone._answers.cache_clear()
    ops = compile_text((SPECS / f"{name}.yaml").read_text()).ops
    nests = sum(isinstance(s, NestStage) for op in ops for v in lower(op) for s in v.program.stages)
    assert 0 < len(asked) <= 2.2 * nests  # up to 3.9 before; more than 1 as passes change what nests compute


def test_what_a_result_depends_on_is_found_in_one_pass() -> None:
    """Each statement reads the one before twice, so that there are 2^60 ways from the last to the first."""
    body = "".join(f"  t{i} = t{i - 1} * tanh(t{i - 1})\n" for i in range(1, 61))
    head = "op: chain\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\ngradient: none\n"
    spec = f"{head}inputs: {{x: 'T[...]'}}\noutputs: {{y: 'T[...]'}}\nkernel: |\n  t0 = exp(x)\n{body}  y = t60\n"
    op = compile_text(spec).forward
    assert derivatives._depends(op, "y") == {"x"} | {s.target for s in op.body} - {"y"}


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


@pytest.mark.parametrize(
    ("name", "most"), [("lstm", 2_300), ("onnx/lstm", 4_200), ("onnx/gru", 4_200), ("onnx/linear_attention", 4_000)]
)
def test_gates_of_recurrences_are_not_copied_into_conditionals(name: str, most: int) -> None:
    """What steps is read by its own gradient, and again by that of the gradient: each copy of a gate would be copied there."""
    family = load_family(Path(__file__).parents[2] / "specs" / f"{name}.yaml")
    assert nodes(*family.ops) <= most
