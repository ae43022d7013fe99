"""What calls cost: counted by hand for ops whose cost is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.analysis.cost import Cost, cost, saved
from opc.analysis.shapes.inference import infer
from opc.analysis.shapes.samples import sample
from opc.ir.dtypes import DType
from opc.ir.op import Op
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[2] / "specs"
FITTING = {"unpack_int4": {"group": 2}}
"""Attributes of ops that refuse calls in which all dimensions that inputs bind have one size."""


def op_of(spec: str, derived: int = 0) -> Op:
    return load_family(SPECS / f"{spec}.yaml").ops[derived]


def cost_of(
    op: Op, shapes: dict, attributes: dict | None = None, dtype: DType = DType.FLOAT32, wanted: set | None = None
) -> Cost:
    return cost(op, infer(op, shapes, attributes or {}), {t.name: dtype for t in op.types}, wanted)


def test_elementwise() -> None:
    assert cost_of(op_of("leaky_relu"), {"x": (10, 7)}) == Cost(70, 280, 280)
    assert cost_of(op_of("leaky_relu"), {"x": (10, 7)}, dtype=DType.FLOAT16) == Cost(70, 140, 140)
    assert cost_of(op_of("leaky_relu"), {"x": (0, 7)}) == Cost(0, 0, 0)


def test_several_outputs_are_counted_as_they_are_asked_for() -> None:
    op = op_of("dual_residual")
    both = cost_of(op, {o.name: (100,) for o in op.inputs})
    one = cost_of(op, {o.name: (100,) for o in op.inputs}, wanted={op.outputs[0].name})
    assert both == Cost(400, 800, 800)
    assert one == Cost(200, 800, 400)


def test_a_row_reduction() -> None:
    # max, exp(x - m), sum, division: five operations an element; the input is read once however often the kernel reads it.
    assert cost_of(op_of("softmax"), {"x": (4, 8)}) == Cost(5 * 32, 128, 128)


def test_broadcast_inputs_are_read_once() -> None:
    assert cost_of(op_of("add"), {"a": (4, 8), "b": (8,)}) == Cost(32, 128 + 32, 128)
    backward = op_of("add", 1)
    env = infer(backward, {"a": (4, 8), "b": (8,), "d_y": (4, 8)})
    # Only the sum over the broadcast axis computes anything; a and b are there for their shapes.
    assert cost(backward, env, {"T": DType.FLOAT32}, {"d_b"}) == Cost(32, 128, 32)


def test_a_branch_that_the_call_decides_counts_alone() -> None:
    spec = """
op: branchy
domain: opc.test
doc: Branches.
version: 1
types: {T: floating}
inputs:
  x: T[...]
  w?: T[...]
attributes:
  mode: {type: str, values: [plain, long], default: plain}
outputs: {y: "T[...]"}
kernel: |
  y = (x + 1 if mode == 'plain' else exp(x * x + 1)) + (w if present(w) else 0)
"""
    op = compile_text(spec).forward
    assert cost_of(op, {"x": (10,)}) == Cost(20, 40, 40)
    assert cost_of(op, {"x": (10,)}, {"mode": "long"}) == Cost(40, 40, 40)
    assert cost_of(op, {"x": (10,), "w": (10,)}) == Cost(20, 80, 40)


def test_intensity() -> None:
    assert Cost(10, 15, 5).intensity == 0.5
    assert Cost(0, 0, 0).intensity == 0.0


@pytest.mark.parametrize(("spec", "names"), [("softmax", ["y"]), ("leaky_relu", ["x"]), ("add", [])])
def test_saved(spec: str, names: list[str]) -> None:
    assert [name for name, _, _ in saved(op_of(spec, 1))] == names


@pytest.mark.rotating
@pytest.mark.parametrize("spec", sorted(p.stem for p in SPECS.glob("*.yaml")))
def test_every_op_has_a_cost_that_grows_with_its_tensors(spec: str) -> None:
    for op in load_family(SPECS / f"{spec}.yaml").ops:
        small, large = (cost_of(op, *sample(op, (n,), (n,), attributes=FITTING.get(spec))) for n in (8, 16))
        assert large.bytes > small.bytes > 0
        assert large.flops >= small.flops
