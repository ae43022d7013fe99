"""A backend of somebody else's, installed as any package, is found, generated, built and proved by opc as it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the search path that pip has installed the package into."""
    folder = tmp_path_factory.mktemp("third-party")
    # Building writes beside the sources.
    shutil.copytree(Path(__file__).parent / "third_party", folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", str(folder / "site"), str(folder / "source")], check=True, cwd=folder)
    return folder / "site"


def opc(site: Path, folder: Path, *arguments: str) -> str:
    """Run the command line with the package installed; return what it prints."""
    path = os.pathsep.join([str(site), str(ROOT)])
    env = {**os.environ, "PYTHONPATH": path, "COLUMNS": "110", "NO_COLOR": "1", "OMP_WAIT_POLICY": "passive"}
    call = [sys.executable, "-m", "opc", *arguments]
    done = subprocess.run(call, env=env, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_listed_with_what_it_refuses(site: Path, tmp_path: Path) -> None:
    listed = json.loads(opc(site, tmp_path, "backends", str(SPECS / "relu.yaml"), str(SPECS / "huber_loss.yaml"), "--json"))
    own = next(b for b in listed if b["name"] == "ctypes")
    assert own["available"]
    assert list(own["refused"]) == ["huber_loss"]
    assert "'reduction' is none" in own["refused"]["huber_loss"][0]["message"]


def test_its_ops_are_proved(site: Path, tmp_path: Path) -> None:
    specs = [str(SPECS / "leaky_relu.yaml"), str(SPECS / "huber_loss.yaml")]
    report = json.loads(opc(site, tmp_path, "test", *specs, "--backend", "ctypes", "--json"))
    cells = {(c["op"], c["backend"]): c for c in report["cells"]}
    assert report["backends"]["ctypes"]["title"] == "ctypes"
    proved = cells["leaky_relu", "ctypes"]
    assert proved["status"] == "passed"
    assert proved["failed"] == 0
    assert proved["kinds"]["forward"] > 80
    assert proved["kinds"]["derived"] > 80
    assert proved["kinds"]["refused"] > 20
    assert proved["kinds"]["check"] == 5
    refused = cells["huber_loss", "ctypes"]
    assert refused["status"] == "refused"
    assert "'reduction' is none" in refused["refused"][0]


def test_its_files_are_called_without_opc(site: Path, tmp_path: Path) -> None:
    opc(site, tmp_path, "build", str(SPECS / "leaky_relu.yaml"), "--backend", "ctypes")
    code = (
        "import numpy as np\n"
        "from generated.leaky_relu.ctypes import leaky_relu\n"
        "print(leaky_relu(np.float32([-2, 3]), alpha=0.5)['y'], leaky_relu.__module__)\n"
        "import sys; assert 'opc' not in sys.modules\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(tmp_path)])}
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "[-1.  3.] generated.leaky_relu.ctypes\n", done.stderr
