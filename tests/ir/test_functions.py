"""Every row of the function table on every column, against mpmath with 120 bits."""

from __future__ import annotations

import ast
import ctypes
import itertools
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest

import opc
from opc.analysis.elaborate.typing import derivative_template
from opc.analysis.shapes.scalar import function
from opc.build.toolchain import CXX_FLAGS
from opc.ir.dtypes import DType, Weak, is_bool
from opc.ir.expr import Read, walk
from opc.ir.function import Function
from opc.ir.functions import CALLABLE, FUNCTIONS
from opc.ir.promotion import join, result_type
from opc.testing.oracle.enclosures import numpy_function
from tests.amounts import MANY
from tests.emit.compilers import COMPILERS, run_compiler
from tests.ir.scalars import ROWS, ids, inside, numbers, truth

KINDS = {"float": np.float32, "double": np.float64}


def everywhere(f: Function, kind: type) -> np.ndarray:
    """Return arguments all over the interval a function is defined on, small and large ones evenly by magnitude.

    Of special functions, which mpmath takes long for, a fourth of them, and of all a third without OPC_FUZZ.
    """
    rng = np.random.default_rng(7)
    info = np.finfo(kind)
    magnitudes = np.exp2(rng.uniform(math.log2(info.smallest_subnormal) + 1, math.log2(info.max) - 1, 1500))
    near_one = np.concatenate([1 - np.exp2(-rng.uniform(1, info.nmant, 100)), 1 + np.exp2(-rng.uniform(1, info.nmant, 100))])
    sizes = np.concatenate([magnitudes, near_one, rng.uniform(0, 120, 400), rng.uniform(0, 2, 400)])
    x = np.concatenate([sizes, -sizes]).astype(kind)
    low, high = f.domain
    return x[(x > low) & (x < high)][:: (1 if MANY else 3) * (4 if f.numpy_in_double else 1)]


Exact = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
KNOWN: dict[tuple[str, type, bytes], Exact] = {}
"""Exact results by function, type and arguments: two compilers and NumPy are held to the same."""


def exact_results(f: Function, arguments: tuple[np.ndarray, ...], kind: type) -> Exact:
    """Return exact results in units in their last place as stored in `kind`, as sums of two numbers, and the units' exponents.

    A result that is no finite number has the exponent 0 and is a NaN, one that `kind` does not hold is infinite.
    """
    key = f.name, kind, b"".join(a.tobytes() for a in arguments)
    if key in KNOWN:
        return KNOWN[key]
    info = np.finfo(kind)
    high, low, exponents = (np.zeros(len(arguments[0]), t) for t in (np.float64, np.float64, np.int64))
    for n in range(len(high)):
        exact = truth(f, tuple(a[n] for a in arguments))
        if mpmath.im(exact) != 0 or not mpmath.isfinite(exact):
            high[n] = math.nan
        elif abs(exact) >= mpmath.mpf(float(info.max)):
            high[n] = math.inf
        else:
            exponent = max(math.floor(mpmath.log(abs(exact), 2)) if exact != 0 else -(10**6), int(info.minexp)) - info.nmant
            units = mpmath.ldexp(exact, -exponent)
            high[n], low[n], exponents[n] = float(units), float(units - mpmath.mpf(float(units))), exponent
    return KNOWN.setdefault(key, (high, low, exponents, np.isfinite(high)))


def ulps(f: Function, found: np.ndarray, arguments: tuple[np.ndarray, ...], kind: type) -> float:
    """Return the largest error in units in the last place of the exact result, as stored in `kind`, beyond the absolute one."""
    info = np.finfo(kind)
    high, low, exponents, told = exact_results(f, arguments, kind)
    # The largest number or infinity, whichever way it is rounded.
    assert (abs(found[np.isinf(high)]) >= info.max * kind(1 - 8 * float(info.eps))).all(), arguments
    with np.errstate(all="ignore"):
        errors = abs(np.ldexp(found[told].astype(np.float64), -exponents[told]) - high[told] - low[told])
    wrong = ~np.isfinite(errors)
    assert not wrong.any(), f"{f.name}{tuple(a[told][wrong][0] for a in arguments)} is {found[told][wrong][0]}"
    with np.errstate(all="ignore"):
        errors = errors - f.absolute * np.ldexp(float(info.eps), -exponents[told])
    return float(errors.max(initial=0.0))


# C


@pytest.fixture(scope="module", params=COMPILERS)
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Compile every row's C column into a loop for float and for double, with the flags kernels are built with."""
    lines = ['#include "opc/core/math.h"', "using namespace opc;"]
    for f in ROWS:
        for kind in KINDS:
            argument = "bool" if f.types == "logic" else kind
            result = "bool" if f.types in ("compare", "test", "logic") else kind
            call = f.c.format("x[i]", "y[i]")
            lines.append(
                f'extern "C" void f_{f.name}_{kind}(long n, const {argument}* x, const {argument}* y, {result}* __restrict r) '
                f"{{ (void)y; for (long i = 0; i < n; i++) r[i] = {call}; }}"
            )
    folder = tmp_path_factory.mktemp("functions")
    source, target = folder / "functions.cpp", folder / "functions.so"
    source.write_text("\n".join(lines) + "\n")
    include = Path(opc.__file__).parent.parent / "runtime" / "include"
    flags = [f for f in CXX_FLAGS if not f.startswith("-fvisibility")]
    run_compiler(COMPILERS[request.param], *flags, f"-I{include}", "-c", source, "-o", folder / "functions.o")
    subprocess.run(["g++", "-shared", folder / "functions.o", "-o", target, "-lmvec", "-lm"], check=True)
    return ctypes.CDLL(str(target))


def run_c(library: ctypes.CDLL, f: Function, arguments: tuple[np.ndarray, ...], kind: str) -> np.ndarray:
    result = np.empty(len(arguments[0]), np.bool_ if f.types in ("compare", "test", "logic") else KINDS[kind])
    kept = [np.ascontiguousarray(a) for a in (*arguments, arguments[-1])]
    pointers = [a.ctypes.data_as(ctypes.c_void_p) for a in kept]
    function = getattr(library, f"f_{f.name}_{kind}")
    function(ctypes.c_long(len(result)), pointers[0], pointers[1], result.ctypes.data_as(ctypes.c_void_p))
    return result


@pytest.mark.rotating
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("f", ROWS, ids=ids)
def test_c_column_keeps_its_error_bound(library: ctypes.CDLL, f: Function, kind: str) -> None:
    arguments = inside(f, 300, KINDS[kind])
    found = run_c(library, f, arguments, kind)
    if f.types in ("compare", "test", "logic"):
        assert [bool(v) for v in found] == [bool(truth(f, p)) for p in zip(*arguments)]
        return
    assert ulps(f, found, arguments, KINDS[kind]) <= f.ulp
    if f.arity == 1:
        wide = everywhere(f, KINDS[kind])
        assert ulps(f, run_c(library, f, (wide,), kind), (wide,), KINDS[kind]) <= f.ulp


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("f", [f for f in ROWS if f.types in ("float", "number", "test") and f.arity == 1], ids=ids)
def test_c_column_at_special_values(library: ctypes.CDLL, f: Function, kind: str) -> None:
    """Infinities, zeros and NaN, against NumPy, which follows C99's annex F."""
    x = np.array([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0], KINDS[kind])
    with np.errstate(all="ignore"):
        expected = np.asarray(numpy_column(f)(x.astype(np.float64), None))
    found = run_c(library, f, (x,), kind)
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    limited = ~np.isnan(expected)
    np.testing.assert_allclose(found[limited], expected[limited].astype(found.dtype), rtol=8 * float(np.finfo(x.dtype).eps))


# NumPy


def numpy_column(f: Function) -> Callable[[Any, Any], Any]:
    return numpy_function(f.numpy)


@pytest.mark.parametrize("f", ROWS, ids=ids)
def test_numpy_column(f: Function) -> None:
    arguments = inside(f, 300, np.float64)
    found = numpy_column(f)(arguments[0], arguments[-1])
    if f.types in ("compare", "test", "logic"):
        assert [bool(v) for v in found] == [bool(truth(f, p)) for p in zip(*arguments)]
    else:
        assert ulps(f, found, arguments, np.float64) <= max(f.ulp, 8.0)


@pytest.mark.rotating
@pytest.mark.parametrize("f", [f for f in ROWS if f.types in ("float", "number") and f.arity == 1], ids=ids)
def test_numpy_column_everywhere(f: Function) -> None:
    """The oracle takes the NumPy text, and its error, from a row."""
    x = everywhere(f, np.float64)
    with np.errstate(all="ignore"):
        assert ulps(f, numpy_column(f)(x, None), (x,), np.float64) <= f.numpy_ulp


# Python


@pytest.mark.parametrize("f", [f for f in ROWS if f.types != "logic"], ids=ids)
def test_python_column(f: Function) -> None:
    arguments = inside(f, 100, np.float64)
    found = np.array([function(f.name)(*map(float, p[: f.arity])) for p in zip(arguments[0], arguments[-1])])
    if f.types in ("compare", "test"):
        assert [bool(v) for v in found] == [bool(truth(f, p)) for p in zip(*arguments)]
    else:
        assert ulps(f, found, arguments, np.float64) <= max(f.ulp, 8.0)


# ONNX


def onnx_graph(text: str, dtype: type = np.float64) -> tuple[list[Any], str, list[Any]]:
    """Return the nodes of an ONNX column, the name of its result and the constants as initializers."""
    import onnx

    nodes: list[Any] = []
    constants: list[Any] = []
    names = {"x": "x", "y": "y"}

    def node(op: str, *inputs: str) -> str:
        nodes.append(onnx.helper.make_node(op, inputs, [f"n{len(nodes)}"]))
        return str(nodes[-1].output[0])

    def visit(e: ast.expr) -> str:
        match e:
            case ast.Name(id=name):
                return names[name]
            case ast.Constant() | ast.UnaryOp():
                value = np.array(ast.literal_eval(e), dtype)
                constants.append(onnx.numpy_helper.from_array(value, f"c{len(constants)}"))
                return str(constants[-1].name)
            case ast.Call(func=ast.Name(id="Polynomial"), args=[x, *coefficients]):
                place, total = visit(x), visit(coefficients[-1])
                for c in coefficients[-2::-1]:
                    total = node("Add", node("Mul", total, place), visit(c))
                return total
            case ast.Call(func=ast.Name(id=op), args=args):
                return node(op, *map(visit, args))
            case _:
                raise AssertionError(f"no ONNX: {ast.dump(e)}")

    *lines, result = ast.parse(text.strip()).body
    for line in lines:
        assert isinstance(line, ast.Assign)
        assert isinstance(line.targets[0], ast.Name)
        names[line.targets[0].id] = visit(line.value)
    assert isinstance(result, ast.Expr)
    return nodes, visit(result.value), constants


@pytest.mark.parametrize("f", [f for f in ROWS if f.onnx], ids=ids)
def test_onnx_column(f: Function) -> None:
    import onnx
    from onnx.reference import ReferenceEvaluator

    nodes, result, constants = onnx_graph(f.onnx or "")
    logic, truths = f.types == "logic", f.types in ("compare", "test", "logic")
    element = onnx.TensorProto.BOOL if logic else onnx.TensorProto.DOUBLE
    inputs = [onnx.helper.make_tensor_value_info(n, element, [None]) for n in "xy"[: f.arity]]
    output = onnx.helper.make_tensor_value_info(result, onnx.TensorProto.BOOL if truths else element, [None])
    graph = onnx.helper.make_graph(nodes, "f", inputs, [output], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)])
    onnx.checker.check_model(model, full_check=True)
    arguments = inside(f, 100, np.float64)
    (found,) = ReferenceEvaluator(model).run(None, dict(zip("xy", arguments)))
    expected = [truth(f, p) for p in zip(*arguments)]
    if truths:
        assert [bool(v) for v in found] == [bool(v) for v in expected]
    else:
        # The formulas are composed of a few operators in float64, but the evaluator's Erf is in float32.
        unit = float(np.finfo(np.float32 if "Erf" in str(f.onnx) else np.float64).eps)
        np.testing.assert_allclose(found, [float(v) for v in expected], rtol=8 * unit, atol=unit)


WHOLE = np.array([-128, -7, -2, -1, 0, 1, 2, 7, 127], np.int64)
DIVIDED = [(n, kind) for n in ("floordiv", "mod") for kind in FUNCTIONS[n].onnx_of]


@pytest.mark.parametrize(("name", "kind"), DIVIDED)
def test_onnx_column_of_integers(name: str, kind: str) -> None:
    """Division rounds down, and by 0 gives 0, as docs/language.md says; ONNX's own by 0 has no defined result."""
    import onnx
    import onnxruntime

    nodes, result, constants = onnx_graph(FUNCTIONS[name].onnx_of[kind], np.int64)
    x, y = (a.ravel() for a in np.meshgrid(WHOLE, WHOLE[WHOLE != 0] if kind == "nonzero" else WHOLE))
    values = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.INT64, [None]) for n in ("x", "y", result)]
    graph = onnx.helper.make_graph(nodes, "f", values[:2], values[2:], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 20)], ir_version=10)
    (found,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x, "y": y})
    exact = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b}[name]
    assert found.tolist() == [0 if b == 0 else exact(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]


ENDS = [-(2**63), -(2**63) + 1, -129, -2, -1, 0, 1, 2, 5, 63, 64, 65, 2**31, 2**63 - 1]


@pytest.mark.parametrize("f", [f for f in FUNCTIONS.values() if f.types == "integer" and f.name != "philox"], ids=ids)
def test_columns_of_integers(f: Function) -> None:
    """NumPy's column in int64, and Python's that has no width, are what the exact one is before it wraps."""
    exact = numbers(f.mp)
    for pair in itertools.product(ENDS, repeat=f.arity):
        value = exact(*pair)
        assert function(f.name)(*pair) == value
        with np.errstate(over="ignore"):
            assert int(numpy_column(f)(*np.array([*pair, 0], np.int64)[:2])) == (value + 2**63) % 2**64 - 2**63


# The table itself


@pytest.mark.parametrize("f", FUNCTIONS.values(), ids=ids)
def test_row_is_well_formed(f: Function) -> None:
    assert len(f.samples) in (1, f.arity)
    assert f.derivative is not None or f.hidden or f.types in ("compare", "logic", "test", "integer")
    assert f.types in ("float", "number", "integer", "compare", "logic", "test")
    assert f.ulp >= 0.5
    assert (f.symbol is None and not f.hidden) == (f.name in CALLABLE)
    assert all(f.domain[0] <= a < b <= f.domain[1] for a, b in f.samples)
    for text in f.derivative or ():
        fields = [Read(n, (), DType.FLOAT32) for n in "xyr"]
        e = derivative_template(text)(fields[0], fields[1] if f.arity == 2 else None, fields[2])
        used = {node.operand for node in walk(e) if isinstance(node, Read)}
        assert used <= ({"x", "y", "r"} if f.arity == 2 else {"x", "r"})


def test_names_are_unique() -> None:
    assert all(f.name == name for name, f in FUNCTIONS.items())


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Weak.INT, DType.INT8, DType.INT8), (Weak.FLOAT, DType.INT8, None), (Weak.INT, Weak.FLOAT, Weak.FLOAT),
        (DType.FLOAT32, Weak.FLOAT, DType.FLOAT32), (DType.BOOL, Weak.INT, None), (DType.FLOAT32, DType.FLOAT64, None),
    ],
)  # fmt: skip
def test_join(a: Any, b: Any, expected: Any) -> None:
    assert join(a, b) == expected
    assert join(b, a) == expected


def test_which_are_not_finite() -> None:
    x, y = np.meshgrid(
        np.array([-1000.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 1000.0], np.float32), np.float32([-2, 0, 0.5, 1000])
    )
    numbers = [f for f in FUNCTIONS.values() if f.types in ("float", "number")]
    with np.errstate(all="ignore"):
        values = {f.name: numpy_column(f)(x, y) for f in numbers}
    assert {name for name, v in values.items() if not np.isfinite(v).all()} == {f.name for f in numbers if not f.finite}


def test_result_types() -> None:
    assert result_type(FUNCTIONS["div"], (Weak.INT, Weak.INT)) is Weak.FLOAT
    assert result_type(FUNCTIONS["div"], (DType.INT32, DType.INT32)) is None
    assert result_type(FUNCTIONS["exp"], (DType.INT32,)) is None
    assert result_type(FUNCTIONS["add"], (DType.BOOL, DType.BOOL)) is None
    less = result_type(FUNCTIONS["lt"], (DType.INT32, Weak.INT))
    assert less is not None
    assert is_bool(less)
