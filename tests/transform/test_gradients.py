"""Derived ops: proved against differences to second order, and what they are to be at kinks, ends and absent operands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.diagnostics import SpecError
from opc.ir.op import Op, Role
from opc.ir.printer import format_assign, format_op
from opc.pipeline import auto_backward, compile_text, load_family
from opc.testing.gradcheck import check_family
from opc.testing.oracle import evaluate
from tests.transform.language import OPS, spec_text

SPECS = sorted((Path(opc.__file__).parent.parent / "specs").glob("*.yaml"))


@pytest.mark.parametrize("name", OPS)
def test_construct_of_the_language(name: str) -> None:
    family = compile_text(spec_text(name), name)
    results = check_family(family)
    assert len(results) == 4
    assert [r.message for r in results] == [""] * 4


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_spec(path: Path) -> None:
    results = check_family(load_family(path))
    assert [r.message for r in results if not r.ok] == []


def derived(op: Op | None) -> Op:
    assert op is not None
    return op


def backward(body: str) -> Op:
    return derived(compile_text(spec_text("f", body), "f").backward)


def run(op: Op, inputs: dict[str, Any], attributes: dict[str, Any] | None = None) -> dict[str, list[float]]:
    arrays = {n: None if v is None else np.asarray(v, np.float64) for n, v in inputs.items()}
    return {n: np.asarray(v.value).tolist() for n, v in evaluate(op, arrays, attributes or {}).items()}


ELEMENT = "inputs: {x: 'T[...]'}\noutputs: {y: 'T[...]'}\nkernel: |\n"


def slope(kernel: str, x: list[float]) -> list[float]:
    """Return the derivative of an elementwise kernel at some points."""
    return run(backward(ELEMENT + kernel), {"x": x, "d_y": [1.0] * len(x)})["d_x"]


def test_what_a_conditional_does_not_choose_passes_nothing_on() -> None:
    assert slope("  y = log(x) if x > 0 else 0\n", [0.0, -1.0, 2.0]) == [0.0, 0.0, 0.5]
    assert slope("  t = sqrt(x)\n  s = t * t\n  y = s if x > 0 else 0\n", [0.0]) == [0.0]
    assert slope("  y = sin(x) / x if x != 0 else 1\n", [0.0]) == [0.0]


def test_kinks_follow_the_table_of_semantics() -> None:
    assert slope("  y = abs(x)\n", [0.0, -2.0]) == [0.0, -1.0]
    assert slope("  y = 0 if x <= 0 else x\n", [0.0]) == [0.0]
    assert slope("  y = minimum(maximum(x, -1), 1)\n", [-1.0, 1.0, 1.5, -1.5]) == [1.0, 1.0, 0.0, 0.0]


def test_second_derivative_stays_inside_the_conditional() -> None:
    family = compile_text(spec_text("f", ELEMENT + "  y = log(x) + log(x) * x if x > 0 else 0\n"), "f")
    found = run(derived(family.backward_backward), {"x": [0.0, 2.0], "d_y": [1.0, 1.0], "d_d_x": [1.0, 1.0]})
    assert found["d_x"] == [0.0, 0.25]


def test_ties_of_a_maximum_go_to_the_first() -> None:
    op = backward("inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = max[j](x[..., j])\n")
    assert run(op, {"x": [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0]], "d_y": [5.0, 7.0]})["d_x"] == [[0.0, 5.0, 0.0], [7.0, 0.0, 0.0]]


def test_a_product_has_a_gradient_at_zeros() -> None:
    op = backward("inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = prod[j](x[..., j])\n")
    assert run(op, {"x": [[2.0, 0.0, 3.0], [0.0, 0.0, 5.0]], "d_y": [1.0, 1.0]})["d_x"] == [[0.0, 6.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_shift_does_not_overflow() -> None:
    softmax = derived(load_family(next(p for p in SPECS if p.stem == "softmax")).jvp)
    found = run(softmax, {"x": [1000.0, 1000.0], "t_x": [1.0, 0.0]})
    assert found["t_y"] == pytest.approx([0.25, -0.25])


def test_leaky_relu_reads_as_one_would_write_it() -> None:
    family = load_family(next(p for p in SPECS if p.stem == "leaky_relu"))
    (statement,) = derived(family.backward).body
    assert format_assign(statement) == "d_x[...] = d_y[...] if x[...] >= 0 else alpha * d_y[...]"


TWO = "inputs: {x: 'T[N]', z: 'T[N]'}\noutputs: {u: 'T[N]', v: 'T[N]'}\nkernel: |\n  u[i] = x[i] * 2\n  v[i] = z[i] * 3\n"


def test_an_absent_cotangent_counts_as_zero() -> None:
    op = backward(TWO)
    assert [o.optional for o in op.inputs if o.name.startswith("d_")] == [True, True]
    found = run(op, {"d_u": [5.0], "d_v": None})
    assert found == {"d_x": [10.0], "d_z": [0.0]}


def test_an_absent_tangent_counts_as_zero() -> None:
    op = derived(compile_text(spec_text("f", TWO), "f").jvp)
    assert run(op, {"t_x": None, "t_z": [4.0]}) == {"t_u": [0.0], "t_v": [12.0]}


def test_inputs_and_roles() -> None:
    family = load_family(next(p for p in SPECS if p.stem == "layer_norm"))
    op = derived(family.backward)
    assert op.derivation is not None
    roles = dict(zip((o.name for o in op.inputs), op.derivation.inputs))
    assert roles == {
        "x": (Role.INPUT, "x"),
        "w": (Role.INPUT, "w"),
        "mean": (Role.OUTPUT, "mean"),
        "rstd": (Role.OUTPUT, "rstd"),
        "d_y": (Role.COTANGENT, "y"),
        "d_mean": (Role.COTANGENT, "mean"),
        "d_rstd": (Role.COTANGENT, "rstd"),
    }
    assert op.derivation.outputs == ("x", "w", "b")
    assert all(o.optional for o in op.outputs)


def test_the_gradient_of_a_saved_output_has_a_name_of_its_own() -> None:
    family = load_family(next(p for p in SPECS if p.stem == "softmax"))
    op = derived(family.backward_backward)
    assert [o.name for o in op.inputs] == ["y", "d_y", "d_d_x"]
    assert [o.name for o in op.outputs] == ["d_saved_y", "d_d_y"]


def test_an_output_is_saved_only_where_that_spares_a_reduction() -> None:
    pointwise = backward(ELEMENT + "  y = sigmoid(x)\n")
    assert [o.name for o in pointwise.inputs] == ["x", "d_y"]
    row = "inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = log(sum[j](exp(x[..., j])))\n"
    norm = "inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = sqrt(sum[j](x[..., j] ** 2))\n"
    assert [o.name for o in backward(norm).inputs] == ["x", "y", "d_y"]
    assert [o.name for o in backward(row).inputs] == ["x", "d_y"]


def test_an_input_whose_values_are_not_needed_stays_where_it_alone_tells_the_sizes() -> None:
    row_sum = backward("inputs: {x: 'T[..., D]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = sum[j](x[..., j])\n")
    assert [o.name for o in row_sum.inputs] == ["x", "d_y"]
    double = backward(ELEMENT + "  y = 2 * x\n")
    assert [o.name for o in double.inputs] == ["d_y"]


def test_integer_types_of_a_mixed_variable_have_no_gradient() -> None:
    op = backward(f"types: {{T: [float32, int32]}}\n{ELEMENT}  y = x * x\n")
    assert [[str(d) for d in t.dtypes] for t in op.types] == [["float32"]]


def test_an_op_without_floating_operands_has_no_gradient() -> None:
    family = compile_text(spec_text("f", f"types: {{T: [int32, int64]}}\n{ELEMENT}  y = x * x\n"), "f")
    assert [op.name for op in family.ops] == ["f"]
    assert auto_backward(family.forward) is None


def test_gradient_none_is_obeyed() -> None:
    family = compile_text(spec_text("f", ELEMENT + "  y = 2 * x\ngradient: none\n"), "f")
    assert [op.name for op in family.ops] == ["f"]


def test_an_explicit_gradient_is_taken_and_the_automatic_one_stays_available() -> None:
    body = ELEMENT + "  y = tanh(x)\ngradient:\n  body: |\n    d_x = d_y / cosh(x) ** 2\n"
    family = compile_text(spec_text("f", body), "f")
    assert family.explicit_backward
    assert "cosh" in format_op(derived(family.backward))
    assert "tanh" in format_op(derived(auto_backward(family.forward)))
    assert all(r.ok for r in check_family(family))


def test_a_wrong_explicit_gradient_is_caught() -> None:
    body = ELEMENT + "  y = tanh(x)\ngradient:\n  body: |\n    d_x = d_y / cosh(x)\n"
    messages = {r.name: r.message for r in check_family(compile_text(spec_text("f", body), "f"))}
    assert messages["gradient against differences"]
    assert messages["explicit gradient against automatic"]


@pytest.mark.parametrize("kind", ["max", "prod"])
def test_a_reduction_without_a_gradient_in_the_language_is_refused_at_its_place(kind: str) -> None:
    text = spec_text("f", f"inputs: {{x: 'T[...]'}}\noutputs: {{y: 'T[]'}}\nkernel: |\n  y[()] = {kind}[...](x[...])\n")
    with pytest.raises(SpecError) as refusal:
        compile_text(text, "f.yaml")
    (found,) = refusal.value.diagnostics
    assert (found.span.line, found.span.column) == (text.split("\n").index(f"  y[()] = {kind}[...](x[...])") + 1, 11)
    assert "whole group" in found.message
    assert found.hint
