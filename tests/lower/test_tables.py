"""Values that change once a row or a column of a loop nest are statements of their own, and sums of nothing are gone."""

from __future__ import annotations

import pytest

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"
SIZES = "inputs: {x: 'T[A, B]'}\noutputs: {y: 'T[A, B]'}\n"


def loops(body: str) -> str:
    """Return the loops of an op with this body."""
    return "".join(format_variant(v) for v in lower(compile_text(HEAD + body, "test").forward))


def test_weights_of_one_index_and_of_what_is_summed_are_tables() -> None:
    kernel = "kernel: 'y[a, b] = sum[k:5](pad(x[a, b + k], 0) * abs(exp(-0.5 * b) + 2.0 * k))'\n"
    assert loops(SIZES + kernel) == (
        "program f\n"
        "  temporary y_b: float64[5:5, B:B]\n"
        "  parallel [k, b]: f_y_b\n"
        "    schedule: vectorise(b)\n"
        "    y_b[k, b] = abs(exp(-0.5 * b) + 2.0 * k)\n"
        "  parallel [a, b]: f_y\n"
        "    schedule: vectorise(b), split\n"
        "    y[a, b] = sum[k:5](pad(x[a, b + k], 0) * y_b[k, b])\n"
    )


@pytest.mark.parametrize(
    "kernel",
    [
        "y[a, b] = x[a, b] * (b * 0.5)",  # as cheap as a load
        "y[a, b] = x[a, b] * exp(abs(0.5 * a + 0.25 * b))",  # different at every point
        "y[a, b] = exp(abs(x[a, b] * (0.5 * b + 1)))",  # of an operand's values
    ],
)
def test_other_values_stay_where_they_are(kernel: str) -> None:
    assert "temporary" not in loops(f"{SIZES}kernel: '{kernel}'\n")


def test_dear_functions_that_several_rows_share_are_tables() -> None:
    """Several statements have the same ones."""
    text = """\
inputs: {x: 'T[A, H, B]', angle: 'T[A, B]', 'c?': 'T[A, B]'}
outputs: {y: 'T[A, H, B]', z: 'T[A, H, B]'}
kernel: |
  y[a, h, b] = cos(angle[a, b]) * x[a, h, B - 1 - b]
  z[a, h, b] = cos(angle[a, b]) * x[a, H - 1 - h, b] + (sin(angle[a, b]) if x[a, h, b] > 0 else 0)
"""
    printed = loops(text)
    assert "y[a, h, b] = y_b[a, b] * x[a, h, -b + B - 1]\n" in printed
    # A point that need not have the sine has it where it asks.
    assert "z[a, h, b] = y_b[a, b] * x[a, -h + H - 1, b] + (sin(angle[a, b]) if x[a, h, b] > 0 else 0)\n" in printed
    assert printed.count("= cos(angle)\n") == 1


@pytest.mark.parametrize(
    "value",
    [
        "angle[a, b] * x[a, h, B - 1 - b]",  # as cheap as a load
        "cos(angle[a, b] + h) * x[a, h, B - 1 - b]",  # of all indices
        "cos(angle[a, 0]) * x[a, h, B - 1 - b]",  # the same in a row
        "cos(angle[a, B - 1 - b]) * x[a, h, b]",  # at places that are not plainly inside
        "cos(c[a, b] if present(c) else 0) * x[a, h, B - 1 - b]",
        "sum[k](cos(angle[a, b]) * x[a, k, B - 1 - b] * x[a, h, b])",
    ],
)
def test_what_is_not_dear_or_not_shared_by_rows_is_no_table(value: str) -> None:
    sizes = "inputs: {x: 'T[A, H, B]', angle: 'T[A, B]', 'c?': 'T[A, B]'}\noutputs: {y: 'T[A, H, B]'}\n"
    assert "temporary y_b" not in loops(f"{sizes}kernel: 'y[a, h, b] = {value}'\n")


def test_sums_that_a_case_makes_nothing_of_are_gone() -> None:
    text = SIZES + "attributes: {twice: {type: bool, default: false}}\n"
    text += "kernel: 'y[a, b] = sum[k:A](x[k, b] if twice else 0) + sum[k:A](x[k, b] * x[k, a % B])'\n"
    first, second = loops(text).split("program f when not twice")
    assert "temporary" in first
    assert "temporary" not in second


def test_short_sums_are_written_out() -> None:
    text = loops(SIZES + "kernel: 'y[a, b] = sum[k:3](pad(x[a, b + k], 0) * k)'\n")
    assert "sum" not in text
    assert "* 0 + pad(x[a, b + 1], 0) * 1 + pad(x[a, b + 2], 0) * 2\n" in text


def test_short_sums_at_computed_places_stay_loops() -> None:
    kernel = "kernel: 'y[a, b] = sum[k:3](pad(x[cast(int64, x[a, b]), k], 0))'\n"
    assert "sum[k:3](" in loops(SIZES + kernel)


def test_a_place_found_by_division_is_scattered_to() -> None:
    text = "inputs: {x: 'T[A, B]'}\noutputs: {y: 'T[A, M]'}\nshape: {M: 2*B + A}\nrequire: [B > 0]\n"
    text += "kernel: 'y[a, m] = pad(x[a, m*(B - 1) // (M - A)], 0) * exp(abs(0.5 * m - 1))'\n"
    backward = compile_text(HEAD + text, "test").backward
    assert backward is not None
    (variant,) = lower(backward)
    found = format_variant(variant)
    assert "scatter(j = (-m + m*B) // (-A + M))" in found
    assert "temporary d_x_m: float64[M:M]" in found
