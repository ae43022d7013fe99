"""Stages fused by rows: which ops the rule finds, what it makes of them, and what the verifier holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.compiler import Stage, compile_spec
from opc.ir.affine import Affine, AttrInt, Dim, Index
from opc.ir.verify import VerifyError
from opc.loops.schedule import overridden, overrides
from opc.lower.fuse import cpu_programs, verify_fused
from opc.lower.loop_ir import ContractionStage, FusedRows, NeededColumns
from opc.lower.lower import SpecialisedProgram, lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text
from opc.records import replace

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"

ATTENTION = """\
attributes: {reach: {type: int, default: 0}}
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]'}
outputs: {y: 'T[..., L, V]'}
require: [S > 0]
kernel: |
  s[..., i, j] = sum[e](q[..., i, e] * k[..., j, e])
  w[..., i, j] = s[..., i, j] if j <= i + reach else -1000
  m[..., i] = stop_gradient(max[j](w[..., i, j]))
  p[..., i, j] = exp(w[..., i, j] - m[..., i])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / sum[j](p[..., i, j])
"""
FUSED = """\
program f
  schedule: fuse(L)
  for each block of rows along L, from L_first on, of each point of ...:
  temporary s: T[..., L:L, S:S]
  temporary w: T[..., L:L, S:S], in the memory of s
  temporary p: T[..., L:L, S:S], in the memory of w
  temporary y_sum: T[..., L:L]
  contraction in blocks [..., i, j]: f_s
    for e in 0..E: s_sum += q[..., i, e] * k[..., j, e]
    store s: T = s_sum
  parallel [..., i, j]: f_w
    schedule: vectorise(j), split
    w[..., i, j] = s[..., i, j] if j <= i + L_first + reach else -1000
  parallel whole rows of [..., i:L] along [j:S]: f_2
    schedule: interleave, prefetch, batch(4, whole)
    read temporary w: T[..., i:L, j:S]
    write temporary p: T[..., i:L, j:S]
    write temporary y_sum: T[..., i:L], once a row
    for each point of the row
      accumulate m: T = max(w)
    for each point of the row
      let p: T = exp(w - m)
      accumulate y_sum: T = sum(p)
      store p: T = p
    store y_sum: T = y_sum
  contraction in blocks [..., i, d]: f_y
    for j in 0..S: y_sum2 += p[..., i, j] * v[..., j, d]
    store y: T = y_sum2 / y_sum
"""

TWO_LAYERS = """\
inputs: {x: 'T[B, I]', w: 'T[I, H]', u: 'T[H, O]'}
outputs: {y: 'T[B, O]'}
kernel: |
  h[b, n] = maximum(sum[i](x[b, i] * w[i, n]), 0)
  y[b, o] = sum[n](h[b, n] * u[n, o])
"""


def variants(text: str, *changes: str) -> tuple[SpecialisedProgram, ...]:
    op = compile_text(HEAD + text).forward
    with overridden(overrides(changes)):
        return cpu_programs(op)


def fused(text: str) -> FusedRows | None:
    (variant,) = variants(text)
    return variant.program.fused


def test_attention_is_fused_along_its_queries() -> None:
    (variant,) = variants(ATTENTION)
    assert variant.program.fused == FusedRows("...", "L", "L_first")
    assert format_variant(variant) == FUSED
    # An index that is used as a number counts from the first row of the block.
    assert "if j <= i + L_first + reach else -1000" in FUSED
    assert "if j <= i + reach else -1000" in format_variant(variants(ATTENTION, "f: -fuse")[0])


def test_a_schedule_leaves_fusion_out() -> None:
    op = compile_text(HEAD + ATTENTION).forward
    assert cpu_programs(op) is not lower(op)
    with overridden(overrides(["f: -fuse"])):
        assert cpu_programs(op) is lower(op)


def test_rows_need_no_group() -> None:
    assert fused(TWO_LAYERS) == FusedRows(None, "B", "B_first")
    assert "L_first" not in format_variant(variants(TWO_LAYERS)[0])


def test_the_first_row_has_a_name_of_its_own() -> None:
    assert fused(TWO_LAYERS.replace("B, I]", "B, B_first]").replace("[I, H]", "[B_first, H]")) == FusedRows(None, "B", "B_first2")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'T[..., S, E]'", "'T[..., L, E]'"),  # keys are as many as queries: blocks would cut them, too
        ("sum[j](p[..., i, j] * v", "sum[j](p[..., (i + 1) % L, j] * v"),  # a row of its own needs another
        ("/ sum[j](p[..., i, j])", "/ sum[a, j](p[..., a, j])"),  # a sum over rows
        ("/ sum[j](p[..., i, j])", "/ sum[..., j](p[..., i, j])"),  # a sum over the group
        ("outputs: {y: 'T[..., L, V]'}", "outputs: {y: 'T[..., L, V]', z: 'T[..., S]'}"),  # an output without rows
    ],
)
def test_rows_that_need_each_other_are_not_fused(old: str, new: str) -> None:
    text = ATTENTION.replace(old, new)
    assert text != ATTENTION
    if "z:" in new:
        text += "  z[..., j] = sum[i](p[..., i, j])\n"
    if "'T[..., L, E]'" in new:
        text = text.replace("'T[..., S, V]'", "'T[..., L, V]'").replace("S > 0", "L > 0")
    assert fused(text) is None


def test_stages_that_run_across_rows_are_not_fused() -> None:
    """Each statement needs the rows of its own batch, but the maximum is taken across the elements of several."""
    text = """\
inputs: {x: 'T[B, L, I]', w: 'T[B, I, N]', u: 'T[B, N, O]'}
outputs: {y: 'T[B, L, O]', z: 'T[B, I, N]'}
require: [L > 0]
kernel: |
  g[b, l, n] = sum[i](x[b, l, i] * w[b, i, n])
  y[b, l, o] = sum[n](g[b, l, n] * u[b, n, o])
  z[b, i, n] = max[l](x[b, l, i] * g[b, l, n])
"""
    assert fused(text) is None


def test_what_no_contraction_reads_is_not_fused() -> None:
    alone = "inputs: {x: 'T[..., L, K]', w: 'T[K, N]'}\noutputs: {y: 'T[..., L]'}\nrequire: [N > 0]\nkernel: |\n"
    assert fused(alone + "  h[..., i, n] = sum[k](x[..., i, k] * w[k, n])\n  y[..., i] = max[n](h[..., i, n])\n") is None


def test_the_verifier_finds_a_read_of_another_row() -> None:
    (variant,) = variants(TWO_LAYERS)
    verify_fused(variant.case.op, variant.program)
    first, second = variant.program.stages
    assert isinstance(second, ContractionStage)
    (term,) = second.terms
    left, right = term.factors
    assert left.read.operand == "h"
    moved = replace(left, read=replace(left.read, indices=(Affine.of(Index("b")) + 1, left.read.indices[1])))
    broken = replace(second, terms=(replace(term, factors=(moved, right)),))
    with pytest.raises(VerifyError, match="f_y does not stay in its block of rows along B: h"):
        verify_fused(variant.case.op, replace(variant.program, stages=(first, broken)))


def test_the_verifier_finds_a_result_without_rows() -> None:
    (variant,) = variants(TWO_LAYERS)
    rows = FusedRows(None, "H", "H_first")
    with pytest.raises(VerifyError, match="f_h does not stay in its block of rows along H: h"):
        verify_fused(variant.case.op, replace(variant.program, fused=rows))


def test_a_temporary_that_is_needed_later_keeps_its_memory() -> None:
    text = ATTENTION.replace("outputs: {", "outputs: {z: 'T[..., L, V]', ")
    (variant,) = variants(f"{text}  z[..., i, d] = y[..., i, d] + sum[j](w[..., i, j] * v[..., j, d])\n")
    hosts = {t.name: t.host for t in variant.program.temporaries}
    assert (hosts["w"], hosts["p"]) == ("s", None)


def test_other_programs_keep_what_they_have_apart() -> None:
    assert all(t.host is None for v in variants(ATTENTION, "f: -fuse") for t in v.program.temporaries)


MASKED = ATTENTION.replace("else -1000", "else -inf")


def needed(text: str) -> NeededColumns | None:
    return variants(text)[0].program.columns


def test_columns_that_a_condition_drops_in_a_whole_block_are_left_out() -> None:
    count = Affine.of(Dim("L")) + Dim("L_first") + AttrInt("reach")
    assert needed(MASKED) == NeededColumns("S", count, ("v",))
    text = format_variant(variants(MASKED)[0])
    assert "  only the first L + L_first + reach points along S, if v is finite\n" in text
    shifted = MASKED.replace("- m[..., i])", "- c[..., i])").replace(
        "  p[...", "  c[..., i] = 0 if isinf(m[..., i]) else m[..., i]\n  p[..."
    )
    assert needed(shifted) == needed(MASKED)


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("j < i + reach", "L + L_first + reach - 1"),
        ("2*i - reach >= j", "L*2 + L_first*2 - reach - 1"),
        ("j + i - reach < 0", "-L_first + reach"),
        ("j <= 7", None),  # the same in all blocks
        ("j >= i + reach", None),  # the first columns are dropped
        ("2*j <= i + reach", None),
        ("j % 3 <= i", None),
        ("j <= i + reach + S - L", "L + L_first - L_whole + S_whole + reach"),  # counts rows and columns, of all blocks
        ("j <= i or j == 3", None),
    ],
)
def test_the_last_column_follows_from_the_condition(condition: str, count: str | None) -> None:
    found = needed(MASKED.replace("j <= i + reach", condition))
    assert (None if found is None else str(found.count)) == count


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("else -inf", "else -1000"),  # its exponential may be what others are
        ("exp(w[..., i, j] - m[..., i])", "exp(m[..., i] - w[..., i, j])"),
        ("exp(w[..., i, j] - m[..., i])", "exp(w[..., i, j] - 2 * m[..., i])"),  # may be -inf, too
        ("exp(w[..., i, j] - m[..., i])", "maximum(w[..., i, j], -1) - m[..., i]"),
        ("sum[j](p[..., i, j] * v[..., j, d]) /", "sum[j]((p[..., i, j] + 1) * v[..., j, d]) /"),
        ("/ sum[j](p[..., i, j])", "/ sum[j](s[..., i, j])"),  # what is not masked
        ("/ sum[j](p[..., i, j])", "/ sum[j](p[..., i, j] + bias[S - j])"),  # an index counts the columns
        ("/ sum[j](p[..., i, j])", "/ sum[j](p[..., i, 0] + p[..., i, j])"),
        ("/ sum[j](p[..., i, j])", "/ max[j](p[..., i, j])"),
    ],
)
def test_columns_that_would_be_missed_are_computed(old: str, new: str) -> None:
    text = MASKED.replace(old, new)
    assert text != MASKED
    if "bias" in new:
        text = text.replace("inputs: {", "inputs: {bias: 'T[M]', ").replace("S > 0]", "S > 0, M > S]")
    assert variants(text)[0].program.fused is not None
    assert needed(text) is None


def test_what_counts_rows_and_columns_is_told_those_of_all_blocks() -> None:
    text = MASKED.replace("i + reach", "i + S - L").replace("/ sum[j](p[..., i, j])", "/ (sum[j](p[..., i, j]) / (S + L))")
    (variant,) = variants(text)
    rows = variant.program.fused
    assert rows is not None
    assert rows.whole == (("L_whole", "L"), ("S_whole", "S"))
    printed = format_variant(variant)
    assert "w[..., i, j] = s[..., i, j] if j <= i + L_first - L_whole + S_whole else -inf" in printed
    assert "L_whole + S_whole))" in printed.replace("S_whole + L_whole", "L_whole + S_whole")
    assert "L_whole" not in format_variant(variants(text, "f: -fuse")[0])
    # Where all columns are computed, none are fewer than there are.
    (plain,) = variants(text.replace("else -inf", "else -1000"))
    assert "L_whole + S))" in format_variant(plain).replace("S + L_whole", "L_whole + S")


HEADS = """\
inputs: {q: 'T[B, H, L, E]', k: 'T[B, G, S, E]', v: 'T[S, B, V]', bias: 'T[S, L]', slope: 'T[H]'}
outputs: {y: 'T[B, H, L, V]'}
require: [S > 0, G > 0, H > 0, H % G == 0]
kernel: |
  s[b, h, i, j] = slope[h] * sum[e](q[b, h, i, e] * k[b, h * G // H, j, e]) + bias[j, i] if j <= i else -inf
  m[b, h, i] = stop_gradient(max[j](s[b, h, i, j]))
  p[b, h, i, j] = exp(s[b, h, i, j] - m[b, h, i])
  y[b, h, i, d] = sum[j](p[b, h, i, j] * v[j, b, d]) / sum[j](p[b, h, i, j])
"""


def test_axes_with_names_lead_a_block_of_rows() -> None:
    (variant,) = variants(HEADS)
    rows = variant.program.fused
    assert rows is not None
    assert (rows.group, rows.leading, rows.dim, rows.at) == (None, ("B", "H"), "L", 2)
    assert rows.places is not None
    assert rows.places.sizes == {"B", "H", "G"}
    b, h, g = Affine.of(Index("B")), Affine.of(Index("H")), Affine.of(Dim("G"))
    assert rows.places.axes == {"q": {0: b, 1: h}, "k": {0: b, 1: (h * g) // Dim("H")}, "v": {1: b}, "bias": {}, "slope": {0: h}}
    printed = format_variant(variant)
    assert "for each block of rows along L, from L_first on, of each point of B, H:" in printed
    assert "only the first L + L_first points along S, if v is finite" in printed


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if j <= i", "+ h if j <= i"),  # which head it is
        ("if j <= i", "/ G if j <= i"),  # how many there are
        ("if j <= i", "/ B if j <= i"),
        ("if j <= i", "+ sum[n:G](bias[j, i]) if j <= i"),
        ("slope[h] *", "slope[0] *"),  # a head that all need
        ("slope[h] *", "slope[H - 1] *"),
        ("slope[h] *", "slope[(h + i) % H] *"),  # another one in each row
        ("slope[h] *", "(slope[h] + slope[H - 1 - h]) *"),  # two at a time
        ("slope[h] *", "far[h + 1] *"),  # not the first one of a slice
        ("slope[h] *", "pad(slope[h - 1], 0) *"),  # before the first one
        ("v[j, b, d]", "(v[j, b, d] + y0[b, 0])"),
        ("sum[j](p[b, h, i, j])", "sum[n:H, j](p[b, n, i, j])"),  # what other heads have
    ],
)
def test_what_needs_more_than_a_point_of_leading_axes_is_not_cut_along_them(old: str, new: str) -> None:
    text = HEADS.replace(old, new)
    assert text != HEADS
    if "y0" in new:
        text = text.replace("slope: 'T[H]'", "slope: 'T[H]', y0: 'T[B, G]'").replace(
            "v[j, b, d] + y0[b, 0]", "v[j, b, d] + y0[b, G - 1]"
        )
    if "far" in new:
        text = text.replace("slope: 'T[H]'", "far: 'T[M]'").replace("G > 0", "G > 0, M > H")
    found = fused(text)
    assert found is None or "H" not in found.leading


def test_an_element_at_a_computed_point_of_leading_axes_is_found() -> None:
    """In a slice the place is 0, whatever it is in the whole operand."""
    rows = fused(HEADS.replace("slope[h] *", "slope[H - 1 - h] *"))
    assert rows is not None
    assert rows.places is not None
    assert rows.places.axes["slope"] == {0: Affine.of(Dim("H")) - 1 - Index("H")}
    assert "slope[-h + H - 1]" in format_variant(variants(HEADS.replace("slope[h] *", "slope[H - 1 - h] *"))[0])


CLAMPED = (
    HEADS.replace("bias: 'T[S, L]'", "mask: 'T[MB, ML, MS]', n: 'int64[B]'")
    .replace("  s[b, h, i, j] =", "  c[b:B] = n[b] + 1\n  s[b, h, i, j:S] =")
    .replace("bias[j, i] if j <= i", "pad(mask[minimum(b, MB - 1), minimum(i, ML - 1), j], 0) if j <= i + c[b]")
)


def test_an_element_at_a_clamped_point_of_leading_axes_is_found() -> None:
    """A slice has it at the point itself. Rows of what has all rows are counted from the first of all, and a number of a point
    stands where it is read."""
    (variant,) = variants(CLAMPED)
    rows = variant.program.fused
    assert rows is not None
    assert rows.places is not None
    assert (rows.leading, rows.dim, rows.places.clamped) == (("B", "H"), "L", {"mask": {0}})
    assert rows.places.axes["mask"] == {0: Affine.of(Index("B"))}
    printed = format_variant(variant)
    assert "pad(mask[b, i + L_first, j], 0) if" in printed
    assert "if ML - 1 >= i + L_first else" in printed
    assert "MB" not in printed
    assert "if j <= i + L_first + (n[b] + 1)" in printed
    verify_fused(variant.case.op, variant.program)
    plain = variants(CLAMPED, "f: -fuse")[0]
    assert "mask[MB - 1, i, j]" in format_variant(plain)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("minimum(b, MB - 1)", "minimum(b, MB - 2)"),
        ("minimum(b, MB - 1)", "minimum(b - B + 1, MB - 1)"),  # before the first one, which is padding
        ("minimum(b, MB - 1)", "b if MB - 1 >= b else 0"),  # another element than the last one
        ("+ pad(", "+ pad(mask[MB - 1, 0, 0], 0) + pad("),  # another element, too
        ("if j <= i", "+ MB if j <= i"),  # how many there are
    ],
)
def test_an_element_at_other_points_is_not_clamped(old: str, new: str) -> None:
    text = CLAMPED.replace(old, new)
    assert text != CLAMPED
    found = fused(text)
    assert found is None or not found.leading


def test_the_verifier_finds_rows_of_a_block_in_an_operand_that_has_all() -> None:
    (variant,) = variants(CLAMPED)
    rows = variant.program.fused
    assert rows is not None
    other = replace(variant.program, fused=replace(rows, first="other"))
    with pytest.raises(VerifyError, match="s reads mask at rows of a block, and that has all"):
        verify_fused(variant.case.op, other)


def test_attention_of_onnx_stores_no_scores() -> None:
    op = compile_spec(Path("specs/onnx/attention.yaml"), to=Stage.FAMILY).family.forward
    for variant in cpu_programs(op):
        rows = variant.program.fused
        assert rows is not None
        assert rows.places is not None
        assert (rows.leading, rows.dim) == (("B", "H"), "L")
        assert rows.places.clamped == {"mask": {0, 1}, "allowed": {0, 1}}


def test_axes_lead_where_an_operand_has_them_without_rows() -> None:
    batched = (
        TWO_LAYERS.replace("[B, I]", "[B, N, I]").replace("[B, O]", "[B, N, O]").replace("[b, ", "[b, r, ").replace("n", "m")
    )
    batched = batched.replace("imputs", "inputs").replace("kermel", "kernel")
    assert fused(batched) == FusedRows(None, "B", "B_first")
    own = batched.replace("w: 'T[I, H]'", "w: 'T[B, I, H]'").replace("w[i, m]", "w[b, i, m]")
    found = fused(own)
    assert found is not None
    assert (found.leading, found.dim) == (("B",), "N")


def test_the_verifier_finds_a_read_at_another_point_of_leading_axes() -> None:
    (variant,) = variants(HEADS)
    verify_fused(variant.case.op, variant.program)
    elsewhere = compile_text(HEAD + HEADS.replace("k[b, h * G // H,", "k[b, 0,")).forward
    (broken,) = lower(elsewhere)
    with pytest.raises(VerifyError, match="f needs more than one point of its leading axes at a time"):
        verify_fused(broken.case.op, replace(broken.program, fused=variant.program.fused))


def test_outputs_have_all_columns() -> None:
    text = MASKED.replace("outputs: {", "outputs: {z: 'T[..., L, S]', ") + "  z[..., i, j] = p[..., i, j] + 1\n"
    assert variants(text)[0].program.fused is not None
    assert needed(text) is None
