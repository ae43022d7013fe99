"""`opc env create` with environments small enough to be made in a test: their requirement is a folder with one module."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, cast

import pytest

from opc.backends import environments, registry
from opc.backends.base import Availability, Backend, Environment
from opc.build import environments as making
from opc.diagnostics import SpecError
from opc.distribution import NAME

ROOT = Path(__file__).parents[2]
DISTRIBUTION = "opc-toys"


class Toy(Backend):
    """A backend whose framework is the distribution `toy-framework`."""

    name = "toy"
    title = "Toy"
    environment = Environment("toy", alone=("toy-alone",))

    def probe(self) -> Availability:
        return environments.probe(self.name, "toy-framework")

    def emit(self, family: Any) -> Any: ...
    def session(self, family: Any, package: Path) -> Any: ...


class Twin(Toy):
    name = "twin"


class Plain(Toy):
    name = "plain"
    environment = None


def project(folder: Path, name: str, version: str = "1.0", needs: str = "", setup: str = "") -> str:
    """Write a distribution with one module and return the requirement that names it."""
    folder.mkdir(parents=True, exist_ok=True)
    module = name.replace("-", "_")
    (folder / f"{module}.py").write_text("")
    (folder / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
    # A build backend of a few lines, so that nothing has to be fetched to build it.
    (folder / "backend.py").write_text(
        f"import zipfile\n{setup}\n"
        "def build_wheel(folder, config_settings=None, metadata_directory=None):\n"
        f"    wheel = '{module}-{version}-py3-none-any.whl'\n"
        f"    info = '{module}-{version}.dist-info'\n"
        "    with zipfile.ZipFile(f'{folder}/{wheel}', 'w') as z:\n"
        f"        z.writestr('{module}/__init__.py', '')\n"
        f"        z.writestr(info + '/METADATA', 'Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{needs}')\n"
        "        z.writestr(info + '/WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\n"
        "Tag: py3-none-any\\n')\n"
        "        z.writestr(info + '/RECORD', '')\n"
        "    return wheel\n"
    )
    return f"{name} @ {folder.as_uri()}"


@pytest.fixture
def extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Register the toy backends; the returned function says what their extra asks for."""
    module = ModuleType("toys")
    module.Toy, module.Twin, module.Plain = Toy, Twin, Plain
    monkeypatch.setitem(sys.modules, "toys", module)
    distribution = cast(Distribution, SimpleNamespace(name=DISTRIBUTION))
    found = [cast(Any, EntryPoint(b.name, f"toys:{b.__name__}", "opc.backends"))._for(distribution) for b in (Toy, Twin, Plain)]
    monkeypatch.setattr(registry, "entry_points", lambda group: found)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv(environments.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("")

    def pin(*requirements: str) -> None:
        def requires(distribution: str, extra: str = "") -> tuple[str, ...]:
            return requirements if extra == "toy" else ()

        monkeypatch.setattr(making, "requirements", requires)

    # opc's own requirements are not installed, so opc itself can't be tried.
    monkeypatch.setattr(making, "TRIAL", "import opc")
    return pin


def files(folder: Path) -> set[str]:
    return {p.name for p in folder.iterdir()}


def test_an_environment_is_made_found_and_left_alone(tmp_path: Path, extra: Callable[..., None]) -> None:
    extra(
        project(tmp_path / "framework", "toy-framework", "2.5"),
        # What it asks for does not exist: it goes in alone.
        project(tmp_path / "alone", "toy-alone", needs="Requires-Dist: nowhere-to-be-found\\n"),
    )
    assert registry.load("toy").probe().install == "opc env create toy"
    seen: list[str] = []
    made = making.create("toy", lambda done, total, what: seen.append(f"{done}/{total} {what}"))
    folder = tmp_path / ".opc" / "env" / "opc-toys-toy"
    assert made.record.folder == folder
    assert not made.fresh
    assert made.record.backends == ("toy", "twin")
    assert files(folder) == {"lock", ".gitignore", "venv", "environment.json"}
    assert any("installing toy-alone" in text for text in seen)
    assert environments.interpreter("toy") == environments.interpreter("twin") == folder / "venv/bin/python"
    assert environments.interpreter("plain") == Path(sys.executable)
    assert registry.load("toy").probe() == Availability(True, "2.5")
    assert environments.version("toy", "toy-alone") == "1.0"
    assert environments.folder("toy", "toy_framework") is not None
    assert environments.folder("toy", "numpy") is None

    start = time.monotonic()
    again = making.create("twin")
    assert again.fresh
    assert time.monotonic() - start < 0.5

    # From a folder below, and from one that names the environments by the variable.
    (tmp_path / "below").mkdir()
    os.chdir(tmp_path / "below")
    assert environments.interpreter("toy") == folder / "venv/bin/python"

    making.remove("opc-toys-toy")
    assert environments.interpreter("toy") == Path(sys.executable)
    assert making.names() == ()


def test_other_pins_make_it_anew(tmp_path: Path, extra: Callable[..., None]) -> None:
    extra(project(tmp_path / "one", "toy-framework", "1.0"))
    making.create("toy")
    extra(project(tmp_path / "two", "toy-framework", "2.0"))
    assert environments.version("toy", "toy-framework") == "1.0"
    assert not making.create("toy").fresh
    assert environments.version("toy", "toy-framework") == "2.0"


def test_what_pip_says_is_a_diagnostic(tmp_path: Path, extra: Callable[..., None]) -> None:
    extra("nowhere-to-be-found==1.0")
    with pytest.raises(SpecError, match="No matching distribution found for nowhere-to-be-found") as caught:
        making.create("toy")
    assert "is the package index reachable?" in str(caught.value)
    assert files(tmp_path / ".opc/env/opc-toys-toy") == {"lock", ".gitignore"}
    assert environments.interpreter("toy") == Path(sys.executable)


def test_who_needs_none_is_told(extra: Callable[..., None]) -> None:
    extra("x")
    with pytest.raises(SpecError, match="'plain' needs no environment of its own"):
        making.create("plain")
    with pytest.raises(SpecError, match="there is no backend 'tooy'"):
        making.create("tooy")
    extra()
    with pytest.raises(SpecError, match="opc-toys has no extra 'toy'"):
        making.create("toy")
    with pytest.raises(SpecError, match="there is no environment 'x'"):
        making.remove("x")


def test_the_users_interpreter_goes_first(tmp_path: Path, extra: Callable[..., None]) -> None:
    extra(project(tmp_path / "framework", "toy-framework"))
    making.create("toy")
    (tmp_path / "pyproject.toml").write_text('[tool.opc.python]\ntoy = "own/bin/python"\n')
    assert environments.interpreter("toy") == tmp_path / "own/bin/python"
    assert "own/bin/python does not exist" in str(registry.load("toy").probe().reason)
    assert environments.interpreter("twin") == tmp_path / ".opc/env/opc-toys-toy/venv/bin/python"


KILLED = """
import sys
from importlib.metadata import EntryPoint
from types import SimpleNamespace
sys.path.insert(0, {tests!r})
from opc.backends import registry
from opc.build import environments as making
import test_environments as toys
entry = EntryPoint("toy", "test_environments:Toy", "opc.backends")._for(SimpleNamespace(name="opc-toys"))
registry.entry_points = lambda group: [entry]
making.requirements = lambda distribution, extra="": ({requirement!r},) if extra == "toy" else ()
making.create("toy")
"""


def test_a_killed_creation_leaves_nothing_that_counts(tmp_path: Path, extra: Callable[..., None]) -> None:
    began = tmp_path / "began"
    slow = f"import pathlib, time\npathlib.Path({str(began)!r}).touch()\ntime.sleep(2)"
    requirement = project(tmp_path / "slow", "toy-framework", setup=slow)
    code = KILLED.format(tests=str(Path(__file__).parent), requirement=requirement)
    process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    while not began.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    folder = tmp_path / ".opc/env/opc-toys-toy"
    assert (folder / "venv/bin/python").exists()
    assert environments.records() == ()
    assert environments.interpreter("toy") == Path(sys.executable)
    assert making.names() == ("opc-toys-toy",)

    extra(project(tmp_path / "quick", "toy-framework"))
    said: list[str] = []
    # pip outlives its parent for a moment and still holds the lock; two of them never write into one environment.
    assert not making.create("toy", say=said.append).fresh
    assert environments.version("toy", "toy-framework") == "1.0"


def test_requirements_are_those_of_the_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    pinned = dict(r.split("==") for r in making.requirements(NAME, "mindspore") if "==" in r)
    assert pinned["mindspore"] == "2.10.0"
    assert int(pinned["numpy"].split(".")[0]) < 2
    own = making.requirements(NAME)
    assert any(r.startswith("pyyaml") for r in own)
    assert not any("==" in r for r in own)
    # An extra that names other extras of its distribution stands for what they hold.
    everything = making.requirements(NAME, "test")
    assert {"pytest>=8", *making.requirements(NAME, "all")} <= set(everything)


def test_an_interpreter_outside_any_environment_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "bin" / "python-of-mine"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\necho '[\"{tmp_path}/packages\"]'\n")
    script.chmod(0o755)
    info = tmp_path / "packages" / "toy_framework-3.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-framework\nVersion: 3.0\n")
    (tmp_path / "packages" / "toy_framework").mkdir()
    (tmp_path / "pyproject.toml").write_text('[tool.opc.python]\ntoy = "python-of-mine"\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(script.parent), prepend=os.pathsep)
    assert environments.interpreter("toy") == script
    assert environments.version("toy", "toy-framework") == "3.0"
    assert environments.folder("toy", "toy_framework") == tmp_path / "packages" / "toy_framework"
    assert environments.probe("toy", "toy-framework", versions=">=3").available
    refused = environments.probe("toy", "toy-framework", versions=">=4")
    assert (refused.available, refused.reason) == (False, "toy-framework 3.0 is not >=4")


def test_a_program_makes_more_of_it_and_runs_again_when_its_inputs_change(
    tmp_path: Path, extra: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    extra(project(tmp_path / "framework", "toy-framework", "2.5"))
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "words.txt").write_text("one")
    (folder / "make.py").write_text(
        "import sys, pathlib\n"
        "made = pathlib.Path(sys.argv[1])\n"
        "made.mkdir(exist_ok=True)\n"
        "(made / 'found').write_text(pathlib.Path(__file__).with_name('words.txt').read_text() + ' ' + sys.prefix)\n"
    )
    for kind in (Toy, Twin):
        monkeypatch.setattr(kind, "environment", Environment("toy", program=str(folder / "make.py")))
    assert environments.made("toy") is None
    record = making.create("toy").record
    made = environments.made("twin")
    assert made == record.folder / "made"
    assert (made / "found").read_text() == f"one {record.folder / 'venv'}"
    assert making.create("toy").fresh

    installed = (record.folder / "venv" / "pyvenv.cfg").stat().st_mtime_ns
    (folder / "words.txt").write_text("two")
    assert not making.create("toy").fresh
    assert (made / "found").read_text().startswith("two ")
    assert (record.folder / "venv" / "pyvenv.cfg").stat().st_mtime_ns == installed

    (folder / "make.py").write_text("raise SystemExit('no compiler')")
    with pytest.raises(SpecError, match="no compiler"):
        making.create("toy")
    # What was made before is still there, and still counts for what it is.
    assert (made / "found").read_text().startswith("two ")
