"""The generated `shape.py`: agrees with shape analysis on numbers, and keeps symbols and unknown sizes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.analysis.shapes.attributes import fill
from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.analysis.shapes.scalar import evaluate
from opc.emit.python.carried import SCALAR_FUNCTIONS
from opc.emit.python.scalars import PythonScalarText
from opc.emit.shapes import python as shape_python
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType, Weak, resolve
from opc.ir.expr import AttrRef, Call, Const, IndexValue
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Family, Op
from opc.pipeline import compile_text
from tests import ruff
from tests.amounts import examples
from tests.analysis import ops
from tests.emit.test_shape_c import any_call, call_id


def load(op: Op) -> ModuleType:
    module = ModuleType(f"shape_of_{op.name}")
    exec(compile(shape_python.emit(Family(op, source_name=f"{op.name}.yaml")), f"{op.name}/shape.py", "exec"), module.__dict__)
    return module


MODULES = {op.name: load(op) for op in ops.EVERY}


def call(op: Op, shapes: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, tuple[Any, ...]]:
    function = getattr(MODULES[op.name], f"infer_shapes_{op.name}")
    result = function(*(shapes.get(o.name) for o in op.inputs), **attributes)
    assert len(result) == len(op.outputs)
    return {o.name: shape for o, shape in zip(op.outputs, result, strict=True) if shape is not None}


@pytest.mark.parametrize("example", ops.CALLS, ids=call_id)
def test_calls(example: tuple[Op, dict, dict, dict | str]) -> None:
    op, shapes, attributes, expected = example
    if isinstance(expected, str):
        with pytest.raises(MODULES[op.name].ShapeError) as error:
            call(op, shapes, attributes)
        assert str(error.value) == expected
    else:
        assert call(op, shapes, attributes) == expected


def test_a_list_of_another_length_is_refused() -> None:
    with pytest.raises(MODULES["pool"].ShapeError, match=r"pool: stride must be a list of 2 ints, but is \[1\]"):
        call(ops.POOL, {"x": (5, 5)}, {"stride": [1]})


@settings(max_examples=examples(100, 400), deadline=None)
@given(any_call())
def test_any_call_agrees_with_shape_analysis(example: tuple[Op, dict, dict]) -> None:
    op, shapes, attributes = example
    values = {name: value for name, value in fill(op, attributes).items() if value is not None}
    try:
        expected: object = infer(op, shapes, attributes).outputs
    except ShapeError as error:
        expected = str(error)
    try:
        actual: object = call(op, shapes, values)
    except MODULES[op.name].ShapeError as error:
        actual = str(error)
    assert actual == expected


@settings(max_examples=examples(60, 200), deadline=None)
@given(any_call(), st.data())
def test_unknown_sizes_never_contradict_known_ones(example: tuple[Op, dict, dict], data: st.DataObject) -> None:
    """With some sizes hidden, a call that is right stays right, and every size it still tells is right."""
    op, shapes, attributes = example
    try:
        expected = infer(op, shapes, attributes).outputs
    except ShapeError:
        return
    hidden = st.sampled_from([None, "n"])
    blurred = {
        name: None if shape is None else tuple(data.draw(hidden) if data.draw(st.booleans()) else size for size in shape)
        for name, shape in shapes.items()
    }
    actual = call(op, blurred, fill(op, attributes))
    assert actual.keys() == expected.keys()
    for name, shape in actual.items():
        assert len(shape) == len(expected[name])
        assert all(a == e for a, e in zip(shape, expected[name], strict=True) if isinstance(a, int))


def test_names_of_sizes_pass_through() -> None:
    assert call(ops.LAYER_NORM, {"x": ("batch", None, 8)}, {}) == {"y": ("batch", None, 8), "mean": ("batch", None)}
    assert call(ops.LAYER_NORM, {"x": ("batch", "d"), "w": (8,)}, {}) == {"y": ("batch", 8), "mean": ("batch",)}
    assert call(ops.SOFTMAX, {"x": ("a", "b", "c")}, {"axis": -2}) == {"y": ("a", "b", "c")}
    assert call(ops.ADD, {"x": ("a", 1, 3), "y": ("b", 1)}, {}) == {"z": ("a", "b", 3)}
    assert call(ops.ADD, {"x": ("a",), "y": ("b",)}, {}) == {"z": (None,)}
    assert call(ops.ADD, {"x": ("a",), "y": ("a",)}, {}) == {"z": ("a",)}
    assert call(ops.ADD, {"x": ("a",), "y": (4,)}, {}) == {"z": (4,)}


def test_derived_sizes_of_names_are_expressions() -> None:
    shapes = {"x": ("n", "h + 1", None)}
    outputs = call(ops.POOL, shapes, {"padding": 1, "stride": (2, 1)})
    assert outputs == {"y": ("n", "((h + 1) + 1*2 - 3) // 2 + 1", None)}
    assert call(ops.HALVE, {"x": ("n", "d"), "s": (2, "d")}, {}) == {"y": ("n", "d // 2")}


class Symbol:
    """An int that counts how often it was asked for its value, as torch.SymInt makes a guard then."""

    def __init__(self, value: int, asked: list[str]) -> None:
        self.value, self.asked = value, asked

    def _make(self, value: int) -> Symbol:
        return type(self)(value, self.asked)

    def _ask(self, what: str) -> None:
        self.asked.append(what)

    def __eq__(self, other: object) -> bool:
        self._ask("==")
        return self.value == getattr(other, "value", other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> bool:
        self._ask("<")
        return self.value < getattr(other, "value", other)

    __hash__ = None

    def __add__(self, other: int) -> Symbol:
        return self._make(self.value + other)

    __radd__ = __add__

    def __sub__(self, other: int | Symbol) -> Symbol:
        return self._make(self.value - (other.value if isinstance(other, Symbol) else other))

    def __floordiv__(self, other: int) -> Symbol:
        return self._make(self.value // other)

    def __mod__(self, other: int) -> Symbol:
        return self._make(self.value % other)

    def __sym_min__(self, other: int) -> Symbol:
        return self._make(min(self.value, other))

    def __int__(self) -> int:
        raise AssertionError("a symbolic size was made a number")

    __index__ = __int__


class Dimension(Symbol):
    """A symbol whose lesser is asked by another name, as of JAX's."""

    __sym_min__ = None

    def min(self, other: int) -> Symbol:
        return self._make(min(self.value, other))


@pytest.mark.parametrize("symbol", [Symbol, Dimension])
def test_symbolic_ints_are_compared_only_where_the_op_compares(symbol: type[Symbol]) -> None:
    asked: list[str] = []
    n, h, w = (symbol(v, asked) for v in (2, 7, 8))
    (shape,) = MODULES["leaky_relu"].infer_shapes_leaky_relu((n, h))
    assert shape[0] is n
    assert shape[1] is h
    MODULES["softmax"].infer_shapes_softmax((n, h, w), axis=1)
    (shape,) = MODULES["pool"].infer_shapes_pool((n, h, w), padding=1)
    assert [s.value for s in shape] == [2, 7, 8]
    (shape,) = MODULES["halve"].infer_shapes_halve((n, w), (2, w))
    assert shape[1].value == 4
    shape, rest = MODULES["cut"].infer_shapes_cut((n, w), padding=5)
    assert [shape[1].value, rest[1].value] == [5, 3]
    assert asked == []
    MODULES["layer_norm"].infer_shapes_layer_norm((n, h), (symbol(7, asked),))
    assert asked == ["=="]


@pytest.mark.parametrize("op", ops.EVERY, ids=lambda op: op.name)
def test_types_agree_with_analysis(op: Op) -> None:
    function = getattr(MODULES[op.name], f"infer_types_{op.name}")
    dtypes = (DType.FLOAT16, DType.FLOAT64, DType.INT32, None)
    for chosen in itertools.product(dtypes, repeat=len(op.inputs)):
        given_types = {o.name: d for o, d in zip(op.inputs, chosen, strict=True) if d is not None or o.optional}
        if len(given_types) < len(op.inputs):
            continue
        arguments = [None if d is None else d.value for d in chosen]
        assert answer(MODULES[op.name].ShapeError, partial(function, *arguments)) == answer(
            ShapeError, partial(named_types, op, given_types)
        )


def answer(refusal: type[Exception], ask: Callable[[], object]) -> object:
    """Return the answer, or the text of the refusal."""
    try:
        return ask()
    except refusal as error:
        return str(error)


def named_types(op: Op, dtypes: Mapping[str, DType | None]) -> tuple[str | None, ...]:
    binding = infer_types(op, dtypes)
    known = binding or not any(isinstance(o.type, type(ops.T)) for o in op.outputs)
    return tuple(resolve(o.type, binding).value if known else None for o in op.outputs)


def test_a_dtype_attribute_binds_its_variable() -> None:
    assert MODULES["convert"].infer_types_convert("float16", to="bool") == ("bool",)


def test_files_are_formatted(tmp_path: Path) -> None:
    for op in ops.EVERY:
        (tmp_path / f"{op.name}.py").write_text(shape_python.emit(Family(op, source_name=f"{op.name}.yaml")))
    ruff.accepts("format", "--diff", tmp_path)
    ruff.accepts("check", tmp_path)


VALUES = (-1e300, -7.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0, 800.0, 1e300, float("inf"), float("-inf"), float("nan"))


WHOLE = (-(2**63), -7, -1, 0, 1, 3, 62, 64, 2**63 - 1)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("and", "or", "not")])
def test_functions_of_conditions(name: str) -> None:
    """Every function of the table means the same in the evaluator and in generated text, over all kinds of numbers."""
    fn = FUNCTIONS[name]
    text = PythonScalarText(dim=str, points=str, present=str)
    arguments = tuple(AttrRef(n, Weak.FLOAT) for n in "xy"[: fn.arity])
    code = text.condition(Call(name, arguments, Weak.FLOAT))
    scope: dict[str, Any] = {}
    for helper in SCALAR_FUNCTIONS.values():
        exec("import math\nfrom typing import Any\n" + helper, scope)
    for values in itertools.product(WHOLE if fn.types == "integer" else VALUES, repeat=fn.arity):
        if name in ("floordiv", "mod") and values[1] == 0:
            continue
        names = dict(zip("xy", values, strict=False))
        expected = evaluate(Call(name, arguments, Weak.FLOAT), lambda s: 0, lambda n, _, names=names: names[n])
        assert repr(eval(code, scope, names)) == repr(expected) or eval(code, scope, names) == expected, values


def test_precedence_of_conditions() -> None:
    a, b, c = (AttrRef(n, Weak.INT) for n in "abc")

    def binary(fn: str, left: Any, right: Any) -> Call:
        return Call(fn, (left, right), DType.BOOL if fn in ("lt", "and", "or", "eq") else Weak.INT)

    text = PythonScalarText(dim=str, points=str, present=str)
    for e in (
        binary("sub", a, binary("sub", b, c)),
        binary("mul", binary("add", a, b), c),
        binary("floordiv", a, binary("mul", b, c)),
        Call("neg", (binary("add", a, b),), Weak.INT),
        Call("not", (binary("or", binary("lt", a, b), binary("lt", b, c)),), DType.BOOL),
        binary("and", binary("or", binary("lt", a, b), binary("lt", b, c)), binary("lt", a, Const(-2, Weak.INT))),
        binary("mod", binary("mul", a, b), c),
    ):
        for values in itertools.product((-3, 2, 5), repeat=3):
            names = dict(zip("abc", values, strict=True))
            expected = evaluate(e, lambda s: 0, lambda n, _, names=names: names[n])
            assert eval(text.condition(e), {}, names) == expected, text.condition(e)


@given(st.data())
@settings(max_examples=examples(60, 200), deadline=None)
def test_precedence_of_sizes(data: st.DataObject) -> None:
    h, w, n = (Affine.of(Dim(name)) for name in "HWn")
    total = Affine.of(0)
    for _ in range(data.draw(st.integers(1, 3))):
        numerator = data.draw(st.sampled_from([h, w + 1, h * 2 - w, n * 3]))
        divisor = data.draw(st.sampled_from([2, 3]))
        part = data.draw(st.sampled_from([numerator, numerator // divisor, numerator % divisor]))
        total = total + part * data.draw(st.sampled_from([-2, -1, -1, 1])) * data.draw(st.sampled_from([1, n]))
    total = total + data.draw(st.integers(-2, 2))
    text = PythonScalarText(dim=str, points=str, present=str).size(total)
    names = {name: data.draw(st.integers(0, 9)) for name in "HWn"}
    expected = evaluate(IndexValue(total), lambda s: names[s.name], lambda n, _: 0)
    assert eval(text, {}, names) == expected, text


def test_a_type_of_one_dtype_needs_no_operand() -> None:
    """All tangents may be absent, and no other operand has the type of `t_y`."""
    family = compile_text(
        "op: probe\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float64]}\n"
        "inputs: {h: 'bool[N]', s: 'T[]', x: 'T[N]'}\noutputs: {y: 'T[N]'}\n"
        "kernel: |\n  y[n] = s[()] + (x[n] if h[n] else 0)\n",
        "probe",
    )
    assert family.jvp is not None
    assert [o.name for o in family.jvp.inputs] == ["h", "t_s", "t_x"]
    assert infer_types(family.jvp, {"h": DType.BOOL}) == {"T": DType.FLOAT64}
    module = ModuleType("shape_of_probe")
    exec(shape_python.emit(family), module.__dict__)
    assert module.infer_types_probe_jvp("bool") == ("float64",)
    assert module.infer_shapes_probe_jvp((3,)) == ((3,),)
