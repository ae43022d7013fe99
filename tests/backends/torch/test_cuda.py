"""Calls on GPUs, emulated: torch's own dispatcher and autograd on tensors of CUDA's, whose memory and kernels are the host's."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from opc.backends.cuda.frameworks import emulation

pytestmark = pytest.mark.rotating("file", seconds=9)

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

PICKED = """
op: picked
domain: opc.torch_test
version: 1
doc: Rows by number, scaled.
types: {T: [float32]}
inputs: {t: 'T[V, D]', ids: 'int64[N]', 'w?': 'T[D]'}
attributes: {scale: {type: float, default: 1.0}}
outputs: {y: 'T[N, D]'}
kernel: |
  y[n, d] = t[ids[n], d] * scale * (w[d] if present(w) else 1)
"""


def test_emulated(tmp_path: Path) -> None:
    """See in_emulated_cuda.py; what tests/gpu/run.sh runs on a GPU is in_cuda.py."""
    found = find_spec("torch")
    assert found is not None
    own, made = Path(str(found.origin)).parent, tmp_path / "libtorch_cuda.so"
    flags = ["-std=c++20", "-O0", "-fPIC", "-shared", f"-Wl,-soname,{made.name},-rpath,{own / 'lib'}", f"-L{own / 'lib'}"]
    command = ["g++", *flags, "-isystem", str(own / "include"), emulation("torch.cpp"), "-lc10", "-ltorch_cpu"]
    subprocess.run([*command, "-o", str(made)], check=True)
    (tmp_path / "picked.yaml").write_text(PICKED)
    settings = {"OPC_CUDA": "emulated", "OPC_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(ROOT)}
    script = [str(HERE / "in_emulated_cuda.py"), str(tmp_path / "picked.yaml"), str(made)]
    command, env = [sys.executable, "-W", "ignore", *script], {**os.environ, **settings}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "all held\n"), done.stdout + done.stderr[-3000:]
