"""Where the values of attributes make too many cases, those that choose between reductions are cases all the same."""

from __future__ import annotations

from opc.lower.lower import lower
from opc.pipeline import compile_text

HEAD = "op: probe\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\ngradient: none\n"
ATTRIBUTES = """attributes:
  mode: {type: str, values: [sum, greatest, first]}
  side: {type: str, values: [left, right, both]}
  turned: {type: bool, default: false}
"""
TWO_WAYS = f"""{HEAD}inputs: {{x: 'T[N, K]'}}
outputs: {{y: 'T[N]'}}
require: [K > 0]
{ATTRIBUTES}kernel: |
  t[n, k] = (-x[n, k] if turned else x[n, k]) * (1 if side == 'left' else 2 if side == 'right' else 3)
  y[n] = sum[k](t[n, k]) if mode == 'sum' else max[k](t[n, k]) if mode == 'greatest' else t[n, 0]
"""


def test_what_chooses_between_reductions_makes_cases() -> None:
    cases = [v.case.values for v in lower(compile_text(TWO_WAYS).forward)]
    assert cases == [(("mode", 0),), (("mode", 1),), (("mode", 2),)]


def test_few_cases_are_those_of_all_attributes() -> None:
    text = TWO_WAYS.replace(", both]", "]").replace("mode: {type: str, values: [sum, greatest, first]}", "mode: bool")
    text = text.replace("mode == 'sum'", "mode").replace("max[k](t[n, k]) if mode == 'greatest' else t[n, 0]", "t[n, 0]")
    assert {len(v.case.values) for v in lower(compile_text(text).forward)} == {3}
