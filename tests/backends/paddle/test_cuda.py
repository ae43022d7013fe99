"""The twin for GPUs: compiled by nvcc, and run where host memory plays the part of a GPU's."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import opc
from opc.backends import environments
from opc.backends.paddle.backend import LIBRARIES
from opc.build.toolchain import runtime_include

HERE = Path(__file__).parent


def run(command: list[str], folder: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(Path(opc.__file__).parents[1]), "OMP_WAIT_POLICY": "passive"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def compile_library(source: str, package: Path, made: Path, *flags: str) -> None:
    """Compile a source by nvcc, and link it with the kernels of the package and Paddle."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    paddle = environments.folder("paddle", "paddle")
    assert paddle is not None
    include = paddle / "include"
    command = [nvcc, "-std=c++17", "-DPADDLE_WITH_CUDA", "-DPADDLE_NO_PYTHON", "-diag-suppress", "20012", *flags]
    command += ["-I", str(runtime_include()), "-isystem", str(include), "-isystem", str(include / "third_party")]
    objects = [package / "build" / "paddle_threads.o", *sorted((package / "build" / "kernel").glob("*.o"))]
    libraries = [path for name in LIBRARIES if (path := paddle / "libs" / name).exists()]
    command += ["-Xcompiler", "-fPIC,-fvisibility=hidden", "-shared", "-o", str(made), source]
    run([*command, *map(str, [*objects, *libraries]), "-lmvec", "-lm"], package)


def test_compiles(package: Path, tmp_path: Path) -> None:
    """It is compiled and linked, not executed: Paddle's package for CPUs has no memory of GPUs."""
    made = tmp_path / "twin.so"
    compile_library("paddle/pantry_paddle.cu", package, made)
    assert "paddle::Tensor::stream() const" in run(["nm", "-DC", "--undefined-only", str(made)], tmp_path)


def test_emulated(package: Path, tmp_path: Path) -> None:
    """Every operand is copied to the host, and every result back; see emulated_gpu.cu."""
    copied = Path(shutil.copytree(package, tmp_path / "pantry"))
    library = copied / "build" / "libpantry_paddle.so"
    twin = f'-DTWIN=\\"{copied / "paddle" / "pantry_paddle.cu"}\\"'
    compile_library(str(HERE / "emulated_gpu.cu"), copied, library, twin)
    script = [str(HERE / "in_paddle.py"), str(copied), "copies_of_an_emulated_gpu"]
    run([str(environments.interpreter("paddle")), "-W", "ignore", *script], tmp_path)
