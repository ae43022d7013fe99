"""Results that blocks of rows add up: which sums over rows are of that kind, and which columns they leave out."""

from __future__ import annotations

import pytest

from opc.ir.affine import Affine, Dim, Index
from opc.ir.printer import format_assign
from opc.ir.verify import VerifyError
from opc.lower.fuse import cpu_programs, verify_fused
from opc.lower.loop_ir import FusedRows, NeededColumns, Program
from opc.lower.lower import SpecialisedProgram
from opc.lower.printer import format_variant
from opc.pipeline import compile_text
from opc.records import replace

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"

GROUPED = """\
inputs: {q: 'T[B, H, L, E]', k: 'T[B, G, S, E]', v: 'T[B, G, S, V]'}
outputs: {y: 'T[B, H, L, V]'}
require: [S > 0, G > 0, H > 0, H % G == 0]
kernel: |
  s[b, h, i, j] = sum[e](q[b, h, i, e] * k[b, h * G // H, j, e]) if j <= i else -inf
  m[b, h, i] = stop_gradient(max[j](s[b, h, i, j]))
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h * G // H, j, d]) / sum[j](p[b, h, i, j])
"""


def backward(text: str) -> SpecialisedProgram:
    op = compile_text(HEAD + text).backward
    assert op is not None
    (variant,) = cpu_programs(op)
    return variant


def chain(last: str, inputs: str = "") -> Program:
    """Return the program of two contractions and a third one that adds up rows of the first one's result."""
    text = f"""\
inputs: {{x: 'T[B, L, I]', w: 'T[B, I, N]', u: 'T[B, N, O]'{inputs}}}
outputs: {{y: 'T[B, L, O]', z: 'T[B, I, N]'}}
require: [B > 0, L > 1]
kernel: |
  g[b, l, n] = sum[i](x[b, l, i] * w[b, i, n])
  y[b, l, o] = sum[n](g[b, l, n] * u[b, n, o])
  z[b, i, n] = {last}
"""
    (variant,) = cpu_programs(compile_text(HEAD + text).forward)
    return variant.program


def summed(rows: FusedRows | None) -> tuple[str, ...]:
    return () if rows is None or rows.summed is None else rows.summed.outputs


def test_gradients_by_what_heads_share_are_added_up_by_blocks() -> None:
    variant = backward(GROUPED)
    rows = variant.program.fused
    assert rows is not None
    assert (rows.leading, rows.dim, summed(rows)) == (("B", "H"), "L", ("d_k", "d_v"))
    assert rows.summed is not None
    each = Affine.of(Dim("H")) // Dim("G")
    assert rows.summed.members == each
    places = {0: Affine.of(Index("B")), 1: Affine.of(Index("H")) // each}
    assert rows.summed.axes == {"d_k": places, "d_v": places}
    assert rows.places is not None
    assert rows.places.axes["d_k"] == places
    verify_fused(variant.case.op, variant.program)


def test_columns_that_add_nothing_to_sums_are_left_out() -> None:
    """What is 0 times a number counts where that is finite: of a temporary that is known once it is computed."""
    program = backward(GROUPED).program
    assert program.columns == NeededColumns("S", Affine.of(Dim("L")) + Dim("L_first"), ("k", "q"), ("d_y_sum2",))
    assert "points along S, if k and q and d_y_sum2 are finite\n" in format_variant(backward(GROUPED))
    # In no row of a block the scores that are kept are others.
    assert backward(GROUPED.replace("else -inf", "else -1000")).program.columns is None


def test_a_head_of_its_own_for_each_is_a_unit() -> None:
    rows = backward(
        GROUPED.replace("h * G // H", "h").replace("B, G, S", "B, H, S").replace("G > 0, ", "").replace(", H % G == 0", "")
    )
    found = rows.program.fused
    assert found is not None
    assert found.summed is not None
    assert (found.leading, found.summed.members) == (("B", "H"), Affine.of(1))


@pytest.mark.parametrize(
    ("last", "inputs", "outputs"),
    [
        ("sum[l](x[b, l, i] * g[b, l, n])", "", ("z",)),
        ("2 * sum[l](x[b, l, i] * g[b, l, n])", "", ()),  # no sum, but what is made of one
        ("sum[l](x[b, l, i] * g[b, (l + 1) % L, n])", "", ()),  # rows of other blocks
        ("sum[l](x[b, l, i] * g[b, l, n] if l > 1 else 0)", "", ("z",)),  # which row it is
        ("sum[l](x[b, l, i] * g[b, l, n] * L)", "", ("z",)),  # a factor stored by rows is told how many there are
        ("sum[l](x[b, l, i] * g[b, L - 1 - l, n])", "", ()),  # how many there are
        ("sum[l](x[b, l, i] * g[(b + 1) % B, l, n])", "", ()),  # another point of the leading axis
        ("sum[a:B, l](x[a, l, i] * g[a, l, n])", "", ()),  # all points of it
        ("sum[l](x[b, l, i] * a[l, n])", ", a: 'T[L, N]'", ("z",)),  # an input without that axis
        ("sum[l, k](x[b, l, i] * a[k, n])", ", a: 'T[K, N]'", ("z",)),
        ("max[l](x[b, l, i] * g[b, l, n])", "", ()),
    ],
)
def test_sums_over_rows_are_added_up(last: str, inputs: str, outputs: tuple[str, ...]) -> None:
    assert summed(chain(last, inputs).fused) == outputs


SLOPED = """\
inputs: {q: 'T[B, H, L, E]', k: 'T[B, H, S, E]', v: 'T[B, H, S, V]', slopes: 'T[H]'}
outputs: {y: 'T[B, H, L, V]'}
require: [S > 0]
kernel: |
  s[b, h, i, j] = sum[e](q[b, h, i, e] * k[b, h, j, e]) - slopes[h] * (i - j) if j <= i else -inf
  m[b, h, i] = stop_gradient(max[j](s[b, h, i, j]))
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h, j, d]) / sum[j](p[b, h, i, j])
"""


def test_a_sum_over_rows_may_be_one_over_leading_axes_too() -> None:
    variant = backward(SLOPED)
    rows = variant.program.fused
    assert rows is not None
    assert rows.summed is not None
    assert (rows.leading, summed(rows), rows.summed.absent) == (("B", "H"), ("d_k", "d_v", "d_slopes"), {"d_slopes": (0,)})
    assert rows.summed.axes["d_slopes"] == {0: Affine.of(Index("H"))}
    # It is one over the columns that the same condition keeps: what others add is not missed.
    assert variant.program.columns == NeededColumns("S", Affine.of(Dim("L")) + Dim("L_first"), ("k", "q"), ("d_y_sum2",))
    (slopes,) = (s for s in variant.case.op.body if s.target == "d_slopes")
    assert "i - j + L_first" in format_assign(slopes)


@pytest.mark.parametrize(("condition", "fewer"), [("j <= i", True), ("j <= i + 1", False), ("i <= j", False)])
def test_columns_that_a_sum_keeps_are_not_left_out(condition: str, fewer: bool) -> None:
    text = f"""\
inputs: {{q: 'T[B, H, L, E]', k: 'T[B, H, S, E]', v: 'T[B, H, S, V]'}}
outputs: {{y: 'T[B, H, L, V]', z: 'T[H]'}}
require: [S > 0]
kernel: |
  r[b, h, i, j] = sum[e](q[b, h, i, e] * k[b, h, j, e])
  s[b, h, i, j] = r[b, h, i, j] if j <= i else -inf
  m[b, h, i] = stop_gradient(max[j](s[b, h, i, j]))
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[b, h, j, d])
  z[h] = sum[b, i, j](r[b, h, i, j] if {condition} else 0)
"""
    (variant,) = cpu_programs(compile_text(HEAD + text).forward)
    assert summed(variant.program.fused) == ("z",)
    assert (variant.program.columns is not None) == fewer


def test_no_unit_is_for_heads_of_their_own_and_for_shared_ones() -> None:
    grouped = SLOPED.replace("B, H, S", "B, G, S").replace("[S > 0]", "[S > 0, G > 0, H > 0, H % G == 0]")
    grouped = grouped.replace("k[b, h,", "k[b, h * G // H,").replace("v[b, h,", "v[b, h * G // H,")
    assert backward(grouped.replace("slopes[h]", "slopes[0]")).program.fused is None
    assert backward(grouped).program.fused is None


def test_the_verifier_finds_what_is_no_sum_over_rows() -> None:
    variant = backward(GROUPED)
    rows = variant.program.fused
    assert rows is not None
    assert rows.summed is not None
    others = replace(rows, summed=replace(rows.summed, members=Affine.of(1)))
    with pytest.raises(VerifyError, match="has results that are no sums over rows: d_k, d_v"):
        verify_fused(variant.case.op, replace(variant.program, fused=others))
