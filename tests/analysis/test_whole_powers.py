"""Powers of sizes and attributes are whole where a whole number must stand: in indices, sizes, and beside one in a comparison."""

from __future__ import annotations

import numpy as np
import pytest

from opc.diagnostics import SpecError
from opc.ir.printer import format_op
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate

SHUFFLE = """\
op: shuffle
domain: tests
version: 1
doc: Channels to blocks of pixels.
types: {T: floating}
inputs: {x: 'T[N, C, H, W]'}
attributes: {r: {type: int, check: r > 0}}
outputs: {y: 'T[N, D, OH, OW]'}
shape: {D: C // r ** 2, OH: H * r, OW: W * r}
require: [C % r ** 2 == 0]
kernel: |
  y[n, d, i, j] = x[n, d * r ** 2 + i % r * r + j % r, i // r, j // r]
"""
BASE = """\
op: foo
domain: tests
version: 1
doc: Foo.
types: {T: floating}
inputs: {x: 'T[N]'}
attributes: {r: {type: int, check: r > 0}}
"""


def test_a_power_is_a_product_in_sizes_and_indices() -> None:
    products = SHUFFLE.replace("r ** 2", "(r * r)")
    assert [format_op(o) for o in compile_text(SHUFFLE).ops] == [format_op(o) for o in compile_text(products).ops]


@pytest.mark.parametrize(
    ("power", "product"),
    [
        ("r ** 0", "1"),
        ("r ** 1", "r"),
        ("r ** 3 + N ** 2", "r*r*r + N*N"),
        ("N ** 2 // r ** 2", "N*N // (r*r)"),
        ("N ** 2 % 3", "N*N % 3"),
        ("-(-N ** 2) - 1", "N*N - 1"),
        ("N * r ** 2", "N*r*r"),
    ],
)
def test_arithmetic_with_powers_is_whole(power: str, product: str) -> None:
    def dims(size: str) -> list[str]:
        text = BASE + f"outputs: {{y: 'T[M]'}}\nshape: {{M: {size!r}}}\nkernel: y[i] = x[0] if N > 0 else 0\nrequire: [N > 0]\n"
        return [str(d) for d in compile_text(text).forward.dims]

    assert dims(power) == dims(product)


@pytest.mark.parametrize("size", ["N ** 9", "N ** r", "2 ** N", "N ** 0.5", "(N + r) ** 2", "N ** 2 / 2"])
def test_other_powers_are_no_sizes(size: str) -> None:
    text = BASE + f"outputs: {{y: 'T[M]'}}\nshape: {{M: {size!r}}}\nkernel: y[i] = x[0]\n"
    with pytest.raises(SpecError, match="whole number over dimensions"):
        compile_text(text)


def test_a_power_is_a_floating_number_as_a_value() -> None:
    text = BASE + "outputs: {y: 'T[N]'}\nkernel: y[i] = x[i] * r ** 2 / (1 + N ** 8)\n"
    op = compile_text(text).forward
    found = evaluate(op, {"x": np.ones(300000)}, {"r": 3})["y"]
    assert np.allclose(found.value[0], 9 / (1 + 300000.0**8))


def test_a_comparison_with_a_power_proves_reads() -> None:
    text = BASE + "outputs: {y: 'T[N]'}\nkernel: y[i] = x[r ** 2 + i] if r ** 2 + i < N else 0\n"
    assert "r*r" in format_op(compile_text(text).forward)
