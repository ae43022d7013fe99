"""Ops of the dtypes that are in no closed set: proved on the backends that run in this process' environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from opc.ir.dtypes import DTYPES, TYPE_SETS, candidates
from opc.pipeline import load_family

SPECS = sorted((Path(__file__).parent / "specs").glob("*.yaml"))
BACKENDS = ("numpy", "onnx", "onnxruntime", "torch")


def test_each_dtype_has_an_op() -> None:
    families = [load_family(path) for path in SPECS]
    found = {d for f in families for o in (*f.forward.inputs, *f.forward.outputs) for d in candidates(o.type)}
    assert set(DTYPES) - set(TYPE_SETS["any"]) <= found


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_op(path: Path, tmp_path: Path) -> None:
    chosen = [part for name in BACKENDS for part in ("-b", name)]
    done = subprocess.run(
        [sys.executable, "-m", "opc", "test", str(path), "-o", str(tmp_path), *chosen, "--json"],
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    cells = {cell["backend"]: cell for cell in json.loads(done.stdout)["cells"]}
    for backend in BACKENDS:
        assert cells[backend]["passed"] > 50
        assert cells[backend]["failed"] == 0
