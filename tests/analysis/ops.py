"""Hand-built ops for the shape tests: only what shape analysis reads, no bodies."""

from __future__ import annotations

from opc.ir.affine import Affine, AttrInt, Dim, maximum, minimum
from opc.ir.dtypes import TYPE_SETS, Acc, DType, ElementType, TypeVar, Weak
from opc.ir.expr import AttrRef, Call, Const, Expr, IndexValue, StrConst
from opc.ir.op import Attribute, AttributeKind, DimSpec, Group, Op, Operand, Requirement

T = TypeVar("T", TYPE_SETS["floating"])
N, D = Affine.of(Dim("N")), Affine.of(Dim("D"))
DOTS, A, B = Group("..."), Group("A"), Group("B")


def operand(name: str, *dims: DimSpec, optional: bool = False, type: ElementType = T) -> Operand:
    return Operand(name, type, dims, optional)


def op(
    name: str,
    inputs: list[Operand],
    outputs: list[Operand],
    attributes: tuple[Attribute, ...] = (),
    dims: tuple[tuple[str, Affine], ...] = (),
    require: tuple[Requirement, ...] = (),
    broadcast: bool = False,
    types: tuple[TypeVar, ...] = (T,),
) -> Op:
    return Op(
        name, "opc.test", 1, "", types, tuple(inputs), attributes, tuple(outputs), (), dims, require, (), broadcast=broadcast
    )


def dim_value(name: str) -> Expr:
    return IndexValue(Affine.of(Dim(name)))


def compare(fn: str, left: Expr, right: int | float) -> Expr:
    weak = Weak.FLOAT if isinstance(right, float) else Weak.INT
    return Call(fn, (left, Const(right, weak)), DType.BOOL)


ALPHA = Attribute(
    "alpha", AttributeKind.FLOAT, None, False, 0.01,
    check=compare("ge", AttrRef("alpha", Weak.FLOAT), 0), check_text="alpha >= 0",
)  # fmt: skip
AXIS = Attribute("axis", AttributeKind.AXIS, None, False, -1, dim="N")

LEAKY_RELU = op("leaky_relu", [operand("x", DOTS)], [operand("y", DOTS)], (ALPHA,))
SOFTMAX = op("softmax", [operand("x", A, N, B)], [operand("y", A, N, B)], (AXIS,))
LOGSUMEXP_BACKWARD = op(
    "logsumexp_backward",
    [operand("x", A, N, B), operand("y", A, B), operand("d_y", A, B)],
    [operand("d_x", A, N, B, optional=True)],
    (AXIS,),
)
SOFTMAX_BACKWARD = op(
    "softmax_backward",
    [operand("y", A, N, B), operand("d_y", A, N, B)],
    [operand("d_x", A, N, B, optional=True)],
    (AXIS,),
)
K, R = Group("K"), Group("R")
AXES = Attribute("axes", AttributeKind.INT, -1, False, (), picks=("R", "K"))
KEEPDIMS = Attribute("keepdims", AttributeKind.BOOL, None, False, False, keeps="R")
REDUCE = op("reduce", [operand("x", K, R)], [operand("y", K)], (AXES, KEEPDIMS))
REDUCE_BACKWARD = op(
    "reduce_backward",
    [operand("y", K), operand("x", K, R), operand("w", R, optional=True), operand("d_y", K)],
    [operand("d_x", K, R, optional=True), operand("d_w", R, optional=True)],
    (AXES, KEEPDIMS),
)
REDUCE_JVP = op(
    "reduce_jvp",
    [operand("t_x", R, K, optional=True), operand("t_y", K, optional=True), operand("w", R)],
    [operand("t_z", R, K, optional=True), operand("t_m", K, optional=True)],
    (AXES, KEEPDIMS),
)
PLACES = tuple(
    Attribute(f"axis{n + 1}", AttributeKind.AXIS, None, False, n - 2, dim=dim, among=("K", n)) for n, dim in enumerate(("N", "P"))
)
P = Affine.of(Dim("P"))
SWAP = op(
    "swap",
    [operand("x", K, N, P), operand("b", N, P, K, optional=True), operand("w", N, optional=True)],
    [operand("y", K, P, N)],
    PLACES,
)
SWAP_JVP = op("swap_jvp", [operand("z", K), operand("w", P, N)], [operand("t_y", K, P, N, optional=True)], PLACES)
NEW = Attribute("axis", AttributeKind.AXIS, None, False, -1, dim="P")
STACK = op(
    "stack", [operand("a", A, B), operand("b", A, B, optional=True)], [operand("y", A, P, B)], (NEW,), (("P", Affine.of(2)),)
)
STACK_JVP = op(
    "stack_jvp",
    [operand("t_a", A, B, optional=True), operand("t_b", A, B, optional=True)],
    [operand("t_y", A, P, B, optional=True)],
    (NEW,),
    (("P", Affine.of(2)),),
)
SPREAD = op("spread", [operand("w", P), operand("x", N, A, D, B)], [operand("y", N, A, D, P, B), operand("z", A, B)], (NEW,))
SPREAD_BACKWARD = op(
    "spread_backward",
    [operand("d_z", A, B, optional=True), operand("x", N, A, D, B), operand("d_y", N, A, D, P, B)],
    [operand("d_w", P, optional=True)],
    (NEW,),
)
TOLD = op("told", [operand("s", A), operand("x", A, N, B), operand("z", A, B)], [operand("y", A, N, B)], (AXIS,))
TOLD_STACK = op("told_stack", [operand("s", A), operand("x", A, B)], [operand("y", A, P, B)], (NEW,), (("P", Affine.of(2)),))
LAYER_NORM = op(
    "layer_norm",
    [operand("x", DOTS, D), operand("w", D, optional=True), operand("b", D, optional=True)],
    [operand("y", DOTS, D), operand("mean", DOTS, type=Acc(T))],
)
ADD = op("add", [operand("x", Group("...", "x")), operand("y", Group("...", "y"))], [operand("z", DOTS)], broadcast=True)
ADD_BACKWARD = op(
    "add_backward",
    [operand("x", Group("...", "x")), operand("y", Group("...", "y")), operand("d_z", DOTS)],
    [operand("d_x", Group("...", "x"), optional=True), operand("d_y", Group("...", "y"), optional=True)],
    broadcast=True,
)
DUAL_BACKWARD = op(
    "dual_backward",
    [operand("d_u", DOTS, optional=True), operand("d_v", DOTS, optional=True)],
    [operand("d_x", DOTS, optional=True)],
)
SCALE_BACKWARD = op(
    "scale_backward",
    [operand("x", DOTS), operand("w", D, optional=True), operand("d_y", DOTS)],
    [operand("d_x", DOTS, optional=True), operand("d_w", D, optional=True)],
)
STRIDE = Attribute(
    "stride", AttributeKind.INT, 2, False, (1, 1),
    check=Call("and", tuple(compare("gt", AttrRef("stride", Weak.INT, i), 0) for i in range(2)), DType.BOOL),
    check_text="stride > 0",
)  # fmt: skip
PADDING = Attribute("padding", AttributeKind.INT, None, False, 0)
H, W = Dim("H"), Dim("W")
OH = (Affine.of(H) + Affine.of(AttrInt("padding")) * 2 - 3) // Affine.of(AttrInt("stride", 0)) + 1
OW = (Affine.of(W) + Affine.of(AttrInt("padding")) * 2 - 3) // Affine.of(AttrInt("stride", 1)) + 1
POOL = op(
    "pool",
    [operand("x", DOTS, Affine.of(H), Affine.of(W))],
    [operand("y", DOTS, Affine.of(Dim("OH")), Affine.of(Dim("OW")))],
    (STRIDE, PADDING),
    (("OH", OH), ("OW", OW)),
)
POOL_BACKWARD = op(
    "pool_backward",
    [operand("x", DOTS, Affine.of(H), Affine.of(W)), operand("d_y", DOTS, Affine.of(Dim("OH")), Affine.of(Dim("OW")))],
    [operand("d_x", DOTS, Affine.of(H), Affine.of(W), optional=True)],
    (STRIDE, PADDING),
    (("OH", OH), ("OW", OW)),
)
MODE = Attribute(
    "mode", AttributeKind.STR, None, False, "full", ("full", "half"),
    check=Call("or", (
        Call("ne", (AttrRef("mode", DType.BOOL), StrConst("half")), DType.BOOL),
        compare("lt", AttrRef("padding", Weak.INT), 2),
    ), DType.BOOL),
    check_text="mode != 'half' or padding < 2",
)  # fmt: skip
HALVE = op(
    "halve",
    [operand("x", DOTS, D), operand("s", Affine.of(2), D)],
    [operand("y", DOTS, D // 2)],
    (MODE, PADDING),
    require=(Requirement(compare("eq", IndexValue(D % 2), 0), "D % 2 == 0"),),
)
R = TypeVar("R", TYPE_SETS["any"])
CONVERT = op(
    "convert",
    [operand("x", DOTS)],
    [operand("y", DOTS, type=R)],
    (Attribute("to", AttributeKind.DTYPE, None, False, "float32", binds="R"),),
    types=(T, R),
)


def weak(fn: str, *args: Expr) -> Expr:
    return Call(fn, args, Weak.INT)


NV, DV = dim_value("N"), dim_value("D")
NESTED = op(
    "nested",
    [operand("x", N), operand("w", D)],
    [operand("y", N)],
    require=tuple(
        Requirement(compare("lt", e, limit), text)
        for e, limit, text in (
            (weak("mul", weak("add", NV, DV), NV), 40, "(N + D) * N < 40"),
            (weak("sub", NV, weak("sub", DV, NV)), 9, "N - (D - N) < 9"),
            (weak("neg", weak("sub", NV, DV)), 4, "-(N - D) < 4"),
            (weak("floordiv", weak("sub", NV, DV), NV), 1, "(N - D) // N < 1"),
            (
                weak("maximum", weak("mod", DV, NV), weak("abs", DV)),
                3,
                "maximum(D % N, abs(D)) < 3",
            ),
        )
    ),
)
# Conditions on sizes and attributes: a message has the values of both.
WITHIN = op(
    "within",
    [operand("x", N)],
    [operand("y", N)],
    (PADDING, STRIDE),
    require=(
        Requirement(Call("lt", (AttrRef("padding", Weak.INT), NV), DType.BOOL), "padding < N"),
        Requirement(
            Call("le", (weak("mul", AttrRef("stride", Weak.INT, 1), Const(2, Weak.INT)), NV), DType.BOOL), "stride[1]*2 <= N"
        ),
    ),
)
CUT = op(
    "cut",
    [operand("x", DOTS, D)],
    [operand("y", DOTS, Affine.of(Dim("K"))), operand("z", DOTS, maximum(D - AttrInt("padding"), Affine.of(0)))],
    (PADDING,),
    (("K", minimum(D, Affine.of(AttrInt("padding")))),),
)
EDGE = Attribute("edge", AttributeKind.STR, None, False, "valid", ("same", "full", "valid"))
SAME, FULL = (Affine.of(AttrInt("edge", flag=True, text=text)) for text in ("same", "full"))
EDGES = op(
    "edges",
    [operand("x", DOTS, D)],
    [operand("y", DOTS, Affine.of(Dim("K"))), operand("z", DOTS, D * SAME + FULL)],
    (EDGE,),
    (("K", D - 2 + SAME * 2 + FULL * 4),),
)
EVERY = (
    LEAKY_RELU, SOFTMAX, SOFTMAX_BACKWARD, LOGSUMEXP_BACKWARD, LAYER_NORM,
    ADD, ADD_BACKWARD, DUAL_BACKWARD, SCALE_BACKWARD, POOL, POOL_BACKWARD,
    HALVE, CONVERT, NESTED, WITHIN, CUT, EDGES, REDUCE, REDUCE_BACKWARD, REDUCE_JVP, SWAP, SWAP_JVP,
    STACK, STACK_JVP, SPREAD, SPREAD_BACKWARD, TOLD, TOLD_STACK,
)  # fmt: skip

CALLS: tuple[tuple[Op, dict[str, tuple[int, ...] | None], dict[str, object], dict[str, tuple[int, ...]] | str], ...] = (
    (LEAKY_RELU, {"x": (2, 3)}, {}, {"y": (2, 3)}),
    (LEAKY_RELU, {"x": ()}, {"alpha": 0}, {"y": ()}),
    (LEAKY_RELU, {"x": (2, 3)}, {"alpha": -1.5}, "leaky_relu: alpha = -1.5 violates its check: alpha >= 0"),
    (LEAKY_RELU, {"x": (2, 3)}, {"alpha": float("nan")}, "leaky_relu: alpha = nan violates its check: alpha >= 0"),
    (SOFTMAX, {"x": (2, 3, 4)}, {}, {"y": (2, 3, 4)}),
    (SOFTMAX, {"x": (2, 3, 4)}, {"axis": 0}, {"y": (2, 3, 4)}),
    (
        SOFTMAX, {"x": (2, 3)}, {"axis": 2},
        "softmax: axis = 2 is out of range: x has 2 axes, so it must be from -2 to 1",
    ),
    (SOFTMAX, {"x": ()}, {}, "softmax: x must have at least 1 axis, but has shape []"),
    (STACK, {"a": (3, 4), "b": (3, 4)}, {}, {"y": (3, 4, 2)}),
    (STACK, {"a": (3, 4), "b": (3, 4)}, {"axis": -2}, {"y": (3, 2, 4)}),
    (STACK, {"a": (3, 4), "b": None}, {"axis": 0}, {"y": (2, 3, 4)}),
    (STACK, {"a": (), "b": ()}, {"axis": 0}, {"y": (2,)}),
    (
        STACK, {"a": (3, 4), "b": (3, 4)}, {"axis": 3},
        "stack: axis = 3 is out of range: a has 2 axes beside the new one, so it must be from -3 to 2",
    ),
    (
        STACK, {"a": (3,), "b": None}, {"axis": -3},
        "stack: axis = -3 is out of range: a has 1 axis beside the new one, so it must be from -2 to 1",
    ),
    (STACK, {"a": (3, 4), "b": (3, 5)}, {"axis": 1}, "stack: *B is [4] in a, but [5] in b"),
    (TOLD, {"s": (3,), "x": (3, 4, 5), "z": (3, 5)}, {"axis": 1}, {"y": (3, 4, 5)}),
    (TOLD, {"s": (3,), "x": (3, 4), "z": (3,)}, {"axis": 0}, "told: *A is [3] in s, but [] in x"),
    (TOLD_STACK, {"s": (3,), "x": (3, 4)}, {"axis": 1}, {"y": (3, 2, 4)}),
    (TOLD_STACK, {"s": (3,), "x": (3, 4)}, {}, "told_stack: *A is [3] in s, but [3, 4] in x"),
    (STACK_JVP, {"t_a": None, "t_b": (3, 4)}, {"axis": 1}, {"t_y": (3, 2, 4)}),
    (SPREAD, {"w": (5,), "x": (7, 2, 3, 4)}, {"axis": 3}, {"y": (7, 2, 3, 5, 4), "z": (2, 4)}),
    (SPREAD, {"w": (5,), "x": (7, 2, 3, 4)}, {"axis": -3}, {"y": (7, 2, 5, 3, 4), "z": (3, 4)}),
    (SPREAD, {"w": (5,), "x": (7, 2, 3, 4)}, {}, {"y": (7, 2, 3, 4, 5), "z": (2, 3)}),
    (
        SPREAD, {"w": (5,), "x": (7, 2, 3, 4)}, {"axis": 1},
        "spread: axis = 1 is out of range: x has 4 axes beside the new one, so it must be from 2 to 4",
    ),
    (
        SPREAD_BACKWARD, {"d_z": (2, 4), "x": (7, 2, 3, 4), "d_y": (7, 2, 3, 5, 4)}, {"axis": 3},
        {"d_w": (5,)},
    ),
    (
        SPREAD_BACKWARD, {"d_z": (2, 4), "x": (7, 2, 3, 4), "d_y": (7, 2, 3, 5, 4)}, {"axis": 2},
        "spread_backward: *B is [5, 4] in d_y, but [2, 4] in d_z",
    ),
    (LOGSUMEXP_BACKWARD, {"x": (2, 3, 4), "y": (2, 4), "d_y": (2, 4)}, {"axis": 1}, {"d_x": (2, 3, 4)}),
    (
        LOGSUMEXP_BACKWARD, {"x": (2, 3, 4), "y": (2, 4), "d_y": (2, 5)}, {"axis": 1},
        "logsumexp_backward: *B is [4] in x, but [5] in d_y",
    ),
    (
        LOGSUMEXP_BACKWARD, {"x": (2, 3, 4), "y": (2,), "d_y": (2, 4)}, {"axis": 1},
        "logsumexp_backward: *B is [4] in x, but [] in y",
    ),
    (
        LOGSUMEXP_BACKWARD, {"x": (2, 3, 4), "y": (), "d_y": (2, 4)}, {"axis": 1},
        "logsumexp_backward: *A is [2] in x, but [] in y",
    ),
    (SOFTMAX_BACKWARD, {"y": (2, 3, 4), "d_y": (2, 3, 4)}, {"axis": 1}, {"d_x": (2, 3, 4)}),
    (
        SOFTMAX_BACKWARD, {"y": (2, 3, 4), "d_y": (2, 3)}, {"axis": 2},
        "softmax_backward: *A is [2, 3] in y, but [2] in d_y",
    ),
    (SOFTMAX_BACKWARD, {"y": (2, 3), "d_y": (2, 4)}, {"axis": 1}, "softmax_backward: N is 3 in y, but 4 in d_y"),
    (REDUCE, {"x": (2, 3, 4)}, {}, {"y": ()}),
    (REDUCE, {"x": (2, 3, 4)}, {"keepdims": True}, {"y": (1, 1, 1)}),
    (REDUCE, {"x": (2, 3, 4)}, {"axes": [1]}, {"y": (2, 4)}),
    (REDUCE, {"x": (2, 3, 4)}, {"axes": [-1, 0]}, {"y": (3,)}),
    (REDUCE, {"x": (2, 3, 4)}, {"axes": [-1, 0], "keepdims": True}, {"y": (1, 3, 1)}),
    (REDUCE, {"x": ()}, {}, {"y": ()}),
    (
        REDUCE, {"x": (2, 3)}, {"axes": [0, 2]},
        "reduce: axes = [0, 2] is out of range: x has 2 axes, so each must be from -2 to 1",
    ),
    (REDUCE, {"x": (2,)}, {"axes": [-2]}, "reduce: axes = [-2] is out of range: x has 1 axis, so each must be from -1 to 0"),
    (REDUCE, {"x": ()}, {"axes": [0]}, "reduce: axes = [0] is out of range: x has 0 axes"),
    (REDUCE, {"x": (2, 3)}, {"axes": [1, -1]}, "reduce: axes = [1, -1] names an axis of x twice"),
    (
        REDUCE_BACKWARD, {"y": (2, 4), "x": (2, 3, 4), "w": (3,), "d_y": (2, 4)}, {"axes": [1]},
        {"d_x": (2, 3, 4), "d_w": (3,)},
    ),
    (
        REDUCE_BACKWARD, {"y": (2, 1, 4), "x": (2, 3, 4), "d_y": (2, 1, 4)}, {"axes": [1], "keepdims": True},
        {"d_x": (2, 3, 4), "d_w": (3,)},
    ),
    (
        REDUCE_BACKWARD, {"y": (2, 3, 4), "x": (2, 3, 4), "d_y": (2, 1, 4)}, {"axes": [1], "keepdims": True},
        "reduce_backward: axis 1 of y must have size 1, but has 3",
    ),
    (
        REDUCE_BACKWARD, {"y": (2, 4), "x": (2, 3, 4), "d_y": (2, 1, 4)}, {"axes": [1]},
        "reduce_backward: *K is [2, 4] in x, but [2, 1, 4] in d_y",
    ),
    (
        REDUCE_BACKWARD, {"y": (2, 4), "x": (2, 3, 4), "w": (4,), "d_y": (2, 4)}, {"axes": [1]},
        "reduce_backward: *R is [3] in x, but [4] in w",
    ),
    (REDUCE_JVP, {"t_x": (2, 3, 4), "w": (3,)}, {"axes": [1]}, {"t_z": (2, 3, 4), "t_m": (2, 4)}),
    (REDUCE_JVP, {"t_y": (2, 4), "w": (3,)}, {"axes": [1]}, {"t_z": (2, 3, 4), "t_m": (2, 4)}),
    (REDUCE_JVP, {"t_y": (2, 1, 4), "w": (3,)}, {"axes": [1], "keepdims": True}, {"t_z": (2, 3, 4), "t_m": (2, 1, 4)}),
    (REDUCE_JVP, {"t_y": (2, 4), "w": (3,)}, {"axes": [1, 2]}, "reduce_jvp: axes lists 2 axes of t_z, but *R has 1"),
    (REDUCE_JVP, {"t_y": (7,), "w": ()}, {}, "reduce_jvp: axes lists 1 axis of t_z, but *R has 0"),
    (
        REDUCE_JVP, {"t_y": (2, 1, 4), "w": ()}, {"axes": [1], "keepdims": True},
        "reduce_jvp: axes lists 1 axis of t_z, but *R has 0",
    ),
    (REDUCE_JVP, {"t_x": (2, 3, 4), "w": ()}, {"axes": [1]}, "reduce_jvp: *R is [3] in t_x, but [] in w"),
    (SWAP, {"x": (2, 3, 4)}, {}, {"y": (2, 4, 3)}),
    (SWAP, {"x": (2, 3, 4), "b": (2, 3, 4), "w": (4,)}, {"axis1": 2, "axis2": 0}, {"y": (4, 3, 2)}),
    (SWAP, {"x": (3, 4)}, {"axis1": -1, "axis2": -2}, {"y": (4, 3)}),
    (SWAP, {"x": (3,)}, {}, "swap: x must have at least 2 axes, but has shape [3]"),
    (SWAP, {"x": (2, 3, 4)}, {"axis1": 3}, "swap: axis1 = 3 is out of range: x has 3 axes, so it must be from -3 to 2"),
    (SWAP, {"x": (2, 3, 4)}, {"axis2": -2}, "swap: axis2 = -2 is an axis of x that another attribute places"),
    (SWAP, {"x": (2, 3, 4), "b": (3, 4)}, {}, "swap: b must have 3 axes, but has shape [3, 4]"),
    (SWAP, {"x": (2, 3, 4), "b": (2, 5, 4)}, {}, "swap: N is 3 in x, but 5 in b"),
    (SWAP, {"x": (2, 3, 4), "b": (5, 3, 4)}, {}, "swap: *K is [2] in x, but [5] in b"),
    (SWAP, {"x": (2, 3, 4), "w": (4,)}, {}, "swap: N is 3 in x, but 4 in w"),
    (SWAP_JVP, {"z": (2,), "w": (4, 3)}, {"axis1": 0, "axis2": 2}, {"t_y": (4, 2, 3)}),
    (LAYER_NORM, {"x": (2, 3), "w": (3,), "b": None}, {}, {"y": (2, 3), "mean": (2,)}),
    (LAYER_NORM, {"x": (2, 3), "w": (4,), "b": None}, {}, "layer_norm: D is 3 in x, but 4 in w"),
    (LAYER_NORM, {"x": (2, 3), "b": (1, 3)}, {}, "layer_norm: b must have 1 axis, but has shape [1, 3]"),
    (ADD, {"x": (2, 1, 3), "y": (4, 1)}, {}, {"z": (2, 4, 3)}),
    (ADD, {"x": (), "y": (0, 1)}, {}, {"z": (0, 1)}),
    (ADD, {"x": (2, 3), "y": (4,)}, {}, "add: y [4] does not broadcast with [2, 3] of x"),
    (ADD_BACKWARD, {"x": (3,), "y": (2, 1), "d_z": (2, 3)}, {}, {"d_x": (3,), "d_y": (2, 1)}),
    (
        ADD_BACKWARD, {"x": (3,), "y": (2, 1), "d_z": (1, 3)}, {},
        "add_backward: y [2, 1] does not expand to [1, 3] of d_z",
    ),
    (DUAL_BACKWARD, {"d_u": None, "d_v": (2,)}, {}, {"d_x": (2,)}),
    (DUAL_BACKWARD, {"d_u": None, "d_v": None}, {}, "dual_backward: ... is unknown: give d_u or d_v"),
    (DUAL_BACKWARD, {"d_u": (3,), "d_v": (2,)}, {}, "dual_backward: ... is [3] in d_u, but [2] in d_v"),
    (SCALE_BACKWARD, {"x": (2,), "d_y": (2,)}, {}, {"d_x": (2,)}),
    (SCALE_BACKWARD, {"x": (2,), "w": (5,), "d_y": (2,)}, {}, {"d_x": (2,), "d_w": (5,)}),
    (POOL, {"x": (2, 7, 8)}, {"stride": [2, 1], "padding": 1}, {"y": (2, 4, 8)}),
    (POOL, {"x": (2, 7, 8)}, {"stride": [2, 0]}, "pool: stride = [2, 0] violates its check: stride > 0"),
    (POOL, {"x": (1, 8)}, {}, "pool: OH = (H + padding*2 - 3) // stride[0] + 1 would be -1"),
    (POOL_BACKWARD, {"x": (7, 8), "d_y": (5, 6)}, {}, {"d_x": (7, 8)}),
    (
        POOL_BACKWARD, {"x": (7, 8), "d_y": (5, 5)}, {},
        "pool_backward: axis 1 of d_y must have size OW = 6, but has 5",
    ),
    (HALVE, {"x": (3, 8), "s": (2, 8)}, {"mode": "half"}, {"y": (3, 4)}),
    (
        HALVE, {"x": (3, 8), "s": (2, 8)}, {"mode": "half", "padding": 2},
        "halve: mode = 'half' violates its check: mode != 'half' or padding < 2",
    ),
    (HALVE, {"x": (3, 8), "s": (3, 8)}, {}, "halve: axis 0 of s must have size 2, but has 3"),
    (HALVE, {"x": (3, 7), "s": (2, 7)}, {}, "halve: requires D % 2 == 0, but D = 7"),
    (HALVE, {"x": (3, 8), "s": (2, 8)}, {"mode": "none"}, "halve: mode = 'none' is not one of 'full', 'half'"),
    (CONVERT, {"x": (3, 8)}, {"to": "int32"}, {"y": (3, 8)}),
    (CUT, {"x": (3, 8)}, {"padding": 5}, {"y": (3, 5), "z": (3, 3)}),
    (CUT, {"x": (3,)}, {"padding": 5}, {"y": (3,), "z": (0,)}),
    (CUT, {"x": (3,)}, {"padding": -1}, "cut: K = minimum(D, padding) would be -1"),
    (EDGES, {"x": (2, 5)}, {}, {"y": (2, 3), "z": (2, 0)}),
    (EDGES, {"x": (2, 5)}, {"edge": "same"}, {"y": (2, 5), "z": (2, 5)}),
    (EDGES, {"x": (2, 5)}, {"edge": "full"}, {"y": (2, 7), "z": (2, 1)}),
    (EDGES, {"x": (1,)}, {}, "edges: K = D + (1 if edge == 'full' else 0)*4 + (1 if edge == 'same' else 0)*2 - 2 would be -1"),
    (WITHIN, {"x": (3,)}, {"padding": 2}, {"y": (3,)}),
    (WITHIN, {"x": (3,)}, {"padding": 3}, "within: requires padding < N, but N = 3, padding = 3"),
    (WITHIN, {"x": (3,)}, {"stride": [7, 2]}, "within: requires stride[1]*2 <= N, but N = 3, stride[1] = 2"),
    (NESTED, {"x": (3,), "w": (2,)}, {}, {"y": (3,)}),
    (NESTED, {"x": (5,), "w": (3,)}, {}, "nested: requires (N + D) * N < 40, but D = 3, N = 5"),
    (NESTED, {"x": (0,), "w": (2,)}, {}, "nested: requires (N - D) // N < 1, but D = 2, N = 0"),
    (NESTED, {"x": (1,), "w": (7,)}, {}, "nested: requires -(N - D) < 4, but D = 7, N = 1"),
    (NESTED, {"x": (2,), "w": (3,)}, {}, "nested: requires maximum(D % N, abs(D)) < 3, but D = 3, N = 2"),
)  # fmt: skip
"""Op, input shapes, attributes, and the outputs' shapes or the message of the refusal."""
