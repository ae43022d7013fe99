"""Ops built by hand, so that the tests of the proof depend on no front end and no transform."""

from __future__ import annotations

from opc.ir.affine import Affine, Dim, Index
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, ValueType, Weak
from opc.ir.expr import (
    ELLIPSIS,
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, Attribute, AttributeKind, DimSpec, Group, Op, Operand
from opc.ir.promotion import result_type

FLOATS = (DType.FLOAT16, DType.BFLOAT16, DType.FLOAT32, DType.FLOAT64)
T = TypeVar("T", FLOATS)
GROUP = GroupRef(ELLIPSIS)
REST = Group(ELLIPSIS)


def dim(name: str) -> Affine:
    return Affine.of(Dim(name))


def at(*names: str) -> tuple[Affine | GroupRef, ...]:
    return tuple(GROUP if n == "..." else Affine.of(Index(n)) for n in names)


def read(name: str, *indices: str, type: ValueType = T) -> Read:
    return Read(name, at(*indices), type)


def call(fn: str, *args: Expr) -> Call:
    t = result_type(FUNCTIONS[fn], tuple(a.type for a in args))
    assert t is not None, (fn, args)
    return Call(fn, args, t)


def num(value: float) -> Const:
    return Const(value, Weak.INT if isinstance(value, int) else Weak.FLOAT)


def operand(name: str, *dims: DimSpec, type: ElementType = T, optional: bool = False) -> Operand:
    return Operand(name, type, dims, optional)


def make(
    name: str,
    inputs: tuple[Operand, ...],
    outputs: tuple[Operand, ...],
    body: tuple[Assign, ...],
    attributes: tuple[Attribute, ...] = (),
    temporaries: tuple[Operand, ...] = (),
    types: tuple[TypeVar, ...] = (T,),
    broadcast: bool = False,
) -> Op:
    return Op(name, "opc.test", 1, "", types, inputs, attributes, outputs, temporaries, (), (), body, broadcast)


def pointwise(name: str, value: Expr, inputs: tuple[str, ...] = ("x",), attributes: tuple[Attribute, ...] = ()) -> Op:
    """An elementwise op: every operand has the shape of the first."""
    return make(
        name,
        tuple(operand(i, REST) for i in inputs),
        (operand("y", REST),),
        (Assign("y", (GROUP,), value),),
        attributes,
    )


X = read("x", "...")
ALPHA = Attribute(
    "alpha",
    AttributeKind.FLOAT,
    required=False,
    default=0.01,
    check=call("ge", AttrRef("alpha", Weak.FLOAT), num(0)),
    check_text="alpha >= 0",
)


def leaky_relu() -> Op:
    alpha = AttrRef("alpha", Weak.FLOAT)
    return pointwise("leaky_relu", Select(call("ge", X, num(0)), X, call("mul", alpha, X), T), attributes=(ALPHA,))


def leaky_relu_backward() -> Op:
    alpha = AttrRef("alpha", Weak.FLOAT)
    d = read("d_y", "...")
    op = pointwise("b", Select(call("ge", X, num(0)), d, call("mul", alpha, d), T), ("x", "d_y"), (ALPHA,))
    return make("leaky_relu_backward", op.inputs, (operand("d_x", REST),), (Assign("d_x", (GROUP,), op.body[0].value),), (ALPHA,))


def softmax() -> Op:
    """softmax over the last axis: three statements, two reductions."""
    n = dim("N")
    x, m, e = read("x", "...", "n"), read("m", "..."), read("e", "...", "n")
    body = (
        Assign("m", (GROUP,), Reduce("max", (Axis("n", n),), x, T)),
        Assign("e", (GROUP, "n"), call("exp", call("sub", x, m))),
        Assign("y", (GROUP, "n"), call("div", e, Reduce("sum", (Axis("k", n),), read("e", "...", "k"), T))),
    )
    return make(
        "softmax",
        (operand("x", REST, n),),
        (operand("y", REST, n),),
        body,
        temporaries=(operand("m", REST), operand("e", REST, n)),
    )


def layer_norm() -> Op:
    """layer_norm with the mean kept as an output in the accumulator type."""
    n = dim("N")
    x = read("x", "...", "j")
    mean = read("mean", "...", type=Acc(T))
    size = IndexValue(n)
    centred = call("sub", x, mean)
    var = call("div", Reduce("sum", (Axis("j", n),), call("mul", centred, centred), Acc(T)), size)
    body = (
        Assign("mean", (GROUP,), call("div", Reduce("sum", (Axis("j", n),), x, T), size)),
        Assign("y", (GROUP, "j"), call("mul", centred, call("rsqrt", call("add", var, num(1e-5))))),
    )
    outputs = (operand("y", REST, n), operand("mean", REST, type=Acc(T)))
    return make("layer_norm", (operand("x", REST, n),), outputs, body)


def add() -> Op:
    """Broadcasting addition."""
    inputs = (operand("a", Group(ELLIPSIS, "a")), operand("b", Group(ELLIPSIS, "b")))
    value = call("add", read("a", "..."), read("b", "..."))
    return make("add", inputs, (operand("y", REST),), (Assign("y", (GROUP,), value),), broadcast=True)


def mul_backward() -> Op:
    """Gradient of broadcasting multiplication with respect to `a`: a sum over the broadcast axes."""
    inputs = (operand("a", Group(ELLIPSIS, "a")), operand("b", Group(ELLIPSIS, "b")), operand("d_y", REST))
    value = Reduce("sum", (BroadcastAxis(ELLIPSIS, "a"),), call("mul", read("d_y", "..."), read("b", "...")), T)
    outputs = (operand("d_a", Group(ELLIPSIS, "a"), optional=True),)
    return make("mul_backward", inputs, outputs, (Assign("d_a", (GROUP,), value),), broadcast=True)


__all__ = [
    "ALPHA",
    "FLOATS",
    "GROUP",
    "REST",
    "Acc",
    "Cast",
    "T",
    "X",
    "add",
    "at",
    "call",
    "dim",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_backward",
    "make",
    "mul_backward",
    "num",
    "operand",
    "pointwise",
    "read",
    "softmax",
]
