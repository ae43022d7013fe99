"""Sums over all points of what loop nests compute are added up in the nests."""

from __future__ import annotations

from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text
from tests.lower.test_rfactor import HEAD, loops

INPUTS = "x: 'T[N, D, *K]', at: 'int64[N, *K]', w: 'T[D]', v: 'T[N, *K]'"


def test_what_nests_compute_is_added_up_in_them() -> None:
    found = loops(INPUTS, "sum[n, *K](x[n, at[n, *K], *K]) / sum[n, *K](w[at[n, *K]])")
    assert (
        found
        == """\
program f
  temporary y_partial: T[N:N, *K], in no memory
  temporary y_partial2: T[N:N, *K], in no memory
  temporary sum_y_partial: T[]
  temporary sum_y_partial2: T[]
  parallel [n, *K]: f_y_partial
    schedule: vectorise(K_point), vectorise(n), prefetch(x)
    y_partial[n, *K] = x[n, at[n, *K], *K]
    write temporary sum_y_partial, sum over points
  parallel [i, *K]: f_y_partial2
    schedule: vectorise(K_point), vectorise(i), prefetch(w)
    y_partial2[i, *K] = w[at[i, *K]]
    write temporary sum_y_partial2, sum over points
  parallel rows along []: f_2_1
    schedule: plain loops
    read temporary sum_y_partial: T[], once a row
    read temporary sum_y_partial2: T[], once a row
    write output y: T[], once a row
    let y: T = sum_y_partial / sum_y_partial2
    store y: T = y"""
    )


def test_what_is_read_again_is_stored_too() -> None:
    statements = "u[n, *K] = w[at[n, *K]]", "y = sum[n, *K](x[n, at[n, *K], *K] * u[n, *K]) / sum[n, *K](u[n, *K])"
    text = f"{HEAD}inputs: {{{INPUTS}}}\noutputs: {{y: 'T[]'}}\nkernel: |\n  {statements[0]}\n  {statements[1]}\n"
    (variant,) = lower(compile_text(text, "f.yaml").forward)
    found = format_variant(variant)
    assert "temporary u: T[N:N, *K]\n" in found
    assert "write temporary sum_u, sum over points" in found


def test_a_stage_that_adds_up_more_reads_what_nests_stored() -> None:
    found = loops(INPUTS, "sum[n, *K](x[n, at[n, *K], *K]) / sum[n, *K](v[n, *K])")
    assert "temporary y_partial: T[N:N, *K]\n" in found
    assert "write temporary sum_y_partial: T[], sum over points" in found
