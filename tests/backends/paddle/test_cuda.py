"""The library for GPUs: compiled by nvcc, and run on host memory in place of a GPU's, where the CPU executes the kernels."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import opc
from opc.backends import environments
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import CudaBackend
from opc.backends.cuda.frameworks import emulation
from opc.backends.kernel.backend import KernelBackend
from opc.backends.paddle.backend import LIBRARIES, PaddleBackend
from opc.build.toolchain import runtime_include
from opc.pipeline import load_family
from tests.backends import gpu_library

pytestmark = pytest.mark.rotating("file", seconds=12)

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
FLAGS = ("-std=c++17", "-O0", "-DPADDLE_NO_PYTHON", "-I", str(runtime_include()))


def headers() -> tuple[str, ...]:
    """Return the flags that say where Paddle's headers are."""
    paddle = environments.folder("paddle", "paddle")
    assert paddle is not None
    include = paddle / "include"
    return "-isystem", str(include), "-isystem", str(include / "third_party")


def test_compiles(tmp_path: Path) -> None:
    """It is compiled, not linked and not executed: Paddle's package for CPUs has no memory of GPUs."""
    nvcc = toolkit.nvcc()
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    family = gpu_library.shelf()
    for backend in (KernelBackend(), CudaBackend(), PaddleBackend()):
        gpu_library.write(backend.emit(family), tmp_path)
    flags = (*FLAGS, *headers(), "-DPADDLE_WITH_CUDA", "-arch=compute_75", "-diag-suppress", "20012", "-Xcompiler", "-fPIC")
    gpu_library.run([nvcc, *flags, "-c", "paddle/shelf_paddle.cu", "-o", "twin.o"], tmp_path)
    missing = subprocess.run(["nm", "-C", "-u", "twin.o"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    for symbol in ("paddle::Tensor::stream() const", "opc_shelf_cuda", "opc_shelf_backward_cuda", "opc_shelf_cuda_status"):
        assert f" {symbol}\n" in missing, symbol
    assert "cudaMemcpy" not in missing


def test_emulated(tmp_path: Path) -> None:
    """Calls, gradients and refusals; see runtime/emulation/cuda/paddle.h and on_emulated_gpu.py."""
    family = gpu_library.shelf()
    package = tmp_path / "shelf"
    objects = gpu_library.kernels(family, package)
    gpu_library.write({**PaddleBackend().emit(family), "__init__.py": "", "manifest.json": "{}"}, package)
    made = ("-fPIC", "-fvisibility=hidden")
    flags = (*FLAGS, *headers(), *made, "-x", "c++", "-include", emulation("paddle.h"))
    gpu_library.run(["g++", *flags, "-w", "-c", "paddle/shelf_paddle.cu", "-o", "twin.o"], package)
    gpu_library.run(["gcc", "-D_GNU_SOURCE", *FLAGS[3:], *made, "-c", "paddle/threads.c", "-o", "threads.o"], package)
    paddle = environments.folder("paddle", "paddle")
    assert paddle is not None
    libraries = [str(path) for name in LIBRARIES if (path := paddle / "libs" / name).exists()]
    command = ["g++", "-shared", "twin.o", "threads.o", *map(str, objects), *libraries, "-lmvec", "-lm", "-lpthread"]
    gpu_library.run([*command, "-o", "build/libshelf_paddle.so"], package)
    env = {**os.environ, "PYTHONPATH": str(Path(opc.__file__).parents[1]), "OMP_WAIT_POLICY": "passive"}
    tests = ("kernels_of_the_gpu_compute", "gradients", "refusals")
    script = [str(environments.interpreter("paddle")), "-W", "ignore", str(HERE / "on_emulated_gpu.py"), str(package), *tests]
    done = subprocess.run(script, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1]) == {}


def test_native_code_has_no_kernels_on_a_gpu() -> None:
    family = load_family(ROOT / "specs" / "native" / "inverse.yaml")
    assert [path for path in PaddleBackend().emit(family) if path.endswith(".cu")] == []
