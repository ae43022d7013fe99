"""Texts of row stages: what keeps compilers from vectorising a loop along a row is not in them."""

from __future__ import annotations

import re
from pathlib import Path

from opc.emit.c_kernel import kernel_files
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
    return re.findall(r"columns; ?\+\+\w+\) \{(.*?)\n    \}", text, re.DOTALL)


def test_a_condition_of_the_row_blends() -> None:
    spec = """\
types: {T: [float16, bfloat16, float32, float64]}
inputs: {x: 'T[...]', 'w?': 'T[...]'}
attributes: {p: {type: int, default: 1}}
outputs: {y: 'T[...]'}
kernel: |
  h[...] = 2 * w[...] if present(w) else x[...]
  y[...] = h[...] if p == 1 else (x[...] if x[...] > 0 else -x[...])
"""
    (loop,) = loops(spec)
    assert re.findall(r"opc::blend<T>\((.*?),", loop) == ["has_w", "fixed"]
    assert re.findall(r"([^ (]+ [<>=]+ \w+) \?", loop) == ["x[i] > 0"]  # one that changes along the row stays a choice
    assert "has_w ?" not in loop


def test_a_choice_of_integers_stays_one() -> None:
    spec = """\
inputs: {x: 'int32[...]', 'w?': 'int32[...]'}
outputs: {y: 'int32[...]'}
kernel: 'y[...] = w[...] if present(w) else x[...]'
"""
    (loop,) = loops(spec)
    assert "blend" not in loop
    assert "has_w ? w[i] : x[i]" in loop
