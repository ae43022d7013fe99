"""Places found by data along the lane are found a row ahead, and once for the indices along which they stay the same."""

from __future__ import annotations

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
        "  parallel rows [n, c, m], lanes m, places in x found once for all [c]: f_y\n"
        "    y[n, c, m] = 0 + pad(x[n, c, cast(int64, at[n, m]) + 0], 0) * cast(T, 2) + "
        "pad(x[n, c, cast(int64, at[n, m]) + 1], 0) * at[n, m]\n"
    )


def test_sums_keep_the_axes_that_places_do_not_change_with() -> None:
    kernel = "outputs: {y: 'T[N, M]'}\nkernel: 'y[n, m] = sum[c, p:2](pad(x[n, c, cast(int64, at[n, m]) + p], 0) * at[n, m])'\n"
    assert (
        "  parallel rows [n, m], lanes m, sum over [c:C] in rows, places in x found a row ahead: f_y\n"
        "    y[n, m] = sum[c:C](pad(x[n, c, cast(int64, at[n, m]) + 0], 0) * at[n, m] + "
        "pad(x[n, c, cast(int64, at[n, m]) + 1], 0) * at[n, m])\n"
    ) in loops(kernel)


def test_what_a_choice_along_the_lane_hangs_on_is_not_looked_up() -> None:
    kernel = "outputs: {y: 'T[N, C, M]'}\nkernel: 'y[n, c, m] = x[n, c, cast(int64, at[n, m])] if at[n, m] > 0 else 0'\n"
    assert "found" not in loops(kernel)
