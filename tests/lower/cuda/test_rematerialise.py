"""Which statements make values of rows and columns anew."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from opc.ir.affine import Affine, Dim
from opc.loops.printer import format_kernel
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import NestStage
from opc.lower.lower import SpecialisedProgram
from opc.pipeline import compile_text, load_family
from tests.backends.cuda.test_rematerialised import GRADED, GROUPED

ROOT = Path(__file__).parents[3]
HAND_WRITTEN = """\
op: hand
domain: opc.test
version: 1
doc: A gradient by hand.
types: {T: [bfloat16, float32]}
inputs: {a: 'T[L, E]', b: 'T[S, E]', w: 'T[S, V]', r: 'T[L, V]', g: 'T[L]'}
outputs: {ga: 'T[L, E]', gb: 'T[S, E]'}
gradient: none
kernel: |
  p[i, j] = exp(sum[e](a[i, e] * b[j, e]) - g[i])
  u[i, j] = p[i, j] * sum[f](w[j, f] * r[i, f])
  ga[i, e] = sum[j](u[i, j] * b[j, e])
  gb[j, e] = sum[i](u[i, j] * a[i, e])
"""


def schedules(variant: SpecialisedProgram) -> Iterator[tuple[str, str]]:
    """Yield the targets of statements that make values anew, with their schedules."""
    for s in variant.program.stages:
        kernel = cuda_kernel(variant.case.op, s)
        if isinstance(s, NestStage) and kernel.schedule.args("rematerialise"):
            yield s.assign.target, str(kernel.schedule)


def gradient(text: str) -> tuple[SpecialisedProgram, ...]:
    family = compile_text(text, "f.yaml")
    assert family.backward is not None
    return device_programs(family.backward)


def test_the_gradient_of_attention_stores_what_rows_have_alone() -> None:
    backward = load_family(ROOT / "specs" / "attention.yaml").backward
    assert backward is not None
    for variant in device_programs(backward):
        found = dict(schedules(variant))
        shapes = "tile(64 x 64 x 64, 64 x 64 x 128, 128 x 64 x 64, 128 x 64 x 128), tensor(float16, bfloat16)"
        end = ", leave_out(columns)" if variant.case.suffix == "_is_causal" else ""
        rows = f"rematerialise(terms), products(1), tile(64 x 64 x 64, 128 x 64 x 64), tensor(float16, bfloat16){end}"
        assert found == {
            "c": f"bind(tiles of rows to blocks), {rows}",
            "t": f"bind(tiles of rows to blocks), {rows}",
            "d_q": f"bind(tiles of rows to blocks), rematerialise(factor), products(2), {shapes}{end}",
            "d_k": f"bind(tiles of rows to blocks), rematerialise(factor), products(2), {shapes}{end}",
            "d_v": f"bind(tiles of rows to blocks), rematerialise(factor), products(1), {shapes}{end}",
        }
        both = {Affine.of(Dim("L")), Affine.of(Dim("S"))}
        for t in variant.program.temporaries:
            if both <= set(variant.case.op.operand(t.name).dims):
                assert t.needed_by == ("d_mask",), t.name


@pytest.mark.parametrize("text", [GRADED, GROUPED])
def test_gradients_are_found_by_what_they_say(text: str) -> None:
    for variant in gradient(text):
        targets = {name for name, _ in schedules(variant)}
        assert len(targets) == 5
        assert {o.name for o in variant.case.op.outputs} - targets <= {"d_bias"}


def test_columns_that_every_row_of_a_tile_drops_are_left_out_at_either_end() -> None:
    (ahead, _) = gradient(GRADED)
    texts = {
        s.assign.target: "\n".join(format_kernel("f", cuda_kernel(ahead.case.op, s)))
        for s in ahead.program.stages
        if isinstance(s, NestStage)
    }
    assert ahead.case.suffix == "_ahead"
    # Columns of a row begin at it, and rows of a column end at it.
    for name, begin, end in (
        ("h", "first", "nest.columns"),
        ("d_a", "first", "nest.columns"),
        ("d_b", "0", "first + rows"),
        ("d_w", "0", "first + rows"),
    ):
        assert f"(first, rows):\n    result {begin}\n" in texts[name]
        assert f"(first, rows):\n    result {end}\n" in texts[name]


def test_a_gradient_by_hand_stores_no_values() -> None:
    (variant,) = device_programs(compile_text(HAND_WRITTEN, "hand.yaml").forward)
    assert {name for name, _ in schedules(variant)} == {"ga", "gb"}
    assert not variant.program.temporaries


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("* sum[f](w[j, f] * r[i, f])", "* sum[f](w[j, f] * tanh(w[j, f] + r[i, f]))"),
        ("* sum[f](w[j, f] * r[i, f])", "* max[f](w[j, f] * r[i, f])"),
        ("gb[j, e] = sum[i](u[i, j] * a[i, e])", "gb[j, e] = sum[i](u[i, j] * tanh(a[i, e] + b[j, e]))"),
        ("- g[i])", "- g[i]) * sum[e](a[i, e] * b[j, e] * b[j, e])"),
    ],
)
def test_other_statements_run_as_they_did(old: str, new: str) -> None:
    assert old in HAND_WRITTEN
    (variant,) = device_programs(compile_text(HAND_WRITTEN.replace(old, new), "hand.yaml").forward)
    assert {name for name, _ in schedules(variant)} <= {"ga"}


def test_what_seldom_runs_has_its_values_in_memory() -> None:
    family = load_family(ROOT / "specs" / "attention.yaml")
    for op in family.ops:
        if op is not family.backward:
            assert not [*schedules(device_programs(op)[0])]
