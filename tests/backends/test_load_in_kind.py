"""`opc.load`ed ops answer the tensors of MindSpore and Paddle in kind, each in an environment that has the framework."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from opc.backends import environments, registry
from tests.narrow import narrow

ROOT = Path(__file__).parents[2]

COMMON = """
import numpy as np
import opc
leaky_relu, layer_norm, argmax = (opc.load(path) for path in paths)
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
assert [t.shape for t in layer_norm(x, w)][0] == [1, 2]
assert "int" in str(argmax(x).dtype)
x.stop_gradient = False
leaky_relu(x, alpha=0.5).sum().backward()
assert x.grad.tolist() == [[0.5, 1.0]]
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
assert [t.shape for t in layer_norm(x, w)][0] == (1, 2)
assert "Int" in str(argmax(x).dtype)
gradient = mindspore.grad(lambda x: leaky_relu(x, alpha=0.5).sum())(x)
assert gradient.asnumpy().tolist() == [[0.5, 1.0]]
"""


@pytest.mark.parametrize(("backend", "program"), [("paddle", PADDLE), ("mindspore", MINDSPORE)])
def test_tensors_in_tensors_out(backend: str, program: str, tmp_path: Path) -> None:
    found = registry.load(backend).probe()
    if backend == "mindspore" and not found.available:
        pytest.skip(f"{found.reason}: {found.install}")
    assert found.available, found.reason
    # MindSpore writes files into the working folder.
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OPC_CACHE_DIR": str(tmp_path / "cache"), "OMP_WAIT_POLICY": "passive"}
    env[environments.VARIABLE] = str(environments.root())
    types = {"leaky_relu": "bfloat16, float32, float64", "layer_norm": "float32", "argmax": "float32"}
    paths = [str(narrow(name, tmp_path / "specs", kinds)) for name, kinds in types.items()]
    code = f"paths = {paths!r}\n{COMMON}{program}"
    python = str(environments.interpreter(backend))
    done = subprocess.run([python, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
