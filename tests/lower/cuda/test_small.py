"""Statements whose small calls find places in 32 bits, with several points a thread."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.loops.printer import format_kernel
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.small import most_of
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import NestStage
from opc.pipeline import compile_text, load_family

ROOT = Path(__file__).parents[3]
HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32, float64]}\n"


def bound(inputs: str, outputs: str, kernel: str) -> str:
    """Return what bounds the numbers of a statement."""
    op = compile_text(
        HEAD + f"inputs: {{{inputs}}}\nattributes: {{s: int}}\noutputs: {{{outputs}}}\nkernel: |\n  {kernel}\n", "t"
    ).forward
    return str(most_of(op, op.body[-1]))


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "expected"),
    [
        ("x: 'T[N]'", "y: 'T[N]'", "y[i] = sum[k:3](pad(x[2*i + k*s], 0))", "N*5 + s*3"),
        ("x: 'T[N]'", "y: 'T[N]'", "y[i] = x[i] * cast(T, (i + 1) * s)", "N*s*3"),
        ("x: 'T[N], a: 'int64[N]'".replace("], a", "]', a"), "y: 'T[N]'", "y[i] = sum[k:N](x[k] if a[k] == i else 0)", "N"),
        ("x: 'T[N]', a: 'int64[N]'", "y: 'T[N]'", "y[i] = x[i] * cast(T, a[i])", "None"),
        ("x: 'T[*A]'", "y: 'T[*A]'", "y[*A] = x[*A]", "None"),
    ],
)
def test_numbers_are_bounded_by_sizes_and_attributes(inputs: str, outputs: str, kernel: str, expected: str) -> None:
    assert bound(inputs, outputs, kernel) == expected


def test_what_is_the_same_along_an_entry_is_found_ahead_of_it() -> None:
    variant = device_programs(load_family(ROOT / "specs" / "avg_pool2d.yaml").forward)[0]
    stage = variant.program.stages[0]
    assert isinstance(stage, NestStage)
    kernel = cuda_kernel(variant.case.op, stage)
    text = "\n".join(format_kernel(stage.name, kernel))
    ahead, each = text.split("rolled for i in first .. end_of_line(nest, first, 2):")
    assert ahead.count("narrow_low(low, high") == ahead.count("narrow_high(low, high") == 1
    assert each.count("narrow_low(low_2, high_2") == each.count("narrow_high(low_2, high_2") == 1
    assert "var total" in each
    assert kernel.schedule.args("index") == ("32 bits",)


def test_statements_without_windows_have_one_kernel() -> None:
    op = load_family(ROOT / "specs" / "global_avg_pool.yaml").forward
    for v in device_programs(op):
        assert all("index" not in cuda_kernel(v.case.op, s).schedule for s in v.program.stages)
