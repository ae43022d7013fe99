"""Native code on at::Tensor: operands by name, absent ones, errors of torch, in place of the kernel on torch alone."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from opc.backends import package as packages
from opc.build import builder

# The native code adds what the kernel does not, so that it shows which of the two ran.
SPEC = """\
op: shifted
domain: tests.aten
version: 1
doc: The sum of x and w over the last axis.
types: {T: [float32, float64]}
inputs: {x: 'T[..., D]', 'w?': 'T[D]'}
attributes:
  shift: {type: 'float[]', default: [0.5]}
  mode: {type: str, values: [fine, refuse], default: fine}
outputs: {y: 'T[...]'}
kernel: |
  y[...] = sum[d](x[..., d] + (w[d] if present(w) else 0))
native:
  torch:
    include: [ATen/ops/sum.h, ATen/ops/add.h]
    declarations: |
      at::Tensor added(const at::Tensor &a, const at::Tensor &b) { return b.defined() ? at::add(a, b) : a; }
    code: |
      TORCH_CHECK(mode == "fine", "refused with D = ", D);
      TORCH_CHECK(x.scalar_type() == T);
      at::sum_out(y, added(x, w), {-1});
      y.add_(shift[0]);
"""


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> tuple[ModuleType, ModuleType]:
    folder = tmp_path_factory.mktemp("aten")
    (folder / "shifted.yaml").write_text(SPEC)
    (built,) = builder.build_specs([folder / "shifted.yaml"], folder / "out", ["numpy", "torch"])
    assert built.package is not None
    assert built.ok, built.diagnostics[0].render()
    return packages.load(built.package, "torch"), packages.load(built.package, "numpy")


@pytest.mark.rotating
def test_the_code_runs_on_torch_and_the_kernel_elsewhere(modules: tuple[ModuleType, ModuleType]) -> None:
    on_torch, on_numpy = modules
    x, w = np.arange(12.0).reshape(3, 4)[:, ::2], np.array([10.0, 20.0])
    np.testing.assert_array_equal(on_numpy.shifted(x, w), x.sum(1) + 30)
    given = torch.arange(12.0, dtype=torch.float64).reshape(3, 4)[:, ::2], torch.from_numpy(w)
    assert on_torch.shifted(*given).tolist() == (x.sum(1) + 30.5).tolist()
    assert on_torch.shifted(given[0], shift=[2.0]).tolist() == (x.sum(1) + 2).tolist()
    out = torch.zeros(3, dtype=torch.float64)
    on_torch.shifted(*given, out=out)
    assert out.tolist() == (x.sum(1) + 30.5).tolist()


@pytest.mark.rotating
def test_the_gradient_is_the_kernels(modules: tuple[ModuleType, ModuleType]) -> None:
    x = torch.ones(3, 4, dtype=torch.float64, requires_grad=True)
    modules[0].shifted(x).sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


@pytest.mark.rotating
def test_torchs_errors_come_without_their_backtrace(modules: tuple[ModuleType, ModuleType]) -> None:
    with pytest.raises(RuntimeError) as caught:
        modules[0].shifted(torch.ones(3, 4), mode="refuse")
    assert str(caught.value) == "shifted: refused with D = 4"


def test_calls_are_checked_before(modules: tuple[ModuleType, ModuleType]) -> None:
    with pytest.raises(RuntimeError, match="D is 4 in x, but 3 in w"):
        modules[0].shifted(torch.ones(3, 4), torch.ones(3))
    assert modules[0].shifted(torch.ones(0, 4)).shape == (0,)


def test_missing_torch_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("opc.backends.torch.backend.find_spec", lambda name: None)
    (tmp_path / "shifted.yaml").write_text(SPEC)
    (built,) = builder.build_specs([tmp_path / "shifted.yaml"], tmp_path / "out", ["torch"])
    assert built.diagnostics[0].message == "the native code of shifted needs torch's headers, and torch is not installed"
