"""PopXL as its users run it, of an op with codelets: cppimport builds the module, and has popc compile the codelets beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.build.toolchain import runtime_include
from tests.backends.popart.package import generated
from tests.emulation.sdk import shell
from tests.narrow import narrow

pytestmark = pytest.mark.rotating("file", seconds=10)

RUN = "python popxl/run_argmax.py"
PROJECT = """
[project]
name = "project"
dynamic = ["version"]

[tool.setuptools.dynamic]
version = {attr = "no_such_module.version"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package of an op with codelets, not built, in a project whose settings are none of its module's."""
    out = tmp_path_factory.mktemp("cppimport")
    made = generated(narrow("argmax", out / "specs"), "popxl", out)
    (made / "pyproject.toml").write_text(PROJECT)
    return made


def test_codelets_are_built_once(folder: Path) -> None:
    settings = f"export CXXFLAGS=-O0 POPC_FLAGS=-O0 OPC_RUNTIME_INCLUDE={runtime_include()}"
    assert "The results agree with NumPy's." in shell(f"{settings}; {RUN}", folder)
    made = folder / "popxl" / "argmax_codelets.gp"
    before = made.stat().st_mtime_ns
    # What is built is not built again, unless the codelets change. Nor does the op take an order of elements for granted.
    assert "The results agree with NumPy's." in shell(f"{settings} POPART_EMULATION_LAYOUT=shuffled; {RUN}", folder)
    assert made.stat().st_mtime_ns == before
    source = folder / "poplar" / "argmax_codelets.cpp"
    source.write_text("#error changed\n" + source.read_text())
    assert "#error changed" in shell(f"{settings}; {RUN}", folder, check=False)
