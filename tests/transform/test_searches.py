"""Where the greatest of a run stands is searched for once in a gradient, whatever it stands under."""

from __future__ import annotations

import pytest

from opc.ir.expr import SEARCHES, reductions
from opc.ir.op import Op
from opc.pipeline import compile_text
from tests.transform.language import spec_text

GREATEST = """inputs: {x: 'T[V, D]', begins: 'int64[B]', ends: 'int64[B]', ids: 'int64[E]'}
require: [V > 0, E > 0]
outputs: {y: 'T[B, D]'}
kernel: |
  m[b, d] = max[e](x[ids[e], d] if begins[b] <= e and e < ends[b] else -inf)
  y[b, d] = m[b, d] * m[b, d] if begins[b] < ends[b] else 0
"""


def searches(op: Op | None) -> list[str]:
    assert op is not None
    return [s.target for s in op.body for e in reductions(s.value) if e.kind in SEARCHES]


@pytest.mark.parametrize("kind", ["max", "min"])
def test_it_is_a_temporary_that_all_read(kind: str) -> None:
    text = GREATEST.replace("max[", f"{kind}[").replace("-inf", "-inf" if kind == "max" else "inf")
    f = compile_text(spec_text("greatest", text))
    assert searches(f.backward) == [f"m_arg{kind}"]
    assert searches(f.jvp) == [f"m_arg{kind}"]
    names = searches(f.backward_backward)
    assert len(names) == 2  # one for each way, each with a statement of its own
    assert all("_arg" in name for name in names)
