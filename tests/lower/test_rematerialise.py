"""Values of single points that nests compute again, and those that they had better read from memory."""

from __future__ import annotations

from pathlib import Path

from opc.lower.loop_ir import NestStage, RowStage
from opc.lower.lower import lower
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float32, float64]}
inputs: {x: 'T[N, C]', t: 'int64[N]'}
"""


def program(spec: str) -> list[str]:
    """Return the temporaries of a spec's program."""
    (variant,) = lower(compile_text(HEAD + spec, Path("f.yaml")).forward)
    assert any(isinstance(s, NestStage) for s in variant.program.stages)
    assert any(isinstance(s, RowStage) for s in variant.program.stages)
    return [t.name for t in variant.program.temporaries]


def test_a_function_that_a_nest_needs_once_is_computed_there() -> None:
    spec = """\
outputs: {y: 'T[N, C]'}
kernel: |
  m[n] = max[c](x[n, c])
  e[n, c] = exp(x[n, c] - m[n])
  s[n] = sum[c](e[n, c])
  y[n, c] = e[n, c] / s[n] - (1 if c == n + t[n] else 0)
"""
    assert sorted(program(spec)) == ["m", "s"]


def test_a_function_that_a_nest_needs_often_is_kept() -> None:
    spec = """\
outputs: {y: 'T[N, C]'}
kernel: |
  m[n] = max[c](x[n, c])
  e[n, c] = exp(x[n, c] - m[n])
  y[n, c] = sum[k:C](e[n, k] if k <= c and c != t[n] else 0)
"""
    assert "e" in program(spec)


def test_a_product_is_cheaper_than_memory_in_several_nests() -> None:
    spec = """\
outputs: {y: 'T[N, C]', z: 'T[N, C]'}
kernel: |
  m[n] = max[c](x[n, c])
  e[n, c] = 2 * x[n, c] - m[n]
  y[n, c] = e[n, c] if c == n + t[n] else 0
  z[n, c] = e[n, c] if c != n + t[n] else 1
"""
    assert program(spec) == ["m"]


def test_a_value_of_fewer_loops_is_kept() -> None:
    spec = """\
outputs: {y: 'T[N, C]'}
kernel: |
  m[n] = max[c](x[n, c])
  h[n] = m[n] + 1
  y[n, c] = h[n] if c == n + t[n] else x[n, c]
"""
    assert program(spec) == ["h"]
