"""Names that C++, Python, frameworks and generated code keep for themselves, and every order of parameters, on every backend."""

from __future__ import annotations

import builtins
import inspect
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import opc
from opc.analysis.elaborate.scope import WORDS
from opc.analysis.shapes.inference import ShapeError, infer
from opc.backends import registry
from opc.backends.cuda.backend import EMULATED_FLAGS
from opc.backends.onnx.emit import files as onnx_files
from opc.diagnostics import SpecError
from opc.emit.cuda.files import cuda_files
from opc.emit.kernel.files import kernel_files
from opc.emit.numpy.reference import HELPERS, function_name, numpy_module
from opc.emit.shapes.python import emit as shape_source
from opc.ir.functions import FUNCTIONS
from opc.names import MEMBERS, PARAMETERS, RESERVED, in_words, mangled, spelled
from opc.pipeline import compile_text
from opc.spec.text import name_problem
from opc.testing.oracle.evaluation import evaluate
from tests.backends.onnx.test_checks import load
from tests.emit.kernel_library import KernelLibrary
from tests.fuzz.kernels import INCLUDE, compile_together

NAMES = """
op: names_probe
domain: probe
version: 1
doc: Names that C++, Python and generated code keep for themselves.
types: {T: [float32, float64]}
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
types: {T: [float32, float64]}
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

VARIABLES = """
op: names_loops
domain: probe
version: 1
doc: Operands called like variables of loops, over rows of several axes and of one that several indices run along.
types: {T: [float32, float64]}
inputs: {i: 'T[M, N]', k: 'T[N]', row: 'T[N]', j: 'int64[N]', described: 'T[N]', begin: 'T[M, N]'}
attributes: {n: {type: float, default: 0.5}, M_PI: {type: float, default: 2.0}, whole: {type: float, default: 3.0}}
outputs: {y: 'T[M, N]', z: 'T[]', EPERM: 'int64[]', stdin: 'T[M, N]', nest: 'T[M]'}
kernel: |
  y[a, b] = i[a, b] * k[b] + row[b] * n + described[b] * whole
  stdin[a, b] = i[a, b] * M_PI
  z[] = max[a, b](i[a, b]) + max[c](k[c] * row[c]) if M * N > 0 else 0
  EPERM[] = max[c](j[c]) - min[d](j[d]) if N > 0 else 0
  nest[a] = sum[end:a](begin[end, 0] * begin[a, N - 1]) if N > 0 else 0
"""
"""Each name is one that a function of loops, or a header of C, has too."""

ORDER = """
op: order_probe
domain: probe
version: 1
doc: Every kind of attribute, with and without a default, in mixed order; optional inputs before required ones.
types: {T: [float32, float64]}
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
types: {T: [float32, float64], U: [float32, float64]}
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


BOTH = ("run", "take")
"""Members that both of the ops below have."""
HALVES = tuple((*BOTH, *(name for name in sorted(MEMBERS - {*BOTH})[part::2])) for part in range(2))
"""The names that generated functions and classes keep for members: an operator of torch has at most 64 arguments."""


def members(kept: Sequence[str]) -> str:
    """An op whose attributes have these names, and whose operands those kept for parameters, and some like them."""
    attributes = "\n".join(f"  {name}: {{type: float, default: {k}.0}}" for k, name in enumerate(kept))
    rest = sum(range(len(kept))) - kept.index("take")
    return f"""
op: members_probe
domain: probe
version: 1
doc: Names of parameters and members.
types: {{T: [float32, float64]}}
inputs: {{out: 'T[N]', input_: 'T[N]', 'only?': 'T[N]'}}
attributes:
{attributes}
  take_: {{type: float, default: 0.5, check: take_ >= 0 and take >= 0}}
outputs: {{only_: 'T[N]', out_: 'T[N]'}}
kernel: |
  first_[n] = out[n] * input_[n] + {" + ".join(kept)}
  only_[n] = first_[n] + take_ + (only[n] if present(only) else 0)
  out_[n] = first_[n] - out[n]
gradient:
  body: |
    d_out[n] = input_[n] * (d_only_[n] + d_out_[n]) - d_out_[n]
    d_input_[n] = out[n] * (d_only_[n] + d_out_[n])
    d_only[n] = d_only_[n]
examples:
  - {{out: [1.0], input_: [2.0], take: 0.0, take_: 1.0, only: [3.0], out_: [{1 + rest}.0]}}
"""


TEXTS = {
    "names": NAMES,
    "modules": MODULES,
    "order": ORDER,
    "members": members(HALVES[0]),
    "more": members(HALVES[1]),
    "variables": VARIABLES,
}


@pytest.mark.rotating
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


@pytest.mark.rotating
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


def test_kernels_for_a_gpu_compile(tmp_path: Path) -> None:
    family = compile_text(VARIABLES.replace("[float32, float64]", "[float32]"), "probe.yaml")
    texts = {**kernel_files(family), **cuda_files(family)}
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (source,) = (path for path in texts if path == f"kernel/{family.name}.cu")
    command = ["g++", *EMULATED_FLAGS, "-fsyntax-only", f"-I{INCLUDE}", f"-I{tmp_path}", str(tmp_path / source)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr[:2000]


EXTREMES = """
op: extremes_probe
domain: probe
version: 1
doc: Attributes called like functions of Python that sizes and loops are written with.
types: {T: [float32]}
inputs: {x: 'T[N]', map: 'T[*A, *B]'}
attributes:
  min: {type: int, check: min > 0}
  max: {type: int, default: 3, check: max > 0}
  reversed: {type: axis, dim: S, default: 0}
shape: {K: 'minimum(N, min)', S: 2}
require: [K > 0]
outputs: {y: 'T[K]', z: 'T[N]', w: 'T[*A, S, *B]', h: 'T[N]'}
kernel: |
  y[k] = x[k] + k // max
  z[n] = sum[q:K](x[q] if q % max <= n else 0)
  w[*A, s, *B] = map[*A, *B] * s
  h[n] = x[n] + (h[n + 1] * 0.5 if n < N - 1 else 0)
"""


@pytest.mark.parametrize("given", [{"min": 3}, {"min": 9, "max": 2, "reversed": 1}])
def test_attributes_called_like_functions_of_python(given: dict[str, Any], tmp_path: Path) -> None:
    family = compile_text(EXTREMES, "probe.yaml")
    inputs = {"x": np.arange(5, dtype=np.float32), "map": np.float32([[1.0, 2.0]])}
    want = evaluate(family.forward, inputs, given)
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)
    found = dict(zip(want, module[function_name(family.forward)](*inputs.values(), **given), strict=True))
    onnx = load(family, tmp_path).function_call(family.forward.name, inputs, given, list(want))
    for name, value in want.items():
        np.testing.assert_array_equal(found[name], value.value, name)
        np.testing.assert_array_equal(onnx[name], value.value, f"onnx {name}")


def test_the_spelling_is_one_to_one() -> None:
    kept = [*RESERVED, *PARAMETERS, *MEMBERS]
    names = [*kept, *(f"{n}_" for n in kept), "x", "x_", "d_new", "t_d_self", "d_out", "news", *dir(builtins)]
    names = [n for n in dict.fromkeys(names) if not n.startswith("_")]
    for taken in ((), PARAMETERS, PARAMETERS | MEMBERS, ("first", "only")):
        assert len({mangled(n, taken) for n in names}) == len(names)
        assert all(spelled(mangled(n, taken)) == n for n in names)
        assert not any(mangled(n, taken) in (*RESERVED, *taken) for n in names)
    assert mangled("out") == "out"
    assert mangled("d_out", ("out",)) == "d_out_"
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


def test_generated_names_are_known_to_the_rule() -> None:
    """Of ONNX's class of ops and that of the package, and of the helpers of NumPy references: nothing new stands there unseen."""
    from onnx.reference.op_run import OpRun

    module = onnx_files(compile_text(ORDER, "probe.yaml"))["onnx/evaluator.py"]
    found = {
        *dir(OpRun),
        *re.findall(r"self\.(\w+) =", inspect.getsource(OpRun)),
        *re.findall(r"^    (\w+): Class", module, re.M),
    }
    kept = {f"{name}_" for name in MEMBERS} | MEMBERS | RESERVED
    assert {name for name in found if not name.startswith("_")} <= kept
    assert {name for name in HELPERS if not name.startswith("_")} <= kept | FUNCTIONS.keys() | WORDS


HEADERS = "cerrno cinttypes climits cmath csignal cstdio cstdlib ctime fcntl.h sched.h sys/mman.h sys/stat.h sys/wait.h unistd.h"


def test_macros_of_headers_are_known_to_the_rule() -> None:
    """No name that a spec may have is a macro of the headers that kernels and bindings of all backends see."""
    source = "".join(f"#include <{name}>\n" for name in HEADERS.split())
    dialect = ("-std=gnu++17", "-D_GNU_SOURCE", "-dM", "-E", "-x", "c++", "-")
    told = subprocess.run(["g++", *dialect], input=source, capture_output=True, text=True, check=True).stdout
    macros = set(re.findall(r"^#define ([A-Za-z]\w*)(?: |$)", told, re.M))
    assert len(macros) > 500
    own = re.compile(r"(CO|STDC|SYS|USE)_\w+")  # of compilers and of the headers among themselves
    assert sorted(n for n in macros - RESERVED if not own.fullmatch(n) and name_problem(n) is None) == []


def test_out_and_only_are_parameters_and_names_of_a_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "probe.yaml").write_text(members(HALVES[0]))
    op = opc.load(tmp_path / "probe.yaml")
    x, w = np.float32([1.0, 2.0]), np.float32([3.0, 4.0])
    total = float(sum(range(len(HALVES[0]))))
    memory = np.empty(2, np.float32), np.empty(2, np.float32)
    first, second = op(out_=x, input__=w, only_=x, run_=0.0, out=memory)
    rest = total - HALVES[0].index("run")
    np.testing.assert_array_equal(first, x * w + rest + 0.5 + x)
    np.testing.assert_array_equal(second, x * w + rest - x)
    assert first is memory[0]
    import torch

    t, v = torch.tensor(x, requires_grad=True), torch.tensor(w)
    found = op(t, v, run_=0.0)
    found[1].sum().backward()
    assert t.grad.tolist() == [2.0, 3.0]
    np.testing.assert_array_equal(found[1].detach().numpy(), second)


def test_messages_of_calls_have_the_names_of_the_spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "probe.yaml").write_text(NAMES)
    op = opc.load(tmp_path / "probe.yaml")
    x, w, d = np.ones((2, 3), np.float32), np.ones(3, np.float32), np.ones(2, np.int64)
    family = compile_text(NAMES, "probe.yaml")
    shape: dict[str, Any] = {}
    exec(shape_source(family), shape)
    for given, wrong in (
        ({"default_": -1.0}, "default = -1 violates its check: default > 0"),
        ({"char_": "long"}, "char is one of def, int, got 'long'"),
        ({"while_": [1.0]}, "while has 2 elements, got [1.0]"),
        ({"int_": 1.5}, "int must be int, got 1.5"),
        ({"lambda_": np.ones(4, np.float32)}, "main"),
        ({"self_": np.ones((2, 3), np.int32)}, "self has dtype int32, but T is one of float32, float64"),
        ({"class_": np.ones(4, np.float32)}, "class"),
    ):
        arguments = {"self_": x, "lambda_": w, "x_": w, "x": w, "class_": None, "def_": d, "while_": [0.5, 0.0], **given}
        with pytest.raises((TypeError, ValueError)) as error:
            op(**arguments)
        assert wrong in str(error.value)
        assert not re.search(r"[a-z]_\b", str(error.value)), error.value
        arrays = {n: arguments.get(n) for n in ("self_", "lambda_", "x_", "x", "class_", "def_")}
        if "got" not in wrong and "dtype" not in wrong:
            shapes = [None if a is None else a.shape for a in arrays.values()]
            attributes = {n: v for n, v in arguments.items() if n not in arrays}
            with pytest.raises(shape["ShapeError"]) as told:
                shape["infer_shapes_names_probe"](*shapes, **attributes)
            with pytest.raises(ShapeError) as inferred:
                infer(family.forward, dict(zip(arrays, shapes)), attributes)
            assert str(told.value) == str(inferred.value)
            assert wrong in str(told.value)
