"""Golden tests of contractions: which sums are recognised, with which factors, guards and epilogues."""

from __future__ import annotations

import re

import pytest

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.lower.slices import sliced_group
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"

LINEAR = """\
inputs: {x: 'T[..., K]', w: 'T[O, K]', 'b?': 'T[O]'}
outputs: {y: 'T[..., O]'}
kernel: |
  y[..., o] = maximum(sum[k](x[..., k] * w[o, k]) + (b[o] if present(b) else 0), 0)
"""
LINEAR_LOOPS = """\
program f
  contraction in blocks [..., o]: f_y
    for k in 0..K: y_sum += x[..., k] * w[o, k]
    store y: T = maximum(y_sum + (b if present(b) else 0), 0)
"""

CONV = """\
inputs: {x: 'T[N, C, L]', w: 'T[O, C, K]'}
attributes:
  stride: {type: int, default: 1, check: stride > 0}
  dilation: {type: int, default: 1, check: dilation > 0}
outputs: {y: 'T[N, O, M]'}
shape: {M: (L - dilation*(K - 1) - 1) // stride + 1}
kernel: |
  y[n, o, i] = sum[c, k](pad(x[n, c, i*stride + k*dilation - 1], 0) * w[o, c, k])
"""
CONV_LOOPS = """\
program f
  contraction in blocks [n, o, i]: f_y
    for c in 0..C, k in 0..K: y_sum += pad(x[n, c, i*stride + k*dilation - 1], 0) * w[o, c, k]
      x guarded in i*stride + k*dilation - 1
    store y: T = y_sum
"""

FACTORS = """\
inputs: {x: 'T[M, K]', w: 'T[K, N]', s: 'T[M]'}
outputs: {y: 'T[M, N]', z: 'T[M]'}
kernel: |
  e[m, k] = exp(x[m, k])
  y[m, n] = sum[k](e[m, k] * s[m] * w[k, n])
  z[m] = sum[k](e[m, k])
"""

MASKED = """\
inputs: {q: 'T[L, E]', k: 'T[S, E]', 'mask?': 'T[L, S]'}
outputs: {y: 'T[L, S]'}
kernel: |
  y[i, j] = 2 * sum[e](q[i, e] * k[j, e]) + (mask[i, j] if present(mask) else 0) if j <= i else -inf
"""
MASKED_LOOPS = """\
program f
  temporary y_all: T[L:L, S:S]
  contraction in blocks [i, j]: f_y_all
    for e in 0..E: y_all_sum += q[i, e] * k[j, e]
    store y_all: T = 2 * y_all_sum + (mask if present(mask) else 0)
  parallel [i, j]: f_y
    schedule: vectorise(j), split
    y[i, j] = y_all[i, j] if j <= i else -inf
"""


def loops(text: str, which: str = "forward") -> str:
    """Return the printed loops of an op of a spec."""
    op = getattr(compile_text(HEAD + text), which)
    return "".join(format_variant(v) for v in lower(op))


@pytest.mark.parametrize(("text", "expected"), [(LINEAR, LINEAR_LOOPS), (CONV, CONV_LOOPS)], ids=["linear", "conv"])
def test_golden(text: str, expected: str) -> None:
    assert loops(text) == expected


def test_factors_that_are_no_reads_are_stored_first() -> None:
    found = loops(FACTORS)
    assert "y_sum += factor[m, k] * w[k, n]" in found
    assert "store factor: T = e * s" in found


def test_a_factor_varies_with_the_axes_of_all_sums_around_it() -> None:
    head = "inputs: {z: 'T[M, N]', v: 'T[N, K]'}\noutputs: {y: 'T[M, K]'}\nkernel: |\n"
    found = loops(f"{head}  y[m, i] = sum[k:N](sum[l:N](z[m, k] * maximum(v[k, i], 0.5)))\n")
    assert "for k in 0..N, l in 0..N: y_sum += z[m, k] * factor[k, i]" in found


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("sum[k](cast(T, q[n, k]) * x[m, k])", "factor[n, k]"),
        ("sum[k](cast(T, p[k, n]) * x[m, k])", "factor[k, n]"),
        ("sum[k](cast(T, q[n, k]) * cast(T, p[k, n]) * x[m, k])", "factor[n, k]"),  # across one of the two
    ],
)
def test_a_factor_is_stored_as_what_it_is_made_of_lies(text: str, place: str) -> None:
    found = loops(
        f"inputs: {{x: 'T[M, K]', q: 'int32[N, K]', p: 'int32[K, N]'}}\noutputs: {{y: 'T[M, N]'}}\nkernel: 'y[m, n] = {text}'\n"
    )
    assert f"y_sum += x[m, k] * {place}\n" in found or f"y_sum += {place} * x[m, k]\n" in found


def test_products_with_the_same_factor_share_it() -> None:
    head = "inputs: {x: 'T[M, K]', q: 'int32[N, K]', z: 'T[M, N]'}\noutputs: {y: 'T[M, N]', d: 'T[M, K]'}\nkernel: |\n"
    found = loops(f"{head}  y[m, n] = sum[k](x[m, k] * cast(T, q[n, k]))\n  d[a, b] = sum[n](z[a, n] * cast(T, q[n, b]))\n")
    assert "y_sum += x[m, k] * factor[n, k]\n" in found
    assert "d_sum += z[a, n] * factor[n, b]\n" in found
    assert found.count("store factor") == 1
    assert "factor2" not in found


def test_gradients_of_a_contraction_are_contractions() -> None:
    backward = loops(LINEAR.replace("maximum(", "(").replace(", 0)\n", ")\n"), "backward")
    assert backward.count("contraction in blocks") == 2
    assert "parallel [" not in backward


def test_both_addends_of_a_tangent_make_one_contraction() -> None:
    tangent = loops(CONV, "jvp")
    assert tangent.count("contraction in blocks") == 1
    assert tangent.count("t_y_sum +=") == 2
    assert "if present(t_x)" in tangent


def test_divided_index_of_a_strided_convolution_is_a_guard() -> None:
    backward = loops(CONV, "backward")
    assert backward.count("contraction in blocks") == 2
    assert "d_y guarded in (" in backward


@pytest.mark.parametrize(
    "body",
    [
        "y[m, n] = sum[k](a[m, k] * a[m, k] + b[k, n])",
        "y[m, n] = max[k](a[m, k] * b[k, n])",
        "y[m, n] = sum[k: m + 1](pad(a[m, k], 0) * pad(b[k, n], 0))",
        "y[m, n] = sum[k](a[m, k] * b[k, n] if k <= m + n else 0)",
        "y[m, n] = sum[k]((a[m, k] - b[k, n]) ** 2)",
    ],
)
def test_other_reductions_are_not_contractions(body: str) -> None:
    text = f"inputs: {{a: 'T[M, K]', b: 'T[K, N]'}}\noutputs: {{y: 'T[M, N]'}}\nkernel: |\n  {body}\n"
    assert "contraction" not in loops(text)


def test_integers_stay_nests() -> None:
    text = (
        "inputs: {a: 'T[M, K]', b: 'T[K, N]'}\noutputs: {y: 'acc(T)[M, N]'}\nkernel: |\n  y[m, n] = sum[k](a[m, k] * b[k, n])\n"
    )
    op = compile_text((HEAD + text).replace("[float16, float32]", "[int32]")).forward
    assert all("contraction" not in format_variant(v) for v in lower(op))


WHOLE = """\
inputs: {a: 'A[M, K]', b: 'B[K, N]', p: 'A[]', q: 'B[N]'}
outputs: {y: 'int64[M, N]'}
kernel: |
  y[m, n] = BODY
"""
A, B = "cast(int32, a[m, k])", "cast(int32, b[k, n])"


@pytest.mark.parametrize(
    ("types", "body", "stored"),
    [
        ("int8, int8", f"sum[k]({A} * {B})", 0),
        ("'uint8', 'uint8'", "sum[k](cast(int64, a[m, k]) * cast(int64, b[k, n]))", 0),
        ("'[int8, uint8]', int8", f"sum[k](({A} - cast(int32, p[])) * {B})", 1),
        ("uint8, uint8", f"sum[k](({A} - cast(int32, p[])) * ({B} - cast(int32, q[n]))) + 1", 2),
        ("int8, int8", f"sum[k](minimum({A} * 99, 7) * (-{B} if k < 3 else 0))", 2),
        # 255 * 255 products of 640 are 31 bits long; those of sums of two are not.
        ("int8, int8", f"sum[k](({A} * {A}) * {B})", 1),
        ("uint8, uint8", f"sum[k](({A} * {A}) * {B})", None),
        ("int16, int8", f"sum[k]({A} * {B})", None),
        ("int8, int8", f"sum[k]({A} * 300 * {B})", None),
        # These wrap, and these are of no type that holds the product.
        ("int8, int8", "sum[k](cast(int32, a[m, k] + p[]) * cast(int32, b[k, n]))", None),
        ("int8, int8", "sum[k](cast(int64, a[m, k] * cast(A, b[k, n])))", None),
    ],
)
def test_products_of_eight_bits(types: str, body: str, stored: int | None) -> None:
    a, b = types.replace("'", "").rsplit(", ", 1)
    head = HEAD.replace("{T: [float16, float32]}", f"{{A: [{a.strip('[]')}], B: [{b}]}}")
    op = compile_text(head + WHOLE.replace("BODY", body)).forward
    (program,) = (format_variant(v) for v in lower(op))
    assert ("contraction" in program) == (stored is not None)
    assert len(re.findall(r"^  temporary factor\d*: int16\[", program, re.MULTILINE)) == (stored or 0)


def test_what_windows_read_is_stored_once() -> None:
    text = """\
types: {T: [float32]}
inputs: {x: 'T[N, C, L]', s: 'T[]', w: 'T[O, C, K]'}
require: [K <= L]
outputs: {y: 'T[N, O, M]'}
shape: {M: L - K + 1}
kernel: |
  y[n, o, i] = sum[c, k]((x[n, c, i + k] - s[]) * w[o, c, k])
"""
    found = loops(text.partition("\n")[2])
    assert "temporary factor: T[N:N, C:C, L:L]" in found
    assert "y_sum += factor[n, c, i + k] * w[o, c, k]" in found


ATTENTION = """\
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]'}
outputs: {y: 'T[..., L, V]'}
kernel: |
  s[..., i, j] = sum[e](q[..., i, e] * k[..., j, e])
  m[..., i] = max[j](s[..., i, j])
  p[..., i, j] = exp(s[..., i, j] - m[..., i])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / sum[j](p[..., i, j])
"""


def test_attention_is_sliced_along_its_batches() -> None:
    family = compile_text(HEAD + ATTENTION)
    assert family.backward is not None
    for op in (family.forward, family.backward):
        (variant,) = lower(op)
        assert sliced_group(variant.case.op, variant.program) == "..."


@pytest.mark.parametrize("matrix", ["w: 'T[O, I]'", "w: 'T[..., O, I]'"], ids=["one", "one each"])
def test_rows_times_one_matrix_are_not_sliced(matrix: str) -> None:
    """One row after the other would read the matrix as often; where each row has one of its own, nothing is read twice."""
    at = "..., o" if "..." in matrix else "o"
    text = f"inputs: {{x: 'T[..., I]', {matrix}}}\noutputs: {{y: 'T[..., O]'}}\nkernel: |\n"
    text += f"  n[..., o] = sum[i](x[..., i] * w[{at}, i])\n  y[..., o] = n[..., o] / max[p:O](n[..., p])\nrequire: [O > 0]\n"
    (variant,) = lower(compile_text(HEAD + text).forward)
    assert sliced_group(variant.case.op, variant.program) == ("..." if "..." in matrix else None)


def test_what_sums_over_a_group_is_not_sliced_along_it() -> None:
    shared = ATTENTION.replace("k: 'T[..., S, E]'", "k: 'T[S, E]'").replace("k[..., j", "k[j")
    backward = compile_text(HEAD + shared).backward
    assert backward is not None
    (variant,) = lower(backward)
    assert sliced_group(variant.case.op, variant.program) is None


def test_a_choice_of_points_takes_the_whole_epilogue_along() -> None:
    """What is left to be chosen at each point reads no optional operand, so that it runs in vectors."""
    assert loops(MASKED) == MASKED_LOOPS


def test_a_choice_of_points_may_read_what_is_proved_inside_at_all_points() -> None:
    grouped = """\
inputs: {q: 'T[H, L, E]', k: 'T[G, S, E]'}
outputs: {y: 'T[H, L, S]'}
require: [H % G == 0, G > 0, H > 0]
kernel: |
  y[h, i, j] = sum[e](q[h, i, e] * k[h * G // H, j, e]) if j <= i else -inf
"""
    found = loops(grouped)
    assert "for e in 0..E: y_all_sum += q[h, i, e] * k[(h*G) // H, j, e]" in found
    assert "y[h, i, j] = y_all[h, i, j] if j <= i else -inf" in found


@pytest.mark.parametrize("read", ["k[j - 1, e]", "pad(k[j - 1, e], 0)"])
def test_a_choice_of_points_keeps_what_is_read_at_these_alone(read: str) -> None:
    """Before the first key there is none to read; and what is padded costs more at all points than at those that need it."""
    later = f"""\
inputs: {{q: 'T[L, E]', k: 'T[S, E]'}}
outputs: {{y: 'T[L, M]'}}
shape: {{M: S + 1}}
kernel: |
  y[i, j] = sum[e](q[i, e] * {read}) if 0 < j else -inf
"""
    assert "contraction" not in loops(later)


def test_the_gradient_by_what_a_group_of_heads_shares_is_a_contraction() -> None:
    """Where groups divide heads each has as many, and the sum over these is a loop like others."""
    grouped = """\
inputs: {q: 'T[H, L, E]', k: 'T[G, S, E]'}
outputs: {y: 'T[H, L, S]'}
require: [H % G == 0, G > 0, H > 0]
kernel: |
  y[h, i, j] = sum[e](q[h, i, e] * k[h * G // H, j, e])
"""
    found = loops(grouped, "backward")
    assert "for n in 0..H // G, m in 0..L: d_k_sum += q[i*(H // G) + n, m, l] * d_y[i*(H // G) + n, m, j]" in found


@pytest.mark.parametrize(
    ("taps", "read", "blocks"),
    [
        ("h[(m*down) % up + q*up]", "pad(x[b, (m*down) // up - q], 0)", False),
        ("w[m, q]", "pad(x[b, (m*2) // 3 - q], 0)", False),
        ("w[m, q]", "pad(x[b, m * 5 // up + q], 0)", False),
        ("w[m, q]", "pad(x[b, m * G // M * Q + q], 0)", True),
        ("w[m, q]", "pad(x[b, m // (M // G) * Q + q], 0)", True),
    ],
)
def test_an_index_that_takes_many_steps_shares_no_rows(taps: str, read: str, blocks: bool) -> None:
    """Rows of one matrix are those between two steps: a few of a resampled signal, where each product has its own taps, and many
    of a group of channels."""
    resampled = f"""\
inputs: {{x: 'T[B, N]', w: 'T[M, Q]', h: 'T[K]', g: 'T[G]'}}
attributes: {{up: {{type: int, default: 3, check: up >= 1}}, down: {{type: int, default: 2, check: down >= 1}}}}
outputs: {{y: 'T[B, M]'}}
require: [M % G == 0, G > 0, M > 0, K == Q*up]
kernel: |
  y[b, m] = sum[q:Q]({taps} * {read})
"""
    assert ("contraction" in loops(resampled)) is blocks
