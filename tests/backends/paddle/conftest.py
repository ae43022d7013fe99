"""Packages, one of them with every kind of attribute, built once for all test runs until they or opc change."""

from pathlib import Path

import pytest

from opc.build.builder import build_families
from opc.ir.op import Family
from opc.pipeline import compile_text

PANTRY = """
op: pantry
domain: opc.paddle_test
version: 1
doc: One of every kind of attribute, an optional operand, two outputs.
types: {T: [bfloat16, float32, float64]}
inputs:
  x: T[..., D]
  w?: T[D]
attributes:
  scale: {type: float, default: 0.1, check: scale >= 0}
  shift: {type: 'int[2]', default: [0, 0]}
  weights: {type: 'float[]', default: [1.0, 2.0]}
  flips: {type: 'bool[2]', default: [false, false]}
  flip: {type: bool, default: false}
  mode: {type: str, values: [plain, square], default: plain}
outputs:
  y: T[..., D]
  total: acc(T)[...]
kernel: |
  v[..., d] = x[..., d] * scale + shift[0] - shift[1]
  s[..., d] = v[..., d] * v[..., d] if mode == 'square' else v[..., d]
  f[..., d] = -s[..., d] if flip else s[..., d]
  y[..., d] = f[..., d] * (w[d] if present(w) else 1)
  total[...] = sum[d](f[..., d])
"""


MIX = """
op: mix
domain: opc.paddle_test
version: 1
doc: Squares with weights of any type, and the elements in a type that is chosen.
types: {T: [float32, float64], U: [float64, int32], V: [int64, float32]}
inputs: {a: 'T[N]', b: 'U[N]'}
attributes: {to: {type: dtype, binds: V, default: int64}}
outputs: {y: 'T[N]', z: 'V[N]'}
kernel: |
  y[i] = a[i] * a[i] * cast(T, b[i])
  z[i] = cast(V, a[i])
"""
HALVE = """
op: halve
domain: opc.paddle_test
version: 1
doc: Half of each element, in place where that is asked for.
types: {T: [float32, float64]}
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
inplace: {y: x}
kernel: y[i] = x[i] / 2
"""


@pytest.fixture(scope="session")
def pantry() -> Family:
    """The family of the spec."""
    return compile_text(PANTRY, "pantry.yaml")


@pytest.fixture(scope="session")
def package(pantry: Family, request: pytest.FixtureRequest) -> Path:
    """The built package, beside which are those of `mix` and `halve`."""
    from opc.backends.paddle.backend import PaddleBackend

    probe = PaddleBackend().probe()
    assert probe.available, probe.reason
    cache = request.config.cache
    assert cache is not None
    families = [pantry, compile_text(MIX, "mix.yaml"), compile_text(HALVE, "halve.yaml")]
    every = build_families(families, cache.mkdir("paddle"), ["paddle"])
    for built in every:
        assert built.ok, "\n".join(d.render() for d in built.diagnostics)
    built = every[0]
    assert built.package is not None
    return built.package
