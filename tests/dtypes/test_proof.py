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
COMPUTING = ("numpy", "onnx", "onnxruntime")
"""Backends on which all run: what is computed is in the kernel, which NumPy calls, and in ONNX's functions."""
CALLED_BY_TORCH = ("float8_affine", "narrow_conversions")
"""What torch runs too, whose tools take long: together they have all of the dtypes, and a gradient."""


def test_each_dtype_has_an_op() -> None:
    families = [load_family(path) for path in SPECS]
    found = {d for f in families for o in (*f.forward.inputs, *f.forward.outputs) for d in candidates(o.type)}
    assert set(DTYPES) - set(TYPE_SETS["any"]) <= found


def test_torch_is_given_each_dtype() -> None:
    families = [load_family(FOLDER / f"{name}.yaml") for name in CALLED_BY_TORCH]
    found = {d for f in families for o in (*f.forward.inputs, *f.forward.outputs) for d in candidates(o.type)}
    assert set(DTYPES) - set(TYPE_SETS["any"]) <= found
    assert any(f.backward is not None for f in families)


@pytest.fixture(scope="module")
def proved(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Any]:
    """What one proof of all of them, and one of what torch runs, says of each op and backend."""
    out = tmp_path_factory.mktemp("made")
    found: dict[tuple[str, str], Any] = {}
    # Each by itself: of several, a backend may leave out those that show nothing more.
    runs = [*((path, COMPUTING) for path in SPECS), *((FOLDER / f"{name}.yaml", ("torch",)) for name in CALLED_BY_TORCH)]
    for path, backends in runs:
        chosen = [part for name in backends for part in ("-b", name)]
        command = [sys.executable, "-m", "opc", "test", str(path), "-o", str(out), *chosen, "--cover", "--json"]
        done = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        found |= {(cell["op"], cell["backend"]): cell for cell in json.loads(done.stdout)["cells"]}
    return found


@pytest.mark.parametrize("name", [path.stem for path in SPECS])
def test_op(name: str, proved: dict[tuple[str, str], Any]) -> None:
    for backend in (*COMPUTING, *(("torch",) if name in CALLED_BY_TORCH else ())):
        assert proved[name, backend]["passed"] > 50
        assert proved[name, backend]["failed"] == 0
