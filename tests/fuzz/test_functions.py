"""Functions and operators at the ends of each type, at zeros, of both signs, and infinities: kernel, reference and ONNX body."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from opc.emit.onnx.function import NoBody, function_body
from opc.ir.dtypes import TYPE_SETS, DType, numpy_dtype
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.cases.arguments import TensorArg, special_values
from opc.testing.cases.calls import Maker
from opc.testing.cases.sizes import Sizes
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.tolerance import compare
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import expected, reference, with_signs_of, wrong_answer, wrong_kernel

COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
_OF_FLOATS = [n for n, f in FUNCTIONS.items() if f.types in ("float", "number", "test") and not f.hidden]
OF = {
    "floats": (TYPE_SETS["floating"], _OF_FLOATS),
    "integers": (TYPE_SETS["integer"], [n for n, f in FUNCTIONS.items() if f.types == "number"]),
    "unsigned": (TYPE_SETS["unsigned"], [n for n, f in FUNCTIONS.items() if f.types == "number"]),
    "float8": (TYPE_SETS["float8"], _OF_FLOATS),
    "bools": ((DType.BOOL,), ["and", "or", "not"]),
}
"""Element types, and what takes them beside comparisons."""

_NOT_ELEMENTARY = ["floordiv", "mod", "lgamma", "digamma", "trigamma"]
WITHOUT_BODY: dict[str, list[str]] = {"floats": _NOT_ELEMENTARY, "float8": _NOT_ELEMENTARY}
"""What no standard operator of ONNX computes of a kind of element types."""

IN_FLOAT32 = ("erf",)
"""What ONNX's reference evaluator computes in float32 alone."""

NEAR = (-7, -3, -2, -1, 0, 1, 2, 3, 7, 100)
"""Whole numbers beside the ends of a type."""

MAGNITUDES = 24
"""How many sizes of floats are met, from the least to the greatest, evenly by magnitude."""


def written(name: str) -> str:
    """Return a call of a function as a body has it."""
    symbol, unary = FUNCTIONS[name].symbol, FUNCTIONS[name].arity == 1
    if symbol is None:
        return f"{name}(x[n])" if unary else f"{name}(x[n], z[n])"
    return f"{symbol} x[n]" if unary else f"x[n] {symbol} z[n]"


def op_of(dtypes: tuple[DType, ...], names: list[str]) -> Family:
    """Return an op with an output for each function, and for each comparison."""
    own = "T" if len(dtypes) > 1 else dtypes[0].value
    types = {n: own if FUNCTIONS[n].types in ("float", "number") else "bool" for n in (*names, *COMPARED)}
    outputs = ", ".join(f"y_{n}: '{t}[N]'" for n, t in types.items())
    body = "".join(f"  y_{n}[n] = {written(n)}\n" for n in types)
    head = "op: functions\ndomain: opc.test\nversion: 1\ndoc: A test.\n"
    head += f"types: {{T: [{', '.join(d.value for d in dtypes)}]}}\n" if own == "T" else ""
    head += f"inputs: {{x: '{own}[N]', z: '{own}[N]'}}\n"
    return compile_text(f"{head}outputs: {{{outputs}}}\ngradient: none\nkernel: |\n{body}", "functions")


def values_of(dtype: DType) -> Array:
    if dtype.is_floating:
        kind = numpy_dtype(dtype)
        info = ml_dtypes.finfo(kind)
        sizes = np.exp2(np.linspace(info.minexp - info.nmant, info.maxexp - 0.01, MAGNITUDES)).astype(kind)
        return np.concatenate([found for x in (special_values(dtype), sizes) for found in (x, -x)])
    if dtype is DType.BOOL:
        return np.array([False, True])
    ends = np.iinfo(numpy_dtype(dtype))
    found = {ends.min, ends.min + 1, ends.max - 1, ends.max, *(v for v in NEAR if ends.min <= v)}
    return np.array(sorted(found), numpy_dtype(dtype))


@pytest.mark.rotating
@pytest.mark.parametrize("of", OF)
def test_ends_of_types(of: str, tmp_path: Path) -> None:
    dtypes, names = OF[of]
    one = op_of(tuple(dtypes), names)
    kernel = KernelLibrary(one, compile_together([one], tmp_path, "-O0"))
    refer, op = reference(one), one.forward
    bodies = [n for n in names if n not in WITHOUT_BODY.get(of, ())]
    session = load(op_of(tuple(dtypes), [n for n in bodies if n not in IN_FLOAT32]), tmp_path)
    single = load(op_of(tuple(dtypes), [*IN_FLOAT32]), tmp_path / "single") if of == "floats" else None
    maker, found = Maker(op), []
    assert len(maker.bindings) == len(tuple(dtypes))
    for binding in maker.bindings:
        case = maker.make("ends", Sizes({"N": 3}, {}, {}), binding)
        assert case is not None
        values = values_of(binding.get("T", dtypes[0]))
        pairs = {"x": np.repeat(values, len(values)), "z": np.tile(values, len(values))}
        case = replace(case, inputs={n: TensorArg(a) for n, a in pairs.items()})
        want = expected(op, case)
        assert want is not None
        found += [f"kernel, {binding}: {m}" for m in wrong_kernel(kernel, op, case, want)]
        found += [f"numpy, {binding}: {m}" for m in wrong_answer(refer, op, case, want)]
        with np.errstate(all="ignore"):
            got = session.function_call(op.name, case.arrays(), case.attributes)
            if single is not None and binding["T"] is not DType.FLOAT64:
                got |= single.function_call(op.name, case.arrays(), case.attributes)
        assert got.keys() >= {f"y_{n}" for n in bodies if n not in IN_FLOAT32}
        wrong = (compare(n, with_signs_of(a, want[n]), want[n]) for n, a in got.items())
        found += [f"onnx, {binding}: {c.message}" for c in wrong if not c.ok]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("of", OF)
def test_which_have_no_body_in_standard_operators(of: str) -> None:
    dtypes, names = OF[of]
    alone = {n: op_of(tuple(dtypes), [n]).forward for n in names}
    assert [n for n, op in alone.items() if isinstance(function_body(op), NoBody)] == WITHOUT_BODY.get(of, [])
