"""`opc package --sdist`: a C++ compiler alone makes the wheel of it, and a library that a program in C++ links."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from opc.backends.base import Compile, Link, Script, Tool
from opc.build import hooks
from opc.build.wheels.recipe import is_portable
from tests.packaging.conftest import Opc
from tests.packaging.environments import install, lend, make, run
from tests.packaging.scaled import LIGHT

PROJECT = """
[project]
name = "light-ops"
version = "2.1"
description = "An \\"op\\" of mine."
readme = "README.md"
license = "MIT"
license-files = ["LICENSE"]
authors = [{name = "A Person", email = "person@example.org"}]

[tool.opc.package]
backends = ["torch", "onnxruntime"]
"""
PROGRAM = """
#include <light_ops.h>

#include <cstdio>

int main() {
  float numbers[] = {1, -2}, results[2];
  int64_t shape[] = {2};
  DLTensor x = {numbers, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, nullptr, 0};
  DLTensor y = x;
  y.data = results;
  const DLTensor *inputs[] = {&x};
  DLTensor *outputs[] = {&y};
  const opc_scaled_attributes attributes = {3};
  const int32_t code = opc_scaled(inputs, outputs, &attributes, nullptr);
  std::printf("%d %g %g\\n", int(code), results[0], results[1]);
}
"""
LISTS = """
cmake_minimum_required(VERSION 3.26)
project(user LANGUAGES CXX)
find_package(light_ops 2 REQUIRED)
add_executable(user user.cpp)
target_link_libraries(user PRIVATE light_ops::light_ops)
"""


@pytest.fixture(scope="module")
def sdist(opc: Opc, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light")
    (folder / "specs").mkdir()
    (folder / "specs/scaled.yaml").write_text(LIGHT)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "README.md").write_text("# Ops\n")
    (folder / "LICENSE").write_text("Do what you like.\n")
    assert opc(folder, "package", "--sdist") == (0, "wrote dist/light_ops-2.1.tar.gz\n", "")
    # Nothing was compiled.
    assert not [*folder.rglob("*.o")]
    return folder / "dist/light_ops-2.1.tar.gz"


@pytest.fixture(scope="module")
def sources(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("sources")
    with tarfile.open(sdist) as held:
        held.extractall(folder)
    return folder / "light_ops-2.1"


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a process that finds CMake, ninja and a compiler, which does not optimise, as elsewhere in the tests."""
    folder = tmp_path_factory.mktemp("compilers")
    for name in ("gcc", "g++"):
        (folder / name).write_text(f'#!/bin/sh\nexec {shutil.which(name)} "$@" -O0\n')
        (folder / name).chmod(0o755)
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "PYTHONPATH": "", "CC": str(folder / "gcc"), "CXX": str(folder / "g++")}


@pytest.mark.rotating(seconds=8)
def test_the_wheel_without_opc(sdist: Path, tools: dict[str, str], tmp_path: Path) -> None:
    site = make(tmp_path / "fresh")
    lend(site, "numpy", "cffi", "pycparser", "scikit_build_core", "pathspec", "packaging")
    python = tmp_path / "fresh/bin/python"
    program = "import importlib.util; print(importlib.util.find_spec('opc'))"
    assert run(python, "-c", program, cwd=tmp_path, environment=tools) == "None\n"
    pip = (sys.executable, "-m", "pip", "--python", python)
    options = ("--no-build-isolation", "--no-index", "--no-deps", "-q", "--no-cache-dir")
    run(*pip, "wheel", sdist, *options, "-w", tmp_path, cwd=tmp_path, environment=tools)
    (wheel,) = tmp_path.glob("light_ops-2.1-cp311-abi3-*.whl")
    install(wheel, python)
    program = (
        "import ctypes, numpy as np, light_ops\n"
        "print(light_ops.scaled(np.ones(2, np.float32)), light_ops.__doc__.splitlines()[0])\n"
        "print(ctypes.CDLL(light_ops.onnxruntime_library()).RegisterCustomOps.__name__)\n"
    )
    assert run(python, "-c", program, cwd=tmp_path).splitlines() == ['[2. 2.] An "op" of mine.', "RegisterCustomOps"]
    # What torch has loaded is what its library takes: by the name alone, from wherever it lies.
    with (site / "light_ops/_ops/scaled/build/libscaled_torch.so").open("rb") as file:
        section = ELFFile(file).get_section_by_name(".dynamic")
        tags = [(tag.entry.d_tag, getattr(tag, "needed", "")) for tag in section.iter_tags()]
    assert ("DT_NEEDED", "libtorch_cpu.so") in tags
    assert not {name for name, _ in tags} & {"DT_RPATH", "DT_RUNPATH"}


@pytest.mark.rotating
def test_a_program_in_cpp_links_the_library(sources: Path, tools: dict[str, str], tmp_path: Path) -> None:
    # Flags of a user relax no arithmetic, nor that of the process that loads the library; their warnings are for other code.
    flags = "-ffast-math -Wall -Wextra -Wpedantic -Werror"
    options = ("-G", "Ninja", f"-DCMAKE_CXX_FLAGS={flags}", "-DCMAKE_SHARED_LINKER_FLAGS=-ffast-math")
    run("cmake", "-S", sources, "-B", "made", *options, cwd=tmp_path, environment=tools)
    run("cmake", "--build", "made", cwd=tmp_path, environment=tools)
    run("cmake", "--install", "made", "--prefix", tmp_path / "installed", cwd=tmp_path, environment=tools)
    with (tmp_path / "installed/lib/liblight_ops.so").open("rb") as file:
        assert "set_fast_math" not in {s.name for s in ELFFile(file).get_section_by_name(".symtab").iter_symbols()}
    # What is installed needs neither the sources nor where they were built.
    shutil.rmtree(tmp_path / "made")
    (tmp_path / "user").mkdir()
    (tmp_path / "user/user.cpp").write_text(PROGRAM)
    (tmp_path / "user/CMakeLists.txt").write_text(LISTS)
    prefix = f"-DCMAKE_PREFIX_PATH={tmp_path / 'installed'}"
    run("cmake", "-S", "user", "-B", "used", "-G", "Ninja", prefix, cwd=tmp_path, environment=tools)
    run("cmake", "--build", "used", cwd=tmp_path, environment=tools)
    assert run(tmp_path / "used/user", cwd=tmp_path) == "0 3 -6\n"


def test_metadata_are_the_projects(sources: Path) -> None:
    project = tomllib.loads((sources / "pyproject.toml").read_text())["project"]
    given = tomllib.loads(PROJECT)["project"]
    assert {key: project[key] for key in given} == given
    assert project["dependencies"] == ["numpy>=1.26", "cffi>=1.17"]
    assert project["optional-dependencies"].keys() == {"torch", "onnxruntime"}
    assert (sources / "LICENSE").read_text() == "Do what you like.\n"
    assert (sources / "PKG-INFO").read_text().startswith("Metadata-Version: 2.4\nName: light-ops\nVersion: 2.1\n")


def test_several_ops_in_another_folder(opc: Opc, sdist: Path, tools: dict[str, str], tmp_path: Path) -> None:
    project = sdist.parents[1]
    for name in ("specs", "pyproject.toml", "README.md", "LICENSE"):
        (shutil.copytree if (project / name).is_dir() else shutil.copy)(project / name, tmp_path / name)
    # What the folder holds for other backends is not taken.
    assert opc(tmp_path, "generate", "-b", "cuda", "-b", "rknn", "-b", "torch")[0] == 0
    assert opc(tmp_path, "package", "--sdist")[0] == 0
    assert (tmp_path / "dist" / sdist.name).read_bytes() == sdist.read_bytes()
    (tmp_path / "specs/other.yaml").write_text(LIGHT.replace("op: scaled", "op: other"))
    code, _, err = opc(tmp_path, "package", "--sdist", "-b", "torch", "-b", "onnxruntime", "-b", "paddle")
    assert code == 0
    assert "note: scaled: left out backend paddle\nnote: its library is compiled against Paddle" in err
    with tarfile.open(tmp_path / "dist" / sdist.name) as held:
        held.extractall(tmp_path)
    # Their targets and files have names of their own.
    options = ("-G", "Ninja", "-DSKBUILD=ON", f"-DPython_EXECUTABLE={sys.executable}")
    run("cmake", "-S", "light_ops-2.1", "-B", "made", *options, cwd=tmp_path, environment=tools)
    steps = run("ninja", "-n", "-C", "made", cwd=tmp_path, environment=tools)
    assert "Linking C shared module liblight_ops_onnxruntime.so" in steps
    assert "Linking CXX shared module other/libother_torch.so" in steps


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (Compile("a.cpp", "a.o", ("-O2", f"-I{sysconfig.get_path('include')}")), True),
        (Compile("a.cpp", "a.o", ("-isystem", "/opt/framework/include")), False),
        (Compile("/opt/a.cpp", "a.o"), False),
        (Link(("a.o",), "liba.so", ("-lm", "-Wl,-rpath,$ORIGIN")), True),
        (Link(("a.o",), "liba.so", ("/opt/framework/lib/libphi.so",)), False),
        (Link(("a.o",), "liba.so", ("-Wl,-rpath,/opt/framework/lib",)), False),
        (Link(("a.o",), "a", program=True), False),
        (Script("a.py", "a.c"), True),
        (Tool(("nvcc",), "a.cu", "a.o"), False),
    ],
)
def test_which_steps_another_machine_can_take(step: Compile | Link | Script | Tool, expected: bool) -> None:
    assert is_portable([step]) is expected


def test_the_build_backend_makes_it_too(sdist: Path, tmp_path: Path) -> None:
    with contextlib.chdir(sdist.parents[1]):
        assert hooks.build_sdist(str(tmp_path)) == sdist.name
    assert (tmp_path / sdist.name).read_bytes() == sdist.read_bytes()
