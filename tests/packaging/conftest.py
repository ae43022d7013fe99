"""The project's wheel, and environments it is installed in."""

from __future__ import annotations

import contextlib
import io
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from opc.cli.console import guarded
from opc.cli.main import app
from tests.packaging.environments import ROOT, lend, make, run

Opc = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def opc() -> Iterator[Opc]:
    """Run `opc` in a folder, in this process; returns the exit code and what it printed on both streams."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPC_VARIANT", "native")
        patch.setenv("OPC_OPTIMIZE", "0")

        def call(folder: Path, *arguments: str) -> tuple[int, str, str]:
            with contextlib.chdir(folder), redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
                code = guarded(lambda: app(list(arguments), prog_name="opc"))
            assert "Traceback" not in err.getvalue()
            return code, out.getvalue(), err.getvalue()

        yield call


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the wheel is made of, so that nothing of earlier builds gets in."""
    folder = tmp_path_factory.mktemp("source")
    for name in ("opc", "runtime"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="session")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", source, "--no-deps", "--no-build-isolation", "-w", folder, cwd=folder)
    (made,) = folder.glob("*.whl")
    return made


@pytest.fixture(scope="session")
def bare(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment as `pip install opc-compiler` leaves it: the wheel and what it requires, no extras and no framework.

    What it requires is linked from where the tests run.
    """
    folder = tmp_path_factory.mktemp("bare")
    site = make(folder)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-deps", "-q", wheel, cwd=folder)
    own = Distribution.at(next(site.glob("opc_compiler-*.dist-info")))
    lend(site, *_required(own, set()))
    return folder


def _required(found: Distribution, known: set[str]) -> set[str]:
    """Return the names of all distributions that one requires without extras, and those that they require."""
    for requirement in map(Requirement, found.requires or ()):
        if requirement.name not in known and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            known.add(requirement.name)
            _required(distribution(requirement.name), known)
    return known
