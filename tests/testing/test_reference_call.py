"""Calls of references as patterns: names and elements are solved, the rest is compared."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest

from opc.ir.op import Op
from opc.pipeline import load_family
from opc.testing.references.reference_call import ABSENT, Match, NotApplicableError, native, same, unmentioned

SPEC = """
op: windows
domain: test
version: 1
doc: An op with attributes of several kinds.
types: {T: floating}
inputs: {x: 'T[N]', 'w?': 'T[N]'}
attributes:
  padding: {type: 'int[2]', default: [0, 0]}
  stride: {type: 'int[2]', default: [1, 1]}
  scale: {type: int, default: 1}
  flip: {type: bool, default: false}
  mode: {type: str, values: [a, b], default: a}
outputs: {y: 'T[N]'}
kernel: |
  y = scale * x
"""


@pytest.fixture
def op(tmp_path: Any) -> Op:
    path = tmp_path / "windows.yaml"
    path.write_text(SPEC)
    return load_family(path).forward


def met(op: Op, **arguments: tuple[str, Any]) -> Match:
    match = Match(op)
    for label, (text, value) in arguments.items():
        match.meet(label, ast.parse(text, mode="eval").body, value)
    return match


def test_names_and_elements_are_solved(op: Op) -> None:
    x = np.ones(3)
    match = met(
        op, a=("x", x), w=("w", None), pads=("[padding[0], padding[1], padding[0]]", [1, 2, 1]), s=("stride", np.array([3])),
        sizes=("[1, scale]", np.array([1.0, 2.0])), flip=("flip", 1), mode=("mode", b"b"),
    )  # fmt: skip
    match.verify(lambda e: ast.literal_eval(e))
    assert match.inputs == {"x": x, "w": None} or match.inputs["x"] is x
    assert match.values() == {"padding": (1, 2), "stride": (3, 3), "scale": 2, "flip": True, "mode": "b"}


def test_the_last_part_of_a_sum_is_solved(op: Op) -> None:
    match = met(op, pads=("[padding[0], padding[0] + padding[1], padding[1] + stride[0]]", [1, 3, 1]), s=("scale", 2))
    assert match.values() == {"padding": (1, 2), "stride": (-1, 1), "scale": 2}
    assert met(op, s=("scale", 2), sum=("scale + stride[1]", 5)).values()["stride"] == (1, 3)


@pytest.mark.parametrize(
    ("text", "value", "message"),
    [
        ("[padding[0], padding[0]]", [1, 2], r"pads = \[1, 2\], where windows has \[padding\[0\], padding\[0\]\]"),
        ("[padding[0], padding[1]]", [1, 2, 3], r"pads = \[1, 2, 3\]"),
    ],
)
def test_values_of_another_form_do_not_apply(op: Op, text: str, value: Any, message: str) -> None:
    with pytest.raises(NotApplicableError, match=message):
        met(op, pads=(text, value))


def test_the_rest_is_compared(op: Op) -> None:
    match = met(op, mode=("'nearest'", b"nearest"), twice=("2 * scale", 4), scale=("scale", 2))
    match.verify(lambda e: eval(compile(ast.Expression(e), "", "eval"), {"scale": 2}))
    wrong = met(op, mode=("'nearest'", b"cubic"))
    with pytest.raises(NotApplicableError, match="mode = 'cubic', where windows has 'nearest'"):
        wrong.verify(lambda e: ast.literal_eval(e))


def test_an_integer_that_nothing_else_tells_is_solved(op: Op) -> None:
    def evaluate(pattern: ast.expr, names: Any) -> Any:
        return eval(compile(ast.Expression(pattern), "", "eval"), dict(names))

    x = np.float32(0.5)
    match = met(op, end=("2 - scale * x", np.float32(-1.0)), x=("x", x))
    match.solve(evaluate)
    assert match.values() == {"scale": 6}
    match.verify(lambda e: evaluate(e, {"x": x, **match.values()}))
    between = met(op, end=("2 - scale * x", np.float32(-1.25)), x=("x", x))
    between.solve(evaluate)
    with pytest.raises(NotApplicableError, match=r"end = -1\.25, where windows has 2 - scale \* x"):
        between.verify(lambda e: evaluate(e, {"x": x, **between.values()}))
    for text in ("2 - scale * w", "2 - scale * 0", "2 - scale * x + stride", "x + 2"):
        unknown = met(op, end=(text, 5.0), x=("x", x))
        unknown.solve(evaluate)
        assert "scale" not in unknown.values()


def test_conditional_operands_are_solved_by_the_default(op: Op) -> None:
    x = np.ones(3)
    assert met(op, a=("x.mT if flip else x", x)).inputs["x"] is x


def test_arguments_left_out_keep_our_defaults(op: Op) -> None:
    assert met(op, scale=("scale", ABSENT), stride=("stride", None)).values() == {}


def test_what_is_not_mentioned_must_be_ours_or_the_default(op: Op) -> None:
    match = Match(op)
    unmentioned(match, {"scale": 3, "ceil_mode": 0}, {"ceil_mode": 0})
    assert match.values() == {"scale": 3}
    with pytest.raises(NotApplicableError, match="ceil_mode = 1, which windows does not have"):
        unmentioned(match, {"ceil_mode": 1}, {"ceil_mode": 0})


def test_equality_of_values() -> None:
    assert same(np.array([1, 2]), (1, 2))
    assert not same(np.array([1, 2]), None)
    assert not same("a", np.array("a"))
    assert same(2, 2.0)
    assert native(np.float32(1.5)) == 1.5
