"""Nodes on GPUs, emulated: ONNX Runtime itself runs them by a provider called CUDA's, whose memory and kernels are the host's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opc.backends.cuda.backend import EMULATED_FLAGS
from opc.backends.cuda.frameworks import emulation
from opc.build.builder import build_families
from opc.build.toolchain import runtime_include
from opc.pipeline import compile_text

pytestmark = pytest.mark.rotating("file")

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

# Its kernels look for mistakes in data, and need memory between them.
PICKED = """
op: picked
domain: opc.ort_test
version: 1
doc: Rows by number, scaled, and their sum.
types: {T: [float32, float16]}
inputs: {t: 'T[V, D]', ids: 'int64[N]', 'w?': 'T[D]'}
attributes: {scale: {type: float, default: 1.0, check: scale >= 0}}
outputs: {y: 'T[N, D]', total: 'T[D]'}
kernel: |
  v[n, d] = t[ids[n], d] * scale
  y[n, d] = v[n, d] * (w[d] if present(w) else 1)
  total[d] = sum[n](v[n, d])
"""

# May write into its input.
TRIPLED = """
op: tripled
domain: opc.ort_test
version: 1
doc: A copy, and three times x.
types: {T: [float32]}
inputs: {z: "T[...]", x: "T[...]"}
outputs: {u: "T[...]", y: "T[...]"}
inplace: {y: x}
gradient: none
kernel: |
  u = z
  y = 3 * x
"""


def compiled(*command: str) -> None:
    """Run the C++ compiler, whose messages are the failure's."""
    done = subprocess.run(
        ["g++", "-std=c++17", "-O0", "-fPIC", f"-I{runtime_include()}", *command], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]


def test_emulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """See in_emulated_cuda.py; what tests/gpu/run.sh runs on a GPU is in_onnxruntime.py."""
    monkeypatch.setenv("OPC_CUDA", "emulated")
    packages = tmp_path / "packages"
    families = [compile_text(text, "spec.yaml") for text in (PICKED, TRIPLED)]
    results = build_families(families, packages, ["onnx", "onnxruntime", "cuda"])
    assert [d.render() for r in results for d in r.diagnostics] == []
    provider, calls, checked = (str(tmp_path / name) for name in ("libprovider.so", "calls.o", "checked.so"))
    compiled("-shared", "-Wall", "-Wextra", "-Werror", emulation("onnxruntime.cpp"), "-o", provider)
    arrays = f'-DARRAYS="{packages / "picked" / "cuda" / "arrays.cu"}"'
    compiled(*EMULATED_FLAGS, arrays, "-c", str(HERE / "checked_calls.cpp"), "-o", calls)
    compiled("-shared", calls, str(packages / "picked" / "build" / "cuda" / "picked.o"), "-lm", "-o", checked)
    command = [sys.executable, str(HERE / "in_emulated_cuda.py"), provider, str(packages), checked]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all held\n"), done.stdout + done.stderr[-3000:]
