"""Texts of array programs: naming their parts ends, and leaves nothing behind that is not used."""

from __future__ import annotations

import re

from opc.emit.onnx.function import FunctionBody, function_body
from opc.pipeline import compile_text

ADD_NORM = """
op: a_residual_added_and_normalised
domain: test
version: 1
doc: A test.
types: {T: [float32]}
inputs: {a_long_name: 'T[..., D]', another_long_name: 'T[..., D]'}
outputs: {y: 'T[..., D]', the_sum_of_both: 'T[..., D]'}
kernel: |
  the_sum_of_both = a_long_name + another_long_name
  the_mean_of_the_sum[...] = mean[j](the_sum_of_both[..., j])
  y[..., j] = (the_sum_of_both[..., j] - the_mean_of_the_sum[...]) * rsqrt(mean[k](the_sum_of_both[..., k] ** 2) + 1)
"""


def bodies(text: str) -> list[str]:
    """Return the ONNX functions of a spec and its derived ops."""
    found = [function_body(op) for op in compile_text(text).ops]
    return [b.source for b in found if isinstance(b, FunctionBody)]


def test_names_too_long_for_a_line_are_not_named_again() -> None:
    """A value whose parts are names already is written as it is, however long the line gets; it was once named for ever."""
    assert len(bodies(ADD_NORM)) == 5


def test_every_name_is_read() -> None:
    """What a text that did not fit its line was built on does not stay behind."""
    for source in bodies(ADD_NORM):
        names = re.findall(r"^ +(t\d+) = ", source, re.MULTILINE)
        assert names
        unread = [name for name in names if len(re.findall(rf"\b{name}\b", source)) < 2]
        assert not unread
