"""A choice that every lane makes and that is the same at all of them is made once, ahead of the lanes."""

from __future__ import annotations

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float32, float64]}
inputs: {x: 'T[N, M]', w: 'T[N, G]', 'z?': 'T[N, G]', c: 'bool[N]', ids: 'int64[N]'}
attributes: {group: {type: int, default: 32, check: group > 0}}
outputs: {y: 'T[N, M]'}
require: [M == group * G]
kernel: |
"""


def loops(kernel: str) -> str:
    """Return the loops of a kernel as text."""
    (variant,) = lower(compile_text(f"{HEAD}  {kernel}\n", "test").forward)
    return format_variant(variant, loops=True)


def test_what_may_be_absent_is_read_ahead_of_a_run() -> None:
    text = loops("y[n, i] = (x[n, i] - (z[n, i // group] if present(z) else 8)) * w[n, i // group]")
    run = text[text.index("for run in ") : text.index("finish_row")]
    assert "let z_value: T = z[n*z.stride[0] + run] if present(z) else 8\n" in run
    assert run.index("let z_value") < run.index("vector for i in low .. high:")
    assert "out[i] = (x[x_base + i] - z_value) * w_value\n" in run


def test_what_only_some_lanes_choose_stays_with_them() -> None:
    text = loops("y[n, i] = x[n, i] + ((z[ids[n], 0] if c[n] and present(z) and G > 0 else 1) if pad(x[n, i + 1], 0) > 0 else 0)")
    lanes = text[text.index("unrolled for i in low") : text.index("if 0 < low")]
    assert "z[z_at*z_step]} if present(z) and c_value else 1) if x[x_base_2 + i] > 0" in lanes


def test_what_moves_with_the_lanes_stays_with_them() -> None:
    text = loops("y[n, i] = pad(x[n, i + 1], 0) + (x[n, i] if c[n] else pad(x[n, i + 2], 1))")
    assert "let x_value" not in text
