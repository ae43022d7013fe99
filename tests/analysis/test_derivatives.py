"""Derivative texts of the function table become IR over given arguments."""

from __future__ import annotations

import pytest

from opc.analysis.elaborate.typing import derivative_template
from opc.diagnostics import SpecError
from opc.ir.dtypes import DType, TypeVar, Weak
from opc.ir.expr import Const, Read
from opc.ir.functions import FUNCTIONS, Function
from opc.ir.printer import format_expr

T = TypeVar("T", (DType.FLOAT16, DType.FLOAT32))
X, Y, R = Read("x", (), T), Read("y", (), T), Read("r", (), T)
ROWS = [f for f in FUNCTIONS.values() if f.derivative is not None]


@pytest.mark.parametrize("row", ROWS, ids=lambda f: f.name)
def test_every_text_of_the_table_can_be_written(row: Function) -> None:
    assert row.derivative is not None
    assert len(row.derivative) == row.arity
    for text in row.derivative:
        e = derivative_template(text)(X, Y if row.arity == 2 else None, R)
        assert e.type == T or isinstance(e.type, Weak)


def test_the_text_is_written_over_the_arguments() -> None:
    assert format_expr(derivative_template("-r / y")(X, Y, R)) == "-r[()] / y[()]"
    assert format_expr(derivative_template("1 if x >= y else 0")(X, Const(2, Weak.INT), R)) == "1 if x[()] >= 2 else 0"


def test_mistakes_are_diagnostics() -> None:
    with pytest.raises(SpecError, match="unknown name 'y'"):
        derivative_template("y + 1")(X, None, R)
    with pytest.raises(SpecError, match="invalid syntax"):
        derivative_template("x +")
