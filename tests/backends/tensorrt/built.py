"""Builds libraries of plugins and hosts for tests: kernels for the CPU once an op, the rest for each version of TensorRT."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opc.backends.base import Compile, Link
from opc.backends.tensorrt.backend import APART, TensorRTBackend, steps
from opc.backends.tensorrt.paths import host_path
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


def build(family: Family, folder: Path, version: str) -> Path:
    """Build the library and the host for a version, as far as they are not there, and return the path of the host.

    The library is compiled as build.sh does: its source has all of the plugins.
    """
    for step in steps(family, version):
        match step:
            case Compile():
                compile_one(step, folder / step.object, folder)
            case Link(output=output, objects=objects, shared=shared):
                made = [folder / o for o in objects]
                if output == host_path(version):
                    made = [(folder / output).with_suffix(".o")]
                    compile_one(shared[0], made[0], folder)
                call(["g++", "-shared", *map(str, made), *step.flags, "-o", output], folder / output, folder)
            case _:
                raise AssertionError(f"no test runs {step}")
    return folder / host_path(version)


def compile_one(step: Compile, made: Path, folder: Path) -> None:
    flags = [flag for flag in step.flags if flag != APART]
    call(["g++", "-Wall", "-Wextra", *flags, "-O0", f"-I{INCLUDE}", "-I.", "-c", step.source, "-o", str(made)], made, folder)


def call(command: list[str], made: Path, folder: Path) -> None:
    """Run a compiler, unless there is what it makes; a warning is an error."""
    if made.exists():
        return
    made.parent.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr


def run_apart(program: str, *arguments: str | Path) -> str:
    """Run a Python program in a process of its own, for each has one registry, and return what it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout
