"""Comparisons of sizes and attributes decide sizes: these are right in every call, and reads are proved inside."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.diagnostics import SpecError
from opc.ir.affine import Affine, AttrInt, count_flag_values, flag_values
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate

HEAD = """\
op: foo
domain: tests
version: 1
doc: Foo.
types: {T: floating}
inputs: {x: 'T[N]'}
attributes:
  a: {type: int, default: 0}
  b: {type: int, default: 0}
  f: {type: bool, default: false}
  m: {type: str, values: [u, v, w], default: w}
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
    "m == 'u'",
    "m != 'w'",
    "not m == 'v' and a < b",
    "m == 'u' or m == 'w'",
    "m == 'u' and m == 'v'",
    "m != 'v' and not (m == 'w' or f)",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_size_is_what_python_says(condition: str) -> None:
    text = HEAD + f"outputs: {{y: 'T[M]'}}\nshape: {{M: 3 if {condition} else N + 1}}\nkernel: y[i] = x[0] if N > 0 else 0\n"
    op = compile_text(text).forward
    for n in (1, 3):
        for a in range(-4, 5):
            for b in range(-3, 4):
                for f, m in product((False, True), "uvw" if "m" in condition else "w"):
                    wanted = 3 if eval(condition, {}, {"a": a, "b": b, "N": n, "f": f, "m": m}) else n + 1
                    assert infer(op, {"x": (n,)}, {"a": a, "b": b, "f": f, "m": m}).outputs["y"] == (wanted,), (n, a, b, f, m)


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


WINDOWS = """\
outputs: {y: 'T[M]'}
shape: {M: "N - 2 if m == 'u' else N if m == 'v' else N + 2"}
require: [N >= 2]
kernel: |
  y[i] = sum[k:3](pad(x[i + k - (0 if m == 'u' else 1 if m == 'v' else 2)], 0))
"""


@pytest.mark.parametrize(("m", "padding"), [("u", 0), ("v", 1), ("w", 2)])
def test_a_value_decides_a_size_and_an_index(m: str, padding: int) -> None:
    op = compile_text(HEAD + WINDOWS).forward
    x = np.arange(1.0, 6.0)
    wanted = np.convolve(np.pad(x, padding), np.ones(3), "valid")
    assert np.array_equal(evaluate(op, {"x": x}, {"m": m})["y"].value, wanted)


def test_a_read_under_a_value_is_proved_inside_where_the_value_gives_the_size() -> None:
    body = "outputs: {y: 'T[M]'}\nshape: {M: \"N if m == 'w' else minimum(N, 2)\"}\nkernel: 'y[i] = x[i]'\n"
    compile_text(HEAD + body)
    with pytest.raises(SpecError, match="x"):
        compile_text(HEAD + body.replace("minimum(N, 2)", "2"))


def test_an_attribute_has_one_value() -> None:
    u, v, f = (AttrInt("m", flag=True, text="u"), AttrInt("m", flag=True, text="v"), AttrInt("f", flag=True))
    assert Affine.of(u) * u == Affine.of(u)
    assert Affine.of(u) * v == Affine.of(0)
    assert Affine.of(u) * f * v == Affine.of(0)
    assert str(Affine.of(u)) == "(1 if m == 'u' else 0)"
    assert count_flag_values([f, u, v]) == 6
    assert sorted(tuple(int(e.constant or 0) for e in values.values()) for values in flag_values([f, u, v])) == [
        (0, 0, 0),
        (0, 0, 1),
        (0, 1, 0),
        (1, 0, 0),
        (1, 0, 1),
        (1, 1, 0),
    ]


def test_a_read_is_proved_inside_for_each_of_many_values() -> None:
    values = "abcdefgh"
    size = " else ".join(f"N - {n} if m == '{v}'" for n, v in enumerate(values)) + " else N"
    text = HEAD.replace("values: [u, v, w], default: w", f"values: [{', '.join(values)}], default: a")
    body = f"outputs: {{y: 'T[M]'}}\nshape: {{M: \"{size}\"}}\nrequire: [N >= 7]\nkernel: 'y[i] = x[i]'\n"
    op = compile_text(text + body).forward
    assert [infer(op, {"x": (9,)}, {"m": v}).outputs["y"] for v in values] == [(9 - n,) for n in range(8)]


SLICE = """\
op: foo
domain: tests
version: 1
doc: Every step-th element from start on, ahead of stop.
types: {T: floating}
inputs: {x: 'T[N]'}
attributes: {start: {type: int, default: 0}, stop: {type: int, default: 9223372036854775807}, step: {type: int, check: step > 0}}
shape: {s: 'BEGIN', e: 'END', M: 'MANY'}
outputs: {y: 'T[M]'}
kernel: y[i] = x[PLACE]
"""
CUT = "minimum(maximum({0}, 0), N)"
COUNTED = "minimum(maximum({0} + N if {0} < 0 else {0}, 0), N)"


@pytest.mark.parametrize("cut", [CUT, COUNTED], ids=["cut", "counted from the end"])
@pytest.mark.parametrize("many", ["maximum((e - s + step - 1) // step, 0)", "(maximum(e - s, 0) + step - 1) // step"])
def test_a_slice_with_a_step_is_read_inside(cut: str, many: str) -> None:
    text = SLICE.replace("BEGIN", cut.format("start")).replace("END", cut.format("stop")).replace("MANY", many)
    op = compile_text(text.replace("PLACE", "s + i*step")).forward
    x = np.arange(5.0)
    for start, stop, step in product((-7, -2, 0, 3, 9), (-3, 0, 4, 11), (1, 2, 7)):
        if cut is COUNTED or min(start, stop) >= 0:
            want = x[start:stop:step]
            assert infer(op, {"x": (5,)}, {"start": start, "stop": stop, "step": step}).outputs == {"y": want.shape}
            found = evaluate(op, {"x": x}, {"start": start, "stop": stop, "step": step})["y"]
            np.testing.assert_array_equal(found.value, want)
    with pytest.raises(SpecError) as refused:
        compile_text(text.replace("PLACE", "s + i*step + 1"))
    # Where the rules of sizes would fill a page, a message has their names.
    assert "i*step + s + 1 runs from s + 1 to M*step + s - step + 1 on an axis of size N" in str(refused.value)


@pytest.mark.parametrize("count", [2, 3])
def test_a_slice_of_several_axes_is_read_inside(count: int) -> None:
    n = range(count)
    cut = COUNTED.replace("N", "N{1}")
    rules = "".join(f"  s{k}: {cut.format(f'start[{k}]', k)}\n  e{k}: {cut.format(f'stop[{k}]', k)}\n" for k in n)
    rules += "".join(f"  M{k}: maximum((e{k} - s{k} + step[{k}] - 1) // step[{k}], 0)\n" for k in n)
    text = f"""\
op: foo
domain: tests
version: 1
doc: Every step-th element along each axis from start on, ahead of stop.
types: {{T: floating}}
inputs: {{x: 'T[{", ".join(f"N{k}" for k in n)}]'}}
attributes: {{start: 'int[{count}]', stop: 'int[{count}]', step: {{type: 'int[{count}]', check: step > 0}}}}
shape:
{rules}outputs: {{y: 'T[{", ".join(f"M{k}" for k in n)}]'}}
kernel: y[{", ".join(f"i{k}" for k in n)}] = x[{", ".join(f"s{k} + i{k}*step[{k}]" for k in n)}]
"""
    op = compile_text(text).forward
    x = np.arange(5.0**count).reshape((5,) * count)
    start, stop, step = ((-2, 1, -9)[:count], (4, -1, 9)[:count], (1, 2, 3)[:count])
    found = evaluate(op, {"x": x}, {"start": start, "stop": stop, "step": step})["y"]
    np.testing.assert_array_equal(found.value, x[tuple(map(slice, start, stop, step))])
    with pytest.raises(SpecError, match="on an axis of size N1"):
        compile_text(text.replace("s1 + i1*step[1]", "s1 + i1*step[1] + 1"))
