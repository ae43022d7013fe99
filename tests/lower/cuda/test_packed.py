"""Points that threads take several of at once, and offsets that are found once."""

from __future__ import annotations

import pytest

from opc.loops.nodes import Loop
from opc.loops.printer import format_kernel
from opc.lower.build.context import Nest
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.packed import along, packed_entry
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import NestStage
from opc.pipeline import compile_text

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32, float64]}\ngradient: none\n"
INPUTS = "inputs: {t: 'T[V, D]', ids: 'int64[N]', 'o?': 'T[N, D]'}\noutputs: {y: 'T[N, D]'}\n"


def nest_of(value: str, inputs: str = INPUTS, target: str = "y[n, d]") -> Nest:
    family = compile_text(f"{HEAD}{inputs}kernel: '{target} = {value}'\n", "f.yaml")
    (variant,) = device_programs(family.forward)
    (stage,) = variant.program.stages
    assert isinstance(stage, NestStage)
    return Nest(variant.case.op, stage)


@pytest.mark.parametrize(
    ("value", "entry"),
    [
        ("t[ids[n], d]", 1),
        ("t[ids[n], d] * 2 + t[ids[n], d]", 1),
        ("t[ids[n], d] + (o[n, d] if present(o) else 0)", 1),
        # What is read only where other data say so is not read for it.
        ("t[ids[n], d] if ids[n] >= 0 else 0", None),
        # Neighbours don't lie together, or some other place depends on the index.
        ("t[ids[n], D - 1 - d]", None),
        ("pad(t[ids[n], d + 1], 0)", None),
        ("t[ids[n], d] + pad(t[d, n], 0)", None),
        ("t[ids[d % N], d]", None),
    ],
)
def test_neighbours_that_are_read_together_are_taken_together(value: str, entry: int | None) -> None:
    assert packed_entry(nest_of(value)) == entry


def test_an_index_before_a_group_is_gone_along() -> None:
    inputs = "inputs: {x: 'T[N, C, *K]', ids: 'int64[N, *K]'}\noutputs: {y: 'T[N, C, *K]'}\n"
    nest = nest_of("x[n, c, *K] if ids[n, *K] == c else x[n, c, *K] * x[n, 0, *K]", inputs, "y[n, c, *K]")
    assert packed_entry(nest) is None
    nest = nest_of("x[n, c, *K] * (2 if ids[n, *K] == c else x[n, ids[n, *K], *K])", inputs, "y[n, c, *K]")
    assert packed_entry(nest) == 1
    assert along(nest, 1) == ("x", "y")


def test_a_pack_is_read_ahead_of_its_points() -> None:
    nest = nest_of("t[ids[n], d]")
    kernel = cuda_kernel(nest.op, nest.stage)
    text = "\n".join(format_kernel("f", kernel))
    assert str(kernel.schedule) == "bind(points to all threads), pack(16 bytes, d)"
    packs, single = (s for s in kernel.body if isinstance(s, Loop))
    assert text.count("load_points") == text.count("store_points") == 1
    assert text.index("outside(") < text.index("load_points") < text.index("unrolled for")
    assert str(packs.high) == str(single.low)


def test_an_offset_is_found_once_for_all_that_lie_at_a_place() -> None:
    inputs = "inputs: {a: 'T[N, *K]', b: 'T[N, *K]', t: 'T[V]', ids: 'int64[N, *K]'}\noutputs: {y: 'T[N, *K]'}\n"
    nest = nest_of("a[n, *K] * t[ids[n, *K]] + (b[n, *K] if ids[n, *K] > 3 else a[n, *K])", inputs, "y[n, *K]")
    text = "\n".join(format_kernel("f", cuda_kernel(nest.op, nest.stage)))
    assert text.count("group_offsets(") == 1
    assert "group_offset(" not in text
