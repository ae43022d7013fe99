"""Examples of outputs in types of 16 and 8 bits: they give the number that is meant, or what is left of it when it is stored."""

from __future__ import annotations

import pytest

from opc.pipeline import compile_text
from opc.testing.references.examples import check_examples


def wrong(kind: str, x: float | str, q: float | str) -> list[str]:
    text = f"""
op: rounded
domain: tests
version: 1
doc: A test.
inputs: {{x: 'float32[N]'}}
outputs: {{q: '{kind}[N]'}}
gradient: none
kernel: q[i] = cast({kind}, x[i])
examples:
  - {{x: [{x}], q: [{q}]}}
"""
    return [message for _, message in check_examples(compile_text(text)) if message]


@pytest.mark.parametrize(
    ("kind", "x", "q"),
    [
        ("float16", 2049.0, 2048.0),
        ("float16", 2049.0, 2049.0),
        ("float16", 0.1, 0.1),
        ("bfloat16", 257.0, 256.0),
        ("float8_e4m3fn", 17.0, 16.0),
        ("float8_e4m3fn", 500.0, ".nan"),
    ],
)
def test_both_are_right(kind: str, x: float, q: float | str) -> None:
    assert wrong(kind, x, q) == []


@pytest.mark.parametrize(("kind", "q"), [("float16", 2050.0), ("float16", ".nan"), ("bfloat16", 2064.0), ("float32", 2048.0)])
def test_others_are_told(kind: str, q: float | str) -> None:
    (message,) = wrong(kind, 2049.0, q)
    assert "but the example says" in message
