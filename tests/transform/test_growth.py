"""Derived ops grow with their source and not faster: counts of nodes, which are the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opc.analysis.elaborate.typing import elaborate
from opc.diagnostics import SpecError
from opc.ir import budget
from opc.ir.expr import Select, reads, size, walk
from opc.ir.op import Family, Op
from opc.pipeline import auto_backward, compile_text, normalise
from opc.spec.loader import loads
from opc.testing.oracle.evaluation import evaluate
from opc.testing.references.gradcheck import check_family
from opc.transform.derived import sunken
from opc.transform.normalize import sink
from tests.transform.language import small_points, spec_text

STEPS = {
    "a root or a square": "sqrt({t}) if {t} > c else {t} * {t}",
    "one of three": "log({t}) if c > 0 else (sqrt({t}) if c > -1 else exp({t}))",
    "a quotient": "{t} / c if {t} > 1 else {t} + 1",
}


def family(lines: list[str]) -> Family:
    kernel = "".join(f"  {line}\n" for line in lines)
    return compile_text(spec_text("f", f"inputs: {{x: 'T[...]', c: 'T[...]'}}\noutputs: {{y: 'T[...]'}}\nkernel: |\n{kernel}"))


def chain(step: str, length: int) -> list[str]:
    """Return the lines of a kernel of so many steps, each made of the one before."""
    steps = [f"t{k + 1} = {step.format(t=f't{k}')}" for k in range(length)]
    return ["t0 = x * x + 1", *steps, f"y = t{length}"]


def nodes(op: Op) -> int:
    return sum(size(s.value) for s in op.body)


def windows(length: int) -> str:
    """Return a spec of so many steps, each of which reads the one before at two places."""
    steps = [f"t{k + 1}[i:N - {k + 1}] = t{k}[i] * t{k}[i + 1] + exp(t{k}[i]) * t{k}[i + 1]" for k in range(length)]
    lines = ["t0[i] = x[i]", *steps, f"y[i] = t{length}[i]"]
    shapes = f"inputs: {{x: 'T[N]'}}\nshape: {{M: N - {length}}}\nrequire: [N >= {length + 1}]\noutputs: {{y: 'T[M]'}}"
    return spec_text("f", f"{shapes}\nkernel: |\n" + "".join(f"  {line}\n" for line in lines))


def test_what_is_put_into_conditionals_counts_with_what_it_reads() -> None:
    """There all of it stands inside: values that each read two others would be copied without end."""
    grown = []
    for length in (4, 8, 12):
        backward = auto_backward(normalise(elaborate(loads(windows(length), "<text>", whole=False))))
        assert backward is not None
        grown.append(nodes(sunken(backward)))
    assert grown[2] - grown[1] <= 1.5 * (grown[1] - grown[0])


@pytest.mark.parametrize(("most", "op"), [(20, "f"), (100, "f_backward"), (2000, "f_backward_backward")])
def test_an_op_that_grows_too_large_is_refused(most: int, op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The op is named, and the line of the spec that most of it comes from."""
    monkeypatch.setattr(budget, "MOST_NODES", most)
    with pytest.raises(SpecError) as error:
        compile_text(windows(4))
    (mistake,) = error.value.diagnostics
    assert mistake.message == f"'{op}' grows beyond {most:,} terms, and most of them come from here"
    assert mistake.span.source is not None
    assert "exp(t" in mistake.span.source.line(mistake.span.line)
    assert mistake.hint is not None
    assert "gradient: none" in mistake.hint


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_derivatives_grow_by_as_much_with_each_step(step: str) -> None:
    """As many steps more add as many nodes, in each op of the family: what a conditional chooses from is not copied into it."""
    short, middle, long = ([nodes(op) for op in family(chain(step, n)).ops] for n in (3, 6, 9))
    for first, second, third in zip(short, middle, long, strict=True):
        assert third - second <= 2 * (second - first)


def test_values_are_not_copied_into_conditions() -> None:
    """They are put into the sides of conditionals, for the sake of the gradient, which no condition passes on."""
    op = sink(family(chain(STEPS["a quotient"], 4)).forward)
    conditions = [e.cond for s in op.body for e in walk(s.value) if isinstance(e, Select)]
    assert len(conditions) > 4
    assert max(map(size, conditions)) == 3


@pytest.mark.parametrize(
    "steps", ["h[t] = sqrt(pad(h[t - 1], 1) + x[t])", "p[t:N] = pad(h[t - 1], 1)\n  h[t:N] = sqrt(p[t] + x[t])"]
)
def test_states_are_not_copied_into_conditionals(steps: str) -> None:
    """The last step alone would be, and one more in each derivative, also where a statement of its own reads the step before."""
    text = f"inputs: {{x: 'T[N]'}}\noutputs: {{y: 'T[N]'}}\nkernel: |\n  {steps}\n  y[t] = log(h[t]) if x[t] > 0 else 0\n"
    op = sink(compile_text(spec_text("f", text)).forward)
    (kept,) = [s for s in op.body if s.target == "y"]
    assert [r.operand for r in reads(kept.value)] == ["x", "h"]


def test_what_no_derivative_goes_through_stays_where_it_is() -> None:
    """A table of a function of indices and sizes is no more than a constant to whoever reads it inside a conditional."""
    body = "a[i:N] = cast(T, i) / N\n  t[i:N] = sqrt(a[i])\n  s[i] = sqrt(x[i])\n  y[i] = t[i] * s[i] if x[i] > 0 else 0\n"
    op = compile_text(spec_text("f", f"inputs: {{x: 'T[N]'}}\noutputs: {{y: 'T[N]'}}\nkernel: |\n  {body}"))
    kept = sink(op.forward).assignments["y"]
    assert [r.operand for r in reads(kept.value)] == ["x", "t", "x"]


def steep(what: str) -> list[str]:
    """Return the first lines of a kernel with a large temporary `t`, whose derivative is infinite where `what` is 0."""
    return [f"s = {' + '.join(f'sqrt({what}) * sin({k} + {what})' for k in range(1, 13))}", "t = s + log(c)"]


def gradients(kernel: list[str], x: list[float], order: int = 1) -> dict[str, list[float]]:
    f = family(kernel)
    op = f.backward if order == 1 else f.backward_backward
    assert op is not None
    values: dict[str, Any] = {o.name: np.ones(len(x)) for o in op.inputs} | {"x": np.array(x)}
    return {name: np.asarray(v.value).tolist() for name, v in evaluate(op, values, {}).items()}


@pytest.mark.parametrize(
    "last",
    [
        "y = t if x > 0 else 0",
        "y = (t if x > 0 else 0) + (2 * t if x > 1 else 0)",
        "y = (t * t if x > 1 else t) if x > 0 else x",
        "y = (t * t if t > 1 else t) if x > 0 else x",
        "y = (0 if x <= 0 else t)",
    ],
)
@pytest.mark.parametrize("order", [1, 2])
def test_what_stays_outside_a_conditional_passes_nothing_on_where_it_is_not_chosen(last: str, order: int) -> None:
    """The gradient is finite where a root of 0 is not chosen, to both orders, though the root is a statement of its own."""
    found = gradients([*steep("x"), last], [0.0, 0.5, 2.0], order)
    assert all(np.isfinite(values).all() for values in found.values())
    wanted = gradients([*steep("x"), last.replace("0 else", "-1 else").replace("<= 0", "<= -1")], [0.25, 0.5, 2.0], order)
    for name, values in found.items():
        assert values[1:] == pytest.approx(wanted[name][1:])


def test_what_is_chosen_somewhere_is_infinite_there() -> None:
    """A root that is read outside any conditional too has the slope it has."""
    assert not np.isfinite(gradients([*steep("x"), "y = (t if x > 0 else 0) + t"], [0.0])["d_x"]).any()


def test_a_chain_has_the_gradient_of_differences() -> None:
    chained = family(chain(STEPS["a root or a square"], 3))
    assert [r.message for r in check_family(chained, small_points(chained.forward)) if not r.ok] == []


def test_a_large_value_read_at_another_place_under_a_condition() -> None:
    """Where it is needed is found through a shift: a point that no chosen read reaches has no gradient."""
    terms = " + ".join(f"sqrt(x[i]) * sin({k} + x[i])" for k in range(1, 13))
    kernel = f"  t[i] = {terms}\n  y[j] = t[j + 1] if c[j] > 0 else 0\n"
    text = spec_text("f", "inputs: {x: 'T[N]', c: 'T[M]'}\nshape: {M: N - 1}\noutputs: {y: 'T[M]'}\nkernel: |\n" + kernel)
    op = compile_text(text).backward
    assert op is not None
    arrays = {"x": np.array([0.5, 0.0, 1.0, 1.0]), "c": np.array([-1.0, 1.0, 1.0]), "d_y": np.ones(3)}
    slopes = np.asarray(evaluate(op, {o.name: arrays[o.name] for o in op.inputs}, {})["d_x"].value)
    assert np.isfinite(slopes).all()
    assert slopes[:2].tolist() == [0.0, 0.0]
    assert (slopes[2:] != 0).all()
