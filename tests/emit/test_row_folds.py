"""Reductions along rows against NumPy: every kind and kind of type, in rows shorter and longer than a vector."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text
from tests.emit.kernel_library import KernelLibrary, compile_kernel

SPEC = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float16, float32, float64, int8, int32, int64]}
inputs: {x: 'T[N, K]'}
outputs: {total: 'acc(T)[N]', product: 'acc(T)[N]', most: 'T[N]', least: 'T[N]', some: 'bool[N]', every: 'bool[N]', y: 'T[N, K]'}
kernel: |
  total[n] = sum[k](x[n, k])
  product[n] = prod[k](x[n, k])
  most[n] = max[k](x[n, k])
  least[n] = min[k](x[n, k])
  some[n] = any[k](x[n, k] > 1)
  every[n] = all[k](x[n, k] != 0)
  y[n, k] = x[n, k] - most[n] if some[n] else x[n, k] + least[n]
"""


def test_reductions_along_rows(tmp_path: Path) -> None:
    family = compile_text(SPEC, Path("f.yaml"))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), None)
    rng = np.random.default_rng(4)
    for dtype in ("float16", "float32", "float64", "int8", "int32", "int64"):
        for size in (1, 2, 3, 7, 8, 15, 16, 17, 40, 131, 1024, 1191):
            x = rng.choice([-1, 1, 1, 2, 0], (9, size), p=[0.3, 0.3, 0.2, 0.1, 0.1]).astype(dtype)
            x[:, 131:] = np.sign(x[:, 131:])  # no product of long rows overflows
            x[:4] = np.where(x[:4] == 0, 1, np.sign(x[:4]))  # rows without a zero or a two
            got = kernel.call(family.forward, {"x": x}, {}, None)
            some = (x > 1).any(1)
            changed = np.where(some[:, None], x - x.max(1, keepdims=True), x + x.min(1, keepdims=True))
            want = (x.sum(1), x.prod(1), x.max(1), x.min(1), some, (x != 0).all(1), changed)
            for name, value in zip(("total", "product", "most", "least", "some", "every", "y"), want, strict=True):
                np.testing.assert_array_equal(got[name], value, f"{name} of {size} {dtype}")


def test_partial_results_start_and_end_in_vectors() -> None:
    text = kernel_files(compile_text(SPEC, Path("f.yaml")))["kernel/f_loops.cpp"]
    assert "reduction(" not in text
    assert re.findall(r"joins_(\w+)", text[text.index("void f(") :]) == ["sum", "prod", "max", "min", "any", "all"]


def test_quick_folds_take_several_vectors_in_turn() -> None:
    slow = SPEC.replace("sum[k](x[n, k])", "sum[k](exp(x[n, k]))").replace(", int8, int32, int64", "")
    for spec, quick in ((SPEC, True), (slow, False)):
        text = " ".join(kernel_files(compile_text(spec, Path("f.yaml")))["kernel/f_loops.cpp"].split())
        assert (", true>( tile.columns" in text.replace("(tile", "( tile")) == quick


EXTREMES = """\
op: f
domain: opc.test
version: 1
doc: A test.
gradient: none
types: {T: [float32, float64]}
inputs: {x: 'T[N, K]'}
outputs: {most: 'T[N]', least: 'T[N]'}
kernel: |
  most[n] = max[k](x[n, k])
  least[n] = min[k](x[n, k])
"""


def test_extremes_of_rows_keep_nans_wherever_they_stand(tmp_path: Path) -> None:
    family = compile_text(EXTREMES, Path("f.yaml"))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), None)
    rng = np.random.default_rng(5)
    nans = {
        "float32": np.array([0x7FC00000, 0xFFC00000], np.uint32),
        "float64": np.array([0x7FF8 << 48, 0xFFF8 << 48], np.uint64),
    }
    for dtype, bits in nans.items():
        for size in (1, 5, 8, 16, 19, 67, 1100):
            x = rng.standard_normal((3 * size + 4, size)).astype(dtype)
            for k in range(size):
                x[k, k], x[size + k, k] = bits.view(dtype)  # NaNs of both signs
            x[2 * size : 2 * size + 4] = np.array([[np.inf], [-np.inf], [np.nan], [0]], dtype)
            got = kernel.call(family.forward, {"x": x}, {}, None)
            np.testing.assert_array_equal(got["most"], x.max(1), f"{size} {dtype}")
            np.testing.assert_array_equal(got["least"], x.min(1), f"{size} {dtype}")
