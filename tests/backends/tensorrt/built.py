"""Builds libraries of plugins and hosts for tests: kernels for the CPU once an op, the rest for each version of TensorRT."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opc.backends.base import Compile, Link
from opc.backends.tensorrt.backend import TensorRTBackend, steps
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family
from opc.pipeline import load_family

ROOT = Path(__file__).parents[3]
INCLUDE = ROOT / "runtime" / "include"


def family_of(op: str) -> Family:
    return load_family(ROOT / "specs" / f"{op}.yaml")


def written(family: Family, folder: Path) -> Path:
    """Write the files of a package, and return its folder."""
    for path, text in {**kernel_files(family), **TensorRTBackend().emit(family)}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def build(family: Family, folder: Path, version: str, *, registry: bool = True) -> None:
    """Build the library and the host for a version; without a registry of its own, the host takes the process's."""
    for step in steps(family, version):
        match step:
            case Compile():
                (folder / step.object).parent.mkdir(parents=True, exist_ok=True)
                if (folder / step.object).exists():
                    continue
                source = step.source
                if source == "tensorrt/emulated.cpp" and not registry:
                    source = "tensorrt/attached.cpp"
                    (folder / source).write_text('#include "emulation/host.h"\n')
                flags = ("-Wall", "-Wextra", *step.flags, "-O0", f"-I{INCLUDE}", "-I.")
                command = ["g++", *flags, "-c", source, "-o", step.object]
            case Link():
                command = ["g++", "-shared", *step.objects, *step.flags, "-o", step.output]
            case _:
                raise AssertionError(f"no test runs {step}")
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr, done.stderr


def run_apart(program: str, *arguments: str | Path) -> str:
    """Run a Python program in a process of its own, for each has one registry, and return what it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout
