"""Axes that are taken in parts are two axes to the loops."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.lower.rows.flatten import IrregularError
from opc.lower.rows.split import with_split_axes
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32]}
inputs: {x: 'T[N, C, *S]', k: 'T[C]'}
attributes: {groups: {type: int, check: groups > 0}}
shape: {G: groups, P: C // groups}
"""
WHOLE = "require: [C % groups == 0, P > 0]\n"


def op(body: str, require: str = WHOLE) -> Op:
    """Return an op with this body."""
    return compile_text(f"{HEAD}{require}{body}", "f.yaml").forward


SHARED = """\
outputs: {y: 'T[N, C, *S]', m: 'T[N, G]', s: 'T[C]'}
kernel: |
  m[n, g] = max[j:P, *S](x[n, g*P + j, *S])
  y[n, c, *S] = (x[n, c, *S] - m[n, c // P]) * k[c]
  s[c] = sum[n, *S](x[n, c, *S])
"""


def test_statements_on_the_axis_share_rows_with_those_on_its_parts() -> None:
    (variant,) = lower(op(SHARED))
    text = format_variant(variant)
    assert text.count("parallel") == 2
    assert "parallel whole rows of [n:N, c_part:G] along [c_point:P, *S]" in text
    assert "schedule: nontemporal, segments(k), " in text
    # A sum for each part of a row stays out of the rows: it is folded along the last axes.
    assert text.endswith(
        "s once a row\n      for each point of the row\n        accumulate s: T = sum(x)\n      store s: T = s\n"
    )


def test_an_axis_that_may_have_more_points_than_its_parts_stays_one() -> None:
    with pytest.raises(IrregularError, match="no axis is taken in parts"):
        with_split_axes(op(SHARED.replace("c // P]", "0]"), "require: [P > 0]\n"))


@pytest.mark.parametrize("used", ["k[c] + c", "pad(k[c + 1], 0)", "k[C - 1 - c]", "k[c // 2]", "k[c] + c // 2"])
def test_what_else_is_done_with_the_axis_keeps_it_one(used: str) -> None:
    (variant,) = lower(op(SHARED.replace("k[c]", used)))
    assert "c_part" not in format_variant(variant)
