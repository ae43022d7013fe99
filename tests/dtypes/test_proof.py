"""Ops of the dtypes that are in no closed set: proved on the backends that run in this process' environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.backends.base import Backend
from opc.ir.dtypes import DTYPES, TYPE_SETS, candidates
from opc.pipeline import load_family
from opc.testing.results import Report, Status
from opc.testing.runner import run_tests
from opc.testing.tiers import Tiers
from tests.rotation import asked

FOLDER = Path(__file__).parent / "specs"
SPECS = sorted(FOLDER.glob("*.yaml"))
COMPUTING = ("numpy", "onnx", "onnxruntime")
"""Backends on which all run: what is computed is in the kernel, which NumPy calls, and in ONNX's functions."""
LACKED = {"small_integers": ("onnxruntime", "torch")}
"""What has no call of a spec: these pack several integers of fewer than 8 bits in a byte, or have no kernels of them."""
CALLED_BY_TORCH = ("float8_affine", "narrow_conversions")
"""What torch runs too, whose tools take long: together they have all of the dtypes, and a gradient."""


class SomeOnTorch(Tiers):
    """Tiers in which torch runs few specs, and the other backends all."""

    def runs(self, spec: Path, backend: Backend) -> bool:
        return backend.name != "torch" or spec.stem in CALLED_BY_TORCH


def test_each_dtype_has_an_op() -> None:
    families = [load_family(path) for path in SPECS]
    found = {d for f in families for o in (*f.forward.inputs, *f.forward.outputs) for d in candidates(o.type)}
    assert set(DTYPES) - set(TYPE_SETS["any"]) <= found


def test_torch_is_given_each_dtype() -> None:
    families = [load_family(FOLDER / f"{name}.yaml") for name in CALLED_BY_TORCH]
    found = {d for f in families for o in (*f.forward.inputs, *f.forward.outputs) for d in candidates(o.type)}
    assert {d for d in DTYPES if d.row.torch is not None} - set(TYPE_SETS["any"]) <= found
    assert any(f.backward is not None for f in families)


@pytest.fixture(scope="module")
def proved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What a proof of those whose turn it is finds: of each op as much as of one of the covering set."""
    specs = [FOLDER / f"{name}.yaml" for name in asked(request, "name")]
    report = run_tests(specs, (*COMPUTING, "torch"), tmp_path_factory.mktemp("made"), tiers=SomeOnTorch(specs, whole=()))
    assert report.ok, [f.message for f in report.results if f.status is Status.FAILED]
    return report


@pytest.mark.rotating
@pytest.mark.parametrize("name", [path.stem for path in SPECS])
def test_op(name: str, proved: Report) -> None:
    for backend in (*COMPUTING, *(("torch",) if name in CALLED_BY_TORCH else ())):
        if backend in LACKED.get(name, ()):
            continue
        cell = proved.cell(name, backend)
        assert cell.count(Status.PASSED) > 40
        assert not cell.failures
