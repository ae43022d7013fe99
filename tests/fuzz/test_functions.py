"""Every function and operator at zeros of both signs, infinities and the ends of each type: kernel, reference and ONNX body."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from opc.ir.functions import FUNCTIONS
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.cases.arguments import TensorArg, special_values
from opc.testing.cases.calls import Maker
from opc.testing.cases.sizes import Sizes
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import expected, functions, reference, wrong_answer, wrong_kernel

NUMERIC = {n: f for n, f in FUNCTIONS.items() if f.types in ("float", "number") and f.arity in (1, 2)}


def written(name: str) -> str:
    """Return a call of a function as a body has it."""
    symbol = NUMERIC[name].symbol
    if NUMERIC[name].arity == 1:
        return f"{name}(x[n])" if symbol is None else f"{symbol}x[n]"
    return f"{name}(x[n], z[n])" if symbol is None else f"x[n] {symbol} z[n]"


def every() -> Family:
    outputs = ", ".join(f"y_{n}: 'T[N]'" for n in NUMERIC)
    body = "".join(f"  y_{n}[n] = {written(n)}\n" for n in NUMERIC)
    head = "op: functions\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: floating}\ninputs: {x: 'T[N]', z: 'T[N]'}\n"
    return compile_text(f"{head}outputs: {{{outputs}}}\ngradient: none\nkernel: |\n{body}", "functions")


def test_functions_of_special_numbers(tmp_path: Path) -> None:
    one = every()
    op = one.forward
    assert len(op.outputs) == len(NUMERIC) > 35
    kernel = KernelLibrary(one, compile_together([one], tmp_path, "-O0"))
    refer, session = reference(one), load(one, tmp_path)
    maker, found = Maker(op), []
    for binding in maker.bindings:
        case = maker.make("special", Sizes({"N": 3}, {}, {}), binding)
        assert case is not None
        (dtype,) = set(binding.values())
        values = np.concatenate([special_values(dtype), -special_values(dtype)])
        pairs = {"x": np.repeat(values, len(values)), "z": np.tile(values, len(values))}
        case = replace(case, inputs={n: TensorArg(a) for n, a in pairs.items()})
        want = expected(op, case)
        assert want is not None
        found += [f"kernel: {m}" for m in wrong_kernel(kernel, op, case, want)]
        found += [f"numpy: {m}" for m in wrong_answer(refer, op, case, want)]
        found += [f"onnx: {m}" for m in wrong_answer(functions(session), op, case, want, signed=False)]
    assert not found, "\n".join(found)
