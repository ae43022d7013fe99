"""Stages of several passes: interleaved short rows, rows fetched ahead, and what is known of exponentials."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel
from tests.emit.test_rows import HEAD

SOFTMAX = """\
types: {T: floating}
inputs: {x: 'T[N, K]', w: 'T[N, K]'}
outputs: {y: 'T[N, K]', z: 'T[N]'}
kernel: |
  m[n] = max[k](x[n, k])
  e[n, k] = exp(x[n, k] - m[n])
  s[n] = sum[k](e[n, k])
  y[n, k] = e[n, k] / s[n]
  z[n] = m[n] + log(s[n])
"""


def text_of(kernel: str) -> str:
    """Return the text of the row loops of an op with these lines."""
    spec = HEAD + "types: {T: floating}\ninputs: {x: 'T[N, K]', w: 'T[N, K]'}\noutputs: {y: 'T[N, K]'}\nkernel: |\n"
    return kernel_files(compile_text(spec + kernel, Path("f.yaml")))["kernel/f_loops.cpp"]


def test_rows_of_every_length_go_through_all_passes(tmp_path: Path) -> None:
    family = compile_text(HEAD + SOFTMAX, Path("f.yaml"))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), None)
    rng = np.random.default_rng(6)
    # Sizes on both sides of where four and eight rows are interleaved, and numbers of rows that leave some over.
    for dtype, bound in (("float32", 1e-6), ("float64", 1e-14)):
        for rows, size in (
            (1, 1),
            (7, 3),
            (8, 16),
            (9, 16),
            (13, 32),
            (6, 33),
            (5, 64),
            (3, 65),
            (11, 128),
            (2, 1000),
            (2, 20000),
        ):
            x = rng.standard_normal((rows, size)).astype(dtype) * 30
            x[0, 0] = -np.inf if size > 1 else 0
            got = kernel.call(family.forward, {"x": x, "w": x}, {}, None)
            wide = x.astype(np.longdouble)
            e = np.exp(wide - wide.max(1, keepdims=True))
            np.testing.assert_allclose(
                got["y"], e / e.sum(1, keepdims=True), rtol=bound * 20, atol=1e-40, err_msg=f"{rows} {size}"
            )
            np.testing.assert_allclose(got["z"], wide.max(1) + np.log(e.sum(1)), rtol=bound * 10, err_msg=f"{rows} {size}")


def test_each_pass_has_what_it_needs_and_no_more() -> None:
    text = kernel_files(compile_text(HEAD + SOFTMAX, Path("f.yaml")))["kernel/f_loops.cpp"]
    assert "w_row" not in text
    passes = re.split(r"for \(int64_t row = first; ", text)[1:]
    assert [sorted(set(re.findall(r"opc::row<(?:const )?T>\(tile, (\d)", p))) for p in passes[:3]] == [
        ["0"],
        ["0", "1"],
        ["1", "2"],
    ]
    assert re.findall(r"T (\w+)\[opc::max_interleaved_rows\];", text) == ["m_of", "s_of"]


def test_the_second_pass_fetches_what_the_first_reads() -> None:
    text = text_of("  s[n] = sum[k](x[n, k])\n  t[n] = sum[k]((x[n, k] - s[n]) * w[n, k])\n  y[n, k] = x[n, k] * t[n]\n")
    assert re.findall(r"opc::prefetch\((\w+)", text) == ["x_ahead"]
    first, second, _ = re.split(r"for \(int64_t row = first; ", text)[1:]
    assert "nothing_ahead" in first
    assert "opc::prefetch(" in second


@pytest.mark.parametrize(
    ("kernel", "function"),
    [
        ("  y[n, k] = exp(x[n, k])\n", "exp"),
        ("  y[n, k] = exp(-abs(x[n, k]))\n", "exp_below"),
        ("  y[n, k] = exp(-x[n, k] * x[n, k])\n", "exp"),
        ("  y[n, k] = exp(-(x[n, k] * x[n, k]))\n", "exp_below"),
        ("  y[n, k] = exp(-(0.5 * x[n, k] * x[n, k]))\n", "exp_below"),
        ("  y[n, k] = exp(-(-0.5 * x[n, k] * x[n, k]))\n", "exp"),
        ("  y[n, k] = exp(minimum(x[n, k], 0))\n", "exp_below"),
        ("  y[n, k] = exp(minimum(x[n, k], 1))\n", "exp"),
        ("  m[n] = max[k](x[n, k])\n  y[n, k] = exp(x[n, k] - m[n])\n", "exp_below"),
        ("  m[n] = max[k](x[n, k])\n  y[n, k] = exp(w[n, k] - m[n])\n", "exp"),
        ("  m[n] = min[k](x[n, k])\n  y[n, k] = exp(x[n, k] - m[n])\n", "exp"),
    ],
)
def test_exponentials_that_cannot_overflow(kernel: str, function: str) -> None:
    assert set(re.findall(r"opc::(exp\w*)\(", text_of(kernel))) == {function}


@pytest.mark.parametrize(
    ("kernel", "inverse"),
    [
        ("  m[n] = max[k](x[n, k])\n  s[n] = sum[k](exp(x[n, k] - m[n]))\n  y[n, k] = exp(x[n, k] - m[n]) / s[n]\n", True),
        # A sum of exponentials of something else may be as small as any number; a dividend that is none has no error to spare.
        ("  m[n] = max[k](w[n, k])\n  s[n] = sum[k](exp(x[n, k] - m[n]))\n  y[n, k] = exp(x[n, k] - m[n]) / s[n]\n", False),
        ("  s[n] = sum[k](exp(-abs(x[n, k])))\n  y[n, k] = exp(-abs(x[n, k])) / s[n]\n", False),
        ("  m[n] = max[k](x[n, k])\n  s[n] = sum[k](exp(x[n, k] - m[n]))\n  y[n, k] = w[n, k] / s[n]\n", False),
    ],
)
def test_quotients_by_sums_of_exponentials(kernel: str, inverse: bool) -> None:
    assert ("opc::quotient(" in text_of(kernel)) == inverse
