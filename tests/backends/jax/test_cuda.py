"""Handlers for XLA's platform CUDA: with emulated kernels and a stand-in for XLA, since JAX's wheel for CPUs has no GPU.

That JAX lowers ops for CUDA is in live.py.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opc.backends import environments
from opc.build.builder import build_families
from opc.pipeline import compile_text

# Its kernels look for mistakes in data, and need memory between them.
PICKED = """
op: picked
domain: opc.test
version: 1
doc: Rows by number, scaled, and their sum.
types: {T: [float32]}
inputs: {t: 'T[V, D]', ids: 'int64[N]'}
attributes: {scale: {type: float, default: 1.0, check: scale >= 0}}
outputs: {y: 'T[N, D]', total: 'T[D]'}
kernel: |
  y[n, d] = t[ids[n], d] * scale
  total[d] = sum[n](y[n, d])
gradient: none
"""

EXPECTED = """\
2.5 3 0.5 1
3 4
5 6 1 2 30 40 30 40
6 8 60 80
3: picked: scale = -1 violates its check: scale >= 0
3: picked: ids has dtype float32, but must have int64
11: an index of t is 3, outside axis 0 of size 3
3: picked: the input ids must be given
"""


def test_emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CUDA", "emulated")
    built = build_families([compile_text(PICKED, "picked.yaml")], tmp_path, ["jax", "cuda"])
    assert [d.render() for r in built for d in r.diagnostics] == []
    folder = environments.folder("jax", "jaxlib")
    assert folder is not None
    program, source = tmp_path / "on_cuda", Path(__file__).with_name("on_cuda.cpp")
    flags = ["-std=c++17", "-O0", "-Wall", "-Wextra", "-Werror", "-rdynamic", "-isystem", str(folder / "include")]
    subprocess.run(["g++", *flags, str(source), "-o", str(program), "-ldl"], check=True)
    library = tmp_path / "picked" / "build" / "libpicked_jax.so"

    def run(path: Path) -> str:
        return subprocess.run([program, path], capture_output=True, text=True, check=True).stdout

    assert run(library) == EXPECTED
    apart = tmp_path / "apart" / library.name
    apart.parent.mkdir()
    shutil.copy(library, apart)
    kernels = apart.with_name("libpicked_cuda.so")
    reason = f"run `opc build --backend cuda` on its spec, where nvcc is, to make {kernels}"
    assert run(apart).splitlines()[0] == f"9: picked: built without CUDA: {reason}"
