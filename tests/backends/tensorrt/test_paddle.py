"""Paddle's other way to an op in TensorRT: what its own plugin asks an operator, answered by a library compiled for it.

The wheels of Paddle lack the two functions that take it, so the test has them.
"""

from __future__ import annotations

import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest

from opc.backends.paddle import tensorrt
from opc.backends.paddle.library import library_source
from opc.backends.tensorrt.backend import declarations
from opc.emit.kernel.files import kernel_files
from opc.pipeline import load_family
from tests.narrow import narrow

from .built import INCLUDE, family_of

PROGRAM = """
#include "paddle/avg_pool2d_paddle.cpp"

#include <cstdio>

#include "emulation/sizes.h"

static paddle::TrtGetOutputDimsFunc asked = nullptr;
static std::vector<std::string> &told() {
  static std::vector<std::string> config;
  return config;
}

namespace paddle {
OpMetaInfoBuilder &OpMetaInfoBuilder::SetTrtInferShapeFn(TrtGetOutputDimsFunc function) {
  asked = function;
  return *this;
}
OpMetaInfoBuilder &OpMetaInfoBuilder::SetTrtSupportsFormatConfig(std::vector<std::string> &&config) {
  told() = config;
  return *this;
}
}  // namespace paddle

static void ask(int32_t inputs, std::vector<int64_t> sizes, const std::vector<paddle::any> &values) {
  emulation::Builder builder;
  nvinfer1::DimsExprs in{static_cast<int32_t>(sizes.size()), {}};
  for (size_t i = 0; i < sizes.size(); ++i) in.d[i] = builder.unknown(sizes[i]);
  const nvinfer1::DimsExprs made = asked({0, inputs}, &in, builder, values);
  printf("%d:", static_cast<int>(made.nbDims));
  for (int32_t i = 0; i < made.nbDims; ++i) {
    printf(" %d", static_cast<int>(static_cast<const emulation::Expr *>(made.d[i])->value));
  }
  printf("\\n");
  fflush(stdout);
}

int main() {
  for (const std::string &text : told()) printf("%s\\n", text.c_str());
  using List = std::vector<int64_t>;
  const std::vector<paddle::any> values = {List{3, 3}, List{2, 2}, List{1, 1}, List{0, 0}, true, false};
  ask(1, {2, 3, 9, 10}, values);
  ask(1, {0, 1, 8, 8}, values);
  ask(1, {2, 3, 9}, values);
  ask(2, {2, 3, 9, 10}, values);
  ask(1, {2, 3, 9, 10}, {});
}
"""


@pytest.mark.rotating
def test_paddle_is_told_sizes_and_formats(tmp_path: Path) -> None:
    found = find_spec("paddle")
    assert found is not None
    (folder,) = map(Path, found.submodule_search_locations or ())
    family = load_family(narrow("avg_pool2d", tmp_path, "float32, float16"))
    files = {**kernel_files(family), "paddle/avg_pool2d_paddle.cpp": library_source(family), "asked.cpp": PROGRAM}
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    places = [f"-I{INCLUDE}", "-I.", *declarations("10")]
    paddle = [flag for path in (folder / "include", folder / "include" / "third_party") for flag in ("-isystem", str(path))]
    flags = ["-std=c++17", "-O0", "-w", "-DPADDLE_NO_PYTHON", "-DPADDLE_WITH_TENSORRT"]
    run(["g++", *flags, *places, *paddle, "-c", "asked.cpp", "-o", "asked.o"], tmp_path)
    # Kernels are looked at by none of this.
    undefined = run(["nm", "--undefined-only", "asked.o"], tmp_path).split()
    kernels = [name for name in undefined if name.startswith("opc_")]
    (tmp_path / "kernels.c").write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in kernels))
    shared = (folder / "libs" / f"lib{name}.so" for name in ("phi_core", "phi", "common"))
    libraries = [str(library) for library in shared if library.exists()]
    run(["gcc", "-c", "kernels.c"], tmp_path)
    run(["g++", "asked.o", "kernels.o", *libraries, f"-Wl,-rpath,{folder / 'libs'}", "-o", "asked"], tmp_path)
    done = subprocess.run([tmp_path / "asked"], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "float32:LINEAR+float32:LINEAR",
        "float16:LINEAR+float16:LINEAR",
        "4: 2 3 5 5",
        "4: 0 1 4 4",
        "-1:",
        "-1:",
        "-1:",
    ]
    refused = ("x must have 4 axes, but has 3", "avg_pool2d has 1 inputs, but 2 are given", "kernel_size is missing")
    assert [text for text in refused if text not in done.stderr] == []


def run(command: list[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_formats_are_those_of_paddles_plugin() -> None:
    assert tensorrt.formats(family_of("gather").forward) == (
        "float16:LINEAR+int32:LINEAR+float16:LINEAR",
        "float32:LINEAR+int32:LINEAR+float32:LINEAR",
    )
    for op in ("argmax", "embedding", "one_hot", "quantize_linear"):
        assert tensorrt.formats(family_of(op).forward) == (), op
