"""Which statements become one kernel that stores no scores."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.loops.printer import format_kernel
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import NestStage
from opc.lower.lower import SpecialisedProgram
from opc.pipeline import compile_text, load_family

ROOT = Path(__file__).parents[3]
HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [bfloat16, float32]}\nrequire: [S > 0]\ngradient: none\n"
INPUTS = "inputs: {a: 'T[L, E]', b: 'T[S, E]', w: 'T[S, V]', g: 'T[L, S]'}\n"
OUTPUT = "outputs: {y: 'T[L, V]'}\n"
SCORES = "s[i, j] = sum[e](a[i, e] * b[j, e])"
SHIFT = "c[i] = 0 if isinf(m[i]) else m[i]"
WEIGHED = "y[i, d] = sum[j](p[i, j] * w[j, d]) / t[i]"


def program(*statements: str, outputs: str = OUTPUT) -> SpecialisedProgram:
    """Return the program of an op of these statements."""
    body = "".join(f"  {s}\n" for s in statements)
    (variant,) = device_programs(compile_text(f"{HEAD}{INPUTS}{outputs}kernel: |\n{body}", "f.yaml").forward)
    return variant


def schedules(variant: SpecialisedProgram) -> list[str]:
    """Return the schedules of the stages that rescale sums."""
    kernels = (cuda_kernel(variant.case.op, s) for s in variant.program.stages)
    return [str(k.schedule) for k in kernels if k.schedule.args("rescale")]


def softmax(scores: str = SCORES, shift: str = SHIFT, weighed: str = WEIGHED) -> tuple[str, ...]:
    return scores, "m[i] = max[j](s[i, j])", shift, "p[i, j] = exp(s[i, j] - c[i])", "t[i] = sum[j](p[i, j])", weighed


def test_attention_is_one_kernel_with_nothing_in_memory() -> None:
    causal, plain = device_programs(load_family(ROOT / "specs" / "attention.yaml").forward)
    for variant in (causal, plain):
        assert [type(s) for s in variant.program.stages] == [NestStage]
        assert not variant.program.temporaries
    (first,), (second,) = schedules(causal), schedules(plain)
    assert first.startswith("bind(tiles of rows to blocks), fuse(scores, weights, sums), rescale(running maximum), tile(")
    assert first == f"{second}, leave_out(columns)"


@pytest.mark.parametrize(
    "scores",
    [
        SCORES,
        "s[i, j] = 2 * sum[e](a[i, e] * b[j, e]) + g[i, j]",
        "s[i, j] = maximum(g[i, j], tanh(sum[e](b[j, e] * a[i, e])))",
    ],
)
def test_scores_are_any_expression_of_a_sum_of_products(scores: str) -> None:
    variant = program(*softmax(scores))
    assert len(variant.program.stages) == 1
    assert schedules(variant)


@pytest.mark.parametrize(
    ("condition", "columns"), [("j <= i", "first + rows"), ("j < i - 2", "first + rows - 3"), ("j >= i", None)]
)
def test_columns_that_every_row_of_a_tile_drops_are_left_out(condition: str, columns: str | None) -> None:
    variant = program(*softmax(f"s[i, j] = sum[e](a[i, e] * b[j, e]) if {condition} else -inf"))
    (schedule,) = schedules(variant)
    assert ("leave_out(columns)" in schedule) == (columns is not None)
    text = "\n".join(format_kernel("f", cuda_kernel(variant.case.op, variant.program.stages[0])))
    assert f"needed(first, rows):\n    result {columns or 'nest.columns'}\n" in text


@pytest.mark.parametrize(
    ("condition", "inside"),
    [
        ("j <= i", "first - columns - column + 1 >= 0"),
        ("j > i - 2", "column - rows - first + 2 >= 0"),
        ("S > 3", None),
    ],
)
def test_most_tiles_have_no_conditions(condition: str, inside: str | None) -> None:
    """Where a condition on a row and a column holds at all of a tile, scores are found without it."""
    variant = program(*softmax(f"s[i, j] = 2 * sum[e](a[i, e] * b[j, e]) if {condition} else -inf"))
    assert schedules(variant)
    text = "\n".join(format_kernel("f", cuda_kernel(variant.case.op, variant.program.stages[0])))
    _, _, after = text.partition("  function inside(first, rows, column, columns):\n    result ")
    result, _, _ = after.partition("\n")
    assert ("  function inner(" in text) == (inside is not None)
    if inside is None:
        assert result == "True"
    else:
        assert {*result.replace("- ", "-").split()} == {*inside.replace("- ", "-").split()}


def test_elements_of_rows_and_columns_are_read_a_few_at_a_time() -> None:
    variant = program(*softmax("s[i, j] = sum[e](a[i, e] * b[j, e]) + g[i, j] if j <= i else -inf"))
    text = "\n".join(format_kernel("f", cuda_kernel(variant.case.op, variant.program.stages[0])))
    assert "function inside(first, rows, column, columns):\n    result False\n" in text
    assert "function inner(" not in text


def test_what_lies_between_is_stored_where_something_else_reads_it() -> None:
    variant = program(*softmax(), "z[i, j] = p[i, j] / t[i]", outputs="outputs: {y: 'T[L, V]', z: 'T[L, S]'}\n")
    assert not schedules(variant)
    assert {t.name for t in variant.program.temporaries} >= {"p", "t"}


@pytest.mark.parametrize(
    "statements",
    [
        softmax(shift="c[i] = m[i]"),
        softmax(shift="c[i] = 0 if isinf(m[i]) else m[i] / 2"),
        softmax(scores="s[i, j] = sum[e](a[i, e] * b[j, e]) * sum[e](a[i, e] * b[j, e] * b[j, e])"),
        softmax(weighed="y[i, d] = sum[j](p[i, j] * w[j, d] * g[i, j]) / t[i]"),
    ],
)
def test_other_statements_run_as_they_did(statements: tuple[str, ...]) -> None:
    assert not schedules(program(*statements))
