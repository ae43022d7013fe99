"""The kernels' prologue, compiled and called: it agrees with shape analysis on every call, message for message."""

from __future__ import annotations

import ctypes as c
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opc.analysis.shapes.attributes import fill
from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.emit import abi
from opc.emit.cpp.layout import wrap
from opc.emit.kernel import described
from opc.emit.shapes import cpp as shape_c
from opc.ir.dtypes import DType, resolve
from opc.ir.op import AttributeKind, Family, Op
from tests.amounts import examples
from tests.analysis import ops

RUNTIME = Path(__file__).parents[2] / "runtime" / "include"
MAX_RANK = 32


class DataType(c.Structure):
    _fields_ = (("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16))


class Tensor(c.Structure):
    _fields_ = (
        ("data", c.c_void_p), ("device_type", c.c_int32), ("device_id", c.c_int32), ("ndim", c.c_int32), ("dtype", DataType),
        ("shape", c.POINTER(c.c_int64)), ("strides", c.POINTER(c.c_int64)), ("byte_offset", c.c_uint64),
    )  # fmt: skip


class TensorType(c.Structure):
    _fields_ = (("dtype", DataType), ("ndim", c.c_int32), ("shape", c.c_int64 * MAX_RANK))


class Context(c.Structure):
    _fields_ = (("parallel_for", c.c_void_p), ("pool", c.c_void_p), ("message", c.c_char_p), ("message_size", c.c_int64))


def data_type(dtype: DType) -> DataType:
    return DataType(dtype.row.dlpack, dtype.bits, 1)


def tensor(shape: Sequence[int], dtype: DType = DType.FLOAT32, strides: Sequence[int] | None = None) -> Tensor:
    sizes = (c.c_int64 * max(1, len(shape)))(*shape)
    steps = None if strides is None else (c.c_int64 * max(1, len(shape)))(*strides)
    return Tensor(None, 1, 0, len(shape), data_type(dtype), sizes, steps, 0)


def attribute_struct(op: Op, values: Mapping[str, Any]) -> c.Structure:
    types = {"int64_t": c.c_int64, "double": c.c_double, "int32_t": c.c_int32, "char": c.c_char}
    fields = []
    for field in abi.attribute_fields(Family(op)):
        element = types[field.c_type]
        whole = element if field.count is None else c.POINTER(element) if field.count < 0 else element * field.count
        fields.append((field.name, whole))
    struct = type("Attributes", (c.Structure,), {"_fields_": fields or [("unused", c.c_char)]})()
    for attribute in op.attributes:
        encoded = abi.encode(attribute, values[attribute.name])
        if attribute.length == -1:
            setattr(struct, f"{attribute.name}_length", len(encoded))
            setattr(struct, attribute.name, c.cast((c.c_int64 * len(encoded))(*encoded), c.POINTER(c.c_int64)))
            continue
        setattr(struct, attribute.name, encoded if attribute.length is None else type(getattr(struct, attribute.name))(*encoded))
    return struct


class Library:
    """The compiled prologues of every hand-built op."""

    def __init__(self, path: Path) -> None:
        self.lib = c.CDLL(str(path))

    def call(self, name: str, inputs: list[Tensor | None], attributes: c.Structure, out: Any) -> tuple[int, str]:
        message = c.create_string_buffer(1024)
        context = Context(None, None, c.cast(message, c.c_char_p), 1024)
        pointers = (c.POINTER(Tensor) * max(1, len(inputs)))(*(None if t is None else c.pointer(t) for t in inputs))
        before_outputs = (pointers, out) if name.endswith("_begin") else (pointers,)
        after = () if name.endswith("_begin") else (out,)
        code = self.lib[name](*before_outputs, c.byref(attributes), *after, c.byref(context))
        return code, message.value.decode()

    def infer(
        self, op: Op, shapes: Mapping[str, Sequence[int] | None], attributes: Mapping[str, Any], dtype: DType = DType.FLOAT32
    ) -> dict[str, tuple[int, ...]]:
        inputs = [None if shapes.get(o.name) is None else tensor(shapes[o.name], dtype) for o in op.inputs]
        types = (TensorType * len(op.outputs))()
        code, message = self.call(abi.infer_name(op), inputs, attribute_struct(op, attributes), types)
        if code:
            assert code == 1
            raise ShapeError(message)
        binding = infer_types(op, {n: dtype for n, s in shapes.items() if s is not None}, attributes)
        result = {}
        for o, t in zip(op.outputs, types, strict=True):
            if t.ndim >= 0:
                result[o.name] = tuple(t.shape[: t.ndim])
                assert bytes(t.dtype) == bytes(data_type(resolve(o.type, binding)))
        return result


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    directory = tmp_path_factory.mktemp("shape_c")
    parts = ['#include "opc/core/shape.h"', '#include "opc/core/math.h"']
    for op in ops.EVERY:
        family = Family(op)
        parts += [
            described.attribute_struct(family),
            'extern "C" {',
            f"{abi.kernel_prototype(family, op)};",
            f"{abi.infer_prototype(family, op)};",
            "}",
            shape_c.definitions(family, op),
        ]
        parts.append(
            f'extern "C" OPC_EXPORT int32_t {op.name}_begin(const DLTensor *const *inputs, DLTensor *const *outputs, '
            f"const {abi.attributes_type(family)} *attributes, const opc_context *context) {{\n"
            f"  {shape_c.struct_name(op)} call;\n  return begin_{op.name}(inputs, outputs, attributes, call, context);\n}}"
        )
    source, output = directory / "shapes.cpp", directory / "shapes.so"
    source.write_text("\n\n".join(parts))
    flags = ["-std=c++17", "-O1", "-fPIC", "-shared", "-Wall", "-Wextra", "-Werror", "-fsanitize=undefined", "-static-libubsan"]
    subprocess.run(["g++", *flags, "-fno-sanitize-recover=all", f"-I{RUNTIME}", source, "-o", output], check=True)
    return Library(output)


def call_id(call: tuple[Op, object, object, object]) -> str:
    return f"{call[0].name}-{call[1]}-{call[2]}"


@pytest.mark.parametrize("call", ops.CALLS, ids=call_id)
def test_calls(library: Library, call: tuple[Op, dict, dict, dict | str]) -> None:
    op, shapes, attributes, expected = call
    if isinstance(expected, str):
        # `fill` refuses what the C interface has no attribute value for.
        with pytest.raises(ShapeError) as error:
            library.infer(op, shapes, fill(op, attributes))
        assert str(error.value) == expected
    else:
        assert library.infer(op, shapes, fill(op, attributes)) == expected


sizes = st.lists(st.sampled_from([0, 1, 1, 2, 3, 3, 3, 7]), max_size=4).map(tuple)


@st.composite
def any_call(draw: st.DrawFn) -> tuple[Op, dict[str, tuple[int, ...] | None], dict[str, Any]]:
    """A call that is often right: operands share one shape, now and then changed, and attributes near their ranges' ends."""
    op = draw(st.sampled_from(ops.EVERY))
    common = draw(sizes)
    shapes: dict[str, tuple[int, ...] | None] = {}
    for operand in op.inputs:
        kept = draw(st.integers(0, len(common)))
        shapes[operand.name] = draw(st.sampled_from([common, common, common[kept:], common[:kept], draw(sizes)]))
        if operand.optional and draw(st.booleans()):
            shapes[operand.name] = None
    values: dict[str, Any] = {}
    for a in op.attributes:
        numbers = st.integers(-3, 3) | st.sampled_from([2**62, -(2**63)])
        match a.kind:
            case AttributeKind.INT | AttributeKind.AXIS:
                values[a.name] = draw(numbers) if a.length is None else draw(st.lists(numbers, min_size=2, max_size=2))
            case AttributeKind.FLOAT:
                values[a.name] = draw(st.floats(-1, 1))
            case AttributeKind.STR:
                values[a.name] = draw(st.sampled_from(a.values))
            case AttributeKind.BOOL:
                values[a.name] = draw(st.booleans())
            case _:
                values[a.name] = "int16"
    return op, shapes, values


@settings(max_examples=examples(100, 400), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(call=any_call())
def test_any_call_agrees_with_shape_analysis(library: Library, call: tuple[Op, dict, dict]) -> None:
    op, shapes, attributes = call
    values = fill(op, attributes)
    dtypes = {n: None if s is None else DType.FLOAT32 for n, s in shapes.items()}
    try:
        actual: object = library.infer(op, shapes, values)
    except ShapeError as error:
        actual = str(error)
    try:
        infer_types(op, dtypes, values)
        expected: object = infer(op, shapes, attributes).outputs
    except ShapeError as error:
        expected = str(error)
    if isinstance(actual, str) and "beyond 64 bits" in actual:
        # Python's integers have no end, so there the rule has a value, which no memory could hold.
        assert any(abs(v) >= 2**62 for value in values.values() for v in (value if isinstance(value, tuple) else (value,)))
    else:
        assert actual == expected


def test_dtypes(library: Library) -> None:
    op = ops.LAYER_NORM
    assert library.infer(op, {"x": (2, 3)}, {}, DType.FLOAT16) == {"y": (2, 3), "mean": (2,)}
    f32, f64, i32 = DType.FLOAT32, DType.FLOAT64, DType.INT32
    for given_types in ((f32, f64), (i32, i32), (f64, i32)):
        inputs = [tensor((2, 3), given_types[0]), tensor((3,), given_types[1]), None]
        code, message = library.call("opc_layer_norm_infer", inputs, attribute_struct(op, {}), (TensorType * 2)())
        with pytest.raises(ShapeError) as error:
            infer_types(op, {"x": given_types[0], "w": given_types[1]})
        assert (code, message) == (1, str(error.value))


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (None, "the output y must be given"),
        (tensor((2, 3), DType.FLOAT64), "the output y has dtype float64, but must have float32"),
        (tensor((3, 2)), "the output y has shape [3, 2], but must have [2, 3]"),
        (tensor((2, 3), strides=(1, 2)), "the output y must be contiguous"),
        (tensor((2, 3), strides=(3, 1)), None),
        (tensor((2, 3)), None),
    ],
)
def test_outputs_are_checked(library: Library, output: Tensor | None, message: str | None) -> None:
    op = ops.LEAKY_RELU
    outputs = (c.POINTER(Tensor) * 1)(None if output is None else c.pointer(output))
    attributes = attribute_struct(op, fill(op, {}))
    code, text = library.call("leaky_relu_begin", [tensor((2, 3))], attributes, outputs)
    assert (code, text) == ((0, "") if message is None else (1, f"leaky_relu: {message}"))


def test_an_output_nothing_determines_is_refused(library: Library) -> None:
    op = ops.SCALE_BACKWARD
    outputs = (c.POINTER(Tensor) * 2)(c.pointer(tensor((2,))), c.pointer(tensor((3,))))
    code, text = library.call("scale_backward_begin", [tensor((2,)), None, tensor((2,))], attribute_struct(op, {}), outputs)
    assert code == 1
    assert text == "scale_backward: the output d_w can't be computed: nothing that was given determines its shape"


def test_tensors_that_are_none(library: Library) -> None:
    attributes = attribute_struct(ops.LEAKY_RELU, fill(ops.LEAKY_RELU, {}))
    elsewhere, negative, deep = tensor((2,)), tensor((2, -1)), tensor((1,) * 33)
    elsewhere.device_type = 2
    for bad, message in (
        (elsewhere, "x is not in the CPU's memory"),
        (negative, "x has shape [2, -1]"),
        (deep, "x has 33 axes, but at most 32 are possible"),
        (None, "the input x must be given"),
    ):
        result = library.call("opc_leaky_relu_infer", [bad], attributes, (TensorType * 1)())
        assert result == (1, f"leaky_relu: {message}")


def test_text_of_an_author_stays_text() -> None:
    check = ops.compare("gt", ops.AttrRef("alpha", ops.Weak.FLOAT), 0)
    text = 'alpha > 0 %s\\"; system("true"); //'
    alpha = ops.Attribute("alpha", AttributeKind.FLOAT, None, False, 1.0, check=check, check_text=text)
    op = ops.op("odd", [ops.operand("x", ops.DOTS)], [ops.operand("y", ops.DOTS)], (alpha,))
    assert '"alpha > 0 %s\\\\\\"; system(\\"true\\"); //");' in shape_c.definitions(Family(op), op)


def test_lines_are_broken_outside_of_strings() -> None:
    text = 'call("a, b + c and so on until the line is too long, a \\"quote\\", a backslash \\\\", one + two, "x, \\\\", other);'
    pieces = wrap(text * 2)
    assert len(pieces) > 1
    assert all(len(re.findall(r'(?<!\\)(?:\\\\)*"', piece)) % 2 == 0 for piece in pieces)
    assert " ".join(piece.strip() for piece in pieces) == text * 2
