"""Scatters whose terms hold reductions take time for each of their terms: these are stored first."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.lower.nest_plans import ScatterPlan
from opc.pipeline import compile_text
from tests.transform.language import spec_text

INPUTS = "{a: 'T[V, O]', b: 'T[V, O]', 'q?': 'T[E]', s: 'int64[E]', t: 'int64[E]'}"


def op_of(kernel: str, outputs: str = "{y: 'T[V]'}") -> Op:
    body = "".join(f"  {line}\n" for line in kernel.splitlines())
    return compile_text(spec_text("f", f"inputs: {INPUTS}\noutputs: {outputs}\nkernel: |\n{body}")).forward


def scattered(op: Op) -> list[str]:
    """Return the targets of the scatters of an op."""
    stages = [s for v in lower(op) for s in v.program.stages if isinstance(s, NestStage)]
    return [s.assign.target for s in stages if s.plans and all(isinstance(p, ScatterPlan) for p in s.plans)]


def terms(op: Op) -> list[str]:
    """Return the shapes of the terms that are stored."""
    return [" ".join(map(str, o.dims)) for v in lower(op) for o in v.case.op.temporaries if o.name.startswith("term")]


@pytest.mark.parametrize(
    ("kernel", "stored"),
    [
        ("y[v] = sum[e](exp(sum[o](a[s[e], o] * b[t[e], o])) if t[e] == v else 0)", ["E"]),
        ("y[v] = sum[e](exp(sum[o](a[s[e], o] * b[v, o])) if t[e] == v else 0)", ["E"]),
        ("y[v] = sum[e](exp(sum[o](a[s[e], o])) if t[e] == v and s[e] > 1 else 0)", ["E"]),
        ("y[v] = 1 + sum[e](exp(sum[o](a[s[e], o])) if t[e] == v else 0)", ["E"]),
        ("y[v] = sum[e](q[e] * sum[o](a[s[e], o] ** 2) if t[e] == v else 0) if present(q) else 0", ["E"]),
        # What no condition asks for is summed over in the term.
        ("y[v] = sum[e, o](a[s[e], o] * exp(sum[p:O](b[v, p] * a[s[e], p])) if t[e] == v else 0)", ["E"]),
    ],
)
def test_terms_are_stored(kernel: str, stored: list[str]) -> None:
    op = op_of(kernel)
    assert terms(op) == stored
    assert len(scattered(op)) == 1


def test_terms_of_rows() -> None:
    op = op_of("y[v, o] = sum[e](b[s[e], o] * exp(sum[p:O](a[s[e], p])) if t[e] == v else 0)", "{y: 'T[V, O]'}")
    assert terms(op) == ["E O"]
    assert scattered(op) == ["y"]


@pytest.mark.parametrize(
    "kernel",
    [
        "y[v] = sum[e](a[s[e], 0] if t[e] == v else 0) if O > 0 else 0",  # no reduction in it
        "y[v] = sum[e](exp(sum[o](a[s[e], o] * b[v, o])) if t[e] < v else 0)",  # no place
        "y[v] = max[e](exp(sum[o](a[s[e], o])) if t[e] == v else 0) if E > 0 else 0",
    ],
)
def test_others_are_not(kernel: str) -> None:
    assert terms(op_of(kernel)) == []
