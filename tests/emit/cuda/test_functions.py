"""The functions of the spec language as nvcc compiles them for a GPU: each of the table, in each type that it computes in."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import NAMESPACE
from opc.ir.function import Function
from opc.ir.functions import FUNCTIONS
from tests.gpu import gates

FLOATS = ("float", "double")
INTEGERS = ("int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t", "uint64_t")

HEAD = """\
#define OPC_ON_GPU
#include "opc/cuda/call.h"
#include "opc/cuda/reduce.h"
"""

KERNEL = """\
__global__ void {name}({result} *y, const {of} *a, const {of} *b) {{
  const int64_t i = opc::own_thread();
  const {of} x = a[i];
  [[maybe_unused]] const {of} z = b[i];
  y[i] = {result}({value});
}}
"""

DOUBLE = frozenset(("lgamma", "digamma", "trigamma", "tetragamma", "pentagamma"))
"""What computes float32 in double precision: CUDA has no such functions, or none as exact between zeros."""

LARGE = frozenset(("sin", "cos", "tan"))
"""CUDA's own functions, which do so, with memory of a thread's own, for arguments beyond 100,000 alone."""


def types(f: Function) -> tuple[str, ...]:
    if f.name == "philox":
        return ("uint64_t",)
    if f.types in ("float", "test"):
        return (*FLOATS, *INTEGERS) if f.name == "pow" else FLOATS
    if f.types == "logic":
        return ("bool",)
    return INTEGERS if f.types == "integer" else (*FLOATS, *INTEGERS)


def sources() -> Iterator[str]:
    for f in FUNCTIONS.values():
        for of in types(f):
            result = "bool" if f.types in ("compare", "test", "logic") else of
            yield KERNEL.format(name=f"{f.name}_in_{of}", of=of, result=result, value=f.c.format("x", "z"))


@pytest.mark.rotating(seconds=20)
@pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")
def test_functions_compile_without_a_warning_and_compute_in_their_own_precision(tmp_path: Path) -> None:
    source, made = tmp_path / "functions.cu", tmp_path / "functions.ptx"
    source.write_text("\n".join((HEAD, *sources())))
    flags = ["-std=c++17", f"-arch={gates.ARCHITECTURE}", "-Werror", "all-warnings", NAMESPACE, f"-I{toolkit.include()}"]
    command = [toolkit.nvcc() or "nvcc", *flags, "-ptx", str(source), "-o", str(made)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    wide, own = set(), set()
    kernels = gates.kernels(made.read_text())
    assert len(kernels) == sum(len(types(f)) for f in FUNCTIONS.values())
    for mangled, body in kernels.items():
        found = re.match(r"_Z\d+(\w+?)_in_float", mangled)
        if found is not None:
            wide |= {found[1]} if re.search(r"\.f64\b", body) else set()
            own |= {found[1]} if re.search(r"\.local\b", body) else set()
        elif "int" in mangled.partition("_in_")[2]:
            assert not re.search(r"\.f(32|64)\b", body), mangled
    assert wide == DOUBLE | LARGE
    assert own == LARGE
