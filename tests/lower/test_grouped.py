"""Which products with matrices that data names are grouped ones, and which are not."""

from __future__ import annotations

import pytest

from opc.ir.op import Op
from opc.loops.schedule import overridden, overrides
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import ContractionStage, NestStage
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.pipeline import compile_text, load_family
from tests.transform.language import spec_text

INPUTS = (
    "{x: 'T[N, D]', a: 'T[N, K, D]', w: 'T[E, D, O]', c: 'T[N, O]', e: 'int64[N]', g: 'int64[N, K]', p: 'T[N, K]', m: 'T[E, O]'}"
)


def op_of(kernel: str, outputs: str = "{y: 'T[N, O]'}") -> Op:
    body = "".join(f"  {line}\n" for line in kernel.splitlines())
    text = spec_text("f", f"inputs: {INPUTS}\noutputs: {outputs}\nrequire: [E > 0]\nkernel: |\n{body}")
    return compile_text(text).forward


def grouped(op: Op) -> list[str]:
    """Return the targets of the grouped products of an op."""
    variants = [v for v in cpu_programs(op) if v.case.pays]
    return [s.assign.target for v in variants for s in v.program.stages if isinstance(s, ContractionStage) and s.groups]


@pytest.mark.parametrize(
    ("kernel", "targets"),
    [
        ("y[n, o] = sum[d](x[n, d] * w[e[n], d, o])", ["y"]),
        ("y[n, o] = x[n, 0] * sum[d](w[e[n], d, o] * x[n, d]) if D > 0 else 0", ["y_sum"]),
        ("y[n, o] = sum[d](x[n, d] * w[cast(int64, e[n]) % E, d, o])", ["y"]),
        # Over what a point has several of, a sum stands outside.
        ("y[n, o] = sum[k, d](a[n, k, d] * w[g[n, k], d, o])", ["product"]),
        ("y[n, o] = sum[k](p[n, k] * sum[d](a[n, k, d] * w[g[n, k], d, o]))", ["product"]),
        ("y[n, o] = sum[k, d](p[n, k] * x[n, d] * w[g[n, k], d, o])", ["product"]),
        ("y[n, o] = sum[d](x[n, d] * w[e[n], d, o]) * m[e[n], o]", ["y_sum"]),
    ],
)
def test_products_of_points_with_the_matrices_of_their_groups(kernel: str, targets: list[str]) -> None:
    assert grouped(op_of(kernel)) == targets


def test_sums_of_the_points_of_each_group() -> None:
    op = op_of("y[i, d, o] = sum[n](x[n, d] * c[n, o] if i == e[n] else 0)", "{y: 'T[E, D, O]'}")
    assert grouped(op) == ["y"]
    op = op_of("y[i, d, o] = sum[n, k](p[n, k] * a[n, k, d] * c[n, o] if i == g[n, k] else 0)", "{y: 'T[E, D, O]'}")
    assert grouped(op) == ["y"]


@pytest.mark.parametrize(
    "kernel",
    [
        "y[n, o] = sum[d](x[n, d] * w[0, d, o])",  # one matrix
        "y[n, o] = sum[d](x[n, d] * w[n % E, d, o])",  # data says nothing
        "y[n, o] = sum[d](x[n, d] * pad(w[e[n], d, o], 0))",
        "y[n, o] = max[d](x[n, d] * w[e[n], d, o]) if D > 0 else 0",
        "y[n, o] = sum[d](x[n, d] + w[e[n], d, o])",
        # The sum by itself may overflow where it does not times m.
        "y[n, o] = sum[d](x[n, d] * w[e[n], d, o] * m[e[n], o])",
        "y[n, o] = sum[d](x[n, d] * w[e[n], d, o] if d < n else 0)",
    ],
)
def test_what_is_none(kernel: str) -> None:
    op = op_of(kernel)
    assert not grouped(op)
    assert [v.program for v in cpu_programs(op)] == [v.program for v in lower(op)]


def test_numbers_of_groups_are_found_once() -> None:
    op = op_of("z[n, o] = sum[d](x[n, d] * w[e[n], d, o])\ny[n, o] = z[n, o] + sum[d](exp(x[n, d]) * w[e[n], d, o])")
    (first, *_) = cpu_programs(op)
    assert [o.name for o in first.case.op.temporaries if o.numbers] == ["group"]
    assert len({s.groups for s in first.program.stages if isinstance(s, ContractionStage)}) == 1


def test_calls_in_which_they_do_not_pay_run_as_before() -> None:
    op = op_of("y[n, o] = sum[d](x[n, d] * w[e[n], d, o])")
    grouped_program, plain = cpu_programs(op)
    assert [plain.program] == [v.program for v in lower(op)]
    assert isinstance(plain.program.stages[0], NestStage)
    (sizes,) = grouped_program.case.pays
    assert (str(sizes.count), [*map(str, sizes.points)], [*map(str, sizes.elements)]) == ("E", ["N"], ["O", "D"])
    assert "program f when products of N points pay in E groups\n  schedule: group\n" in format_variant(grouped_program)


def test_a_schedule_leaves_groups_out() -> None:
    op = op_of("y[n, o] = sum[d](x[n, d] * w[e[n], d, o])")
    with overridden(overrides(["f: -group"])):
        assert [v.program for v in cpu_programs(op)] == [v.program for v in lower(op)]


def test_experts_and_their_gradients() -> None:
    family = load_family("specs/fused/moe_mlp.yaml")
    found = {op.name: grouped(op) for op in family.ops}
    assert found["moe_mlp"] == ["u", "product"]
    assert {"u", "d_a", "product", "d_gate_up", "product2", "d_down"} == set(found["moe_mlp_backward"])
