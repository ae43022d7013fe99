"""Derived ops: proved against differences to second order, and what they are to be at kinks, ends and absent operands."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import opc
from opc.analysis.cost import cost, saved, scatters
from opc.analysis.shapes.inference import infer
from opc.ir.dtypes import DType, TypeVar
from opc.ir.expr import walk
from opc.ir.op import Op, Role, ScatterMode, Ties
from opc.ir.printer import format_assign, format_body, format_op
from opc.pipeline import auto_backward, compile_text, load_family
from opc.testing.oracle.evaluation import evaluate
from opc.testing.references.gradcheck import check_family
from tests.transform.language import OPS, small_points, spec_text

BINDING = {"T": DType.FLOAT32}
SPECS = sorted((Path(opc.__file__).parent.parent / "specs").glob("*.yaml"))


@pytest.mark.rotating
@pytest.mark.parametrize("name", OPS)
def test_construct_of_the_language(name: str) -> None:
    family = compile_text(spec_text(name), name)
    results = check_family(family, small_points(family.forward))
    assert len(results) == 4
    assert [r.message for r in results] == [""] * 4


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


def test_a_product_over_a_group_has_derivatives_of_both_orders_at_zeros() -> None:
    family = compile_text(
        spec_text("f", "inputs: {x: 'T[...]'}\noutputs: {y: 'T[]'}\nkernel: |\n  y[()] = prod[...](x[...])\n"), "f"
    )
    first, second = derived(family.backward), derived(family.backward_backward)
    for x in ([2.0, 3.0, 5.0], [2.0, 0.0, 5.0], [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]):
        others = [[float(np.prod([v for k, v in enumerate(x) if k not in (i, j)])) for j in range(3)] for i in range(3)]
        product = {"y": float(np.prod(x))}
        given = {o.name: product[o.name] for o in first.inputs if o.name == "y"}
        assert run(first, {"x": x, "d_y": 1.0, **given})["d_x"] == pytest.approx([others[i][i] for i in range(3)])
        for i in range(3):
            along = {"x": x, "d_y": 1.0, "d_d_x": [float(k == i) for k in range(3)], **given}
            found = run(second, along)
            # Through the saved product too, where it is an input of its own.
            through = np.asarray(found.get("d_saved_y", 0.0)) * np.array([others[k][k] for k in range(3)])
            total = np.asarray(found["d_x"]) + through
            assert total == pytest.approx([0.0 if j == i else others[i][j] for j in range(3)])


def test_a_maximum_over_a_group_gives_its_gradient_to_the_first() -> None:
    op = backward("inputs: {x: 'T[*A, N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[n] = max[*A](x[*A, n])\n")
    x = [[[1.0, 4.0], [3.0, 2.0]], [[3.0, 4.0], [0.0, 4.0]]]
    assert run(op, {"x": x, "d_y": [5.0, 7.0]})["d_x"] == [[[0.0, 7.0], [5.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]


def test_a_product_over_several_axes_takes_linear_work() -> None:
    op = backward("inputs: {x: 'T[M, N]'}\noutputs: {y: 'T[]'}\nkernel: |\n  y[()] = prod[i, j](x[i, j])\n")
    flops = [cost(op, infer(op, {"x": (n, n), "d_y": ()}, {}), BINDING).flops for n in (16, 32)]
    assert flops[1] / flops[0] < 5


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


def test_a_factor_of_indices_alone_is_summed_by_itself() -> None:
    op = backward("inputs: {x: 'T[*A, N]'}\noutputs: {y: 'T[*A]'}\nkernel: |\n  y[*A] = sum[n, k:3](x[*A, n] * k)\n")
    assert run(op, {"x": [[1.0, 2.0]], "d_y": [5.0]}) == {"d_x": [[15.0, 15.0]]}


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


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i] * cast(T, sum[j](x[j]))",
        "y[i] = x[i] * cast(T, x[i] > 0)",
        "y[i] = x[i] * cast(T, i)",
        "y[i] = cast(T, prod[j](x[j] if j > i else cast(T, 2)))",
        "y[i] = maximum(x[i], cast(T, max[j](x[j]))) if x[i] > cast(T, 1) else x[i] * x[i]",
    ],
)
def test_values_of_a_mixed_variable_are_floating_in_the_gradient(body: str) -> None:
    op = backward(f"types: {{T: [float32, int32]}}\ninputs: {{x: 'T[N]'}}\noutputs: {{y: 'T[N]'}}\nkernel: |\n  {body}\n")
    found = {e.type for s in op.body for e in walk(s.value) if isinstance(getattr(e, "type", None), TypeVar)}
    assert found <= set(op.types)


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


ROWS = "inputs: {x: 'T[N, D]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[n] = max[d](x[n, d])\n"


def test_ties_of_a_maximum_go_to_the_first_or_to_all_in_equal_shares() -> None:
    inputs = {"x": [[1.0, 3.0, 3.0, 3.0], [2.0, 1.0, 0.0, -1.0]], "d_y": [6.0, 5.0]}
    assert run(backward(ROWS), inputs)["d_x"] == [[0.0, 6.0, 0.0, 0.0], [5.0, 0.0, 0.0, 0.0]]
    even = backward(ROWS + "gradient: {ties: even}\n")
    assert run(even, inputs)["d_x"] == [[0.0, 2.0, 2.0, 2.0], [5.0, 0.0, 0.0, 0.0]]


def test_the_keys_of_the_gradient_reach_the_ops_derived() -> None:
    family = compile_text(spec_text("f", ROWS + "gradient: {ties: even, scatter: atomic}\n"), "f")
    assert (family.forward.ties, family.forward.scatter) == (Ties.EVEN, ScatterMode.DETERMINISTIC)
    assert {(op.ties, op.scatter) for op in family.ops[1:]} == {(Ties.EVEN, ScatterMode.ATOMIC)}
    body = "gradient: {ties: even, body: 'd_x[n, d] = d_y[n] if x[n, d] == max[k](x[n, k]) else 0'}\n"
    assert compile_text(spec_text("f", ROWS + body), "f").explicit_backward


def test_the_gradient_of_a_gather_scatters_and_that_of_a_scatter_gathers() -> None:
    table = "inputs: {x: 'T[V, D]', ids: 'int64[N]'}\noutputs: {y: 'T[N, D]'}\nkernel: |\n  y[n, d] = x[ids[n], d]\n"
    family = compile_text(spec_text("f", table), "f")
    assert format_assign(derived(family.backward).body[-1]) == "d_x[i, j] = sum[n:N](d_y[n, j] if i == ids[n] else 0)"
    second = derived(family.backward_backward).assignments["d_d_y"]
    assert format_assign(second) == "d_d_y[n, j] = d_d_x[ids[n], j] if ids[n] >= 0 and ids[n] < V else 0"
    assert scatters(derived(family.backward)) == ("d_x",)
    assert scatters(derived(family.backward_backward)) == ()


@pytest.mark.parametrize("kind", ["zero", "clamp"])
def test_the_gradient_of_a_lenient_gather_is_one_sum(kind: str) -> None:
    table = (
        f"out_of_range: {kind}\ninputs: {{x: 'T[V]', ids: 'int64[N]'}}\nrequire: [V > 0]\noutputs: {{y: 'T[N]'}}\n"
        "kernel: |\n  y[n] = x[ids[n]]\n"
    )
    where = "ids[n]" if kind == "zero" else "minimum(maximum(ids[n], 0), V - 1)"
    assert format_assign(backward(table).body[-1]) == f"d_x[i] = sum[n:N](d_y[n] if i == {where} else 0)"


def test_what_is_kept_of_a_window_has_its_axes_in_the_order_of_what_it_reads() -> None:
    sums = "sum[k:size](pad(x[n, c + k, *S], 0) ** 2)"
    body = f"attributes: {{size: {{type: int}}}}\nkernel: |\n  y[n, c, *S] = x[n, c, *S] / {sums}\n"
    op = backward("inputs: {x: 'T[N, C, *S]'}\noutputs: {y: 'T[N, C, *S]'}\n" + body)
    assert {", ".join(map(str, t.dims)) for t in op.temporaries} == {"N, C, *S"}


def test_a_factor_stays_in_a_sum_over_broadcast_axes() -> None:
    body = "broadcast: true\ninputs: {x: 'T[...]', w: 'T[...]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y = 3 * x - 2 * w\n"
    found = {s.target: format_assign(s) for s in backward(body).body}
    assert found == {"d_x": "d_x[...] = sum[broadcast(x)](3 * d_y[...])", "d_w": "d_w[...] = sum[broadcast(w)](-(2 * d_y[...]))"}


def test_the_gradient_of_a_window_maximum_adds_each_point_once() -> None:
    op = backward(OPS["window_max"])
    assert scatters(op) == ("d_x",)
    assert [s.target for s in op.body] == ["y_argmax", "d_x"]


CONV = (
    "inputs: {x: 'T[N, C, L]', w: 'T[O, I, K]'}\n"
    "attributes: {s: {type: int, default: 2, check: s > 0}, p: {type: int, default: 1, check: p >= 0}, "
    "g: {type: int, default: 2, check: g > 0}}\nshape: {M: (L + 2*p - K) // s + 1}\n"
    "require: [C == I*g, O % g == 0, O > 0, L + 2*p >= K]\noutputs: {y: 'T[N, O, M]'}\nkernel: |\n"
    "  y[n, o, i] = sum[c, q](pad(x[n, o // (O // g) * I + c, i*s + q - p], 0) * w[o, c, q])\n"
)
POOL = (
    "inputs: {x: 'T[N, L]'}\nattributes: {k: {type: int, default: 3, check: k > 0}, s: {type: int, default: 2, check: s > 0}}\n"
    "shape: {M: (L - k) // s + 1}\nrequire: [L >= k]\noutputs: {y: 'T[N, M]'}\nkernel: |\n"
    "  y[n, i] = {KIND}[q:k](x[n, i*s + q])\n"
)
LOOKUP = "inputs: {x: 'T[V, D]', ids: 'int64[N]'}\noutputs: {y: 'T[N, D]'}\nkernel: |\n  y[n, d] = x[ids[n], d]\n"


@pytest.mark.parametrize(
    ("body", "shapes", "base", "most"),
    [
        # One contraction forward; two backward, of which that of x runs over every position of x: s times as many.
        pytest.param(CONV, {"x": (4, 8, 64), "w": (6, 4, 3)}, None, (3.2, 6.5, 2.1, 6.5), id="conv"),
        pytest.param(POOL.replace("{KIND}", "sum"), {"x": (4, 65)}, None, (2.2, 1.1, 1.1, 2.2), id="sum pool"),
        pytest.param(POOL.replace("{KIND}", "max"), {"x": (4, 65)}, None, (1.5, 1.5, 1.5, 1.5), id="max pool"),
        pytest.param(LOOKUP, {"x": (100, 8), "ids": (50,)}, 50 * 8, (1.0, 1.0, 1.0, 1.0), id="lookup"),
    ],
)
def test_derived_ops_cost_what_their_source_costs(
    body: str, shapes: dict[str, tuple[int, ...]], base: int | None, most: tuple[float, ...]
) -> None:
    family = compile_text(spec_text("f", body), "f")
    forward = infer(family.forward, shapes, {})
    unit = base or cost(family.forward, forward, BINDING).flops
    for op, limit in zip(family.ops[1:], most, strict=True):
        known = {o.name: o for o in (*family.forward.inputs, *family.forward.outputs)}
        given = {o.name: forward.shape_of(known[o.name.lstrip("dt_") if o.name not in known else o.name]) for o in op.inputs}
        assert cost(op, infer(op, given, {}), BINDING).flops <= limit * unit, op.name


@pytest.mark.rotating
@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_the_body_of_a_derived_gradient_is_one_that_a_spec_may_have(path: Path) -> None:
    family = load_family(path)
    op = family.backward
    if op is None or op.opaque or family.explicit_backward:
        return
    saves = [name for name, role, _ in saved(op) if role is Role.OUTPUT]
    text = re.sub(r"(?m)^gradient:.*\n", "", path.read_text()).rstrip()
    block = f"\ngradient:\n  saves: [{', '.join(saves)}]\n  body: |\n{indent(format_body(op), '    ')}"
    assert compile_text(text + block, path.name).explicit_backward


def test_a_reduction_of_conditions_kept_under_a_choice_is_false_elsewhere() -> None:
    text = """\
op: f
domain: test
version: 1
doc: A test.
types: {T: [float64]}
inputs: {s: 'T[]', c: 'T[K]'}
attributes: {alpha: {type: float, default: 0.5}}
outputs: {y: 'T[]'}
kernel: |
  y[()] = 2 if all[j:2](cast(T, j) > 0) else (alpha * s[()] if any[k:K](s[()] > 0) else s[()]) / (2 + s[()] ** 2)
"""
    backward = compile_text(text, "f").backward
    assert backward is not None
    assert "y_any[()] = False if all[j:2](cast(T, j) > 0) else any[k:K](s[()] > 0)" in format_op(backward)


def test_a_running_sum_of_what_data_picks_is_summed_up_once_and_scattered() -> None:
    """As a sum below the one over p, each sum of d_c would be made anew for every element of w."""
    head = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32, float64]}\n"
    rest = "inputs: {w: 'T[M]', p: 'int64[N]'}\noutputs: {c: 'T[N]'}\nkernel: 'c[i] = sum[j:i + 1](w[p[j]])'\n"
    assert [format_assign(s) for s in derived(compile_text(head + rest, "f.yaml").backward).body] == [
        "d_w_sum[j] = sum[k:-j + N](d_c[j + k])",
        "d_w[i] = sum[j:N](d_w_sum[j] if i == p[j] else 0)",
    ]
