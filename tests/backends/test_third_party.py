"""The backend of docs/backends.md, made from the page and installed like any package, is found, built and proved by opc."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.guide import PAGE, write_package
from tests.ruff import accepts

pytestmark = pytest.mark.rotating("file", seconds=17)

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder, with the files that the page shows."""
    return write_package(tmp_path_factory.mktemp("source"))


@pytest.fixture(scope="module")
def site(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder on the search path that pip has installed the package into."""
    folder = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-build-isolation"]
    # Building writes beside the sources.
    copy = tmp_path_factory.mktemp("copy")
    subprocess.run(["cp", "-r", f"{source}/.", str(copy)], check=True)
    subprocess.run([*pip, "--target", str(folder), str(copy)], check=True, cwd=folder)
    return folder


def environment(*path: Path) -> dict[str, str]:
    """Return the variables of a process that finds packages in these folders."""
    found = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), "OMP_WAIT_POLICY": "passive"}
    return found | {"COLUMNS": "110", "NO_COLOR": "1"}


def opc(site: Path, folder: Path, *arguments: str) -> str:
    """Run the command line with the package installed; return what it prints."""
    call = [sys.executable, "-m", "opc", *arguments]
    done = subprocess.run(call, env=environment(site, ROOT), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_lists_the_files_and_no_other_is_touched(source: Path) -> None:
    table = PAGE.read_text().split("## The files")[1].split("\n## ")[0]
    listed = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    made = sorted(str(p.relative_to(source)) for p in source.rglob("*") if p.is_file())
    assert sorted(listed) == made
    assert len(made) == 6


def test_the_code_passes_linter_and_type_checker(source: Path) -> None:
    accepts("format", "--check", "--line-length", 130, source)
    accepts("check", "--line-length", 130, source)
    mypy = [sys.executable, "-m", "mypy", "--strict", "--ignore-missing-imports", "-p", "opc_ctypes"]
    done = subprocess.run(mypy, cwd=source, env=environment(source, ROOT), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_listed_with_what_it_refuses(site: Path, tmp_path: Path) -> None:
    listed = json.loads(opc(site, tmp_path, "backends", str(SPECS / "relu.yaml"), str(SPECS / "huber_loss.yaml"), "--json"))
    own = next(b for b in listed if b["name"] == "ctypes")
    assert own["available"]
    assert list(own["refused"]) == ["huber_loss"]
    assert "'reduction' is none" in own["refused"]["huber_loss"][0]["message"]


def test_its_ops_are_proved(site: Path, tmp_path: Path) -> None:
    specs = [str(SPECS / f"{name}.yaml") for name in ("leaky_relu", "dual_residual", "huber_loss")]
    report = json.loads(opc(site, tmp_path, "test", *specs, "--backend", "ctypes", "--json"))
    cells = {(c["op"], c["backend"]): c for c in report["cells"]}
    assert report["backends"]["ctypes"]["title"] == "ctypes"
    for op in ("leaky_relu", "dual_residual"):
        proved = cells[op, "ctypes"]
        assert proved["status"] == "passed"
        assert proved["failed"] == 0
        least = {"forward": 80, "derived": 80, "refused": 20, "gradient": 20, "second gradient": 20, "check": 5}
        assert {kind: proved["kinds"][kind] >= count for kind, count in least.items()} == dict.fromkeys(least, True)
    refused = cells["huber_loss", "ctypes"]
    assert refused["status"] == "refused"
    assert "'reduction' is none" in refused["refused"][0]


def test_its_files_are_called_without_opc(site: Path, tmp_path: Path) -> None:
    opc(site, tmp_path, "build", str(SPECS / "leaky_relu.yaml"), "--backend", "ctypes")
    code = (
        "import numpy as np\n"
        "import opc_ctypes.calls\n"
        "from opc_ctypes.tensors import Tensor\n"
        "from generated.leaky_relu.ctypes import leaky_relu\n"
        "print(leaky_relu(Tensor(np.float32([-2, 3])), alpha=0.5).array, leaky_relu.__module__)\n"
        "import sys; assert 'opc' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(site, tmp_path), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[-1.  3.] generated.leaky_relu.ctypes\n", done.stderr


LOADED = """
import sys
import numpy as np
import opc
x = np.float32([[-2, 3]])
leaky_relu, dual_residual = (opc.load(f"{SPECS}/{name}.yaml") for name in ("leaky_relu", "dual_residual"))
assert type(leaky_relu(x)) is np.ndarray and "opc_ctypes" not in sys.modules
from opc_ctypes.tensors import Tensor, add, gradients
t = Tensor(x)
y = leaky_relu(t, alpha=0.5)
assert type(y) is Tensor and y.array.tolist() == [[-1, 3]] and leaky_relu(x=t).array.dtype == np.float32
one = Tensor(np.ones_like(x))
assert [g.array.tolist() for g in gradients([y, y], [t], [one, one])] == [[[1, 2]]]
assert [g.array.tolist() for g in gradients([leaky_relu(add(t, y), alpha=0.5)], [t], [one])] == [[[0.75, 2]]]
assert leaky_relu.ctypes.leaky_relu_backward(x=t, d_y=one, alpha=0.25).array.tolist() == [[0.25, 1]]
try:
    dual_residual(t, x, t)
except TypeError as error:
    assert "all inputs must be of one framework" in str(error), error
else:
    raise AssertionError("tensors of two frameworks were taken")
assert "torch" not in sys.modules
"""


def test_its_tensors_are_answered_in_kind(site: Path, tmp_path: Path) -> None:
    env = environment(site, ROOT) | {"OPC_CACHE_DIR": str(tmp_path / "cache")}
    code = f"SPECS = {str(SPECS)!r}\n{LOADED}"
    done = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_page_shows_what_is_printed(site: Path, tmp_path: Path) -> None:
    page = PAGE.read_text()
    code = re.search(r"^```python\n(import numpy.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert code is not None
    env = environment(site, ROOT) | {"OPC_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", code[1]], env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == code[1].rpartition("# ")[2], done.stderr
