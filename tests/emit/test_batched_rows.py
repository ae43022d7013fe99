"""Batched rows: rows of every length and number, what a row gives whatever stands beside it, and which stages do it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel
from tests.emit.test_rows import HEAD

NORMS = """\
types: {T: [float16, float32, float64], I: [int32, int64]}
inputs: {x: 'T[N, K]', 'w?': 'T[K]', 'shift?': 'T[N]', label: 'I[N]', mask: 'bool[N, K]'}
attributes: {eps: {type: float, default: 0.5}}
outputs: {y: 'T[N, K]', top: 'T[N]', low: 'T[N]', z: 'T[N]', hit: 'T[N]', some: 'bool[N]'}
kernel: |
  top[n] = max[k](x[n, k])
  low[n] = min[k](x[n, k])
  e[n, k] = exp(x[n, k] - top[n]) if mask[n, k] else 0
  s[n] = sum[k](e[n, k])
  some[n] = any[k](mask[n, k])
  hit[n] = sum[k](x[n, k] if k < label[n] else 0)
  z[n] = top[n] + log(s[n] + eps)
  y[n, k] = e[n, k] / (s[n] + eps) * (w[k] if present(w) else 1) + (shift[n] if present(shift) else 0)
"""


def forced(variant: str) -> tuple[str, ...]:
    return (f"-DOPC_FORCE_VARIANT={variant}",)


@pytest.mark.parametrize("variant", instruction_sets())
def test_rows_of_every_length_and_number(tmp_path: Path, variant: str) -> None:
    family = compile_text(HEAD + NORMS, Path("f.yaml"))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path, *forced(variant)), None)
    rng = np.random.default_rng(7)
    for dtype, index, bound in (("float32", "int64", 2e-5), ("float64", "int32", 1e-12), ("float16", "int64", 2e-3)):
        for size in (1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 15, 16, 17, 20, 23, 24, 25, 31, 33, 40, 47, 48, 50):
            rows = int(rng.integers(1, 60))
            x = rng.standard_normal((rows, 2 * size)).astype(dtype)[:, :size]  # rows that don't follow each other
            mask = rng.random((rows, size)) < 0.7
            label = rng.integers(0, size + 1, rows).astype(index)
            given = {"w": rng.standard_normal(size).astype(dtype), "shift": rng.standard_normal(rows).astype(dtype)}
            for inputs in ({"x": x, "label": label, "mask": mask}, {"x": x, "label": label, "mask": mask, **given}):
                got = kernel.call(family.forward, inputs, {"eps": 0.5}, None)
                wide = x.astype(np.float64)
                e = np.where(mask, np.exp(wide - wide.max(1, keepdims=True)), 0)
                total = e.sum(1) + 0.5
                want = e / total[:, None]
                if "w" in inputs:
                    want = want * given["w"] + given["shift"][:, None]
                message = f"{variant} {dtype} {rows} x {size}"
                np.testing.assert_array_equal(got["top"], x.max(1), message)
                np.testing.assert_array_equal(got["low"], x.min(1), message)
                np.testing.assert_array_equal(got["some"], mask.any(1), message)
                hit = np.where(np.arange(size) < label[:, None], wide, 0).sum(1)
                np.testing.assert_allclose(got["hit"], hit, rtol=bound, atol=bound * 20, err_msg=message)
                np.testing.assert_allclose(got["z"], wide.max(1) + np.log(total), rtol=bound, atol=bound * 5, err_msg=message)
                np.testing.assert_allclose(got["y"], want, rtol=bound, atol=bound * 5, err_msg=message)


SOFTMAX = """\
types: {T: [float32, float64]}
inputs: {x: 'T[N, K]'}
outputs: {y: 'T[N, K]', z: 'T[N]'}
kernel: |
  m[n] = max[k](x[n, k])
  e[n, k] = exp(x[n, k] - m[n])
  s[n] = sum[k](e[n, k])
  y[n, k] = e[n, k] / s[n]
  z[n] = m[n] + log(s[n])
"""


@pytest.mark.parametrize("variant", instruction_sets())
def test_a_row_gives_the_same_bits_wherever_it_stands(tmp_path: Path, variant: str) -> None:
    family = compile_text(HEAD + SOFTMAX, Path("f.yaml"))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path, *forced(variant)), None)
    rng = np.random.default_rng(8)
    for dtype in ("float32", "float64"):
        for size in (2, 5, 16, 19, 32, 41):
            row = rng.standard_normal(size).astype(dtype) * 5
            beside = rng.standard_normal((77, size)).astype(dtype)
            beside[::3, 0], beside[1::3, -1] = np.nan, np.inf
            beside[::4] = row
            got = kernel.call(family.forward, {"x": beside}, {}, None)
            for name in ("y", "z"):
                assert len(np.unique(got[name][::4], axis=0)) == 1, f"{variant} {dtype} {size} {name}"
            assert np.isfinite(got["y"][::4]).all()
            np.testing.assert_array_equal(np.isnan(got["z"]), np.isnan(beside).any(1) | np.isinf(beside).any(1))
            alone = kernel.call(family.forward, {"x": beside[8:77].copy()}, {}, None)
            np.testing.assert_array_equal(alone["y"], got["y"][8:])


def test_rows_are_written_where_they_lie_and_nowhere_else(tmp_path: Path) -> None:
    family = compile_text(HEAD + SOFTMAX, Path("f.yaml"))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path, "-fsanitize=undefined", "-fno-sanitize-recover"), None)
    for rows in (8, 15, 16, 17, 31):
        for size in (1, 3, 4, 6, 8, 13, 16, 20):
            memory = np.full(rows * size + 64, 7, np.float32)
            y = memory[32:-32].reshape(rows, size)
            x = np.zeros((rows, size), np.float32)
            kernel.call(family.forward, {"x": x}, {}, None, {"y": y})
            np.testing.assert_allclose(y, np.full((rows, size), 1 / size), rtol=1e-6)
            assert (memory[:32] == 7).all()
            assert (memory[-32:] == 7).all()


def text_of(kernel: str, outputs: str, gradient: str = "gradient: none\n") -> str:
    spec = HEAD.replace("gradient: none\n", gradient) + (
        f"types: {{T: floating}}\ninputs: {{x: 'T[N, K]', w: 'T[N, K]'}}\noutputs: {outputs}\nkernel: |\n{kernel}"
    )
    return kernel_files(compile_text(spec, Path("f.yaml")))["kernel/f_loops.cpp"]


@pytest.mark.parametrize(
    ("kernel", "outputs", "vectors"),
    [
        ("  s[n] = sum[k](x[n, k])\n", "{s: 'T[N]'}", ["3"]),
        ("  s[n] = sum[k](exp(x[n, k]))\n", "{s: 'T[N]'}", ["4"]),  # what folds one by one takes long
        # Transposing three rows for one reduction pays only where lanes would be idle.
        ("  s[n] = sum[k](x[n, k] * w[n, k])\n  y[n, k] = w[n, k] * s[n]\n", "{y: 'T[N, K]'}", ["3, false"]),
        ("  y[n, k] = exp(x[n, k])\n", "{y: 'T[N, K]'}", []),
        # Rows that are added up have a loop of their own.
        ("  s[n] = sum[k](x[n, k])\n  y[k] = sum[n](x[n, k] * s[n])\n", "{y: 'T[K]'}", []),
    ],
)
def test_stages_that_fold_have_the_form(kernel: str, outputs: str, vectors: list[str]) -> None:
    assert re.findall(r"opc::batches_rows<.*?, (\d.*?)>\(tile\)", text_of(kernel, outputs)) == vectors


def test_derivatives_of_gradients_do_without() -> None:
    text = text_of("  s[n] = sum[k](x[n, k] * w[n, k])\n  y[n, k] = x[n, k] * s[n]\n", "{y: 'T[N, K]'}", gradient="")
    assert set(re.findall(r"void batched_(\w+)\(", text)) == {"f", "f_backward"}
    assert "void f_backward_backward(" in text
