"""`opc.load`: built once, found again, rebuilt when the spec changes, right for torch tensors too."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import opc
from opc.api import LoadedOp
from opc.backends.torch.backend import TorchBackend
from opc.build import builder, cache

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
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "stands"))
    spec.write_text(SPEC)
    place = cache.place(spec.name, spec.read_bytes())
    place.mkdir(parents=True, exist_ok=True)
    (place / ".opc").write_text("in the way")
    with pytest.raises(opc.SpecError, match=r"cannot .*\.opc, which is a file and not a folder\n  hint: set OPC_CACHE_DIR"):
        opc.load(spec)
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("CXX", "no-such-compiler")
    spec.write_text(SPEC)
    with pytest.raises(opc.SpecError, match=r"the compiler 'no-such-compiler' of \$CXX was not found"):
        opc.load(spec)


def test_modules_of_backends_are_attributes(leaky_relu: LoadedOp) -> None:
    assert leaky_relu.numpy.leaky_relu is leaky_relu.__wrapped__
    assert sorted(leaky_relu.onnx.SCHEMAS)[0] == "LeakyRelu"
    for name in ("tensorflow", "_private", "__array__"):
        assert not hasattr(leaky_relu, name)


def test_torch_tensors_get_tensors_with_gradients(leaky_relu: LoadedOp) -> None:
    import torch

    x = torch.tensor([-2.0, 3.0], requires_grad=True)
    y = leaky_relu(x, alpha=0.5)
    assert isinstance(y, torch.Tensor)
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 1.0]
    assert isinstance(leaky_relu(x=x.detach()), torch.Tensor)
    assert isinstance(leaky_relu(np.float32([1.0])), np.ndarray)
    with pytest.raises(RuntimeError, match="int32"):
        leaky_relu(torch.ones(2, dtype=torch.int32))


@pytest.mark.rotating
def test_changed_spec_is_reloaded_for_torch_too(spec: Path) -> None:
    import torch

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


MIXER = """
op: mixer
domain: opc.test
version: 1
doc: x times w, plus b.
types: {T: floating}
inputs: {x: 'T[N]', w: 'T[N]', 'b?': 'T[N]'}
attributes: {alpha: {type: float, default: 0.5}, k: {type: 'int[2]', default: [1, 2]}}
outputs: {y: 'T[N]'}
kernel: |
  y[n] = x[n]*w[n]*alpha*k[0] + (b[n] if present(b) else 0)
"""


@pytest.fixture(scope="module")
def mixer(tmp_path_factory: pytest.TempPathFactory) -> LoadedOp:
    folder = tmp_path_factory.mktemp("mixer")
    (folder / "mixer.yaml").write_text(MIXER)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPC_CACHE_DIR", str(folder / "cache"))
        op = opc.load(folder / "mixer.yaml")
        if find_spec("torch"):
            assert op.torch is not None
    return op


def test_arguments_of_several_frameworks_are_refused(mixer: LoadedOp) -> None:
    import torch

    x, t = np.ones(3, np.float32), torch.ones(3)
    one = "all inputs must be of one framework"
    array, tensor = "a numpy.ndarray", "a torch.Tensor"
    for call, wrong in (
        (lambda: mixer(x, t), f"mixer: w is {tensor}, but x is {array}: {one}"),
        (lambda: mixer(t, x), f"mixer: w is {array}, but x is {tensor}: {one}"),
        (lambda: mixer(x, t.requires_grad_()), f"mixer: w is {tensor}, but x is {array}: {one}"),
        (lambda: mixer(t, t, x), f"mixer: b is {array}, but x is {tensor}: {one}"),
        (lambda: mixer(x=x, w=x, b=t), f"mixer: b is {tensor}, but x is {array}: {one}"),
        (lambda: mixer(t.to("meta"), x), f"mixer: w is {array}, but x is {tensor}: {one}"),
        (lambda: mixer([1.0, 1.0, 1.0], x, t), f"mixer: b is {tensor}, but w is {array}: {one}"),
    ):
        with pytest.raises(TypeError) as error:
            call()
        assert str(error.value) == wrong
    # Attributes may be NumPy's own numbers, whatever the inputs are.
    assert mixer(torch.ones(3), torch.ones(3), k=np.array([2, 1]), alpha=np.float32(1)).tolist() == [2.0] * 3
    assert mixer(x, x, k=np.array([2, 1])).tolist() == [1.0] * 3
    assert mixer(x, [1.0, 2.0, 3.0]).tolist() == [0.5, 1.0, 1.5]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_arguments_are_refused_by_name(mixer: LoadedOp, dtype: str) -> None:
    takes = "but T is one of float16, bfloat16, float32, float64"
    x = np.ones(3, np.float32)
    for given, name in (((x.astype(dtype), x), "x"), ((x, x.astype(dtype)), "w")):
        with pytest.raises(TypeError, match=f"mixer: {name} has dtype {dtype}, {takes}"):
            mixer(*given)
    with pytest.raises(TypeError, match="mixer: alpha must be float, got 1j"):
        mixer(x, x, alpha=1j)
    import torch

    t = torch.ones(3)
    z = t.to(getattr(torch, dtype))
    for tensors, name in (
        ((z, t), "x"),
        ((t, z), "w"),
        ((z.conj(), z), "x"),
        ((t.requires_grad_(), z), "w"),
        ((z.to("meta"),) * 2, "x"),
    ):
        with pytest.raises((RuntimeError, ValueError), match=f"mixer: {name} has dtype {dtype}, {takes}"):
            mixer(*tensors)
    with pytest.raises(RuntimeError, match="mixer: x has a dtype that opc does not know, but T is one of float16"):
        mixer(t.detach().to(torch.float8_e8m0fnu), t)
    with pytest.raises(RuntimeError, match=f"mixer: x has dtype float8_e4m3fn, {takes}"):
        mixer(t.detach().to(torch.float8_e4m3fn), t)


def test_tensors_that_no_kernel_reads_are_refused_by_name(mixer: LoadedOp) -> None:
    import torch

    t = torch.ones(3)
    dense = "but there are kernels for dense tensors in the CPU's memory"
    with pytest.raises(NotImplementedError, match=f"mixer: w has the layout torch.sparse_coo, {dense}"):
        mixer(t, t.to_sparse())
    with pytest.raises(RuntimeError, match="mixer: x is on meta, but w is on cpu"):
        mixer(t.to("meta"), t)
    assert mixer(t.to("meta"), t.to("meta")).device.type == "meta"
    # What lies on another device is told by that alone.
    elsewhere = SimpleNamespace(layout=torch.strided, is_quantized=False, device=torch.device("xpu", 1))
    assert TorchBackend().unreadable(elsewhere) == "is on xpu:1"
    assert TorchBackend().unreadable(t) == ""
