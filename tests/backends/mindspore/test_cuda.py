"""The library for GPUs: compiled by nvcc, and called as MindSpore calls one, where the CPU executes the kernels.

`on_an_emulated_gpu` in in_mindspore.py has MindSpore itself call it.
"""

import subprocess
from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.backends.mindspore.backend import MindSporeBackend
from opc.pipeline import load_family
from tests.backends import gpu_library

pytestmark = pytest.mark.rotating("file")

SPECS = Path(__file__).parents[3] / "specs"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Path]]:
    """Return a package of the op, and the objects of its kernels."""
    family, folder = gpu_library.shelf(), tmp_path_factory.mktemp("shelf")
    objects = gpu_library.kernels(family, folder)
    gpu_library.write(MindSporeBackend().emit(family), folder)
    return folder, objects


def test_compiles(package: tuple[Path, list[Path]]) -> None:
    """It is compiled, not executed: MindSpore's package for CPUs has no GPU kernels that could call it."""
    nvcc = toolkit.nvcc()
    if nvcc is None:
        pytest.skip("nvcc is not installed")
    folder, _ = package
    flags = (*gpu_library.MINDSPORE_FLAGS, "-arch=compute_75", "-Xcompiler", "-fPIC,-fvisibility=hidden")
    gpu_library.run([nvcc, *flags, "-c", "mindspore/shelf_mindspore.cu", "-o", "twin.o"], folder)
    symbols = subprocess.run(["nm", "-C", "twin.o"], cwd=folder, capture_output=True, text=True, check=True).stdout
    for symbol in ("T ShelfInit", "T ShelfInferShape", "T ShelfBackward", "U opc_shelf_cuda", "U opc_shelf_cuda_status"):
        assert f" {symbol}" in symbols, symbol
    assert "cudaMemcpy" not in symbols


def test_emulated(package: tuple[Path, list[Path]]) -> None:
    """Calls with memory that was asked for and without, of other sizes, without a stream, and refusals; see emulated_gpu.cpp."""
    folder, objects = package
    gpu_library.for_mindspore(folder, objects, "main")
    done = subprocess.run([folder / "main"], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_native_code_has_no_kernels_on_a_gpu() -> None:
    family = load_family(SPECS / "native" / "inverse.yaml")
    assert [path for path in MindSporeBackend().emit(family) if path.endswith(".cu")] == []
