"""How the emulated SDK is built: once, whole, and with a message where something is missing."""

import os
import subprocess
from pathlib import Path

from tests.emulation.sdk import EMULATION, builder, sdk, shell

BUILD = EMULATION / "build.py"


def build(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A run of build.py."""
    environment = {**os.environ, **variables}
    return subprocess.run([builder()[0], str(BUILD), *arguments], env=environment, capture_output=True, text=True, check=False)


def test_a_second_build_does_nothing() -> None:
    before = {path: path.stat().st_mtime_ns for path in sdk().rglob("*")}
    done = build(str(sdk()))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert {path: path.stat().st_mtime_ns for path in sdk().rglob("*")} == before


def test_mistakes_are_said() -> None:
    assert build().stderr == "usage: python build.py DEST\n"
    assert build("--help").returncode == 2
    done = build("anywhere", CXX="no-such-compiler")
    assert done.returncode == 1
    assert done.stderr == "No C++ compiler named no-such-compiler: install g++, or say in CXX which to use.\n"


def test_enabled_shell(tmp_path: Path) -> None:
    said = shell(
        "command -v popc poprt; echo $POPLAR_SDK_ENABLED; g++ -shared -lpopart -lpoplar -lpopops -lpoputil -lpoplin -o a.so",
        tmp_path,
    )
    assert said.split() == [f"{sdk()}/bin/popc", f"{sdk()}/bin/poprt", str(sdk())]


def test_cmake_finds_it(tmp_path: Path) -> None:
    lines = (
        "cmake_minimum_required(VERSION 3.12)",
        "project(sample CXX)",
        "set(CMAKE_CXX_STANDARD 14)",
        "find_package(popart REQUIRED COMPONENTS popart-only)",
        "add_library(custom_op SHARED op.cpp)",
        "target_link_libraries(custom_op popart-only)",
    )
    (tmp_path / "op.cpp").write_text(
        "#include <popart/op.hpp>\n#include <popops/Expr.hpp>\nint rank(const popart::Op &op) { return op.inRank(0); }\n"
    )
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    shell("cmake -S . -B build && cmake --build build", tmp_path)
    assert (tmp_path / "build" / "libcustom_op.so").is_file()


def test_cmake_finds_no_more_than_the_sdk_has(tmp_path: Path) -> None:
    """The component that PopART's package has by default asks for two that no SDK brings; libraries have no package each."""
    lines = (
        "cmake_minimum_required(VERSION 3.12)",
        "project(sample NONE)",
        "set(CMAKE_DISABLE_FIND_PACKAGE_Protobuf TRUE)",
        "find_package(popart)",
        "find_package(popart COMPONENTS poplin)",
        "find_package(popops)",
        "find_package(poplibs REQUIRED)",
        'message(STATUS "popart: ${popart_FOUND}; popops: ${popops_FOUND}; poplibs: ${poplibs_FOUND}")',
    )
    (tmp_path / "CMakeLists.txt").write_text("\n".join(lines))
    said = " ".join(shell("cmake -S . -B build", tmp_path).split())
    assert "popart could not be found because dependency Protobuf could not be found" in said
    assert "Unsupported component: poplin" in said
    assert "popart: 0; popops: 0; poplibs: 1" in said
