"""Axes that are required to have one point or as many as another: reads and sums along them are regular."""

from __future__ import annotations

import pytest

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.lower.rows.flatten import IrregularError, flatten
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"
SCALED = """\
inputs: {x: 'T[*A, N, *B]', scale: 'T[S]'}
attributes: {axis: {type: axis, dim: N, default: -1}}
outputs: {y: 'T[*A, N, *B]'}
require: [S > 0, S == 1 or S == N]
kernel: 'y[*A, n, *B] = x[*A, n, *B] * scale[n % S]'
"""


def test_a_read_modulo_a_size_that_broadcasts_is_regular() -> None:
    (variant,) = lower(compile_text(HEAD + SCALED, "test").forward)
    assert format_variant(variant) == (
        "program f\n"
        "  parallel rows along [*A, n:N, *B]: f\n"
        "    schedule: vectorise(*B), nontemporal\n"
        "    read input x: T[*A, n:N, *B]\n"
        "    read input scale: T[n:N]\n"
        "    write output y: T[*A, n:N, *B]\n"
        "    for each point of the row\n"
        "      store y: T = x * scale\n"
        "    or, where rows along [*B] are long, with scale once a row\n"
        "      for each point of the row\n"
        "        store y: T = x * scale\n"
    )


def test_its_transpose_sums_over_the_points_of_the_same_loops() -> None:
    backward = compile_text(HEAD + SCALED, "test").backward
    assert backward is not None
    (variant,) = lower(backward)
    text = format_variant(variant)
    assert "write output d_scale: T[i:S along N], sum over points\n" in text
    assert "parallel [" not in text


@pytest.mark.parametrize(
    ("require", "kernel"),
    [
        ("[S > 0]", "y[*A, n, *B] = x[*A, n, *B] * scale[n % S]"),
        ("[S > 0, S == 1 or S == N]", "y[*A, n, *B] = x[*A, n, *B] * scale[(n + 1) % S]"),
    ],
)
def test_what_is_not_known_to_broadcast_stays_irregular(require: str, kernel: str) -> None:
    text = SCALED.replace("[S > 0, S == 1 or S == N]", require)
    text = text[: text.index("kernel")] + f"kernel: '{kernel}'\n"
    with pytest.raises(IrregularError):
        flatten(compile_text(HEAD + text, "test").forward)


def test_a_size_that_broadcasts_is_also_a_loop_of_its_own() -> None:
    text = SCALED.replace("scale[n % S]", "sum[s:S](scale[s])")
    steps = flatten(compile_text(HEAD + text, "test").forward)
    assert [str(loop) for s in steps for loop in s.domain] == ["s:S along N", "*A", "n:N", "*B"]
