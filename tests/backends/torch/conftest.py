"""Families, and packages that are built once for all test runs, until they or opc change."""

from collections.abc import Callable
from pathlib import Path

import pytest

from opc.backends.torch.session import TorchSession
from opc.build.builder import build_specs
from opc.ir.op import Family
from opc.pipeline import compile_text, load_family
from tests.narrow import narrow

SPECS = Path(__file__).parents[3] / "specs"

PANTRY = """
op: pantry
domain: opc.torch_test
version: 1
doc: One of every kind of attribute, and what vmap can't put into a group.
types: {T: [bfloat16, float32, float64]}
inputs:
  x: T[..., D]
  w?: T[D]
attributes:
  scale: {type: float, default: 1.0, check: scale >= 0}
  shift: {type: 'int[2]', default: [0, 0]}
  weights: {type: 'float[]', default: [1.0, 2.0]}
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
"""

BARE = """
op: bare
domain: opc.torch_test
version: 1
doc: An op that is not differentiated.
types: {T: [float32, float64], U: [float32, float64]}
inputs: {x: 'T[...]'}
attributes: {to: {type: dtype, binds: U, default: float64}}
outputs: {y: 'U[...]'}
kernel: y = cast(U, x * x)
gradient: none
"""

RESIDUAL = """
op: residual
domain: opc.torch_test
version: 1
doc: A product, to which a tensor of its shape may be added.
types: {T: [float64]}
inputs: {x: 'T[...]', z: 'T[...]', 'b?': 'T[...]'}
outputs: {y: 'T[...]'}
kernel: y = x * z + (b if present(b) else 0)
"""

PEAK = """
op: peak
domain: opc.torch_test
version: 1
doc: The greatest elements, and where they stand.
types: {T: [float64]}
inputs: {x: 'T[..., D]'}
outputs: {y: 'T[...]', at: 'int64[...]'}
require: [D > 0]
kernel: |
  at[...] = argmax[d](x[..., d])
  y[...] = x[..., at[...]]
"""

COUNTED = """
op: counted
domain: opc.torch_test
version: 1
doc: A count before a sum of squares, and an example without elements.
types: {T: [float64]}
inputs: {x: 'T[N]'}
outputs: {n: 'int64[]', y: 'T[]'}
kernel: |
  n[] = sum[i](cast(int64, x[i] > 0))
  y[] = sum[i](x[i] ** 2)
examples: [{x: [], n: 0, y: 0}]
"""

CHOSEN = """
op: chosen
domain: opc.torch_test
version: 1
doc: Squares in a type that is chosen, by default one of integers.
types: {T: [int32, float64], U: [int64, float64]}
inputs: {x: 'T[N]'}
attributes: {to: {type: dtype, binds: U, default: int64}}
outputs: {y: 'U[N]'}
kernel: y[i] = cast(U, x[i] * x[i])
examples: [{x: [3, 2], y: [9, 4]}]
"""

PLACED = """
op: placed
domain: opc.torch_test
version: 1
doc: Elements at places that are given as floating numbers.
types: {T: [float64]}
inputs: {x: 'T[N]', at: 'T[M]'}
outputs: {y: 'T[M]'}
kernel: y[m] = x[cast(int64, at[m])]
examples: [{x: [1.5], at: [0.0, 0.0], y: [1.5, 1.5]}]
"""

MIX = """
op: mix
domain: opc.torch_test
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

SPREAD = """
op: spread
domain: opc.torch_test
version: 1
doc: The standard deviation of the numbers, which the first sample has near each other.
types: {T: [float64]}
inputs: {x: 'T[N]'}
outputs: {y: 'T[]', m: 'T[]'}
kernel: |
  m[] = mean[i](x[i])
  y[] = sqrt(sum[i]((x[i] - m[]) ** 2) / (N - 1))
examples: [{x: [1.0, 3.0], y: 1.4142135623730951, m: 2.0}]
"""

TEXTS = {
    "spread": SPREAD,
    "mix": MIX,
    "pantry": PANTRY,
    "bare": BARE,
    "residual": RESIDUAL,
    "peak": PEAK,
    "counted": COUNTED,
    "chosen": CHOSEN,
    "placed": PLACED,
}

NARROW = {"add": "float16, float64", "layer_norm": "bfloat16, float32, float64"}
"""Ops of the project that are called with some of their element types only."""

Loader = Callable[[str], Family]
Sessions = Callable[[str], TorchSession]


@pytest.fixture(scope="session")
def family() -> Loader:
    """Load a spec of the project, or of this file, by name."""
    return lambda name: compile_text(TEXTS[name], f"{name}.yaml") if name in TEXTS else load_family(SPECS / f"{name}.yaml")


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Sessions:
    """Build a spec for torch and load it."""
    shared = tmp_path_factory.getbasetemp().parent / "opc-torch"
    made: dict[str, TorchSession] = {}

    def load(name: str) -> TorchSession:
        if name not in made:
            path = narrow(name, shared, NARROW[name]) if name in NARROW else SPECS / f"{name}.yaml"
            if name in TEXTS:
                shared.mkdir(parents=True, exist_ok=True)
                path = shared / f"{name}.yaml"
                if not path.exists() or path.read_text() != TEXTS[name]:
                    path.write_text(TEXTS[name])
            (built,) = build_specs([path], shared, ["torch"])
            assert built.package is not None, [d.render() for d in built.diagnostics]
            assert built.ok, [d.render() for d in built.diagnostics]
            made[name] = TorchSession(load_family(path), built.package)
        return made[name]

    return load
