"""The whole C++ of packages for PopART and PopXL, with bodies and checks, compiles as C++14 without a warning."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from opc.backends import environments
from opc.backends.popart.backend import PopartBackend
from opc.backends.poplar.library import source_path
from opc.backends.popxl.backend import PopxlBackend
from opc.backends.popxl.library import module_name
from opc.build.toolchain import runtime_include
from opc.compiler import compile_spec
from opc.pipeline import load_family
from tests.amounts import MANY
from tests.emulation.sdk import sdk

pytestmark = pytest.mark.rotating("file", seconds=7)

SPECS = Path(__file__).parents[3] / "specs"
# Text and numbers, lists, dtypes, and an op in place whose library has codelets.
CHOSEN = ("mse_loss", "pad_reflect", "quantize_linear", "leaky_relu", "gather")

# Operands and attributes that are called like what generated code has beside them.
NAMES = """
op: tensor_view
domain: opc.test
version: 2
doc: Names that generated code has too.
types: {T: [float32, float16]}
inputs: {ctx: 'T[N]', 'tensors?': 'T[N]', builder: 'T[]', load: 'T[]'}
attributes:
  attributes: {type: 'int[2]', default: [1, 2], check: attributes > 0}
  wanted: {type: 'float[2]', default: [0.5, 2.0]}
  check: {type: bool, default: true}
  params: {type: str, values: [mean, sum], default: mean}
  settings: {type: 'bool[2]', default: [true, false]}
  given: {type: float, default: 2.0}
  class: float
  os: {type: int, default: 3}
  i: {type: 'bool[2]', default: [true, true]}
  number: {type: 'int[]', default: []}
  Params: {type: float, default: 0.5}
outputs: {made: 'T[N]', op: 'T[N]'}
kernel: |
  made[n] = ctx[n] * builder * Params + (tensors[n] if present(tensors) else wanted[0]) + load * given + os * class
  op[n] = ctx[n] * attributes[0] if check and settings[0] and i[0] and params == 'mean' else 0
"""


def test_packages_compile_without_a_warning(tmp_path: Path) -> None:
    """In `nox -s fuzz` those of all specs, whose bodies and codelets tests/emit/poplar/test_bodies.py has always."""
    specs = sorted(SPECS.glob("*.yaml")) if MANY else [SPECS / f"{name}.yaml" for name in CHOSEN]
    (tmp_path / "tensor_view.yaml").write_text(NAMES)
    included = []
    for spec in (*specs, tmp_path / "tensor_view.yaml"):
        if PopartBackend().requires(load_family(spec)):
            continue
        compiled = compile_spec(spec, [PopartBackend(), PopxlBackend()])
        family = compiled.family
        for path, text in compiled.package.files.items():
            if path.endswith((".cpp", ".hpp", ".h")):
                (tmp_path / family.name / path).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / family.name / path).write_text(text)
        included += [f"{family.name}/{source_path(family)}", f"{family.name}/popxl/{module_name(family)}.cpp"]
    (tmp_path / "all.cpp").write_text("".join(f'#include "{path}"\n' for path in included))
    pybind11 = environments.folder("popart", "pybind11")
    assert pybind11 is not None, "opc env create popart"
    around = (sdk() / "include", pybind11 / "include", Path(sysconfig.get_path("include")))
    call = [
        "g++",
        "-std=c++14",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fsyntax-only",
        "-DONNX_NAMESPACE=onnx",
        f"-I{runtime_include()}",
    ]
    call += [word for folder in around for word in ("-isystem", str(folder))]
    done = subprocess.run([*call, "all.cpp"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
