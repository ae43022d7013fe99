"""A call by a name as the spec has it, which is spelled otherwise in Python, is told the spelling."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.emit.python.spelling import files
from opc.pipeline import compile_text

SPEC = """
op: parted
domain: tests
version: 1
doc: Names that Python has, one of them twice, and a name of a parameter.
types: {T: [float32]}
inputs: {re: 'T[N]', 'im?': 'T[N]', 'out?': 'T[N]'}
attributes: {lambda: {type: float, default: 1.0}, lambda_: {type: float, default: 0.0}}
outputs: {y: 'T[N]'}
gradient: none
kernel: y = re * lambda + lambda_ + (im if present(im) else 0) + (out if present(out) else 0)
"""


X = np.array([1.0, 2.0], np.float32)
IN_FRAMEWORK = {
    "numpy": "import numpy; x = numpy.array([1.0, 2.0], 'float32')",
    "torch": "import torch; x = torch.tensor([1.0, 2.0])",
    "jax": "import jax.numpy; x = jax.numpy.array([1.0, 2.0], 'float32')",
    "paddle": "import paddle; x = paddle.to_tensor([1.0, 2.0])",
}
CALLS = """
import sys, opc
parted = opc.load(sys.argv[1])
for _ in range(2):
    assert parted(re_=x, lambda_=3.0, lambda__=0.5).tolist() == [3.5, 6.5]
    for more in ({"re": x}, {"lambda": 2.0}, {"lamda": 2.0}):
        try: parted(x, **more)
        except TypeError as error: print(error)
"""


@pytest.fixture(scope="module")
def parted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("parted")
    (folder / "parted.yaml").write_text(SPEC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPC_CACHE_DIR", str(folder / "cache"))
        yield opc.load(folder / "parted.yaml")


@pytest.mark.parametrize("framework", IN_FRAMEWORK)
def test_the_spelling_is_told(framework: str, tmp_path: Path) -> None:
    """In a process of its own for each framework: they do not fork."""
    spec = tmp_path / "parted.yaml"
    spec.write_text(SPEC)
    env = {**os.environ, "OPC_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(Path(__file__).parents[2])}
    call = [sys.executable, "-W", "ignore", "-c", IN_FRAMEWORK[framework] + CALLS, str(spec)]
    done = subprocess.run(call, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    told = ["parted: re is called re_ in Python", "parted: lambda is called lambda_ in Python"]
    lines = done.stdout.splitlines()
    assert lines[:2] == lines[3:5] == told
    assert "unexpected keyword argument 'lamda'" in lines[2]


def test_what_else_is_known_of_a_function_stays(parted: Any) -> None:
    assert list(inspect.signature(parted).parameters)[:5] == ["re_", "im", "out_", "lambda_", "lambda__"]
    memory = np.empty(2, np.float32)
    assert parted(X, out=memory) is memory


def test_packages_without_such_names_have_no_such_file() -> None:
    text = Path(__file__).parents[2].joinpath("specs/softmax.yaml").read_text()
    assert files(compile_text(text)) == {}
    assert files(compile_text(SPEC)).keys() == {"spelling.py"}


SEVERAL = """
op: several_lens
domain: tests
version: 1
doc: Of several ranks, and of several operands.
types: {T: [float32]}
RANKS
inputs: {x: SHAPE, len: SHAPE, 're?': 'T[]'}
attributes: {lambda: {type: float, default: 1.0}}
outputs: {y: OUTPUT}
gradient: none
kernel: KERNEL
"""
OF_RANKS = ("ranks: {S: [1, 2]}", "'T[*S]'", "'T[*S]'", "y = x + len * lambda + (re[] if present(re) else 0)")
OF_COUNTS = (
    "counts: {x: [1, 2]}", "'T[N]'", "'T[N]'", "y = sum(*(x)) + len * lambda + (re[] if present(re) else 0)"
)  # fmt: skip


@pytest.mark.parametrize("parts", [OF_RANKS, OF_COUNTS], ids=["ranks", "counts"])
def test_functions_of_several_ops_tell_it_too(parts: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    text = SEVERAL
    for word, part in zip(("RANKS", "SHAPE", "OUTPUT", "KERNEL"), parts, strict=True):
        text = text.replace(word, part)
    (tmp_path / "several_lens.yaml").write_text(text)
    op = opc.load(tmp_path / "several_lens.yaml")
    x = X
    first = x if parts is OF_RANKS else [x]
    assert op(first, len_=x, lambda_=2.0).tolist() == [3.0, 6.0]
    for name, value in (("len", x), ("re", x[0]), ("lambda", 2.0)):
        rest = {} if name == "len" else {"len_": x}
        with pytest.raises(TypeError, match=f"^several_lens: {name} is called {name}_ in Python$"):
            op(first, **rest, **{name: value})
