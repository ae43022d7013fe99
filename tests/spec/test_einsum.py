"""`opc new --einsum`: the spec of an equation computes what NumPy does, and what the standard's own cases of Einsum say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.cli.console import guarded
from opc.cli.main import app
from opc.diagnostics import SpecError
from opc.pipeline import compile_text
from opc.spec.einsum import einsum_spec, parse_equation
from opc.testing.oracle.evaluation import evaluate
from opc.testing.plan import Item, hold_standard
from opc.testing.references.onnx import collect, onnx_cases
from opc.testing.results import Status

EQUATIONS = [
    ("ij->ji", [(2, 3)]),
    ("ii", [(3, 3)]),
    ("i,j", [(2,), (3,)]),
    ("...ij,...jk->...ik", [(2, 1, 2, 3), (3, 3, 2)]),
    ("ab,bc,cd", [(2, 3), (3, 2), (2, 4)]),
    ("tx,Tx,xT->tT", [(2, 3), (4, 3), (3, 4)]),
    ("xywuvpq->qp", [(1, 2, 1, 2, 1, 2, 3)]),
    ("i,i,i->", [(3,), (3,), (3,)]),
    ("TUVWX,y->TyX", [(2, 1, 2, 1, 2), (2,)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS, ids=[e for e, _ in EQUATIONS])
def test_a_spec_computes_its_equation(equation: str, shapes: list[tuple[int, ...]]) -> None:
    op = compile_text(einsum_spec("mine", equation), "mine.yaml").forward
    rng = np.random.default_rng(0)
    operands: dict[str, Any] = {o.name: rng.integers(-3, 4, shape).astype(np.float32) for o, shape in zip(op.inputs, shapes)}
    found = evaluate(op, operands, {})[op.outputs[0].name]
    np.testing.assert_allclose(np.asarray(found.value, np.float64), np.einsum(equation, *operands.values()), 1e-6, 1e-6)


def test_factors_are_taken_two_at_a_time() -> None:
    text = einsum_spec("chain", "ab,bc,cd->ad")
    assert "  xw[a, c] = sum[b](x[a, b] * w[b, c])\n  y[a, d] = sum[c](xw[a, c] * u[c, d])\n" in text


def test_specs_give_what_the_standards_cases_say() -> None:
    nodes = collect(["Einsum"])["Einsum"]
    assert len(nodes) >= 9
    for node in nodes:
        text = einsum_spec("einsum", node["attributes"]["equation"].decode())
        family = compile_text(text, "einsum.yaml")
        ((case, *_), others) = onnx_cases(family, {"Einsum": [node]})
        assert not others
        expected = evaluate(family.forward, case.case.arrays(), case.case.attributes)
        result = hold_standard(family, Item("ONNX node case", case.case, expected), case)
        assert result.status is Status.PASSED, result.message


@pytest.mark.parametrize(
    ("equation", "problem"),
    [
        ("i-j", "'-' names no axis"),
        ("ij->ii", "'i' stands twice in the result"),
        ("i->j", "no operand has 'j'"),
        ("...i......->i", "'...' stands twice in an operand"),
        ("...i->i", "the result lacks '...'"),
        ("i'j", "''' names no axis"),
    ],
)
def test_what_is_no_equation_is_refused(equation: str, problem: str) -> None:
    with pytest.raises(SpecError) as refused:
        parse_equation(equation)
    (found,) = refused.value.diagnostics
    assert found.message == f"'{equation}' is no equation: {problem}"


def test_the_command_writes_a_spec(tmp_path: Path) -> None:
    assert guarded(lambda: app(["new", "scores", "--einsum", "bqd,bkd->bqk", "-o", str(tmp_path)], prog_name="opc")) == 0
    assert guarded(lambda: app(["check", str(tmp_path / "scores.yaml")], prog_name="opc")) == 0
    assert guarded(lambda: app(["fmt", "--check", str(tmp_path / "scores.yaml")], prog_name="opc")) == 0
    with pytest.raises(SpecError, match="can't name an op"):
        einsum_spec("no-name", "i->i")
