"""What a recurrence computes at all steps at once is what it computes step by step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opc.pipeline import compile_text
from opc.testing.oracle import ahead
from opc.testing.oracle.evaluation import DomainError, evaluate
from opc.testing.oracle.orders import Ways

SPEC = """\
op: stepped
domain: opc.test
version: 1
doc: Steps with what goes in, also before the step, with gates, up to lengths.
types: {T: [float32, float64]}
inputs: {x: 'T[N, B]', g: 'T[B]', lengths: 'int64[B]'}
outputs: {y: 'T[N, B]'}
require: [N > 0]
kernel: |
  h[t:N, b:B] = ((h[t - 1, b] if t > 0 else 0) * tanh(x[t, b] * g[b]) + (exp(x[t - 1, b]) if t > 0 else 1) / g[b]
                 if t < lengths[b] else x[t, b] - t)
  y[t, b] = h[t, b] * 2
"""


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("steps", [1, 2, 5])
def test_the_sets_are_the_same(monkeypatch: pytest.MonkeyPatch, steps: int, dtype: Any) -> None:
    family = compile_text(SPEC, "stepped.yaml")
    assert family.backward is not None
    rng = np.random.default_rng(steps)
    x = rng.standard_normal((steps, 3)).astype(dtype)
    x.flat[:2] = np.inf, 1e30
    given = {
        "x": x,
        "g": np.full(3, 2, dtype),
        "lengths": np.array([steps, 1, 0]),
        "d_y": rng.standard_normal(x.shape).astype(dtype),
    }
    computed: list[object] = []
    of_step = ahead._of_step

    def counted(whole: Ways, step: int) -> Ways:
        computed.append(step)
        return of_step(whole, step)

    monkeypatch.setattr(ahead, "_of_step", counted)
    for op in (family.forward, family.backward):
        first = evaluate(family.forward, {i.name: given[i.name] for i in family.forward.inputs})
        arrays = {**given, **{name: np.asarray(r.bounds.low.astype(dtype)) for name, r in first.items()}}
        inputs = {i.name: arrays[i.name] for i in op.inputs}
        computed.clear()
        found = evaluate(op, inputs)
        assert set(computed) == (set(range(steps)) if steps > 1 else set())
        with monkeypatch.context() as patch:
            patch.setattr(ahead, "_parts", lambda *_: ())
            expected = evaluate(op, inputs)
        for name, want in expected.items():
            for part in ("low", "high", "nan"):
                np.testing.assert_array_equal(getattr(found[name].bounds, part), getattr(want.bounds, part), err_msg=name)


def test_a_step_that_counts_and_has_no_value_is_told() -> None:
    text = SPEC.replace("exp(x[t - 1, b]) if t > 0 else 1", "exp(x[ids[t, b], b])").replace(
        "'int64[B]'", "'int64[B]', ids: 'int64[N, B]'"
    )
    op = compile_text(text, "stepped.yaml").forward
    ids = np.array([[0], [1], [3]])
    given = {"x": np.ones((3, 1), np.float32), "g": np.ones(1, np.float32), "lengths": np.array([3]), "ids": ids}
    with pytest.raises(DomainError, match="an index of x is outside axis 0 of size 3"):
        evaluate(op, given)
    # Of the last step, which does not count here, nothing is asked.
    found = evaluate(op, {**given, "lengths": np.array([2])})["y"]
    assert found.bounds.low[1, 0] > 0
