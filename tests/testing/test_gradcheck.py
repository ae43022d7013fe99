"""The gradient proof passes right gradients and fails wrong ones, small errors included."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from opc.ir.dtypes import Weak
from opc.ir.expr import Call, Const, Expr, Read, Select, rewrite
from opc.ir.op import Assign, Family, Op
from opc.pipeline import compile_text, load_family
from opc.testing.truths.gradcheck import FEW, GradientResult, check_family, points
from tests.transform.language import spec_text

SPECS = Path(__file__).parents[2] / "specs"


def by_name(family: Family) -> dict[str, GradientResult]:
    return {r.name: r for r in check_family(family)}


def scaled(op: Op, factor: float, target: str | None = None) -> Op:
    """The op with one output off by a factor."""
    name = target or op.outputs[0].name

    def change(s: Assign) -> Assign:
        if s.target != name:
            return s
        return replace(s, value=Call("mul", (s.value, Const(factor, Weak.FLOAT)), s.value.type))

    return replace(op, body=tuple(change(s) for s in op.body))


@pytest.mark.parametrize("name", ["leaky_relu", "softmax", "layer_norm", "prelu"])
def test_right_gradients_pass_and_points_decide(name: str) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    results = check_family(family, list(islice(points(family.forward), 2 * FEW)))
    assert len(results) >= 4
    for r in results:
        assert r.ok, r
        assert r.decided >= 5
        assert r.ratio <= 1


@pytest.mark.parametrize("factor", [-1.0, 0.0, 2.0, 1.0001])
def test_a_gradient_off_by_a_factor_fails(factor: float) -> None:
    family = load_family(SPECS / "silu.yaml")
    assert family.backward is not None
    found = by_name(replace(family, backward=scaled(family.backward, factor)))
    assert not found["gradient against differences"].ok


def test_a_wrong_second_gradient_and_a_wrong_jvp_fail() -> None:
    family = load_family(SPECS / "silu.yaml")
    assert family.backward_backward is not None
    assert family.jvp is not None
    for output in family.backward_backward.outputs:
        wrong = replace(family, backward_backward=scaled(family.backward_backward, 1.001, output.name))
        assert not by_name(wrong)["second gradient against differences"].ok
    assert not by_name(replace(family, jvp=scaled(family.jvp, 1.001)))["jvp against gradient"].ok


def test_a_wrong_explicit_gradient_fails_against_the_automatic_one() -> None:
    family = replace(load_family(SPECS / "layer_norm.yaml"), backward_backward=None, jvp=None)
    assert family.backward is not None
    assert family.explicit_backward
    few = list(islice(points(family.forward), FEW))
    for output in ("d_x", "d_w", "d_b"):
        wrong = replace(family, backward=scaled(family.backward, 1.00001, output))
        assert not {r.name: r for r in check_family(wrong, few)}["explicit gradient against automatic"].ok


def test_a_swapped_branch_fails() -> None:
    family = load_family(SPECS / "leaky_relu.yaml")
    assert family.backward is not None

    def swap(e: Expr) -> Expr:
        return replace(e, then=e.other, other=e.then) if isinstance(e, Select) else e

    body = tuple(replace(s, value=rewrite(s.value, swap)) for s in family.backward.body)
    found = by_name(replace(family, backward=replace(family.backward, body=body)))
    assert not found["gradient against differences"].ok


def test_a_derivative_without_a_value_fails() -> None:
    """One that reads outside of an operand would pass by proving nothing."""
    family = compile_text(spec_text("shifted"), "shifted")
    assert family.backward is not None
    assert family.jvp is not None

    def unpadded(e: Expr) -> Expr:
        return replace(e, pad=None) if isinstance(e, Read) else e

    def outside(op: Op) -> Op:
        return replace(op, body=tuple(replace(s, value=rewrite(s.value, unpadded)) for s in op.body))

    found = by_name(replace(family, backward=outside(family.backward), jvp=outside(family.jvp)))
    for name in ("gradient against differences", "jvp against gradient"):
        assert "no value: an index of" in found[name].message, name
        assert not found[name].ok
