"""The verifier of the loop IR, and that every kernel of every spec holds to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Present
from opc.ir.verify import VerifyError
from opc.loops.intrinsics import HEADER, HEADERS
from opc.loops.names import PARAMETERS
from opc.loops.nodes import Body, Continue, Do, How, If, Kernel, Let, Loop, Store, Yield
from opc.loops.values import Local, Speculative, call, number, variable
from opc.loops.verify import verify_kernel

SPECS = sorted((Path(__file__).parents[2] / "specs").glob("*.yaml"))
X = Local("x", DType.FLOAT32)


def kernel(*body: object) -> Kernel:
    statements: Body = tuple(body)
    return Kernel("row_nest", ("x",), (), statements)


def test_an_intrinsic_is_in_one_header() -> None:
    assert len(HEADER) == sum(len(names.split()) for names in HEADERS.values())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ((Store(X, number(0)),), "x is not declared"),
        ((Let("y", Weak.INT, variable("k")),), "k is not declared"),
        ((Do(call("no_such_function")),), "no_such_function is no intrinsic"),
        ((Continue(),), "a continue outside of a loop"),
        ((Yield(number(0)),), "a result outside of a block"),
        ((If(Present("x"), (If(Present("x"), (Do(call("at.next")),)),)),), "whether x is present is asked"),
        ((Let("y", Weak.INT, Speculative(number(0))),), "a Speculative is left"),
        ((Loop(How.SERIAL, "i", number(0), number(1), ()), Let("y", Weak.INT, variable("i"))), "i is not declared"),
        ((Loop(How.SERIAL, "i", number(0), number(4), (Let("i", Weak.INT, number(1)),)),), "i is declared again"),
        ((Let("i", Weak.INT, number(1)), Loop(How.SERIAL, "i", number(0), number(4), ())), "i is declared again"),
    ],
)
def test_refuses(body: tuple[object, ...], message: str) -> None:
    with pytest.raises(VerifyError, match=message):
        verify_kernel(kernel(*body), PARAMETERS)


def test_takes_what_is_declared_before() -> None:
    loop = Loop(How.SERIAL, "i", number(0), number(4), (Let("y", Weak.INT, variable("i")), Continue()))
    verify_kernel(kernel(loop), PARAMETERS)
