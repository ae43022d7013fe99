"""Shape analysis: what calls bind, and how wrong ones are refused."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opc.analysis.shapes.inference import ShapeError, UndeterminedError, infer, infer_types, plan, undetermined
from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import DType
from opc.ir.op import Op
from opc.pipeline import compile_text
from tests.analysis import ops

WEIGHTED = """\
op: weighted
domain: opc.test
version: 1
doc: The operand without groups comes first.
types: {T: floating}
inputs: {w: 'T[N]', x: 'T[*A, N, *B]'}
attributes: {axis: {type: axis, dim: N, default: -1}}
outputs: {y: 'T[*A, N, *B]'}
kernel: |
  y[*A, n, *B] = x[*A, n, *B] * w[n]
"""


def call_id(call: tuple[Op, object, object, object]) -> str:
    return f"{call[0].name}-{call[1]}-{call[2]}"


@pytest.mark.parametrize("call", ops.CALLS, ids=call_id)
def test_calls(call: tuple[Op, dict, dict, dict | str]) -> None:
    op, shapes, attributes, expected = call
    if isinstance(expected, str):
        with pytest.raises(ShapeError) as error:
            infer(op, shapes, attributes)
        assert str(error.value) == expected
    else:
        assert infer(op, shapes, attributes).outputs == expected


def test_axis_is_counted_from_the_front() -> None:
    env = infer(ops.SOFTMAX, {"x": (2, 3, 4)}, {"axis": -2})
    assert env.attributes == {"axis": 1}
    assert env.dims == {"N": 3}
    assert env.groups == {("A", None): (2,), ("B", None): (4,)}


def test_an_axis_is_one_of_the_operand_with_groups() -> None:
    family = compile_text(WEIGHTED, "weighted.yaml")
    for op in (family.forward, family.backward):
        assert op is not None
        shapes = {o.name: {"w": (3,), "x": (2, 3, 4), "d_y": (2, 3, 4)}[o.name] for o in op.inputs}
        assert infer(op, shapes, {"axis": -2}).attributes["axis"] == 1, op.name


def test_every_axis_position_splits_the_shape() -> None:
    for rank, axis in itertools.product(range(1, 5), range(-5, 5)):
        shape = tuple(range(2, 2 + rank))
        if -rank <= axis < rank:
            env = infer(ops.SOFTMAX, {"x": shape}, {"axis": axis})
            assert (*env.groups["A", None], env.dims["N"], *env.groups["B", None]) == shape
            assert env.dims["N"] == shape[axis]
        else:
            with pytest.raises(ShapeError, match="out of range"):
                infer(ops.SOFTMAX, {"x": shape}, {"axis": axis})


shapes = st.lists(st.integers(0, 3), max_size=4).map(tuple)


@given(shapes, shapes)
def test_broadcasting_agrees_with_numpy(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    try:
        expected = np.broadcast_shapes(x, y)
    except ValueError:
        with pytest.raises(ShapeError):
            infer(ops.ADD, {"x": x, "y": y})
    else:
        assert infer(ops.ADD, {"x": x, "y": y}).outputs["z"] == expected


@given(shapes, shapes, shapes)
def test_gradients_of_broadcasting_expand(x: tuple[int, ...], y: tuple[int, ...], z: tuple[int, ...]) -> None:
    def expands(shape: tuple[int, ...]) -> bool:
        try:
            return np.broadcast_shapes(shape, z) == z
        except ValueError:
            return False

    try:
        outputs = infer(ops.ADD_BACKWARD, {"x": x, "y": y, "d_z": z}).outputs
    except ShapeError:
        assert not (expands(x) and expands(y))
    else:
        assert expands(x)
        assert expands(y)
        assert outputs == {"d_x": x, "d_y": y}


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"alpha": "0.1"}, "leaky_relu: alpha must be a float, but is '0.1'"),
        ({"alpha": True}, "leaky_relu: alpha must be a float, but is True"),
        ({"alpah": 0.1}, "leaky_relu: there is no attribute 'alpah'; did you mean 'alpha'?"),
        ({"alpha": [0.1]}, "leaky_relu: alpha must be a float, but is [0.1]"),
    ],
)
def test_attributes_of_the_wrong_type(attributes: dict, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        infer(ops.LEAKY_RELU, {"x": (2,)}, attributes)
    assert str(error.value) == message


def test_list_attributes() -> None:
    assert infer(ops.POOL, {"x": (5, 5)}, {"stride": np.array([2, 2])}).attributes["stride"] == (2, 2)
    with pytest.raises(ShapeError, match=r"stride must be a list of 2 ints, but is \[1\]"):
        infer(ops.POOL, {"x": (5, 5)}, {"stride": [1]})
    with pytest.raises(ShapeError, match=r"padding must be an int, but is 1\.5"):
        infer(ops.POOL, {"x": (5, 5)}, {"padding": 1.5})


def test_missing_and_unknown_inputs() -> None:
    with pytest.raises(ShapeError, match="the input x must be given"):
        infer(ops.LEAKY_RELU, {"x": None})
    with pytest.raises(ShapeError, match="there is no input 'y'"):
        infer(ops.LEAKY_RELU, {"x": (), "y": ()})


def test_environment_of_an_op() -> None:
    env = infer(ops.POOL, {"x": (2, 7, 8)}, {"stride": (2, 1), "padding": 1})
    assert env.dims == {"H": 7, "W": 8, "OH": 4, "OW": 8}
    assert env.shape_of("y") == env.shape_of(ops.POOL.output("y")) == (2, 4, 8)
    assert env.value(Affine.of(GroupSize("...")) * Dim("OH")) == 8


def test_an_input_may_have_a_derived_dimension() -> None:
    n, m = Affine.of(Dim("N")), Affine.of(Dim("M"))
    doubled = ops.op("doubled", [ops.operand("x", n), ops.operand("b", m)], [ops.operand("y", m)])
    doubled = replace(doubled, dims=(("M", n * 2),))
    assert infer(doubled, {"x": (3,), "b": (6,)}).outputs == {"y": (6,)}
    with pytest.raises(ShapeError, match="axis 0 of b must have size M = 6, but has 5"):
        infer(doubled, {"x": (3,), "b": (5,)})


def test_division_by_zero_is_refused() -> None:
    unchecked = ops.op(
        "stretch", [ops.operand("x", ops.N)], [ops.operand("y", ops.N // Affine.of(ops.AttrInt("padding")))], (ops.PADDING,)
    )
    with pytest.raises(ShapeError, match="a size of y = N // padding divides by zero"):
        infer(unchecked, {"x": (4,)})


def test_undetermined_sizes_are_named() -> None:
    backward = ops.op("sum_backward", [ops.operand("d_y", ops.DOTS)], [ops.operand("d_x", ops.DOTS, ops.N)])
    assert undetermined(backward) == ("N",)
    with pytest.raises(UndeterminedError, match="do not determine N"):
        plan(backward)
    add = ops.op("add_b", [ops.operand("d_z", ops.DOTS)], [ops.operand("d_x", ops.Group("...", "x"))], broadcast=True)
    assert undetermined(add) == ("... of x",)
    for op in ops.EVERY:
        assert undetermined(op) == ()


def test_types() -> None:
    f16, f32 = DType.FLOAT16, DType.FLOAT32
    assert infer_types(ops.LAYER_NORM, {"x": f16, "w": None}) == {"T": f16}
    with pytest.raises(ShapeError, match="layer_norm: T is float16 in x, but float32 in w"):
        infer_types(ops.LAYER_NORM, {"x": f16, "w": f32})
    with pytest.raises(ShapeError, match="leaky_relu: x has dtype int8, but T is one of float16, bfloat16, float32, float64"):
        infer_types(ops.LEAKY_RELU, {"x": DType.INT8})
    assert infer_types(ops.CONVERT, {"x": f16}, {"to": "bool"}) == {"T": f16, "R": DType.BOOL}
    with pytest.raises(ShapeError, match="to must be a dtype's name, but is 'int7'"):
        infer_types(ops.CONVERT, {"x": f16}, {"to": "int7"})
