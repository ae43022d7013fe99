"""Comparisons of sizes and int attributes decide sizes: these are right in every call, and reads are proved inside."""

from __future__ import annotations

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate

HEAD = """\
op: foo
domain: tests
version: 1
doc: Foo.
types: {T: floating}
inputs: {x: 'T[N]'}
attributes: {a: {type: int, default: 0}, b: {type: int, default: 0}, f: {type: bool, default: false}}
"""
CONDITIONS = [
    "a < b",
    "a <= b",
    "a > b",
    "a >= N",
    "a == b",
    "a != b",
    "not a < b",
    "a < 0 and b < 0",
    "a < 0 or b > 2",
    "f and a < b",
    "not (f or a == 1)",
    "2 * a < b + 1",
    "a // 2 == b % 3",
    "-2 < a < b",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_size_is_what_python_says(condition: str) -> None:
    text = HEAD + f"outputs: {{y: 'T[M]'}}\nshape: {{M: 3 if {condition} else N + 1}}\nkernel: y[i] = x[0] if N > 0 else 0\n"
    op = compile_text(text).forward
    for n in (1, 3):
        for a in range(-4, 5):
            for b in range(-3, 4):
                for f in (False, True):
                    wanted = 3 if eval(condition, {}, {"a": a, "b": b, "N": n, "f": f}) else n + 1
                    assert infer(op, {"x": (n,)}, {"a": a, "b": b, "f": f}).outputs["y"] == (wanted,), (n, a, b, f)


PART = """\
outputs: {y: 'T[M]'}
shape:
  begin: minimum(maximum(a + N if a < 0 else a, 0), N)
  stop: minimum(maximum(b + N if b < 0 else b, 0), N)
  M: maximum(stop - begin, 0)
kernel: |
  y[i] = x[begin + i]
"""


def test_a_part_that_counts_from_the_end_is_read_inside() -> None:
    op = compile_text(HEAD + PART).forward
    x = np.arange(4.0)
    for a in range(-6, 7):
        for b in range(-6, 7):
            found = evaluate(op, {"x": x}, {"a": a, "b": b, "f": False})["y"]
            assert np.array_equal(found.value, x[a:b]), (a, b)
