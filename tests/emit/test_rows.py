"""Texts of row stages: what keeps compilers from vectorising a loop along a row is not in them."""

from __future__ import annotations

import re
from pathlib import Path

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
"""


def loops(spec: str) -> list[str]:
    """Return the loops along rows of a spec's kernel, each as text."""
    text = kernel_files(compile_text(HEAD + spec, Path("f.yaml")))["kernel/f_loops.cpp"]
    return re.findall(r"(?:columns; ?\+\+\w+\)|OPC_INLINED) \{(.*?)\n    \}", text, re.DOTALL)


def test_a_condition_of_the_row_blends() -> None:
    spec = """\
types: {T: [float16, bfloat16, float32, float64]}
inputs: {x: 'T[...]', 'w?': 'T[...]'}
attributes: {p: {type: int, default: 1}}
outputs: {y: 'T[...]'}
kernel: |
  h[...] = 2 * w[...] if present(w) else x[...]
  y[...] = h[...] if p > 1 else (x[...] if x[...] > 0 else -x[...])
"""
    (loop,) = loops(spec)
    assert re.findall(r"opc::blend<T>\((.*?),", loop) == ["has_w", "hoisted"]
    assert re.findall(r"opc::choose<T>\((.*?),", loop) == ["x > 0"]  # one that changes along the row
    assert "has_w ?" not in loop


def test_a_choice_of_integers_stays_one() -> None:
    spec = """\
inputs: {x: 'int32[...]', 'w?': 'int32[...]'}
outputs: {y: 'int32[...]'}
kernel: 'y[...] = w[...] if present(w) else x[...]'
"""
    (loop,) = loops(spec)
    assert "blend" not in loop
    assert "has_w ? w : x" in loop


def test_what_a_pass_reads_is_loaded_outside_of_choices() -> None:
    spec = """\
types: {T: [float32, float64]}
inputs: {x: 'T[...]', z: 'T[...]', mask: 'bool[...]'}
outputs: {y: 'T[...]'}
kernel: 'y[...] = z[...] if x[...] > 0 and mask[...] else 0'
"""
    (loop,) = loops(spec)
    loads = ["const T x = x_row[i];", "const bool mask = mask_row[i] != 0;", "const T z = z_row[i];"]
    assert [line for line in map(str.strip, loop.splitlines()) if "_row[" in line] == loads
    assert "y_here = opc::choose<T>(x > 0 && mask, z, 0);" in loop


def test_a_value_kept_for_a_later_pass_is_loaded_there() -> None:
    spec = """\
types: {T: [float32, float64]}
inputs: {x: 'T[..., D]'}
outputs: {y: 'T[..., D]', z: 'T[..., D]'}
kernel: |
  e[..., d] = exp(x[..., d])
  s[...] = sum[d](e[..., d])
  y[..., d] = s[...] if s[...] > x[..., d] else e[..., d]
  z[..., d] = e[..., d] if s[...] > x[..., d] else s[...]
"""
    last = loops(spec)[-1]
    assert "const T e_here = z_row[d];" in last
    assert "y_row[d] = opc::choose<T>(s > x, s, e_here);" in last
    assert "z_row[d] = opc::choose<T>(s > x, e_here, s);" in last
