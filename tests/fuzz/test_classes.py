"""Specs in which something was wrong once, with others of their class: held to the proof that random ones are held to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from opc.ir.op import Family
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together
from tests.fuzz.proof import wrong_gradients, wrong_kernels, wrong_references

CALLS = 8
HEAD = """\
op: {name}
domain: opc.test
version: 1
doc: A test.
types: {{T: [float64]}}
"""

ROW = "inputs: {x: 'T[N]', m: 'T[M]'}\noutputs: {y: 'T[N]'}\n"
ROWS = "inputs: {x: 'T[H, N]', m: 'T[M]'}\noutputs: {y: 'T[H, N]'}\n"
MATRICES = "inputs: {a: 'T[I, K]', b: 'T[K, J]', m: 'T[M]'}\noutputs: {y: 'T[I, J]'}\n"
OPTIONAL = "inputs: {a: 'T[I, K]', b: 'T[K, J]', 'c?': 'T[K, J]'}\noutputs: {y: 'T[I, J]'}\n"
SQUARE = "inputs: {a: 'T[I, I]', b: 'T[I, J]'}\noutputs: {y: 'T[I, J]'}\n"
ALONG = "inputs: {p: 'T[N, *S]'}\noutputs: {y: 'T[]'}\n"
PLANE = "inputs: {x: 'T[I, J]'}\noutputs: {y: 'T[I, J]'}\n"
FLAG = "attributes: {flag: {type: bool, default: true}}\n"
COUNT = "attributes: {c: {type: int, default: 1, check: c >= 0}}\n"
SIDE = "attributes: {side: {type: str, values: [left, right], default: left}}\n"

CONDITIONS = {
    "of_sizes": (ROW, "y[i] = pad(x[i + 1], 0) if N < M else pad(x[i - 1], 0)"),
    "of_sizes_in_an_index": (ROW, "y[i] = pad(x[i + 1 if N >= M else i - 1], 0)"),
    "of_remainders": (ROW, "y[i] = pad(x[i + 1], 0) if N % 3 == M % 2 else pad(x[i - 1], 0)"),
    "of_a_bool": (ROW + FLAG, "y[i] = pad(x[i + 1], 0) if flag else pad(x[i - 1], m[0] * 0) if M > 0 else 0"),
    "of_an_int": (ROW + COUNT, "y[i] = pad(x[i + 1], 0) if c > 1 else pad(x[i - 1], 0)"),
    "of_a_str": (ROW + SIDE, "y[i] = pad(x[i + 1], 0) if side == 'left' else pad(x[i - 1], 0)"),
    "nested": (ROW + FLAG, "y[i] = (pad(x[i + 1], 0) if N < M else pad(x[i - 1], 0)) if flag else (x[i] if M < 3 else 0)"),
    "in_a_window": (ROW, "y[i] = sum[p:3](pad(x[i + p], 0) if N < M else pad(x[i - p], 0))"),
    "of_a_row_in_a_window": (ROWS, "y[h, i] = sum[p:3](pad(x[h, i + p], 0) if h >= 2 else 0)"),
    "in_a_weighted_window": (ROWS, "y[h, i] = sum[p:3](pad(x[h, i + p], 0) * m[p] if M > 3 and h > 1 else 0)"),
    "in_a_maximum": (ROWS, "y[h, i] = max[p:3](pad(x[h + 1, i + p], -inf) if M > 3 else pad(x[h, i + p], -inf))"),
    "in_an_extent": (ROW, "y[i] = sum[k:i + 1](x[k] if N < M else x[i])"),
    "in_a_product": (MATRICES, "y[i, j] = sum[k](a[i, k] * b[k, j] if K < M else 0)"),
}  # fmt: skip
"""Conditions on what a call fixes: each counts, wherever it stands."""

PRODUCTS = {
    "triangle": (SQUARE, "y[i, j] = sum[k:i + 1](a[i, k] * b[k, j])"),
    "other_triangle": (SQUARE, "y[i, j] = sum[k:I - i](a[i, k] * b[k, j])"),
    "triangle_of_three": (SQUARE, "y[i, j] = sum[k:i + 1](a[i, k] * b[k, j] * a[k, i])"),
    "triangle_and_all": (SQUARE, "y[i, j] = sum[k:i + 1](a[i, k] * b[k, j]) + sum[k](a[i, k] * b[k, j])"),
    "triangle_inside": (SQUARE, "y[i, j] = sum[k](sum[l:k + 1](a[i, l] * b[k, j]))"),
    "given_and_below": (OPTIONAL, "y[i, j] = sum[k](a[i, k] * c[k, j]) if present(c) and i <= j else 0"),
    "given_and_sizes": (OPTIONAL, "y[i, j] = sum[k](a[i, k] * c[k, j] if present(c) and I < J else a[i, k] * b[k, j])"),
    "shifted_in_part": (SQUARE, "y[i, j] = sum[k](a[i + 1, k] * b[k, j]) if i + 1 < I else 0"),
}  # fmt: skip
"""Products whose sums have extents of their own, or stand under conditions."""

SUMS = {
    "group_in_index": (ALONG, "y = mean[n](sum[*S](p[n, *S]))"),
    "index_in_group": (ALONG, "y = sum[*S](mean[n](p[n, *S]) ** 2)"),
    "group_in_maximum": (ALONG, "y = max[n](sum[*S](p[n, *S]))"),
    "sums_in_turn": (
        PLANE,
        """k = exp(x)
  u[i:I] = 1 / sum[j](k[i, j])
  v[j:J] = 1 / sum[i](k[i, j] * u[i])
  w[i:I] = 1 / sum[j](k[i, j] * v[j])
  y[i, j] = w[i] * k[i, j] * v[j]""",
    ),
    "temporary_in_several_sums": (
        PLANE,
        """k = exp(x)
  u[i:I] = max[j](k[i, j]) + sum[j](k[i, j])
  v[j:J] = sum[i](k[i, j] * u[i])
  y[i, j] = k[i, j] / (u[i] + v[j])""",
    ),
}  # fmt: skip
"""Sums over groups and indices inside one another, and in turn along rows and columns."""


def family(name: str, head: str, body: str) -> Family:
    return compile_text(f"{HEAD.format(name=name)}{head}kernel: |\n  {body}\n", name)


def report(families: list[Family], wrong: Callable[[Family], Iterator[str]]) -> None:
    assert [f"{f.name}: {mistake}" for f in families for mistake in wrong(f)] == []


@pytest.mark.parametrize("specs", [CONDITIONS, PRODUCTS, SUMS], ids=["conditions", "products", "sums"])
def test_specs(specs: dict[str, tuple[str, str]], tmp_path: Path) -> None:
    families = [family(name, *text) for name, text in specs.items()]
    library = compile_together(families, tmp_path)
    report(families, lambda f: wrong_kernels(f, KernelLibrary(f, library), CALLS))
    report(families, lambda f: wrong_references(f, CALLS))
    report(families, wrong_gradients)
