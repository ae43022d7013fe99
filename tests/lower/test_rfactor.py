"""Sums into a single number that run as loop nests, and the parts they are taken in."""

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
gradient: none
types: {T: [float32, float64]}
"""


def loops(inputs: str, kernel: str) -> str:
    """Return the program of an op whose one output is a number."""
    text = f"{HEAD}inputs: {{{inputs}}}\noutputs: {{y: 'T[]'}}\nkernel: |\n  y[()] = {kernel}\n"
    (variant,) = lower(compile_text(text, "f.yaml").forward)
    return format_variant(variant).strip()


def test_each_row_is_a_sum_of_its_own() -> None:
    found = loops("x: 'T[..., D]', at: 'int64[...]'", "sum[..., d](x[..., d] if at[...] != d else 1)")
    assert (
        found
        == """\
program f
  temporary y_partial: T[...]
  parallel [...]: f_y_partial
    schedule: vectorise
    y_partial[...] = sum[d:D](x[..., d] if at[...] != d else 1)
  parallel rows along [...]: f_1
    schedule: vectorise(...)
    read temporary y_partial: T[...]
    write output y: T[], sum over points
    for each point of the row
      store y: T = y_partial
    or, where rows along [...] are long, with y once a row
      for each point of the row
        accumulate y: T = sum(y_partial)
      store y: T = y"""
    )


def test_what_is_looked_up_is_looked_up_by_all_threads() -> None:
    found = loops("x: 'T[N, D]', at: 'int64[N]', w: 'T[N]'", "-sum[n](x[n, at[n]]) / sum[n](w[n])")
    assert (
        found
        == """\
program f
  temporary y_partial: T[N:N]
  temporary sum_y_partial: T[]
  temporary sum_w: T[]
  parallel [n]: f_y_partial
    schedule: vectorise(n), prefetch(x)
    y_partial[n] = x[n, at[n]]
  parallel rows along [n:N]: f_1_0
    schedule: vectorise(n)
    read input w: T[n:N]
    read temporary y_partial: T[n:N]
    write temporary sum_y_partial: T[], sum over points
    write temporary sum_w: T[], sum over points
    for each point of the row
      store sum_y_partial: T = y_partial
      store sum_w: T = w
    or, where rows along [n:N] are long, with sum_y_partial, sum_w once a row
      for each point of the row
        accumulate sum_y_partial: T = sum(y_partial)
        accumulate sum_w: T = sum(w)
      store sum_y_partial: T = sum_y_partial
      store sum_w: T = sum_w
  parallel rows along []: f_1_1
    schedule: plain loops
    read temporary sum_y_partial: T[], once a row
    read temporary sum_w: T[], once a row
    write output y: T[], once a row
    let y: T = -sum_y_partial / sum_w
    store y: T = y"""
    )


@pytest.mark.parametrize(
    ("inputs", "kernel"),
    [
        pytest.param("x: 'T[N]', at: 'int64[N]'", "sum[i:N, j:N](x[at[i]] * x[at[j]])", id="more terms than elements"),
        pytest.param("x: 'T[N, D]', at: 'int64[N]'", "max[n](x[n, at[n]])", id="a maximum, which may be one of nothing"),
        pytest.param("x: 'T[4, D]', at: 'int64[4]'", "sum[n](x[n, at[n]])", id="few terms"),
        pytest.param("x: 'T[N, D]'", "sum[n, d](x[n, d])", id="a regular sum"),
    ],
)
def test_these_stay_whole(inputs: str, kernel: str) -> None:
    assert "y_partial" not in loops(inputs, kernel)


@pytest.mark.parametrize("condition", ["at[n] == d or d == also[n]", "not (at[n] != d and also[n] != d)"])
def test_terms_at_either_of_two_places_are_two_reads(condition: str) -> None:
    found = loops("x: 'T[N, D]', at: 'int64[N]', also: 'int64[N]'", f"sum[n, d](x[n, d] if {condition} else 0)")
    assert "x[n, at[n]]" in found
    assert "x[n, also[n]]" in found
    assert "sum over [d:D]" not in found
