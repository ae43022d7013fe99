"""Reads by position: where an operand has no gaps, a reshape is a copy; where a position may lie beyond the last, it is none."""

from __future__ import annotations

import pytest

from opc.ir.expr import reads
from opc.ir.op import Op
from opc.loops.printer import format_kernel
from opc.lower.build.kernel import nest_kernel
from opc.lower.dense import position_of
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.pipeline import compile_text

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"
FOLD = f"""\
{HEAD}inputs: {{x: 'T[A, B, C]'}}
attributes:
  shape: {{type: 'int[2]', check: shape >= 0}}
outputs: {{y: 'T[M, N]'}}
shape: {{M: 'shape[0]', N: 'shape[1]'}}
require: [M * N == A * B * C]
kernel: |
  y[i, j] = x[(i*N + j) // (B*C) % A, (i*N + j) // C % B, (i*N + j) % C]
"""


def position(op: Op) -> str | None:
    (statement,) = op.body
    found = position_of(op, statement, next(iter(reads(statement.value))))
    return None if found is None else str(found)


def test_digits_of_a_position_are_a_position() -> None:
    family = compile_text(FOLD, "foo.yaml")
    assert position(family.forward) == "i*N + j"
    assert family.backward is not None
    assert position(family.backward) == "i*B*C + j*C + k"
    assert "sum" not in str([s.value for s in family.backward.body])


OTHERS = {
    "may be beyond the last": FOLD.replace("require: [M * N == A * B * C]", "require: [A > 0, B > 0, C > 0]"),
    "not the last digit": FOLD.replace("(i*N + j) % C]", "(i*N + j) // 2 % C]"),
    "digits out of order": FOLD.replace("// C % B, (i*N + j) % C]", "% B, (i*N + j) // B % C]"),
    "another number": FOLD.replace("(i*N + j) % C]", "(i*N) % C]"),
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_others_are_none(text: str) -> None:
    assert position(compile_text(text, "foo.yaml").forward) is None


def kernels(text: str) -> str:
    """Return the loops of an op's forward kernels as text, without what they are made of."""
    (variant,) = lower(compile_text(text, "foo.yaml").forward)
    lines = [
        line
        for s in variant.program.stages
        if isinstance(s, NestStage)
        for line in format_kernel("f", nest_kernel(variant.case.op, s))
    ]
    return "\n".join(line for line in lines if "#" not in line)


def test_where_a_call_is_dense_a_loop_copies() -> None:
    text = kernels(FOLD)
    assert "if x_step == x_size and" in text
    assert text.count("vector for j") == 2
    assert "%" not in text.partition("else:")[0]


def test_of_one_axis_all_calls_copy() -> None:
    flat = (
        FOLD.replace("A, B, C]'", "A]'")
        .replace("A * B * C", "A")
        .replace("(i*N + j) // (B*C) % A, (i*N + j) // C % B, (i*N + j) % C", "(i*N + j) % A")
    )
    assert "%" not in kernels(flat)


def test_a_position_that_may_be_beyond_the_last_stays_in_digits() -> None:
    text = kernels(OTHERS["may be beyond the last"])
    assert "if x_step" not in text
    assert text.count("vector for j") == 1
