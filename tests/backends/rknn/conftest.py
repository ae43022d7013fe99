"""The package of dual_residual, and the interpreter that has RKNN's toolkit."""

from pathlib import Path

import pytest

from opc.backends import environments
from opc.backends.rknn.backend import RknnBackend
from opc.build.builder import build_specs

SPECS = Path(__file__).parents[3] / "specs"


@pytest.fixture(scope="session")
def toolkit() -> Path:
    """Return the interpreter of the toolkit's environment."""
    found = RknnBackend().probe()
    if not found.available:
        pytest.skip(f"{found.reason}; install it: {found.install}")
    return environments.interpreter("rknn")


@pytest.fixture(scope="session")
def package(pytestconfig: pytest.Config) -> Path:
    """Return the built package of dual_residual with its parts for torch and RKNN."""
    out = pytestconfig.cache.mkdir("opc-rknn")
    (built,) = build_specs([SPECS / "dual_residual.yaml"], Path(out), ["rknn", "torch"])
    assert built.package is not None, built.diagnostics
    return built.package.absolute()
