"""A dtype that opc does not have is added to a copy of it, as docs/adding_a_dtype.md says: by one row, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.rotating("file", seconds=7)

ROOT = Path(__file__).parents[2]
TABLE = Path("opc", "ir", "dtypes.py")
ROW = re.compile(r"^    FLOAT8_E4M3B11FNUZ = .*?^    \)\n", re.MULTILINE | re.DOTALL)
SPEC = """op: nuz
domain: test
version: 1
doc: Every kind of loop, in a dtype without infinity and without a zero that has a sign.
types: {T: [float8_e4m3b11fnuz, float32], U: float8}
inputs: {x: 'T[M, N]', w: 'T[N, K]', ids: 'int64[M]'}
attributes: {to: {type: dtype, binds: U, default: float8_e4m3b11fnuz}}
outputs: {y: 'T[M, N]', s: 'T[M]', p: 'acc(T)[M, K]', g: 'T[M, N]', b: 'T[M, N]', c: 'U[M, N]'}
out_of_range: clamp
kernel: |
  y[m, n] = exp(x[m, n] - max[j](x[m, j]))
  s[m] = sum[n](x[m, n])
  p[m, k] = sum[n](x[m, n] * w[n, k])
  g[m, n] = x[ids[m], n] * 2
  b[m, n] = max[q:3](pad(x[m, n + q - 1], -inf))
  c[m, n] = cast(U, -x[m, n])
examples:
  - {x: [[1.0]], w: [[2.0]], ids: [0], y: [[1.0]], s: [1.0], p: [[2.0]], g: [[2.0]], b: [[1.0]], c: [[-1.0]]}
"""
CALL = """\
import ml_dtypes, numpy as np
from made.nuz.numpy import nuz
one, two = (np.array([[x]], ml_dtypes.float8_e4m3b11fnuz) for x in (1.0, 2.0))
y, s, p, g, b, c = nuz(one, two, np.array([0]))
print(g.tolist(), g.dtype, c.tolist())
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of opc with the row of the page, and what is made from the table made anew."""
    folder = tmp_path_factory.mktemp("copy")
    for part in ("opc", "runtime"):
        shutil.copytree(ROOT / part, folder / part)  # with what Python has compiled
    found = ROW.search((ROOT / "docs" / "adding_a_dtype.md").read_text())
    assert found is not None, "the page has the row"
    table = (folder / TABLE).read_text()
    assert "FLOAT8_E4M3B11FNUZ" not in table
    head, mark, tail = table.partition("\n    row: DTypeRow\n")
    assert mark
    (folder / TABLE).write_text(f"{head}{found[0]}{mark}{tail}")
    run(folder, "-m", "opc.emit.dtypes")
    return folder


def run(folder: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def test_one_file_was_edited(copy: Path) -> None:
    """The other one that differs is written by the command of the page."""
    files = (
        p.relative_to(ROOT) for part in ("opc", "runtime") for p in (ROOT / part).rglob("*.*") if "__pycache__" not in p.parts
    )
    changed = [str(p) for p in files if p.is_file() or p.suffix if (ROOT / p).is_file()]
    changed = [p for p in changed if (ROOT / p).read_bytes() != (copy / p).read_bytes()]
    assert sorted(changed) == [str(TABLE), "runtime/include/opc/core/dtypes.h"]


def test_an_op_of_it_is_proved(copy: Path) -> None:
    """The oracle, kernels, gradients, and what NumPy runs, which alone has such a dtype."""
    (copy / "nuz.yaml").write_text(SPEC)
    proved = ("numpy",)
    backends = [part for name in proved for part in ("-b", name)]
    told = json.loads(run(copy, "-m", "opc", "test", "nuz.yaml", "-o", "made", *backends, "--json", "--cover"))
    assert "float8_e4m3b11fnuz" in (copy / "made" / "nuz" / "shape.py").read_text()
    for cell in told["cells"]:
        assert (cell["op"], cell["failed"]) == ("nuz", 0)
    assert {cell["backend"] for cell in told["cells"] if cell["passed"] > 50} >= {*proved}
    assert run(copy, "-c", CALL) == "[[2.0]] float8_e4m3b11fnuz [[-1.0]]\n"


def test_frameworks_that_lack_it_say_so(copy: Path) -> None:
    spec = SPEC.replace("[float8_e4m3b11fnuz, float32]", "[float8_e4m3b11fnuz]")
    (copy / "alone.yaml").write_text(spec.replace("op: nuz", "op: alone"))
    told = run(copy, "-m", "opc", "backends", "alone.yaml")
    for title in ("ONNX", "PyTorch", "Paddle", "RKNN"):
        assert f"refuses alone: x of alone is float8_e4m3b11fnuz, which {title} has no tensors of" in told
