"""Names that C++, Python, frameworks and generated code keep for themselves, and every order of parameters, on every backend."""

from __future__ import annotations

import builtins
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.backends import registry
from opc.diagnostics import SpecError
from opc.emit.numpy.reference import function_name, numpy_module
from opc.names import RESERVED, in_words, mangled, spelled
from opc.pipeline import compile_text
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import compile_together

NAMES = """
op: names_probe
domain: probe
version: 1
doc: Names that C++, Python and generated code keep for themselves.
types: {T: floating}
inputs: {self: 'T[new, main]', lambda: 'T[main]', x_: 'T[main]', x: 'T[main]', 'class?': 'T[main]', def: 'int64[new]'}
attributes:
  default: {type: float, default: 0.5, check: default > 0}
  int: {type: int, default: 2}
  import: {type: bool, default: true}
  char: {type: str, values: [def, int], default: int}
  np: {type: float, default: 1.0}
  while: 'float[2]'
outputs: {std: 'T[new, main]', first: 'T[new]', double: 'int64[new]'}
require: [main > 0]
kernel: |
  this[new_index, m] = self[new_index, m] * lambda[m] + x_[m] * default + x[m] * np + while[0]
  float[n, m] = this[n, m] * int + (class[m] if present(class) else 1)
  std[n, m] = float[n, m] if char == 'int' and import else -float[n, m]
  first[n] = sum[auto](float[n, auto])
  double[n] = def[n] // int
examples:
  - self: [[1.0, 2.0]]
    lambda: [1.0, 1.0]
    x_: [2.0, 2.0]
    x: [3.0, 3.0]
    def: [7]
    while: [0.5, 0.0]
    std: [[12.0, 14.0]]
    first: [26.0]
    double: [3]
"""

MODULES = """
op: names_more
domain: probe
version: 1
doc: Names of modules, helpers and builtins.
types: {T: floating}
inputs: {np: 'T[extent, N]', torch: 'T[N]', shape: 'T[N]', 'len?': 'T[N]', ctx: 'T[N]', context: 'T[N]', functools: 'T[N]'}
attributes:
  math: {type: float, default: 0.5}
  list: {type: 'int[2]', default: [1, 2]}
  range: {type: int, default: 2}
  tuple: {type: bool, default: true}
  Any: {type: str, values: [a, b], default: a}
  attributes: {type: float, default: 1.0}
  name: {type: int, default: 1}
  call: {type: float, default: 0.0}
  isinstance: {type: int, default: 0}
  str: {type: float, default: 0.0}
  graph: {type: float, default: 0.0}
  node: {type: float, default: 0.0}
  batch_axes: {type: float, default: 0.0}
  output_mask: {type: float, default: 0.0}
outputs: {wanted: 'T[extent, N]', result: 'T[N]'}
kernel: |
  t[n] = shape[n] * math + batch_axes + output_mask
  wanted[i, n] = np[i, n] * torch[n] + t[n] + (len[n] if present(len) else 0) * list[0] + list[1] * range + ctx[n]
  u[n] = (functools[n] if tuple else context[n]) * attributes + name
  result[n] = u[n] + call + isinstance + str + graph + node + (0 if Any == 'a' else 1)
"""

ORDER = """
op: order_probe
domain: probe
version: 1
doc: Every kind of attribute, with and without a default, in mixed order; optional inputs before required ones.
types: {T: floating}
inputs: {'a?': 'T[N]', x: 'T[M, N]', 'b?': 'T[N]', w: 'T[N]', 'c?': 'T[N]'}
attributes:
  alpha: {type: float, default: 0.5}
  count: int
  flag: {type: bool, default: true}
  beta: float
  mode: {type: str, values: [plain, twice], default: plain}
  sizes: 'int[2]'
  other: {type: 'float[2]', default: [1.0, 2.0]}
  strict: bool
  kind: {type: str, values: [up, down]}
outputs: {y: 'T[M, N]', z: 'T[M, N]'}
kernel: |
  s[m, n] = x[m, n] * w[n] + (a[n] if present(a) else 0) * alpha + (b[n] if present(b) else beta) * sizes[0] + sizes[1]
  y[m, n] = (s[m, n] * 2 if mode == 'twice' else s[m, n]) * (other[0] if flag else other[1]) + count
  z[m, n] = (s[m, n] if kind == 'up' else -s[m, n]) + (c[n] if present(c) else 1) * (3 if strict else 4)
examples:
  - x: [[1.0, 2.0]]
    w: [3.0, 4.0]
    count: 2
    beta: 0.5
    sizes: [1, 2]
    strict: true
    kind: down
    y: [[7.5, 12.5]]
    z: [[-2.5, -7.5]]
"""

TYPES = """
op: order_types
domain: probe
version: 1
doc: An axis and a dtype behind attributes with a default.
types: {T: floating, U: [float32, float64]}
inputs: {'bias?': 'T[N]', x: 'T[*A, N, *B]'}
attributes:
  scale: {type: float, default: 2.0}
  axis: {type: axis, dim: N}
  to: {type: dtype, binds: U, default: float32}
  shift: float
outputs: {y: 'U[*A, N, *B]'}
kernel: |
  y[*A, n, *B] = cast(U, x[*A, n, *B] * scale + shift + (bias[n] if present(bias) else 0))
"""

TEXTS = {"names": NAMES, "modules": MODULES, "order": ORDER}


@pytest.mark.parametrize("text", [*TEXTS.values(), TYPES], ids=[*TEXTS, "types"])
@pytest.mark.parametrize("backend", registry.names())
def test_what_every_backend_writes_is_python(text: str, backend: str) -> None:
    family = compile_text(text, "probe.yaml")
    found = registry.load(backend)
    if found.requires(family):
        assert (text, backend) == (TYPES, "onnxruntime")  # it chooses an op's types by its inputs alone
        return
    for path, source in found.emit(family).items():
        if path.endswith(".py"):
            compile(source, path, "exec")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_kernels_references_and_functions_agree(text: str, tmp_path: Path) -> None:
    family = compile_text(text, "probe.yaml")
    op = family.forward
    rng = np.random.default_rng(1)
    sizes = {"new_": 3, "main_": 4, "extent": 3, "N": 4, "M": 3}
    inputs: dict[str, Any] = {}
    for o in op.inputs:
        shape = [sizes[str(d)] for d in o.dims]
        inputs[o.name] = rng.integers(0, 9, shape) if str(o.type) == "int64" else rng.integers(1, 5, shape).astype(np.float64)
    required = {"while_": [0.5, 1.0], "count": 3, "beta": 0.5, "sizes": [2, 3], "strict": False, "kind": "up"}
    given = {a.name: required[a.name] for a in op.attributes if a.required}
    want = evaluate(op, inputs, given)
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    answers = {
        "kernel": KernelLibrary(family, compile_together([family], tmp_path / "kernel", "-O0")).call(op, inputs, given),
        "numpy": dict(zip(want, module[function_name(op)](*inputs.values(), **given), strict=True)),
        "onnx": load(family, tmp_path).function_call(op.name, inputs, given, list(want)),
    }
    for backend, found in answers.items():
        for name in want:
            np.testing.assert_array_equal(found[name], want[name].value, f"{backend} {name}")


def test_the_spelling_is_one_to_one() -> None:
    names = [*RESERVED, *(f"{n}_" for n in RESERVED), "x", "x_", "d_new", "t_d_self", "news", *dir(builtins)]
    names = [n for n in dict.fromkeys(names) if not n.startswith("_")]
    assert len({mangled(n) for n in names}) == len(names)
    assert all(spelled(mangled(n)) == n for n in names)
    assert not any(mangled(n) in RESERVED for n in names)
    assert mangled("d_lambda") == "d_lambda_"
    assert in_words("'new_' and lambda_[i] and x_ and d_self_") == "'new' and lambda[i] and x_ and d_self"


def test_messages_have_the_names_of_the_spec() -> None:
    with pytest.raises(SpecError) as refused:
        compile_text(NAMES.replace("lambda[m] +", "lambda[m + 1] +"), "probe.yaml")
    (found,) = refused.value.diagnostics
    assert "outside 'lambda'" in found.message
    assert "'main'" in found.message or "size main" in found.message
    assert found.span.source is not None
    line = found.span.source.line(found.span.line)
    assert line[found.span.column - 1 :].startswith("lambda[m + 1]")
