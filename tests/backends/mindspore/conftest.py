"""Packages built for MindSpore once for all tests of this folder, and the interpreter that has it."""

from pathlib import Path

import pytest

from opc.backends import environments
from opc.backends.mindspore.backend import MindSporeBackend, library_path
from opc.build.builder import build_families, build_specs
from opc.pipeline import compile_text
from tests.backends import gpu_library
from tests.narrow import narrow

SPECS = Path(__file__).parents[3] / "specs"

# One attribute of every kind, an axis, optional operands, several outputs, an integer input.
EVERYTHING = """
op: everything
doc: A test.
domain: opc.test
version: 1
types: {T: [float32, float64], U: [float32, int32]}
inputs: {x: "T[*A, N, *B]", "w?": "T[N]", ids: "int64[]", "b?": "T[N]"}
attributes:
  axis: {type: axis, dim: N, default: -1}
  scale: {type: float, default: 0.1, check: scale >= 0}
  shift: {type: int, default: 3}
  flip: {type: bool, default: false}
  mode: {type: str, values: ["plain", "double"], default: "plain"}
  sizes: {type: "int[2]", default: [1, 2]}
  weights: {type: "float[]", default: [1.0]}
  dtype: {type: dtype, binds: U, default: float32}
  factor: {type: float}
outputs: {y: "T[*A, N, *B]", s: "acc(T)[*A, *B]", c: "U[N]"}
kernel: |
  t[*A, n, *B] = (x[*A, n, *B] * (w[n] if present(w) else 1) + (b[n] if present(b) else 0)) * scale
  u[*A, n, *B] = (-t[*A, n, *B] if flip else t[*A, n, *B]) * factor + shift + cast(T, ids[] - ids[])
  y[*A, n, *B] = u[*A, n, *B] * 2 if mode == 'double' else u[*A, n, *B]
  s[*A, *B] = sum[n](x[*A, n, *B]) * sizes[0] + sizes[1]
  c[n] = cast(U, n)
"""


MIX = """
op: mix
domain: opc.test
version: 1
doc: Squares with weights of any type, and the elements in a type that is chosen.
types: {T: [float32, float64], U: [float64, int32], V: [int64, float32]}
inputs: {a: 'T[N]', b: 'U[N]'}
attributes: {to: {type: dtype, binds: V, default: int64}}
outputs: {y: 'T[N]', z: 'V[N]'}
kernel: |
  y[i] = a[i] * a[i] * cast(T, b[i])
  z[i] = cast(V, a[i])
"""


@pytest.fixture(scope="session")
def interpreter() -> Path:
    """Return the interpreter that has MindSpore."""
    found = MindSporeBackend().probe()
    if not found.available:
        pytest.skip(f"{found.reason}; install it: {found.install}")
    return environments.interpreter("mindspore")


@pytest.fixture(scope="session")
def packages(interpreter: Path, pytestconfig: pytest.Config) -> Path:
    """Return the folder of the built packages of the tests' ops."""
    out = Path(pytestconfig.cache.mkdir("opc-mindspore"))
    built = build_families([compile_text(EVERYTHING, "everything.yaml"), compile_text(MIX, "mix.yaml")], out, ["mindspore"])
    specs = [narrow(name, out / "specs", types) for name, types in OPS.items()]
    built = [*built, *build_specs([*specs, SPECS / "native" / "leaky_relu_aten.yaml"], out, ["mindspore"])]
    assert [d.render() for b in built for d in b.diagnostics] == []
    family, shelf = gpu_library.shelf(), out.absolute() / "shelf"
    objects = gpu_library.kernels(family, shelf)
    gpu_library.write({**MindSporeBackend().emit(family), "__init__.py": ""}, shelf)
    gpu_library.for_mindspore(shelf, objects, library_path(family), "-fvisibility=hidden", "-DIN_MINDSPORE")
    return out.absolute()


OPS = {"silu": "float32, float64", "mse_loss": "float32", "embedding": "float32"}
"""Ops of the project that are called, with the element types they are called with."""
