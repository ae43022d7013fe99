"""What backends say of ops of the dtypes that are in no closed set and that few frameworks have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.backends.registry import NAMED, load, names
from opc.ir.dtypes import DTYPES, TYPE_SETS, DType
from opc.pipeline import compile_text

NUZ = (DType.FLOAT8_E4M3FNUZ, DType.FLOAT8_E5M2FNUZ)
SMALL = TYPE_SETS["small"]
HOLDING = {
    "numpy": (*NUZ, *SMALL),
    "onnx": (*NUZ, *SMALL),
    "aarch64": (*NUZ, *SMALL),
    "onnxruntime": NUZ,
    "torch": NUZ,
    "jax": NUZ,
    "cuda": NUZ,
    "tvm_ffi": NUZ,
}
"""Which of these dtypes the tensors of a backend may have; all others refuse them."""

ALONE = """\
op: alone
domain: opc.test
version: 1
doc: A sum.
types: {{T: [{dtype}]}}
inputs: {{x: 'T[N]'}}
outputs: {{y: 'T[N]'}}
gradient: none
kernel: y = x + x
"""
DEFAULT = """\
op: chosen
domain: opc.test
version: 1
doc: Elements in a type that is chosen.
types: {{T: [float32, {dtype}]}}
inputs: {{x: 'float32[N]'}}
attributes: {{to: {{type: dtype, binds: T, default: {dtype}}}}}
outputs: {{y: 'T[N]'}}
gradient: none
kernel: y = cast(T, x)
"""


@pytest.mark.parametrize("name", [*names(), *NAMED])
def test_ops_of_dtypes_that_few_have(name: str) -> None:
    """Each is held, or refused when the package is made: by its name, and by that of the framework."""
    backend = load(name)
    for dtype in (*NUZ, *SMALL):
        for text, about in ((ALONE, f"x of alone is {dtype}"), (DEFAULT, f"the default of 'to' is {dtype}")):
            family = compile_text(text.format(dtype=dtype), "lacking")
            said = [d.message for d in backend.requires(family) if "no tensors of" in d.message]
            if dtype in HOLDING.get(name, ()):
                assert said == [], dtype
            else:
                assert any(re.fullmatch(rf"{re.escape(about)}, which [\w -]+ has no tensors of", s) for s in said), (dtype, said)


def test_bytes_of_an_element_are_rounded_up() -> None:
    """An element of 4 bits has a byte: of `bits / 8`, an output of it would have no memory."""
    runtime = Path(__file__).parents[2] / "runtime"
    headers = {p: p.read_text() for p in runtime.rglob("*.h")}
    assert len(headers) > 50
    found = [f"{p.name}: {line.strip()}" for p, text in headers.items() for line in text.splitlines() if "bits / 8" in line]
    assert found == []
    assert {d.itemsize for d in DTYPES if d.bits < 8} == {1}
