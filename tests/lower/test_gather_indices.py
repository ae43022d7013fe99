"""Places found by data along the lane are found a row ahead, and once for the indices along which they stay the same."""

from __future__ import annotations

import pytest

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32]}
inputs: {x: 'T[N, C, W]', at: 'T[N, M]'}
"""


def loops(body: str) -> str:
    """Return the loops of an op with this body."""
    return "".join(format_variant(v) for v in lower(compile_text(HEAD + body, "test").forward))


def test_taps_at_computed_places_are_written_out_and_found_once_for_all_channels() -> None:
    kernel = """\
outputs: {y: 'T[N, C, M]'}
kernel: 'y[n, c, m] = sum[p:2](pad(x[n, c, cast(int64, at[n, m]) + p], 0) * (at[n, m] if p == 1 else 2))'
"""
    assert loops(kernel) == (
        "program f\n"
        "  parallel [n, c, m]: f_y\n"
        "    schedule: vectorise(m), prefetch(x, for all [c])\n"
        "    y[n, c, m] = 0 + pad(x[n, c, cast(int64, at[n, m]) + 0], 0) * cast(T, 2) + "
        "pad(x[n, c, cast(int64, at[n, m]) + 1], 0) * at[n, m]\n"
    )


def test_sums_keep_the_axes_that_places_do_not_change_with() -> None:
    kernel = "outputs: {y: 'T[N, M]'}\nkernel: 'y[n, m] = sum[c, p:2](pad(x[n, c, cast(int64, at[n, m]) + p], 0) * at[n, m])'\n"
    assert (
        "  parallel [n, m]: f_y\n"
        "    schedule: vectorise(m), prefetch(x)\n"
        "    y[n, m] = sum[c:C](pad(x[n, c, cast(int64, at[n, m]) + 0], 0) * at[n, m] + "
        "pad(x[n, c, cast(int64, at[n, m]) + 1], 0) * at[n, m])\n"
    ) in loops(kernel)


def test_what_a_choice_along_the_lane_hangs_on_is_not_looked_up() -> None:
    kernel = "outputs: {y: 'T[N, C, M]'}\nkernel: 'y[n, c, m] = x[n, c, cast(int64, at[n, m])] if at[n, m] > 0 else 0'\n"
    assert "prefetch" not in loops(kernel)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("x[n, c, ids[n + 1, m]] if n + 1 < N else 0", id="a number that lies elsewhere"),
        pytest.param("x[n, c, of[ids[n, m]]] if w[n] > 0 else 0", id="a number that may be refused"),
        pytest.param("x[n, c, ids[n, m]] if w[n] > 0 else 0", id="a place that may be refused"),
        pytest.param("sum[k:K](x[n, c, ids[n, m]] * v[k])", id="of a sum that may have no terms"),
        pytest.param("cast(T, w[n] > 0 and x[n, c, ids[n, m]] > 0)", id="of the second of two conditions"),
        pytest.param("sum[k:K](pad(x[n, c, ids[n, m] + n % K], 0) * v[k])", id="a remainder by a size"),
    ],
)
def test_places_that_are_asked_for_at_times_are_not_looked_up_where_that_reads_elsewhere_or_refuses(value: str) -> None:
    head = HEAD.replace("}\ni", ", I: [int32, int64]}\ni").replace(
        "'T[N, M]'", "'T[N, M]', ids: 'I[N, M]', of: 'I[N]', w: 'T[N]', v: 'T[K]'"
    )
    (variant, *_) = lower(compile_text(f"{head}outputs: {{y: 'T[N, C, M]'}}\nkernel: 'y[n, c, m] = {value}'\n", "test").forward)
    assert "prefetch" not in format_variant(variant)


def test_places_under_a_condition_are_looked_up_where_they_lie_at_hand() -> None:
    kernel = "outputs: {y: 'T[N, C, M]'}\nkernel: 'y[n, c, m] = pad(x[n, c, cast(int64, at[n, m])], 0) if n + 1 < N else 0'\n"
    assert "prefetch(x, for all [c])" in loops(kernel)


def backward_loops() -> str:
    kernel = "outputs: {y: 'T[N, C, M]'}\nkernel: 'y[n, c, m] = sum[p:2](pad(x[n, c, cast(int64, floor(at[n, m])) + p], 0))'\n"
    backward = compile_text(HEAD + kernel, "test").backward
    assert backward is not None
    (variant,) = lower(backward)
    return format_variant(variant)


def test_terms_that_go_to_computed_places_are_computed_in_rows_with_their_places_found_once() -> None:
    found = backward_loops()
    assert "temporary d_x_m: int64[N:N, M:M]" in found
    assert "scatter(k = d_x_m[i, m] + p, rows m)" in found


def test_temporaries_of_a_few_points_an_axis_lie_in_long_rows() -> None:
    kernel = """\
outputs: {y: 'T[N, C, M]'}
kernel: |
  w[n, m, p:2] = at[n, m] * at[n, m] if p == 0 else at[n, m]
  y[n, c, m] = sum[p:2](pad(x[n, c, m + p], 0) * w[n, m, p])
"""
    found = loops(kernel)
    assert "temporary w: T[N:N, 2:2, M:M]" in found
    assert "  parallel [n, p, m]: f_w\n    schedule: vectorise(m), split\n" in found


@pytest.mark.parametrize(
    ("value", "passes"),
    [
        pytest.param("sum[i:n + 1](x[i, c, ids[0, m]])", False, id="a number that may be refused"),
        pytest.param("sum[i:n + 1](v[i, m + 2]) if m + 2 < K else 0", False, id="an element that lies elsewhere"),
        pytest.param("sum[i:n + 1](pad(v[i, m + 2], 0)) if m + 2 < K else 0", True, id="padded"),
        pytest.param("sum[i:n + 1](at[i, m]) if m + 2 < K else 0", True, id="at hand"),
    ],
)
def test_a_pass_over_all_points_reads_nothing_that_a_condition_bounds(value: str, passes: bool) -> None:
    head = HEAD.replace("}\ni", ", I: [int32]}\ni").replace("'T[N, M]'", "'T[N, M]', ids: 'I[N, M]', v: 'T[N, K]'")
    text = value if "if" in value else f"{value} if m > 0 else 0"
    found = "".join(
        format_variant(v)
        for v in lower(compile_text(f"{head}outputs: {{y: 'T[N, C, M]'}}\nkernel: 'y[n, c, m] = {text}'\n", "test").forward)
    )
    assert ("scan" in found) == passes, found


def test_a_value_for_each_of_several_taps_and_axes_lies_in_long_rows_too() -> None:
    kernel = """\
outputs: {y: 'T[N, C, M]'}
kernel: |
  w[n, m, k:2, p:4] = at[n, m] * at[n, m] if p == k else at[n, m]
  y[n, c, m] = sum[p:4](pad(x[n, c, m + p], 0) * w[n, m, 0, p] * w[n, m, 1, p])
"""
    found = loops(kernel)
    assert "temporary w: T[N:N, 2:2, 4:4, M:M]" in found
    assert "  parallel [n, k, p, m]: f_w\n" in found


def test_places_of_a_sum_over_pixels_are_found_once_for_all_channels_in_an_op_that_runs_often() -> None:
    value = "sum[p:4, q:2](v[p, m] * pad(x[n, c, cast(int64, floor(at[n, m])) + p + q], 0))"
    text = f"outputs: {{y: 'T[N, C, M]'}}\nkernel: 'y[n, c, m] = {value}'\n"
    family = compile_text(HEAD.replace("'T[N, M]'", "'T[N, M]', v: 'T[4, M]'") + text, "test")
    (forward,) = lower(family.forward)
    assert "prefetch(x, for all [c])" in format_variant(forward)
    assert "+ 3 + 1" in format_variant(forward)
    (jvp,) = lower(next(op for op in family.ops if op.name == "f_jvp"))
    assert "+ 3 + 1" not in format_variant(jvp)
