"""Where NVIDIA's compiler is, and whether there is a GPU: else a C++ compiler reads the same source, and the CPU runs it."""

from __future__ import annotations

import os
import shutil
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import opc
from opc.ir.op import Family

VARIABLE = "OPC_CUDA"
"""Environment variable: with `emulated` kernels are run on the CPU though there is a GPU, with `native` they are compiled for
GPUs though there is none."""

EMULATED, NATIVE = "emulated", "native"

EMULATED_LIBRARY = "build/cuda/libcublasLt_emulated.so"
"""What stands in for cuBLASLt where kernels run on the CPU, relative to the package."""


@cache
def nvcc() -> str | None:
    """Return the path of nvcc: of PATH, below CUDA_HOME, or of the wheels that `opc[cuda]` asks for; None where there is none."""
    homes = [os.environ.get("CUDA_HOME", ""), *map(str, _wheels())]
    found = (shutil.which("nvcc", path=str(Path(home) / "bin")) for home in homes if home)
    return shutil.which("nvcc") or next((path for path in found if path), None)


def _wheels() -> list[Path]:
    """Return the folders that NVIDIA's wheels keep a toolkit in, the newest first."""
    spec = find_spec("nvidia")
    places = () if spec is None else spec.submodule_search_locations or ()
    return sorted((f for place in places for f in Path(place).glob("cu[0-9]*")), key=lambda f: int(f.name[2:]), reverse=True)


def libraries(nvcc: str) -> tuple[str, ...]:
    """Return the option that says where a toolkit's libraries are: nvcc does not look where wheels have them."""
    folder = Path(nvcc).parent.parent / "lib"
    return (f"-L{folder}",) if (folder / "libcudart_static.a").exists() else ()


def cublaslt() -> Path | None:
    """Return the path of cuBLASLt where NVIDIA's wheels have it, which a process finds by itself where the loader or a toolkit
    has it, or a framework has loaded it."""
    found = (path for home in _wheels() for path in sorted((home / "lib").glob("libcublasLt.so.[0-9]*")))
    return next(found, None)


def has_gpu() -> bool:
    """Whether the driver has made a GPU's device."""
    return Path("/dev/nvidia0").exists() or any(Path("/dev").glob("nvidia[0-9]*"))


def is_emulated() -> bool:
    """Whether kernels are run on the CPU."""
    said = os.environ.get(VARIABLE)
    return said != NATIVE and (said == EMULATED or nvcc() is None or not has_gpu())


def is_for_others() -> bool:
    """Whether kernels are compiled for GPUs of other machines: they can't be run here."""
    return not is_emulated() and not has_gpu()


def include() -> Path:
    """Return the folder of the runtime's headers: in a checkout, or in an installed opc."""
    root = Path(opc.__file__).parent
    checkout = root.parent / "runtime" / "include"
    return checkout if checkout.is_dir() else root / "runtime" / "include"


def library_path(family: Family) -> str:
    """Return the path of a family's library, relative to the package."""
    return f"build/lib{family.name}_cuda.so"
