"""Ops that are built once for all test runs, until they or opc change."""

from collections.abc import Callable
from pathlib import Path

import pytest

import opc
from opc.api import LoadedOp

SPECS = Path(__file__).parents[3] / "specs"

KITCHEN = """
op: kitchen
domain: opc.test
version: 1
doc: One of everything that a NumPy function has to pass on.
types: {T: [bfloat16, float32, float64]}
inputs:
  x: T[..., D]
  w?: T[D]
attributes:
  scale: {type: float, default: 1.0, check: scale >= 0}
  shift: {type: 'int[2]', default: [0, 0]}
  flip: {type: bool, default: false}
  mode: {type: str, values: [plain, square], default: plain}
outputs:
  y: T[..., D]
  total: acc(T)[...]
kernel: |
  v[..., d] = x[..., d] * scale + shift[0] - shift[1]
  s[..., d] = v[..., d] * v[..., d] if mode == 'square' else v[..., d]
  f[..., d] = -s[..., d] if flip else s[..., d]
  y[..., d] = f[..., d] * (w[d] if present(w) else 1)
  total[...] = sum[d](f[..., d])
gradient: none
"""

PLUS = """
op: plus
domain: opc.test
version: 1
doc: A sum of integers or of floating numbers, by NumPy's rules of broadcasting.
broadcast: true
types: {T: [int8, int32, float32]}
inputs:
  a: T[...]
  b: T[...]
outputs:
  y: T[...]
kernel: y = a + b
gradient: none
"""

Loader = Callable[[str], LoadedOp]


@pytest.fixture(scope="session")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Loader:
    """Load a spec of the project by name, or one of this file by its text."""
    shared = tmp_path_factory.getbasetemp().parent
    mine = tmp_path_factory.mktemp("specs")

    def load(spec: str) -> LoadedOp:
        path = SPECS / f"{spec}.yaml"
        if "\n" in spec:
            path = mine / f"{spec.split()[1]}.yaml"
            path.write_text(spec)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPC_CACHE_DIR", str(shared / "opc-cache"))
            return opc.load(path)

    return load


@pytest.fixture(scope="session")
def kitchen(loader: Loader) -> LoadedOp:
    return loader(KITCHEN)


@pytest.fixture(scope="session")
def plus(loader: Loader) -> LoadedOp:
    return loader(PLUS)


@pytest.fixture(scope="session")
def leaky_relu(loader: Loader) -> LoadedOp:
    return loader("leaky_relu")


@pytest.fixture(scope="session")
def dual_residual(loader: Loader) -> LoadedOp:
    return loader("dual_residual")
