"""Which products of rows that data names are matrix products, and which are not."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.loops.schedule import overridden, overrides
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import ContractionStage
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text, load_family
from tests.transform.language import spec_text

INPUTS = (
    "{x: 'T[V, D]', w: 'T[D, O]', u: 'T[R, D, O]', c: 'T[M, O]', p: 'T[M]', 'q?': 'T[M]', "
    "s: 'int64[M]', t: 'int64[M]', k: 'int64[M]'}"
)


def op_of(kernel: str, outputs: str = "{y: 'T[M, O]'}") -> Op:
    body = "".join(f"  {line}\n" for line in kernel.splitlines())
    text = spec_text("f", f"inputs: {INPUTS}\noutputs: {outputs}\nkernel: |\n{body}")
    return compile_text(text).forward


def products(op: Op) -> list[str]:
    """Return the targets of the contractions of an op in calls in which products pay."""
    variants = [v for v in cpu_programs(op) if v.case.pays]
    return [s.assign.target for v in variants for s in v.program.stages if isinstance(s, ContractionStage)]


@pytest.mark.parametrize(
    ("kernel", "targets"),
    [
        ("y[m, o] = sum[d](x[s[m], d] * w[d, o])", ["y"]),
        ("y[m, o] = p[m] * sum[d](x[s[m], d] * w[d, o])", ["y"]),
        ("y[m, o] = sum[d](x[s[m], d] * w[d, o]) if present(q) else 0", ["y"]),
        # Both matrices and rows are named.
        ("y[m, o] = sum[d](x[s[m], d] * u[k[m], d, o])", ["y"]),
    ],
)
def test_rows_that_data_names(kernel: str, targets: list[str]) -> None:
    assert products(op_of(kernel)) == targets


def test_rows_that_are_computed_are_stored_in_any_call() -> None:
    op = op_of("y[m, o] = sum[d](p[m] * x[s[m], d] * w[d, o])")
    assert [s.assign.target for v in cpu_programs(op) for s in v.program.stages if isinstance(s, ContractionStage)] == ["y"]


def test_what_rows_are_multiplied_with_is_added_up_behind_the_product() -> None:
    op = op_of("y[v, d] = sum[m, o](c[m, o] * w[d, o] if v == s[m] else 0)", "{y: 'T[V, D]'}")
    assert products(op) == ["product"]
    op = op_of("y[v, d] = sum[m, o](c[m, o] * u[k[m], d, o] if v == s[m] else 0)", "{y: 'T[V, D]'}")
    assert products(op) == ["product"]
    # A choice between products that have factors in common is one product.
    op = op_of("y[v, d] = sum[m, o]((q[m] * c[m, o] if present(q) else c[m, o]) * w[d, o] if v == s[m] else 0)", "{y: 'T[V, D]'}")
    assert products(op) == ["product"]


def test_sums_over_the_points_that_name_rows() -> None:
    assert products(op_of("y[d, o] = sum[m](x[s[m], d] * c[m, o])", "{y: 'T[D, O]'}")) == ["y"]
    grouped = "y[r, d, o] = sum[m](x[s[m], d] * c[m, o] if r == k[m] else 0)"
    assert products(op_of(grouped, "{y: 'T[R, D, O]'}")) == ["y"]
    under = "y[r, d, o] = sum[m](x[s[m], d] * c[m, o] if r == k[m] and t[m] > 0 else 0)"
    assert products(op_of(under, "{y: 'T[R, D, O]'}")) == ["y"]


@pytest.mark.parametrize(
    "kernel",
    [
        "y[m, o] = sum[d](x[s[m], d] * w[d, o]) if t[m] > 0 else 0",  # points whose rows are not read may name none
        "y[m, o] = sum[d](pad(x[s[m], d], 0) * w[d, o])",
        "y[m, o] = max[d](x[s[m], d] * w[d, o]) if D > 0 else 0",
        "y[m, o] = sum[d](x[s[m], d] * c[m, o])",  # no columns of one matrix
    ],
)
def test_what_is_none(kernel: str) -> None:
    op = op_of(kernel)
    assert not products(op)
    assert [v.program for v in cpu_programs(op)] == [v.program for v in lower(op)]


def test_rows_stand_as_they_are_read() -> None:
    op = op_of("y[d, o] = sum[m](x[s[m], d] * c[m, o])", "{y: 'T[D, O]'}")
    text = format_variant(cpu_programs(op)[0])
    assert text.startswith("program f when rows pay that are used O times\n  schedule: gather\n  temporary rows: T[M:M, D:D]\n")


def test_a_schedule_leaves_them_out() -> None:
    op = op_of("y[m, o] = sum[d](x[s[m], d] * w[d, o])")
    with overridden(overrides(["f: -gather"])):
        assert [v.program for v in cpu_programs(op)] == [v.program for v in lower(op)]


def test_a_layer_of_a_graph_network_and_its_gradient() -> None:
    family = load_family("specs/fused/relational_graph_conv.yaml")
    found = {op.name: products(op) for op in family.ops}
    assert found["relational_graph_conv"] == ["message"]
    assert found["relational_graph_conv_backward"] == ["product", "product2", "d_w"]
