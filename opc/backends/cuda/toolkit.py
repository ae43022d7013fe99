"""Where NVIDIA's compiler is, and whether there is a GPU: else a C++ compiler reads the same source, and the CPU runs it."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

import opc
from opc.ir.op import Family

VARIABLE = "OPC_CUDA"
"""Environment variable: with `emulated` kernels are run on the CPU though there is a GPU."""

EMULATED = "emulated"


@cache
def nvcc() -> str | None:
    """Return the path of nvcc, of PATH or below CUDA_HOME; None where there is none."""
    home = os.environ.get("CUDA_HOME", "")
    return shutil.which("nvcc") or (shutil.which("nvcc", path=str(Path(home) / "bin")) if home else None)


def has_gpu() -> bool:
    """Whether the driver has made a GPU's device."""
    return Path("/dev/nvidia0").exists() or any(Path("/dev").glob("nvidia[0-9]*"))


def is_emulated() -> bool:
    """Whether kernels are run on the CPU."""
    return os.environ.get(VARIABLE) == EMULATED or nvcc() is None or not has_gpu()


def include() -> Path:
    """Return the folder of the runtime's headers: in a checkout, or in an installed opc."""
    root = Path(opc.__file__).parent
    checkout = root.parent / "runtime" / "include"
    return checkout if checkout.is_dir() else root / "runtime" / "include"


def library_path(family: Family) -> str:
    """Return the path of a family's library, relative to the package."""
    return f"build/lib{family.name}_cuda.so"
