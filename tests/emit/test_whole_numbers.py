"""Whole numbers beside narrower operands: every backend against Python's own integers, which have no width."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.diagnostics import SpecError
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.tolerance import compare
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together

Array = np.ndarray[Any, Any]

OPERATIONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "lt": ("{} < {}", operator.lt),
    "le": ("{} <= {}", operator.le),
    "eq": ("{} == {}", operator.eq),
    "ne": ("{} != {}", operator.ne),
    "least": ("minimum({}, {})", min),
    "most": ("maximum({}, {})", max),
    "sum": ("{} + {}", operator.add),
    "product": ("{} * {}", operator.mul),
    "quotient": ("{} // {}", operator.floordiv),
    "remainder": ("{} % {}", operator.mod),
}
COMPARED = ("lt", "le", "eq", "ne")
DIVIDED = ("quotient", "remainder")
N = 300
"""More than an 8-bit index counts."""

WIDTHS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8}
ATTRIBUTES = {"int8": 200, "int16": 40_000, "int32": 3_000_000_000, "int64": 5_000_000_000, "uint8": -1, "float16": 2049}
LITERALS = {"int8": -129, "int16": 32_768, "int32": 2_147_483_648, "int64": -(2**63), "uint8": 256, "float16": 1025}
FLOATING = ("float16", "float32")


def partners(dtype: str) -> dict[str, str]:
    return {"attribute": "n", "dimension": "N", "index": "(i + 1)", "literal": f"({LITERALS[dtype]})", "small": "3"}


def operations(dtype: str, generic: bool) -> list[str]:
    """Return the operations that every backend has: ONNX has no floor division of floating numbers."""
    return [name for name in OPERATIONS if name not in DIVIDED or not (generic or dtype in FLOATING)]


def spec(dtype: str, generic: bool, what: str) -> str:
    """Return an op with an output for every operation on one partner, of the operand's own type and of int64."""
    kind = "T" if generic else dtype
    outputs: dict[str, str] = {}
    for name in operations(dtype, generic):
        outputs[name] = "bool" if name in COMPARED else kind
        if name not in COMPARED and dtype not in (*FLOATING, "int64") and what != "small" and not generic:
            outputs[f"{name}_wide"] = "int64"
    values = {name: text.format("u[i]", partners(dtype)[what]) for name, (text, _) in OPERATIONS.items()}
    types = "types: {T: [float32, int8, uint8]}\n" if generic else ""
    body = "".join(f"  {name}[i] = {values[name.removesuffix('_wide')]}\n" for name in outputs)
    declared = ", ".join(f"{name}: '{t}[N]'" for name, t in outputs.items())
    return (
        f"op: whole_{dtype}_{what}{'_t' if generic else ''}\ndomain: probe\nversion: 1\ndoc: Whole numbers.\n{types}"
        f"inputs: {{u: '{kind}[N]'}}\nattributes: {{n: int}}\noutputs: {{{declared}}}\ngradient: none\nkernel: |\n{body}"
    )


def operand(dtype: str) -> Array:
    if dtype in FLOATING:
        return np.linspace(-150, 150, N).round().astype(dtype)
    info = np.iinfo(dtype)
    ends = [info.min, info.max, 0, 1, -1 if info.min else 2, 5, info.max - 1, info.min + 1]
    rng = np.random.default_rng(3)
    return np.concatenate([np.array(ends, dtype), rng.integers(info.min, info.max, N - len(ends), dtype, endpoint=True)])


def wrapped(value: int, dtype: str) -> int:
    """Return a whole number modulo two to the power of the type's width."""
    bits = WIDTHS[dtype]
    low = 0 if dtype == "uint8" else -(2 ** (bits - 1))
    return (value - low) % 2**bits + low


def expected(dtype: str, x: Array, n: int, what: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield every output, computed one element at a time with numbers of Python's own."""
    values: dict[str, Callable[[int], int]] = {
        "attribute": lambda i: n,
        "dimension": lambda i: N,
        "index": lambda i: i + 1,
        "literal": lambda i: LITERALS[dtype],
        "small": lambda i: 3,
    }
    numbers = [float(v) if dtype in FLOATING else int(v) for v in x]
    for name, (_, fn) in OPERATIONS.items():
        exact = [fn(v, values[what](i)) for i, v in enumerate(numbers)]
        if name in COMPARED or dtype in FLOATING:
            yield name, exact
        else:
            yield name, [wrapped(v, dtype) for v in exact]
            yield f"{name}_wide", [wrapped(v, "int64") for v in exact]


PARTNERS = ("attribute", "dimension", "index", "literal", "small")
CASES = [(d, g, w) for d, g in [*((d, False) for d in (*WIDTHS, "float16")), ("int8", True)] for w in PARTNERS]


@pytest.fixture(scope="module")
def families() -> list[Family]:
    return [compile_text(spec(*case), "whole.yaml") for case in CASES]


@pytest.fixture(scope="module")
def library(families: list[Family], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_together(families, tmp_path_factory.mktemp("whole"), "-O0")


@pytest.mark.rotating
@pytest.mark.parametrize("case", CASES, ids=str)
def test_whole_numbers_beside_narrow_operands_are_exact(
    case: tuple[str, bool, str], families: list[Family], library: Path, tmp_path: Path
) -> None:
    family = families[CASES.index(case)]
    dtype, _, what = case
    x, n = operand(dtype), ATTRIBUTES[dtype]
    want = {name: np.array(values) for name, values in expected(dtype, x, n, what)}
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    names = [o.name for o in family.forward.outputs]
    oracle = evaluate(family.forward, {"u": x}, {"n": n})
    answers = {
        "kernel": KernelLibrary(family, library).call(family.forward, {"u": x}, {"n": n}),
        "numpy": dict(zip(names, module[function_name(family.forward)](x, n=n), strict=True)),
    }
    answers["onnx"] = load(family, tmp_path).function_call(family.name, {"u": x}, {"n": n}, names)
    for name in names:
        with np.errstate(over="ignore"):
            exact = want[name].astype(oracle[name].dtype.value)
        assert compare(name, exact, oracle[name]).ok, f"oracle {name}"
        for backend, found in answers.items():
            np.testing.assert_array_equal(found[name], exact, f"{backend} {name}")


def family_of(name: str, declared: str, body: str) -> Family:
    lines = "".join(f"  {line}\n" for line in body.split("; "))
    return compile_text(f"op: {name}\ndomain: probe\nversion: 1\ndoc: Whole numbers.\n{declared}kernel: |\n{lines}", "whole.yaml")


SINGLE = {
    "choice": (
        "inputs: {u: 'int8[N]'}\nattributes: {n: int}\noutputs: {y: 'int64[N]', z: 'int8[N]'}\n",
        "y[i] = u[i] if i > 3 else n; z[i] = n + i",
        {"u": np.arange(8, dtype=np.int8)},
        {"n": 200},
        {"y": [200] * 4 + [4, 5, 6, 7], "z": [200 + i - 256 for i in range(8)]},
    ),
    "padded": (
        "inputs: {u: 'uint8[N]'}\nattributes: {n: int}\noutputs: {y: 'int64[N]', z: 'uint8[N]'}\n",
        "y[i] = pad(u[i + 1], n); z[i] = pad(u[i + 1], n)",
        {"u": np.arange(3, dtype=np.uint8)},
        {"n": 1000},
        {"y": [1, 2, 1000], "z": [1, 2, 1000 % 256]},
    ),
    "kept": (
        "inputs: {u: 'int8[N]'}\nattributes: {n: int}\noutputs: {y: 'int64[]', z: 'bool[N]', w: 'int8[N]'}\n",
        "t[i] = u[i] + n; y = max[i](t[i]); z[i] = t[i] * u[i] > 127; w[i] = t[i]",
        {"u": np.array([-128, 0, 127], np.int8)},
        {"n": 2},
        {"y": 129, "z": [True, False, True], "w": [-126, 2, -127]},
    ),
    "least": (
        "inputs: {u: 'int64[N]'}\nattributes: {n: {type: int, default: -9223372036854775808}}\n"
        "outputs: {y: 'bool[N]', z: 'int64[N]'}\n",
        "y[i] = u[i] == -9223372036854775808; z[i] = maximum(u[i], -9223372036854775808 + i) if n < u[i] else n",
        {"u": np.array([-(2**63), 3], np.int64)},
        {},
        {"y": [True, False], "z": [-(2**63), 3]},
    ),
    "largest": (
        "types: {U: [uint64]}\ninputs: {u: 'U[N]'}\n"
        "outputs: {y: 'U[N]', z: 'bool[N]', w: 'uint64[N]', v: 'uint64[N]', f: 'float64[N]'}\n",
        "y[i] = u[i] + 18446744073709551615; z[i] = u[i] >= 9223372036854775808; w[i] = 9223372036854775808 if u[i] > 3 else 7; "
        "v[i] = u[i] // 9223372036854775809 + 2 * 9223372036854775807; f[i] = cast(float64, 9223372036854775808)",
        {"u": np.array([3, 2**64 - 1], np.uint64)},
        {},
        {
            "y": [2, 2**64 - 2],
            "z": [False, True],
            "w": [7, 2**63],
            "v": [2**64 - 2, 2**64 - 1],
            "f": [2.0**63, 2.0**63],
        },
    ),
    "total": (
        "types: {T: integer}\ninputs: {u: 'T[N]'}\noutputs: {y: 'int64[]', z: 'acc(T)[]', w: 'int64[]'}\n",
        "y = sum[i](u[i]); z = prod[i](u[i]) + y; w = z",
        {"u": np.array([100, 100, 100], np.uint8)},
        {},
        {"y": 300, "z": 1_000_300, "w": 1_000_300},
    ),
    "clamped": (
        "inputs: {x: 'int64[M]', ids: 'int8[N]'}\noutputs: {y: 'int64[N]'}\nout_of_range: clamp\n",
        "y[i] = x[ids[i]]",
        {"x": np.arange(300), "ids": np.array([-1, 127, 3], np.int8)},
        {},
        {"y": [0, 127, 3]},
    ),
}


@pytest.mark.rotating
@pytest.mark.parametrize("name", SINGLE)
def test_whole_numbers_go_where_they_fit(name: str, tmp_path: Path) -> None:
    declared, body, inputs, attributes, want = SINGLE[name]
    family = family_of(f"whole_{name}", f"gradient: none\n{declared}", body)
    op = family.forward
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    library = compile_together([family], tmp_path / "kernel", "-O0")
    oracle = evaluate(op, inputs, attributes)
    answers = {
        "kernel": KernelLibrary(family, library).call(op, inputs, attributes),
        "numpy": dict(zip(want, module[function_name(op)](*inputs.values(), **attributes), strict=True)),
        "onnx": load(family, tmp_path).function_call(family.name, inputs, attributes, list(want)),
    }
    for output, value in want.items():
        exact = np.array(value, oracle[output].dtype.value)
        assert compare(output, exact, oracle[output]).ok, f"oracle {output}"
        for backend, found in answers.items():
            np.testing.assert_array_equal(found[output], exact, f"{backend} {output}")


def test_gradients_by_narrow_indices_reach_every_element(tmp_path: Path) -> None:
    """The gradient of a read at 8-bit indices compares them with places that 8 bits do not count."""
    declared = (
        "types: {T: floating}\ninputs: {x: 'T[M]', ids: 'int8[N]'}\nattributes: {n: int}\noutputs: {y: 'T[N]'}\n"
        "out_of_range: zero\n"
    )
    family = family_of("whole_gradient", declared, "y[i] = x[ids[i] + n]")
    op = family.backward
    assert op is not None
    x, ids = np.arange(300.0), np.array([100, -100, 127], np.int8)
    inputs = {"x": x, "ids": ids, "d_y": np.array([1.0, 2.0, 4.0])}
    want = np.zeros(300)
    for k, place in enumerate(ids.tolist()):
        want[place + 150] += inputs["d_y"][k]
    given = {o.name: inputs[o.name] for o in op.inputs}
    library = compile_together([family], tmp_path / "kernel", "-O0")
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    np.testing.assert_array_equal(KernelLibrary(family, library).call(op, given, {"n": 150})["d_x"], want)
    np.testing.assert_array_equal(module[function_name(op)](*given.values(), n=150)[0], want)
    np.testing.assert_array_equal(load(family, tmp_path).function_call(op.name, given, {"n": 150}, ["d_x"])["d_x"], want)


@pytest.mark.parametrize(
    ("declared", "body", "message"),
    [
        ("inputs: {u: 'int8[N]'}\noutputs: {y: 'int8[N]'}\n", "y[i] = 300", "'y' is int8: 300 does not fit"),
        ("inputs: {u: 'int8[N]'}\noutputs: {y: 'int8[N]'}\n", "y[i] = 1 if u[i] > 0 else -200", "'y' is int8: -200 does not fit"),
        (
            "types: {T: integer}\ninputs: {u: 'T[N]'}\noutputs: {y: 'T[N]'}\n",
            "y[i] = -1 if u[i] == N else 0",
            "'y' is T, which may be uint8: -1 does not fit",
        ),
        (
            "inputs: {u: 'int8[N]', v: 'int64[N]'}\noutputs: {y: 'int8[N]'}\n",
            "y[i] = cast(int64, u[i]) + v[i]",
            "'y' is int8, and",
        ),
        ("inputs: {u: 'int8[N]', v: 'uint8[N]'}\noutputs: {y: 'bool[N]'}\n", "y[i] = u[i] < v[i]", "mixes int8 and uint8"),
    ],
)
def test_what_does_not_fit_is_refused(declared: str, body: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        family_of("whole_refused", f"gradient: none\n{declared}", body)
