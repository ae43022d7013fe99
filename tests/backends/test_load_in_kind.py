"""`opc.load`ed ops answer the tensors of JAX, MindSpore and Paddle in kind, each in an environment that has the framework."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opc.backends import environments, registry
from tests.narrow import narrow

ROOT = Path(__file__).parents[2]

SCALED = """\
op: scaled
domain: opc.test
version: 1
doc: Elements times weights, if there are any, and where the largest is.
types: {T: [float32]}
inputs: {x: 'T[..., D]', 'w?': 'T[D]'}
outputs: {y: 'T[..., D]', p: 'int64[...]'}
kernel: |
  y[..., d] = x[..., d] * (w[d] if present(w) else 1)
  p[...] = argmax[d](x[..., d])
"""

COMMON = """
import numpy as np
import opc
leaky_relu, scaled = (opc.load(path) for path in paths)
"""

PADDLE = """
import paddle
x = paddle.to_tensor([[-2.0, 3.0]], dtype="float32")
y = leaky_relu(x, alpha=0.5)
assert isinstance(y, paddle.Tensor) and y.dtype == paddle.float32 and y.place == x.place and y.tolist() == [[-1.0, 3.0]]
assert leaky_relu(x=x.astype("float64")).dtype == paddle.float64
assert leaky_relu(x.astype("bfloat16"), alpha=0.5).dtype == paddle.bfloat16
assert isinstance(leaky_relu(np.float32([1.0])), np.ndarray)
w = paddle.ones([2])
y, p = scaled(x, w)
assert (y.shape, p.tolist(), p.dtype) == ([1, 2], [1], paddle.int64)
assert scaled(x)[0].tolist() == x.tolist()
x.stop_gradient = False
leaky_relu(x, alpha=0.5).sum().backward()
assert x.grad.tolist() == [[0.5, 1.0]]
def traced(v):
    return leaky_relu(v, alpha=0.25).sum()
for whole in (False, True):
    x.clear_grad()
    paddle.jit.to_static(traced, full_graph=whole)(x).backward()
    assert x.grad.tolist() == [[0.25, 1.0]]
"""

MINDSPORE = """
import mindspore
x = mindspore.Tensor([[-2.0, 3.0]], mindspore.float32)
y = leaky_relu(x, alpha=0.5)
assert isinstance(y, mindspore.Tensor) and y.dtype == mindspore.float32 and y.asnumpy().tolist() == [[-1.0, 3.0]]
assert leaky_relu(x=x.astype(mindspore.float64)).dtype == mindspore.float64
assert leaky_relu(x.astype(mindspore.bfloat16), alpha=0.5).dtype == mindspore.bfloat16
assert isinstance(leaky_relu(np.float32([1.0])), np.ndarray)
w = mindspore.Tensor([1.0, 1.0], mindspore.float32)
y, p = scaled(x, w)
assert (y.shape, p.asnumpy().tolist(), p.dtype) == ((1, 2), [1], mindspore.int64)
assert scaled(x)[0].asnumpy().tolist() == x.asnumpy().tolist()
gradient = mindspore.grad(lambda x: leaky_relu(x, alpha=0.5).sum())(x)
assert gradient.asnumpy().tolist() == [[0.5, 1.0]]
"""

JAX = """
import jax
x = jax.numpy.asarray([[-2.0, 3.0]])
y = leaky_relu(x, alpha=0.5)
assert isinstance(y, jax.Array) and y.dtype == x.dtype and y.tolist() == [[-1.0, 3.0]]
assert leaky_relu(x.astype("bfloat16"), alpha=0.5).dtype == "bfloat16"
assert isinstance(leaky_relu(np.float32([1.0])), np.ndarray)
y, p = jax.jit(scaled)(x, jax.numpy.ones(2))
assert (y.shape, p.tolist(), p.dtype) == ((1, 2), [1], "int32")
assert scaled(x)[0].tolist() == x.tolist()
assert jax.grad(lambda x: leaky_relu(x, alpha=0.5).sum())(x).tolist() == [[0.5, 1.0]]
"""


@pytest.mark.rotating
@pytest.mark.parametrize(("backend", "program"), [("jax", JAX), ("paddle", PADDLE), ("mindspore", MINDSPORE)])
def test_tensors_in_tensors_out(backend: str, program: str, tmp_path: Path) -> None:
    found = registry.load(backend).probe()
    if backend == "mindspore" and not found.available:
        pytest.skip(f"{found.reason}: {found.install}")
    assert found.available, found.reason
    # MindSpore writes files into the working folder.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OPC_CACHE_DIR": str(tmp_path / "cache"), "OMP_WAIT_POLICY": "passive"}
    env[environments.VARIABLE] = str(environments.root())
    paths = [str(narrow("leaky_relu", tmp_path / "specs", "bfloat16, float32, float64")), str(tmp_path / "specs" / "scaled.yaml")]
    Path(paths[1]).write_text(SCALED)
    code = tmp_path / "program.py"  # Paddle reads what it traces
    code.write_text(f"paths = {paths!r}\n{COMMON}{program}")
    python = str(environments.interpreter(backend))
    done = subprocess.run([python, code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
