"""Builds libraries of plugins and hosts for tests: kernels for the CPU once an op, the rest for each version of TensorRT."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from opc.backends.base import Compile, Link
from opc.backends.tensorrt.backend import TensorRTBackend, steps
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


ATTACHED = "libattached.so"
"""A host without a registry of its own, which takes the process's."""


def build(family: Family, folder: Path, version: str, *, registry: bool = True) -> Path:
    """Build the library and a host for a version, as far as they are not there, and return the path of the host."""
    host = folder / host_path(version)
    for step in steps(family, version):
        match step:
            case Compile():
                source, made = step.source, step.object
                if source == "tensorrt/emulated.cpp" and not registry:
                    source, made = "tensorrt/attached.cpp", made.replace("host.o", "attached.o")
                    (folder / source).write_text('#include "emulation/host.h"\n')
                (folder / made).parent.mkdir(parents=True, exist_ok=True)
                flags = ("-Wall", "-Wextra", *step.flags, "-O0", f"-I{INCLUDE}", "-I.")
                command = ["g++", *flags, "-c", source, "-o", made]
            case Link():
                made, objects = step.output, step.objects
                if made == host_path(version) and not registry:
                    host = host.with_name(ATTACHED)
                    made, objects = str(host), tuple(o.replace("host.o", "attached.o") for o in objects)
                command = ["g++", "-shared", *objects, *step.flags, "-o", made]
            case _:
                raise AssertionError(f"no test runs {step}")
        if (folder / made).exists():
            continue
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr, done.stderr
    return host


def run_apart(program: str, *arguments: str | Path) -> str:
    """Run a Python program in a process of its own, for each has one registry, and return what it prints."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout
