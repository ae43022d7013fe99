"""Functions and operators at the ends of each type, at zeros, of both signs, and infinities: kernel, reference and ONNX body."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opc.ir.dtypes import FLOATING, INTEGER, DType
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.cases.arguments import TensorArg, special_values
from opc.testing.cases.calls import Maker
from opc.testing.cases.sizes import Sizes
from opc.testing.oracle.bounds import Array, numpy_dtype
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import expected, functions, reference, wrong_answer, wrong_kernel

COMPARED = ("lt", "le", "gt", "ge", "eq", "ne")
OF = {
    "floats": (FLOATING, [n for n, f in FUNCTIONS.items() if f.types in ("float", "number", "test")]),
    "integers": (INTEGER, [n for n, f in FUNCTIONS.items() if f.types == "number"]),
    "bools": ((DType.BOOL,), ["and", "or", "not"]),
}
"""Element types, and what takes them beside comparisons."""

NEAR = (-7, -3, -2, -1, 0, 1, 2, 3, 7, 100)
"""Whole numbers beside the ends of a type."""


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
        return np.concatenate([special_values(dtype), -special_values(dtype)])
    if dtype is DType.BOOL:
        return np.array([False, True])
    ends = np.iinfo(numpy_dtype(dtype))
    found = {ends.min, ends.min + 1, ends.max - 1, ends.max, *(v for v in NEAR if ends.min <= v)}
    return np.array(sorted(found), numpy_dtype(dtype))


@pytest.mark.parametrize("of", OF)
def test_ends_of_types(of: str, tmp_path: Path) -> None:
    dtypes, names = OF[of]
    one = op_of(tuple(dtypes), names)
    kernel = KernelLibrary(one, compile_together([one], tmp_path, "-O0"))
    refer, session, op = reference(one), load(one, tmp_path), one.forward
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
        found += [f"onnx, {binding}: {m}" for m in wrong_answer(functions(session), op, case, want, signed=False)]
    assert not found, "\n".join(found)
