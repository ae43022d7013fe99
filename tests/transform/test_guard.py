"""That every read of an op as it is lowered is proved inside, or padded, derived ops included."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from opc.analysis.bounds.inside import unproved_reads
from opc.ir.affine import Affine, Dim, Index
from opc.ir.expr import Expr, Read, reads, rewrite
from opc.ir.op import Op
from opc.ir.printer import format_assign, format_expr
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from opc.transform.guard import guarded
from tests.transform.language import OPS, spec_text

SHIFTED = "inputs: {x: 'T[N]', ids: 'int64[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n"


def forward(kernel: str) -> Op:
    return compile_text(spec_text("f", f"{SHIFTED}  {kernel}\n"), "f").forward


def with_index(op: Op, index: Affine | Expr) -> Op:
    """Return an op that reads x at another index, as a wrong pass would make it."""

    def rule(e: Expr) -> Expr:
        return replace(e, indices=(index,), checked=()) if isinstance(e, Read) and e.operand == "x" else e

    return replace(op, body=tuple(replace(s, value=rewrite(s.value, rule)) for s in op.body))


@pytest.mark.parametrize("name", OPS)
def test_no_op_of_a_family_reads_unbounded(name: str) -> None:
    for op in compile_text(spec_text(name), name).ops:
        assert [format_expr(r) for r in unproved_reads(op)] == []


@pytest.mark.parametrize(
    ("kernel", "index", "read"),
    [
        ("y[i] = x[i]", Affine.of(Index("i")) + 1, "pad(x[i + 1], 0)"),
        ("y[i] = x[i]", Affine.of(Index("i")) - 1, "pad(x[i - 1], 0)"),
        ("y[i] = x[i] if i + 1 < N else 0", Affine.of(Index("i")) + 1, "x[i + 1]"),
        ("y[i] = x[i] if i + 1 < N or i > 2 else 0", Affine.of(Index("i")) + 1, "pad(x[i + 1], 0)"),
        ("y[i] = 1 if i + 1 < N and x[i] > 0 else 0", Affine.of(Index("i")) + 1, "x[i + 1]"),
        ("y[i] = 1 if i + 1 < N or x[i] > 0 else 0", Affine.of(Index("i")) + 1, "pad(x[i + 1], 0)"),
        ("y[i] = sum[j](x[j])", Affine.of(0), "x[0]"),
        ("y[i] = sum[j](x[j])", Affine.of(Dim("N")), "pad(x[N], 0)"),
    ],
)
def test_what_is_not_proved_is_padded(kernel: str, index: Affine, read: str) -> None:
    op = guarded(with_index(forward(kernel), index))
    (found,) = (r for s in op.body for r in reads(s.value) if r.operand == "x")
    assert format_expr(found) == read
    assert unproved_reads(op) == []


def test_an_index_that_is_data_is_padded() -> None:
    op = forward("y[i] = x[i] * cast(T, ids[i])")
    data = next(r for s in op.body for r in reads(s.value) if r.operand == "ids")
    wrong = with_index(op, data)
    assert [r.operand for r in unproved_reads(wrong)] == ["x"]
    assert "pad(x[ids[i]], 0)" in format_assign(guarded(wrong).body[0])


SCATTER = """\
inputs: {x: 'T[M, C, H]', c: 'T[C]', ids: 'int64[M]'}
outputs: {y: 'T[M, C, H]'}
kernel: |
  y[i, j, k] = sum[m](pad(x[m, i + 1, i + 2], 1) * c[j] if ids[m] == k else 0)
"""


def test_the_gradient_of_a_scatter_leaves_out_what_goes_nowhere() -> None:
    """A sum in it is computed at all numbers, also those that are no place: there it reads nothing, and refuses nothing."""
    op = compile_text(spec_text("f", SCATTER), "f").backward
    assert op is not None
    assert any("pad(d_y[j - 1, l, ids[i]], 0)" in format_assign(s) for s in op.body)
    given = {"x": np.ones((2, 3, 4)), "c": np.ones(3), "ids": np.array([2, -7]), "d_y": np.ones((2, 3, 4))}
    found = evaluate(op, {o.name: given[o.name] for o in op.inputs}, {})
    assert found["d_x"].value[1].tolist() == np.zeros((3, 4)).tolist()
    assert found["d_x"].value[0].sum() > 0


@pytest.mark.parametrize("term", ["x[0] * w[k]", "w[k] / x[0]"])
def test_a_factor_moved_out_of_a_sum_is_read_where_there_are_terms(term: str) -> None:
    """In the sum there is an element 0; outside, where the sum is over nothing, there is none, and nothing is divided by it."""
    head = "inputs: {x: 'T[K]', w: 'T[K]'}\noutputs: {y: 'T[]'}\n"
    op = compile_text(spec_text("f", f"{head}kernel: |\n  y = sum[k]({term})\n"), "f").backward_backward
    assert op is not None
    (moved,) = (s for s in op.body if s.target == "d_d_y")
    assert "K > 0" in format_assign(moved)
    assert "pad(" not in format_assign(moved)
    given = {"d_y": np.array(1.0)}
    found = evaluate(op, {o.name: given.get(o.name, np.ones(0)) for o in op.inputs}, {})
    assert found["d_d_y"].value == 0
