"""A package's program in C++ for Paddle Inference, built and run as its files say, against the library in Paddle's wheel."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.backends.paddle.inference_program import inference_files
from opc.build.builder import build_families
from opc.emit.cuda.files import cuda_files
from opc.pipeline import compile_text
from tests.narrow import only

ROOT = Path(__file__).parents[3]

SPECS = {
    "custom_relu": """
op: custom_relu
domain: opc.paddle_test
version: 1
doc: x where it is above 0.
types: {T: [float32, float64]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = x if x > 0 else 0
examples:
  - {x: [[-1.5, 0.25], [3.0, -0.0]], y: [[0.0, 0.25], [3.0, 0.0]]}
""",
    "picked": """
op: picked
domain: opc.paddle_test
version: 1
doc: Rows that are picked, where a mask says so; which were picked.
types: {T: [float32]}
inputs: {x: 'T[N, D]', rows: 'int64[M]', mask: 'bool[M]', 'scale?': 'T[D]'}
attributes: {other: {type: float, default: 0.0}}
outputs: {y: 'T[M, D]', taken: 'bool[M]'}
kernel: |
  y[m, d] = x[rows[m], d] * (scale[d] if present(scale) else 1) if mask[m] else other
  taken[m] = mask[m]
gradient: none
examples:
  - {x: [[1.0, .inf], [3.0, 4.0]], rows: [1, 0, 0], mask: [true, true, false], other: -2.0,
     y: [[3.0, 4.0], [1.0, .inf], [-2.0, -2.0]], taken: [true, true, false]}
""",
}
"""As Paddle's own example has it, and with operands of other types, one of them absent."""

pytestmark = [
    pytest.mark.rotating(seconds=12),
    pytest.mark.skipif(find_spec("paddle") is None, reason="Paddle is not installed"),
]


def built(op: str, folder: Path, **settings: str) -> Path:
    """Return the folder of the program of an op, built by its script."""
    family = only(compile_text(SPECS[op], f"{op}.yaml"))
    build_families([family], folder, ["paddle_inference"])
    for path, text in cuda_files(family).items():
        (folder / op / path).write_text(text)
    script = folder / op / "paddle_inference" / "compile.sh"
    done = subprocess.run(["sh", script], env=environment(**settings), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return script.parent


def environment(**settings: str) -> dict[str, str]:
    own = {"PYTHON": sys.executable, "OPC_RUNTIME_INCLUDE": str(ROOT / "runtime" / "include"), "PYTHONPATH": str(ROOT)}
    return {**os.environ, **own, **settings}


def ran(program: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", program / "run.sh"], env=environment(), capture_output=True, text=True, check=False)


@pytest.mark.parametrize("op", SPECS)
def test_the_program_finds_what_the_example_says(op: str, tmp_path: Path) -> None:
    program = built(op, tmp_path)
    done = ran(program)
    assert done.returncode == 0, done.stdout + done.stderr
    said = {"custom_relu": "y: 4 elements are right\n", "picked": "y: 6 elements are right\ntaken: 3 elements are right\n"}
    assert done.stdout == said[op]
    if op == "custom_relu":
        # Another number in its place is told.
        source = program / "custom_relu_test.cc"
        assert "{0.0, 0.25, 3.0, 0.0}" in source.read_text()
        source.write_text(source.read_text().replace("{0.0, 0.25, 3.0, 0.0}", "{0.0, 0.25, 3.5, 0.0}"))
        subprocess.run(["cmake", "--build", program / "build"], check=True, capture_output=True)
        done = ran(program)
        assert (done.returncode, done.stdout) == (1, "y[2] is 3, but must be 3.5\n")


@pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")
def test_operators_for_gpus_are_linked_into_it(tmp_path: Path) -> None:
    """Nvcc compiles them; with tensors of the host the program calls the CPU's kernels, as on a machine with a GPU."""
    program = built("custom_relu", tmp_path, WITH_GPU="ON", OPC_CUDA_ARCH="sm_90")
    library = program / "build" / "operators" / "libcustom_relu_paddle.so"
    assert b"custom_relu_cuda" in library.read_bytes()
    done = ran(program)
    assert done.returncode == 0, done.stdout + done.stderr


def test_examples_that_cpp_has_no_types_for_have_no_program() -> None:
    text = SPECS["custom_relu"].replace("[float32, float64]", "[float16]")
    assert inference_files(compile_text(text, "custom_relu.yaml")) == {}
