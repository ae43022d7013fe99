"""`opc.load`: built once, found again, rebuilt when the spec changes, right for torch tensors too."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import opc
from opc.api import LoadedOp
from opc.build import builder

SPEC = """
op: twice
domain: opc.test
version: 1
doc: Two times x.
types: {T: [float32]}
inputs: {x: 'T[...]'}
attributes: {n: {type: float, default: 2.0}}
outputs: {y: 'T[...]'}
kernel: y = n * x
gradient: none
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "twice.yaml").write_text(SPEC)
    return tmp_path / "twice.yaml"


def test_load_builds_once_and_follows_the_spec(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    twice = opc.load(spec)
    assert twice(np.float32([1, 2])).tolist() == [2.0, 4.0]
    assert twice.__name__ == "twice"
    assert twice.__doc__ is not None
    assert twice.__doc__.startswith("Two times x.")
    assert list(inspect.signature(twice).parameters) == ["x", "n", "out"]
    assert repr(twice) == f"<op twice from {spec}>"

    again = pickle.loads(pickle.dumps(twice))
    assert again(np.float32([1])).tolist() == [2.0]

    def refuse(*args: object, **options: object) -> None:
        raise AssertionError("built again")

    with monkeypatch.context() as patch:
        patch.setattr(builder, "build_families", refuse)
        assert opc.load(str(spec))(np.float32(3)) == 6.0

    spec.write_text(SPEC.replace("n * x", "n * x + 1"))
    changed = opc.load(spec)
    assert changed(np.float32([1, 2])).tolist() == [3.0, 5.0]
    assert twice(np.float32([1, 2])).tolist() == [2.0, 4.0]


def test_mistakes_are_diagnostics(spec: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(opc.SpecError, match=r"cannot read .*missing\.yaml: No such file"):
        opc.load(spec.with_name("missing.yaml"))
    spec.write_text(SPEC.replace("n * x", "n * z"))
    with pytest.raises(opc.SpecError, match=r"twice\.yaml:\d+:\d+: error: "):
        opc.load(spec)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "file/cache"))
    with pytest.raises(opc.SpecError, match=r"cannot make the cache folder.*\n.*set OPC_CACHE_DIR"):
        opc.load(spec)
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    spec.write_text(SPEC)
    with pytest.raises(opc.SpecError, match=r"the compiler 'no-such-compiler' of \$CXX was not found"):
        opc.load(spec)


def test_torch_tensors_get_tensors_with_gradients(leaky_relu: LoadedOp) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    y = leaky_relu(x, alpha=0.5)
    assert isinstance(y, torch.Tensor)
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]
    assert isinstance(leaky_relu(x=x.detach()), torch.Tensor)
    assert isinstance(leaky_relu(np.float32([1.0])), np.ndarray)
    with pytest.raises(RuntimeError, match="int32"):
        leaky_relu(torch.ones(2, dtype=torch.int32))


def test_changed_spec_is_reloaded_for_torch_too(spec: Path) -> None:
    torch = pytest.importorskip("torch")
    x = torch.tensor([1.0, 2.0])
    first = opc.load(spec)
    assert first(x).tolist() == [2.0, 4.0]
    spec.write_text(SPEC.replace("n * x", "n * x + 1"))
    second = opc.load(spec)
    assert second(x).tolist() == [3.0, 5.0]
    assert first(x).tolist() == [2.0, 4.0]
    assert second(x, n=1.0).tolist() == [2.0, 3.0]


def test_import_is_cheap_and_numpy_users_need_no_framework(spec: Path) -> None:
    """Loading the package brings in nothing; loading an op on NumPy arrays brings in no framework."""
    program = (
        "import sys, opc\n"
        "assert not {'numpy', 'pydantic', 'yaml', 'cffi'} & set(sys.modules), 'import opc is not cheap'\n"
        f"f = opc.load({str(spec)!r})\n"
        "import numpy\n"
        "print(f(numpy.float32([1.0])))\n"
        "assert not {'torch', 'onnx', 'onnxruntime'} & set(sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("[2.]\n", "")
