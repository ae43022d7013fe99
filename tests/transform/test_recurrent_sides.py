"""What a step of a recurrence does not choose passes no gradient on, to both orders: be it a part of the step, shared with the
gradient, a temporary of the step, or one that is too large to be put inside the conditional that reads it."""

from __future__ import annotations

import numpy as np
import pytest

from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.transform.language import spec_text

LARGE = " + ".join(f"sqrt({{s}}) * sin({k} + {{s}})" for k in range(1, 13))

KERNELS = {
    "a part": "h[t:N] = e[t] + (log(1 + exp({p})) if p[t] < 30 else p[t])",
    "a temporary": "l[t:N] = exp({p})\n  h[t:N] = e[t] + (log(1 + l[t]) if p[t] < 30 else p[t])",
    "temporaries of temporaries": "l[t:N] = exp({p})\n  g[t:N] = log(1 + l[t])\n  h[t:N] = e[t] + (g[t] if p[t] < 30 else p[t])",
    "a temporary on both sides": "l[t:N] = sqrt({r})\n  h[t:N] = e[t] + (l[t] * l[t] if p[t] > 9 else l[t] if p[t] > 0 else 0)",
    "a large temporary": f"l[t:N] = {LARGE.format(s='{r}')}\n  h[t:N] = e[t] + (l[t] if p[t] > 0 else 0)",
    "a large temporary in two steps": (
        f"l[t:N] = {LARGE.format(s='{r}')}\n  g[t:N] = l[t] * e[t] if p[t] > 0 else 1\n"
        "  h[t:N] = g[t] + (2 * l[t] if p[t] > 1 else 0)"
    ),
}
"""Steps over the value `p` of the step before: written as {p} where it is not chosen beyond 30, as {r} where it is not at 0."""


def family(kernel: str) -> Family:
    body = f"kernel: |\n  p[t:N] = pad(h[t - 1], 0)\n  {kernel}\n  y = h[N - 1] * h[N - 1]\n"
    return compile_text(spec_text("f", f"inputs: {{e: 'T[N]'}}\noutputs: {{y: 'T[]'}}\nrequire: [N > 0]\n{body}"))


def gradient(of: Family, order: int, e: list[float]) -> dict[str, list[float]]:
    op = of.backward if order == 1 else of.backward_backward
    assert op is not None
    values = {o.name: np.float64(2.0) if o.name == "d_y" else np.arange(1.0, 1.0 + len(e)) for o in op.inputs}
    found = evaluate(op, values | {"e": np.array(e)}, {})
    return {name: np.ravel(v.value).tolist() for name, v in found.items()}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("order", [1, 2])
def test_what_a_step_does_not_choose(kernel: str, order: int) -> None:
    """The same gradient as where the argument is cut to what is chosen, which is finite on either side."""
    e = [0.5, 1000.0, 0.25, 3.0]
    found = gradient(family(KERNELS[kernel].format(p="p[t]", r="p[t]")), order, e)
    wanted = gradient(family(KERNELS[kernel].format(p="minimum(p[t], 30)", r="maximum(p[t], 0.125)")), order, e)
    assert found.keys() == wanted.keys()
    for name, values in wanted.items():
        assert np.isfinite(values).all()
        assert found[name] == pytest.approx(values)


CHOSEN = {
    "a sum so far": "h[t:N] = (h[t - 1] if keep[t] and t > 0 else 0) + log(x[t])",
    "a sum from the last": "h[t:N] = (0.5 * h[t + 1] if t + 1 < N and not keep[t + 1] else 0) + sqrt(x[t]) + x[t] / x[t]",
    "a temporary of the step": "l[t:N] = log(x[t])\n  h[t:N] = (sin(h[t - 1]) if keep[t] and t > 0 else 0) + l[t] * l[t]",
    "two that step": (
        "g[t:N] = (h[t - 1] if keep[t] and t > 0 else 1) * log(x[t])\n"
        "  h[t:N] = g[t] + (g[t - 1] / x[t] if keep[t] and t > 0 else 2)"
    ),
    "one that reads the other at its step": (
        "g[t:N] = (g[t - 1] * h[t - 1] if keep[t] and t > 0 else 1) - log(x[t])\n  h[t:N] = g[t] if m[t] else 0"
    ),
    "large": f"h[t:N] = (0.25 * h[t - 1] if keep[t] and t > 0 else 0) + {LARGE.format(s='x[t]')}",
    "in a sum": "h[t:N] = log(x[t]) + sum[k:N](h[k] / (k + 1) if k < t and keep[t] and k + 1 == t else 0)",
}
"""Steps with parts of infinite slope where x is 0; `keep` says where the step before is read, `m` what the output chooses."""


@pytest.mark.parametrize("kernel", CHOSEN)
@pytest.mark.parametrize("order", [1, 2])
def test_what_is_chosen_of_steps(kernel: str, order: int) -> None:
    """Where neither the output nor a step that is chosen reads it, a value has no gradient, to both orders."""
    inputs = "inputs: {x: 'T[N]', keep: 'bool[N]', m: 'bool[N]'}\noutputs: {y: 'T[N]'}\n"
    of = compile_text(spec_text("f", f"{inputs}kernel: |\n  {CHOSEN[kernel]}\n  y[t] = h[t] if m[t] else 0\n"))
    op = of.backward if order == 1 else of.backward_backward
    assert op is not None
    x = np.array([2.0, 0.0, 3.0, 1.5, 0.0, 4.0])
    given = {o.name: np.arange(1.0, 1.0 + len(x)) for o in op.inputs}
    given |= {"keep": np.array([0, 1, 0, 1, 1, 0], bool), "m": x > 0}
    found, wanted = (evaluate(op, given | {"x": at}, {}) for at in (x, np.where(x > 0, x, 1)))
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        assert np.isfinite(value.value).all()
        assert np.asarray(found[name].value) == pytest.approx(np.asarray(value.value)), name
