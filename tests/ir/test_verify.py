"""The verifier refuses every op that breaks a rule of the IR, and no good one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from opc.analysis.elaborate.typing import elaborate
from opc.ir.affine import Affine, AttrInt, Dim, Index
from opc.ir.dtypes import DType, TypeVar, Weak
from opc.ir.expr import (
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupAxis,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
)
from opc.ir.op import Assign, Derivation, Group, Op, Operand, Requirement
from opc.ir.verify import VerifyError, verify
from opc.spec.loader import loads

TEXT = """
op: good
domain: tests
version: 1
doc: Good.
types: {T: floating}
inputs: {x: 'T[..., D]', 'w?': 'T[D]', ids: 'int64[...]'}
attributes: {k: 'int[2]', a: float}
outputs: {y: 'T[..., D]', s: 'T[...]'}
kernel: |
  t[..., d] = x[..., d] * a + k[0] + cast(T, ids[...])
  s[...] = sum[d](t[..., d])
  y[..., d] = t[..., d] * (w[d] if present(w) else 1)
"""
GOOD = elaborate(loads(TEXT, "good.yaml"))
T = GOOD.types[0]
OTHER = TypeVar("U", (DType.FLOAT32,))
ELL = GroupRef("...")
D = Affine.of(Dim("D"))
X = Read("x", (ELL, Affine.of(Index("d"))), T)
TRUE = Const(True, DType.BOOL)


def with_value(value: Expr) -> Op:
    """Return the good op with the value of its first statement replaced."""
    return replace(GOOD, body=(replace(GOOD.body[0], value=value), *GOOD.body[1:]))


def with_first(**changes: object) -> Op:
    """Return the good op with its first statement changed."""
    return replace(GOOD, body=(replace(GOOD.body[0], **changes), *GOOD.body[1:]))


BAD_VALUES: list[tuple[str, Expr]] = [
    ("is read before it is assigned", Read("y", X.indices, T)),
    ("is read before it is assigned", Read("nothing", (), T)),
    ("a read of 'x' has type U", replace(X, type=OTHER)),
    ("has 1 indices for 2", replace(X, indices=(ELL,))),
    ("on the axis", replace(X, indices=(Affine.of(0), Affine.of(0)))),
    ("nothing binds *A", replace(X, indices=(GroupRef("A"), Affine.of(0)))),
    ("the index e is not bound", replace(X, indices=(ELL, Affine.of(Index("e"))))),
    ("the index cast(float32, 1) has type float32", replace(X, indices=(ELL, Cast(Const(1, Weak.INT), DType.FLOAT32)))),
    ("the pad of", replace(X, pad=TRUE)),
    ("checks an axis it has not", replace(X, checked=(2,))),
    ("the dimension M is not known", IndexValue(Affine.of(Dim("M")))),
    ("'k' has no element 2", IndexValue(Affine.of(AttrInt("k", 2)))),
    ("a is no int attribute", IndexValue(Affine.of(AttrInt("a")))),
    ("the attribute 'b' is not declared", AttrRef("b", Weak.INT)),
    ("the attribute 'a' has type weak int", AttrRef("a", Weak.INT)),
    ("'a' has no element 0", AttrRef("a", Weak.FLOAT, 0)),
    ("is not in the table", Call("frobnicate", (X,), T)),
    ("add of 1 arguments", Call("add", (X,), T)),
    ("has type U, and its parts give T", Call("add", (X, X), OTHER)),
    ("is no boolean", Select(X, X, X, T)),
    ("and its sides give T", Select(TRUE, X, X, OTHER)),
    ("over no axis", Reduce("sum", (), X, T)),
    ("the index d is bound twice", Reduce("sum", (Axis("d", D),), X, T)),
    ("the index i is not bound", Reduce("sum", (Axis("e", Affine.of(Index("i"))),), X, T)),
    ("the group of *A is not known", Reduce("sum", (GroupAxis("A"),), X, T)),
    ("names no broadcast operand", Reduce("sum", (BroadcastAxis("...", "x"),), X, T)),
    ("and its body gives T", Reduce("sum", (Axis("e", D),), X, DType.INT64)),
    ("a cast to a weak type", Cast(X, Weak.FLOAT)),
    ("'x' is no optional operand", Select(Present("x"), X, X, T)),
    ("the boolean True has type T", Const(True, T)),
    ("the number 0.5 has type int64", Const(0.5, DType.INT64)),
    ("the number 1 has type bool", Const(1, DType.BOOL)),
    ("a text is no value", StrConst("a")),
    ("a value of type bool in T", TRUE),
]

BAD_OPS: list[tuple[str, Op]] = [
    ("is no output or temporary", with_first(target="z")),
    ("is assigned 2 times", replace(GOOD, body=(GOOD.body[0], *GOOD.body))),
    ("'y' is not assigned", replace(GOOD, body=GOOD.body[:-1])),
    ("1 indices on 2 axes", with_first(indices=("d",))),
    ("stands on the axis", with_first(indices=("d", ELL))),
    ("an index stands twice", with_first(indices=("d", "d"))),
    ("'x' is declared 2 times", replace(GOOD, inputs=(*GOOD.inputs, GOOD.inputs[0]))),
    ("the type of 'z' is not declared", replace(GOOD, inputs=(*GOOD.inputs, Operand("z", OTHER, ())))),
    ("has the unknown group", replace(GOOD, temporaries=(replace(GOOD.temporaries[0], dims=(Group("A"), D)),))),
    ("the dimension M is not known", replace(GOOD, dims=(("K", Affine.of(Dim("M"))),))),
    ("is no boolean", replace(GOOD, require=(Requirement(Const(1, Weak.INT), "1"),))),
    ("can't be in place of", replace(GOOD, inplace=(("y", "z"),))),
    ("the derivation does not tell every input", replace(GOOD, derivation=Derivation("vjp", "f", (), ("x", "w")))),
    ("is read before it is assigned", replace(GOOD, body=(*GOOD.body[1:], GOOD.body[0]))),
]


def test_good_op() -> None:
    verify(GOOD)
    assert [s.target for s in GOOD.body] == ["t", "s", "y"]


@pytest.mark.parametrize(("message", "value"), BAD_VALUES, ids=[m for m, _ in BAD_VALUES])
def test_bad_value(message: str, value: Expr) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(with_value(value))
    assert message in str(caught.value)
    assert str(caught.value).startswith("good: ")


@pytest.mark.parametrize(("message", "op"), BAD_OPS, ids=[m for m, _ in BAD_OPS])
def test_bad_op(message: str, op: Op) -> None:
    with pytest.raises(VerifyError) as caught:
        verify(op)
    assert message in str(caught.value)


def test_spans_take_no_part() -> None:
    statement: Assign = GOOD.body[0]
    assert replace(statement, span=GOOD.body[1].span) == statement
