"""The gradient proof passes right gradients and fails wrong ones, small errors included."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from opc.ir.dtypes import DTYPES, DType, Weak
from opc.ir.expr import Call, Const, Expr, Read, Select, rewrite
from opc.ir.op import Assign, Family, Op
from opc.pipeline import compile_text, load_family
from opc.testing.cases.derived import family_volume
from opc.testing.plan import make_plan
from opc.testing.references.gradcheck import FEW, GradientResult, check_family, check_jvp, check_vjp, points, unproved
from opc.testing.references.points import SMALL_DERIVED, drawn, second_order_points
from opc.testing.results import Status
from tests.transform.language import small_points, spec_text

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
    results = check_family(family, list(islice(points(family.forward), 8)))
    assert len(results) >= 4
    for r in results:
        assert r.ok, r
        assert r.decided >= 5
        assert r.ratio <= 1


@pytest.mark.parametrize("value", ["cast(T, x > 0)", "sign(x) * floor(x)", "round(2 * x) + 1"])
def test_a_gradient_that_is_nothing_is_proved(value: str) -> None:
    """Points decide of an op without a slope, and one that has a slope fails."""
    head = "types: {T: [float64]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y = "
    flat = compile_text(spec_text("f", f"{head}{value}\n"))
    for r in check_family(flat):
        assert r.ok, r
        assert r.decided >= 4
    sloped = compile_text(spec_text("f", f"{head}{value} + 0.001 * x\n"))
    assert not by_name(replace(sloped, backward=flat.backward))["gradient against differences"].ok


STRAIGHT = "kernel: |\n  y = stop_gradient(round(x * x)) + (x - stop_gradient(x))\ngradient: {surrogate: true}\n"
STATED = "kernel: |\n  y = round(x * x)\ngradient:\n  surrogate: true\n  body: d_x = d_y * x\n"


@pytest.mark.parametrize("text", [STRAIGHT, STATED], ids=["held back", "stated"])
def test_a_surrogate_is_held_to_no_differences_and_what_goes_with_it_is_proved(text: str) -> None:
    head = "types: {T: [float64]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\n"
    family = compile_text(spec_text("f", head + text))
    assert unproved(family) == ["gradient against differences"]
    found = by_name(family)
    assert {*found} == {"jvp against gradient", "second gradient against differences", "jvp of gradient"}
    assert all(r.ok and r.decided for r in found.values())
    # Forward mode goes with the surrogate, not with the body; and without the word, the gradient is a wrong one.
    assert family.jvp is not None
    assert not by_name(replace(family, jvp=scaled(family.jvp, 1.01)))["jvp against gradient"].ok
    assert not by_name(replace(family, surrogates=()))["gradient against differences"].ok
    status = {r.name: r.status for r in make_plan(family)[1]}
    assert status["gradient against differences"] is Status.NOT_RUN
    assert status["jvp against gradient"] is Status.PASSED


def test_a_surrogates_own_surrogate() -> None:
    """What is held back in the gradient, too, has a second gradient that is no derivative."""
    head = "types: {T: [float64]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\n"
    family = compile_text(spec_text("f", f"{head}kernel: y = x * stop_gradient(x)\ngradient: {{surrogate: true}}\n"))
    assert unproved(family) == ["gradient against differences", "second gradient against differences"]
    assert all(r.ok for r in check_family(family))


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


EVEN = {
    "largest": "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = max[k](x[..., k])\n",
    "least_square": "inputs: {x: 'T[M, N]', w: 'T[N]'}\noutputs: {y: 'T[M]'}\nkernel: |\n  y[i] = min[k](x[i, k] ** 2 - w[k])\n",
    "over_groups": "inputs: {x: 'T[*A, N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[n] = max[*A](2 * x[*A, n])\n",
    "windows": (
        "inputs: {x: 'T[N, L]'}\nattributes: {k: {type: int, default: 2, check: k > 0}}\nshape: {M: L // k}\n"
        "outputs: {y: 'T[N, M]'}\nkernel: |\n  y[n, i] = max[p:k + 1](pad(x[n, i*k + p], -inf))\n"
    ),
    "less_the_largest": (
        "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]', m: 'T[...]'}\nkernel: |\n"
        "  m[...] = max[j](x[..., j])\n  y[..., k] = exp(x[..., k] - m[...])\n"
    ),
}
"""Ops to be derived with `ties: even`, which compares elements with the extreme that is taken from them."""

COMPARED = {
    "by_rank": (
        "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n"
        "  rank[..., k] = sum[j](cast(int64, 1) if x[..., j] < x[..., k] or (x[..., j] == x[..., k] and j < k) else 0)\n"
        "  y[..., i] = sum[k](x[..., k] if rank[..., k] == i else 0)\n"
    ),
    "at_least_the_others": (
        "inputs: {x: 'T[N]', w: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n"
        "  y[k] = w[k] ** 2 if all[j](x[k] * w[k] >= x[j] * w[j]) else x[k]\n"
    ),
    "saved_maximum": (
        "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = max[k](x[..., k])\n"
        "gradient:\n  saves: [y]\n  body: |\n    d_x[..., k] = d_y[...] if x[..., k] == y[...] else 0\n"
    ),
} | {name: f"{body}gradient: {{ties: even}}\n" for name, body in EVEN.items()}
"""Ops in which elements are compared with themselves, directly or in their gradients."""

PARTIAL = {
    "powers": (
        "inputs: {x: 'T[...]', y: 'T[...]'}\nattributes: {r: {type: float, default: 0.5}}\n"
        "outputs: {a: 'T[...]', b: 'T[...]', c: 'T[...]'}\nkernel: |\n  a = x ** y\n  b = x ** r\n  c = x ** -2 + (-x) ** 3\n"
    ),
    "entropy": "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[...]'}\nkernel: |\n  y[...] = sum[k](x[..., k] * log(x[..., k]))\n",
    "angles": "inputs: {x: 'T[N]'}\noutputs: {y: 'T[]'}\nkernel: |\n  y[()] = sum[i](acos(x[i]) ** 2)\n",
    "growth": "inputs: {x: 'T[N]'}\noutputs: {y: 'T[]'}\nkernel: |\n  y[()] = sum[i](acosh(x[i]))\n",
}
"""Ops without a value for a part of the real numbers."""


@pytest.mark.rotating
@pytest.mark.parametrize("name", [*COMPARED, *PARTIAL])
def test_points_decide_where_elements_are_compared_with_themselves_or_have_no_value(name: str) -> None:
    family = compile_text(spec_text(name, (COMPARED | PARTIAL)[name]), name)
    results = check_family(family, small_points(family.forward))
    assert len(results) >= 4
    for r in results:
        assert r.ok, r
        assert r.decided > 0


@pytest.mark.parametrize("name", [*COMPARED, *PARTIAL])
def test_a_wrong_gradient_fails_there(name: str) -> None:
    family = compile_text(spec_text(name, (COMPARED | PARTIAL)[name]), name)
    assert family.backward is not None
    few = small_points(family.forward)
    for output in family.backward.outputs:
        wrong = replace(family, backward=scaled(family.backward, 1.0001, output.name), backward_backward=None, jvp=None)
        found = {r.name: r.message for r in check_family(wrong, few)}
        assert " against " in found["gradient against differences"]


def test_a_maximum_that_is_not_shared_out_fails() -> None:
    """What is compared with the maximum passes its gradient on, what is not does not."""
    family = compile_text(spec_text("f", COMPARED["largest"]), "f")
    assert family.backward is not None

    def all_but_the_largest(e: Expr) -> Expr:
        return replace(e, fn="ne") if isinstance(e, Call) and e.fn == "eq" else e

    body = tuple(replace(s, value=rewrite(s.value, all_but_the_largest)) for s in family.backward.body)
    found = by_name(replace(family, backward=replace(family.backward, body=body), backward_backward=None, jvp=None))
    assert " against " in found["gradient against differences"].message


def test_a_gradient_without_values_is_not_left_out_where_the_op_has_some() -> None:
    body = "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[i] = x[i] ** 2\n"
    family = compile_text(spec_text("f", f"{body}gradient:\n  body: |\n    d_x[i] = d_y[i] * 2 * sqrt(x[i]) ** 2\n"), "f")
    cases = [({"x": np.array([-1.0, 2.0])}, {})]
    assert family.backward is not None
    assert "no point" in check_vjp("f", family.forward, family.backward, cases).message


def test_points_are_few_where_derived_ops_grow_faster() -> None:
    text = "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n  y[..., i] = prod[k:i + 1](x[..., k])\n"
    family = compile_text(spec_text("f", text), "f")
    every = [family_volume(family, c) for c in points(family.forward)]
    chosen = [family_volume(family, c) for c in points(family.forward, family=family)]
    assert max(every) > SMALL_DERIVED >= max(chosen)
    assert len(chosen) >= FEW


def test_ops_that_copy_have_points() -> None:
    """Their loops have as many points as there are elements, of which there must be fewer."""
    family = load_family(SPECS / "depth_to_space.yaml")
    cases = list(islice(points(family.forward), FEW))
    assert len(cases) == FEW
    assert min(r.decided for r in check_family(family, cases)) >= FEW


def test_integers_stay_integers_at_points() -> None:
    """Those of few bits too, which NumPy takes for no integers: a fraction in their place would be of another op."""
    operands = "".join(f", q{n}: '{d}[N]'" for n, d in enumerate(DTYPES) if d.is_integer)
    text = f"inputs: {{x: 'T[N]'{operands}}}\noutputs: {{y: 'T[N]'}}\nkernel: y = x * cast(T, q{DTYPES.index(DType.INT4)})\n"
    family = compile_text(spec_text("f", text), "f")
    chosen = list(islice(drawn(family.forward, points(family.forward)), 4))
    for inputs, _ in chosen:
        found = {n: str(a.dtype) for n, a in inputs.items() if a is not None}
        assert found == {o.name: "float64" if o.name == "x" else str(o.type) for o in family.forward.inputs}
    assert min(r.decided for r in check_family(family)) > 0


ENLARGED = """
types: {T: [float32, float64]}
inputs: {x: 'T[N, W]'}
attributes: {out: {type: int, check: out > 1}}
outputs: {y: 'T[N, out]'}
require: [W > 1]
kernel: |
  # The ends stay in place, so that some places are computed to lie on a line of the grid.
  place[i:out] = cast(T, i * (W - 1)) / cast(T, out - 1)
  low[i:out] = minimum(maximum(cast(int64, floor(place[i])), 0), W - 1)
  part[i:out] = place[i] - cast(T, low[i])
  y[n, i] = sum[w](x[n, w] * (1 - part[i] if w == low[i] else part[i] if w == low[i] + 1 else 0))
"""

STAIRS = """
types: {T: [float32, float64]}
inputs: {x: 'T[N, M]', scale: 'T[M]'}
outputs: {y: 'T[N, M]'}
kernel: |
  # Where m is even the cell is not known.
  cell[m:M] = floor(cast(T, m) / 2 + sin(cast(T, m)) ** 2 + cos(cast(T, m)) ** 2)
  y[n, m] = (cell[m] + 1) * x[n, m] * scale[m]
"""


@pytest.mark.parametrize("text", [ENLARGED, STAIRS], ids=["resize", "stairs"])
def test_what_lies_on_a_line_of_a_grid_is_left_out_and_the_rest_is_proved(text: str) -> None:
    family = compile_text(spec_text("f", text))
    assert family.backward is not None
    assert family.backward_backward is not None
    assert family.jvp is not None
    forward, gradient = family.forward, family.backward
    first = drawn(forward, islice(points(forward), 1, 3))
    second = second_order_points(forward, gradient, first)

    def proofs(factor: float) -> list[GradientResult]:
        backward, jvp, twice = (
            scaled(op, factor, op.outputs[-1].name) for op in (family.backward, family.jvp, family.backward_backward) if op
        )
        return [
            check_vjp("gradient", forward, backward, first),
            check_jvp("jvp", forward, jvp, gradient, first),
            check_vjp("second gradient", gradient, twice, second),
        ]

    for r in proofs(1.0):
        assert r.ok, r
        assert r.decided > r.flat
        assert r.ratio <= 1
    assert not [r for r in proofs(1.001) if r.ok]


def test_a_gradient_that_is_wide_everywhere_decides_nothing() -> None:
    """Leaving out all that is wide proves nothing."""
    text = STAIRS.replace("cast(T, m) / 2 + ", "")
    family = compile_text(spec_text("f", text))
    found = by_name(family)["gradient against differences"]
    assert found.decided == 0
    assert found.message == "no point was sharp enough to decide"


@pytest.mark.parametrize("choice", ["flag", "mode == 'third'", "alpha != 1", "not present(b)", "k == 2"])
def test_a_gradient_that_is_wrong_for_one_choice_fails(choice: str) -> None:
    """However many sizes there are to differentiate at, each choice of attributes and optional inputs is among the points."""
    text = (
        "types: {T: [float32, float64], U: [float32, float64]}\ninputs: {x: 'T[..., N]', w: 'U[N]', 'b?': 'T[N]'}\n"
        "attributes:\n  flag: {type: bool, default: false}\n  mode: {type: str, values: [first, second, third], default: first}\n"
        "  alpha: {type: float, default: 1.0}\n  k: {type: int, default: 1, check: 1 <= k <= 2}\noutputs: {y: 'T[..., N]'}\n"
        f"kernel: |\n  t[..., n] = stop_gradient(x[..., n]) if {choice} else x[..., n]\n"
        "  y[..., n] = t[..., n] * cast(T, w[n]) + (b[n] if present(b) else 0)\n"
    )
    family = compile_text(spec_text("f", text))
    assert sum(1 for _ in points(family.forward)) < 40
    assert not by_name(replace(family, jvp=None, backward_backward=None))["gradient against differences"].ok


@pytest.mark.parametrize("choice", ["flag", "mode == 'third'", "not present(b)"])
def test_a_gradient_that_is_wrong_for_one_choice_fails_where_few_sizes_fit(choice: str) -> None:
    text = (
        "types: {T: [float32, float64]}\ninputs: {x: 'T[B, H, S, D]', w: 'T[P, R]', 'b?': 'T[S]', i: 'int64[B, S]'}\n"
        "attributes:\n  flag: {type: bool, default: false}\n  mode: {type: str, values: [first, third], default: first}\n"
        "require: [2 * R <= D]\noutputs: {y: 'T[B, H, S, D]'}\nkernel: |\n"
        f"  t[b_, h, s, d] = stop_gradient(x[b_, h, s, d]) if {choice} else x[b_, h, s, d]\n"
        "  y[b_, h, s, d] = (t[b_, h, s, d] * w[i[b_, s], d] if d < R else x[b_, h, s, d]) + (b[s] if present(b) else 0)\n"
    )
    family = compile_text(spec_text("f", text))
    assert not by_name(replace(family, jvp=None, backward_backward=None))["gradient against differences"].ok


def test_what_chooses_is_among_the_points_where_the_loops_are_long() -> None:
    family = load_family(SPECS / "attention.yaml")
    found = list(points(family.forward, family=family))
    assert any(c.attributes.get("is_causal") for c in found)
    assert any(c.inputs["mask"] is None for c in found)


def test_steps_that_make_enclosures_wider_are_proved_in_smaller_calls() -> None:
    """Each step stretches a difference by up to 80: four of them leave nothing of it."""
    text = "types: {T: [float64]}\ninputs: {x: 'T[]', k: 'int64[N]'}\noutputs: {y: 'T[]'}\nrequire: [N > 0]\nkernel: |\n"
    family = compile_text(spec_text("f", text + "  h[t:N] = 20 * sin(4 * pad(h[t - 1], x[]))\n  y = h[N - 1]\n"))
    for name, found in by_name(family).items():
        assert found.ok, f"{name}: {found.message}"
        assert found.decided > found.flat


@pytest.mark.parametrize(("factor", "right"), [("1", True), ("1.001", False), ("0", False)])
def test_jumps_are_no_mistakes_of_a_gradient(factor: str, right: bool) -> None:
    """What is rounded here jumps on each long segment, and a gradient is wrong on those without a jump too."""
    text = (
        "types: {T: [float64]}\ninputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n"
        "  y[i] = x[i] - round(x[i] / 1e-8) * 1e-8\n"
        f"gradient:\n  body: |\n    d_x[i] = {factor} * d_y[i]\n"
    )
    assert by_name(compile_text(spec_text("f", text)))["gradient against differences"].ok == right
