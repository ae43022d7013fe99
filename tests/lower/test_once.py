"""Stages whose rows may be cut have a form for long rows, in which what lacks the last axis is there once a row."""

from __future__ import annotations

import pytest

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"


def loops(body: str) -> str:
    """Return the loops of an op with this body."""
    (variant,) = lower(compile_text(HEAD + body, "test").forward)
    return format_variant(variant)


def test_values_of_what_lacks_the_last_axis_are_computed_once_a_row() -> None:
    text = loops(
        "inputs: {x: 'T[N, C, *S]', k: 'T[C]'}\noutputs: {y: 'T[N, C, *S]'}\nkernel: 'y[n, c, *S] = x[n, c, *S] * exp(k[c])'\n"
    )
    assert text.endswith(
        "    for each point of the row\n"
        "      store y: T = x * exp(k)\n"
        "    or, where rows along [*S] are long, with k once a row\n"
        "      let hoisted: T = exp(k)\n"
        "      for each point of the row\n"
        "        store y: T = x * hoisted\n"
    )


def test_sums_over_pieces_that_lie_apart_are_folded_piece_by_piece() -> None:
    text = loops(
        "inputs: {x: 'T[N, C, *S]'}\n"
        "outputs: {y: 'T[C]', z: 'T[N, C, *S]'}\n"
        "kernel: |\n"
        "  y[c] = sqrt(sum[n, *S](x[n, c, *S]))\n"
        "  z[n, c, *S] = -x[n, c, *S]\n"
    )
    assert "  parallel rows along [n:N, c:C, *S]: f_0\n" in text
    assert "    write temporary sum_x: T[c:C], sum over points\n" in text
    assert "        accumulate sum_x: T = sum(x)\n" in text
    assert "  parallel rows along [c:C]: f_1\n    schedule: nontemporal\n" in text


def test_rows_that_are_passed_over_again_stay_whole() -> None:
    text = loops(
        "inputs: {x: 'T[N, C, *S]'}\n"
        "outputs: {y: 'T[N, C, *S]'}\n"
        "kernel: 'y[n, c, *S] = x[n, c, *S] - max[m:N, *S](x[m, c, *S])'\n"
    )
    assert "parallel whole rows of [c:C] along [n:N, *S]" in text


def test_groups_behind_the_last_axis_may_have_no_axes() -> None:
    text = loops(
        "inputs: {x: 'T[*A, N, *B]', m: 'T[*A, *B]'}\n"
        "attributes: {axis: {type: axis, dim: N, default: -1}}\n"
        "outputs: {y: 'T[*A, N, *B]'}\n"
        "kernel: 'y[*A, n, *B] = exp(x[*A, n, *B] - m[*A, *B])'\n"
    )
    assert "    or, where rows along [n:N] are long, with m once a row\n" in text


def test_sums_of_all_points_are_folded_in_registers() -> None:
    text = loops(
        "inputs: {x: 'T[...]'}\noutputs: {y: 'T[...]', total: 'T[]'}\nkernel: |\n  y[...] = -x[...]\n  total = sum[...](x[...])\n"
    )
    assert text.endswith(
        "    for each point of the row\n"
        "      store y: T = -x\n"
        "      store total: T = x\n"
        "    or, where rows along [...] are long, with total once a row\n"
        "      for each point of the row\n"
        "        accumulate total: T = sum(x)\n"
        "        store y: T = -x\n"
        "      store total: T = total\n"
    )


@pytest.mark.parametrize("kind", ["sum", "prod", "max", "min"])
def test_reductions_of_all_points_are_folded_in_registers(kind: str) -> None:
    text = loops(f"inputs: {{x: 'T[...]'}}\noutputs: {{y: 'T[]'}}\nkernel: 'y = {kind}[...](x[...])'\n")
    assert f"    write output y: T[], {kind} over points\n" in text
    assert text.endswith(
        "    or, where rows along [...] are long, with y once a row\n"
        "      for each point of the row\n"
        f"        accumulate y: T = {kind}(x)\n"
        "      store y: T = y\n"
    )


@pytest.mark.parametrize("kind", ["any", "all"])
def test_conditions_of_all_points_are_folded_in_registers(kind: str) -> None:
    text = loops(f"inputs: {{x: 'T[...]'}}\noutputs: {{y: 'bool[]'}}\nkernel: 'y = {kind}[...](x[...] > 0)'\n")
    assert f"        accumulate y: bool = {kind}(x > 0)\n      store y: bool = y\n" in text


def test_maxima_over_pieces_that_lie_apart_are_folded_piece_by_piece() -> None:
    text = loops(
        "inputs: {x: 'T[N, C, *S]'}\n"
        "outputs: {y: 'T[C]', z: 'T[N, C, *S]'}\n"
        "kernel: |\n"
        "  y[c] = max[n, *S](x[n, c, *S])\n"
        "  z[n, c, *S] = -x[n, c, *S]\n"
    )
    assert "    write output y: T[c:C], max over points\n" in text
    assert "        accumulate y: T = max(x)\n" in text
