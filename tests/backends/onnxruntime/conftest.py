"""Packages built for ONNX Runtime once for all tests of this folder."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from opc.backends import package as packages
from opc.build.builder import build_families
from opc.ir.op import Family
from opc.pipeline import compile_text

# One attribute of every kind, an axis, optional operands, several outputs.
EVERYTHING = """
op: everything
doc: A test.
domain: opc.test
version: 3
types: {T: [float32, float64]}
inputs: {x: "T[*A, N, *B]", "w?": "T[N]", "b?": "T[N]"}
attributes:
  axis: {type: axis, dim: N, default: -1}
  scale: {type: float, default: 0.1, check: scale > 0}
  shift: {type: int, default: 3}
  flip: {type: bool, default: false}
  mode: {type: str, values: ["plain", "double"], default: "plain"}
  sizes: {type: "int[2]", default: [1, 2]}
  factor: {type: float}
outputs: {y: "T[*A, N, *B]", s: "acc(T)[*A, *B]"}
gradient: none
kernel: |
  t[*A, n, *B] = (x[*A, n, *B] * (w[n] if present(w) else 1) + (b[n] if present(b) else 0)) * scale
  u[*A, n, *B] = (-t[*A, n, *B] if flip else t[*A, n, *B]) * factor + shift
  y[*A, n, *B] = u[*A, n, *B] * 2 if mode == 'double' else u[*A, n, *B]
  s[*A, *B] = sum[n](x[*A, n, *B]) * sizes[0] + sizes[1]
"""

# Another op in the same domain.
SCALED = """
op: scaled
doc: A test.
domain: opc.test
version: 1
types: {T: [float32, float64]}
broadcast: true
inputs: {x: "T[...]", z: "T[...]", "s?": "T[]"}
attributes:
  weights: {type: "float[]", default: [1.0]}
outputs: {y: "T[...]"}
gradient: none
kernel: |
  y = x * z * (s if present(s) else 1)
"""

# An op that may write into its input.
TRIPLED = """
op: tripled
doc: A test.
domain: opc.test
version: 1
types: {T: [float32, float64]}
inputs: {z: "T[...]", x: "T[...]"}
outputs: {u: "T[...]", y: "T[...]"}
inplace: {y: x}
gradient: none
kernel: |
  u = z
  y = 3 * x
"""


TEXTS = {"everything": EVERYTHING, "scaled": SCALED, "tripled": TRIPLED}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Family, Path]]:
    """The two ops' families and package folders."""
    out = tmp_path_factory.mktemp("ort")
    families = [compile_text(text, f"{name}.yaml") for name, text in TEXTS.items()]
    results = build_families(families, out, ["onnx", "onnxruntime"])
    assert [d.render() for r in results for d in r.diagnostics] == []
    return {f.name: (f, out / f.name) for f in families}


@pytest.fixture(scope="session")
def module(built: dict[str, tuple[Family, Path]]) -> Callable[[str, str], ModuleType]:
    """Load a subpackage of one of the packages."""
    return lambda name, subpackage: packages.load(built[name][1], subpackage)
