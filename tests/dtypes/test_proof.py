"""Ops of the dtypes that are in no closed set: proved on the backends that run in this process' environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from opc.ir.dtypes import DTYPES, TYPE_SETS, candidates
from opc.pipeline import load_family

FOLDER = Path(__file__).parent / "specs"
SPECS = sorted(FOLDER.glob("*.yaml"))
BACKENDS = ("numpy", "onnx", "onnxruntime", "torch")


def test_each_dtype_has_an_op() -> None:
    families = [load_family(path) for path in SPECS]
    found = {d for f in families for o in (*f.forward.inputs, *f.forward.outputs) for d in candidates(o.type)}
    assert set(DTYPES) - set(TYPE_SETS["any"]) <= found


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What one proof of all of them says: frameworks are loaded once for all."""
    chosen = [part for name in BACKENDS for part in ("-b", name)]
    command = [sys.executable, "-m", "opc", "test", str(FOLDER), "-o", str(tmp_path_factory.mktemp("made")), *chosen, "--json"]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", [path.stem for path in SPECS])
def test_op(name: str, proved: Any) -> None:
    cells = {cell["backend"]: cell for cell in proved["cells"] if cell["op"] == name}
    for backend in BACKENDS:
        assert cells[backend]["passed"] > 50
        assert cells[backend]["failed"] == 0
