"""The wheel holds everything, brings in no framework, and works in an empty folder outside the source tree."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import sysconfig
import tomllib
import zipfile
from pathlib import Path

import pytest

from tests.packaging.environments import ROOT, make, run
from tests.packaging.scaled import SPEC

FRAMEWORKS = {"torch", "tensorflow", "jax", "onnxruntime", "onnxscript", "paddlepaddle", "mindspore", "rknn-toolkit2"}


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment with the wheel in it; what opc depends on is taken from where the tests run."""
    folder = tmp_path_factory.mktemp("environment")
    site = make(folder)
    run(sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "--no-deps", "-q", wheel, cwd=folder)
    # Folders named in a .pth file are searched, but their own .pth files, such as an editable opc's, are not read.
    (site / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return folder


def test_wheel_holds_every_module_template_and_header(wheel: Path) -> None:
    held = set(zipfile.ZipFile(wheel).namelist())
    wanted = {str(p.relative_to(ROOT)) for p in (ROOT / "opc").rglob("*.py")}
    wanted |= {str(p.relative_to(ROOT)) for p in (ROOT / "opc").rglob("templates/*") if p.is_file() and p.suffix != ".pyc"}
    wanted |= {f"opc/{p.relative_to(ROOT)}" for p in (ROOT / "runtime").rglob("*.h")}
    wanted.add("opc/py.typed")
    about = next(n for n in held if n.endswith("/METADATA")).split("/")[0]
    wanted.add(f"{about}/licenses/LICENSE")
    assert wanted <= held, f"missing: {sorted(wanted - held)}"
    assert {name.split("/")[0] for name in held} == {"opc", about}


def test_the_licence_is_apache_2(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as held:
        names = {Path(n).name: n for n in held.namelist()}
        metadata = held.read(names["METADATA"]).decode()
        assert "\nLicense-Expression: Apache-2.0\n" in metadata
        assert "\nLicense-File: LICENSE\n" in metadata
        licence = held.read(names["LICENSE"])
    assert licence == (ROOT / "LICENSE").read_bytes()
    # The text at apache.org, whole and unchanged.
    assert hashlib.sha256(licence).hexdigest() == "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"


def test_dependencies_hold_no_framework() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {re.split(r"[^A-Za-z0-9_-]", d)[0] for d in project["dependencies"]}
    assert not names & FRAMEWORKS
    assert {"torch", "onnxruntime"} <= set(project["optional-dependencies"])


def test_version_stands_in_one_place(installed: Path) -> None:
    import opc

    program = "import opc, importlib.metadata as m; print(opc.__version__, m.version('opc-compiler'), opc.__file__)"
    version, metadata, place = run(installed / "bin/python", "-c", program, cwd=installed).split()
    assert version == metadata == opc.__version__
    assert Path(place).is_relative_to(installed)


@pytest.mark.rotating
def test_users_own_spec_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    spec = tmp_path / "scaled.yaml"
    spec.write_text(SPEC)
    quiet = {"OMP_WAIT_POLICY": "passive", "OPC_CACHE_DIR": str(tmp_path / "cache")}
    command = installed / "bin/opc"
    run(command, "generate", "scaled.yaml", cwd=tmp_path)
    run(command, "generate", "scaled.yaml", "--check", cwd=tmp_path)
    run(command, "build", "scaled.yaml", "--backend", "numpy", cwd=tmp_path, environment=quiet)
    said = run(command, "test", "scaled.yaml", "--backend", "numpy", cwd=tmp_path, environment=quiet)
    assert "scaled" in said
    manifest = json.loads((tmp_path / "generated/scaled/manifest.json").read_text())
    assert set(manifest["backends"]) >= {"numpy", "onnx", "onnxruntime", "torch", "mindspore", "paddle", "rknn"}
    program = "import opc, numpy; print(opc.load('scaled.yaml')(numpy.float64([1, 2])))"
    assert run(installed / "bin/python", "-c", program, cwd=tmp_path, environment=quiet) == "[2. 4.]\n"
    tests = tmp_path / "generated/scaled/tests/test_numpy.py"
    run(sys.executable, "-m", "pytest", "-q", tests, cwd=tmp_path, environment=quiet)


def test_other_environments_get_pins_from_the_wheel_and_opc_without_what_lies_beside_it(installed: Path, tmp_path: Path) -> None:
    program = (
        "import os\n"
        "from opc.build import environments, imports\n"
        "with imports.links() as path: print(*os.listdir(path), os.path.realpath(path / 'opc'))\n"
        "print(*environments.requirements('opc-compiler', 'rknn'))\n"
    )
    lent, pins = run(installed / "bin/python", "-c", program, cwd=tmp_path).splitlines()
    name, place = lent.split()
    assert name == "opc"
    assert Path(place).is_relative_to(installed)
    assert "rknn-toolkit2==2.5.0" in pins.split()


def test_no_compiler_is_told_not_thrown(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "scaled.yaml").write_text(SPEC)
    done = subprocess.run(
        [str(installed / "bin/opc"), "build", "scaled.yaml"],
        cwd=tmp_path, capture_output=True, text=True, env={"PATH": str(tmp_path), "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert "no C++ compiler was found" in said
    assert "apt install g++" in said
    assert "Traceback" not in said
