"""What libraries are built for is read off the platform that Python names; kernels, compilers and tags follow from it."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import pytest

from opc.backends.base import Compile
from opc.backends.kernel import target as targets
from opc.backends.kernel.backend import VARIANT, KernelBackend, instruction_sets, variants
from opc.backends.kernel.target import PLATFORM, Target, building_for, machine_named, target
from opc.backends.numpy import backend as numpy_backend
from opc.build import toolchain
from opc.build.wheels import make, tags
from opc.config import Config
from opc.diagnostics import SpecError
from opc.pipeline import load_family

SPECS = Path(__file__).parents[2] / "specs"
OWN = machine_named(platform.machine())
OTHER = "aarch64" if OWN == "x86_64" else "x86_64"


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("linux-aarch64", Target("aarch64", "linux")),
        ("linux-x86_64", Target("x86_64", "linux")),
        ("macosx-11.0-arm64", Target("aarch64", "macosx")),
        ("macosx-10.9-universal2", Target(OWN, "macosx")),
        ("win-amd64", Target("x86_64", "win")),
        ("win-arm64", Target("aarch64", "win")),
    ],
)
def test_a_platform_is_a_machine_and_a_system(monkeypatch: pytest.MonkeyPatch, named: str, found: Target) -> None:
    monkeypatch.setenv(PLATFORM, named)
    assert target() == found
    assert found.is_x86 == (found.machine == "x86_64")


def test_it_is_this_machine_unless_another_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PLATFORM, raising=False)
    assert target().is_here
    with building_for(None):
        assert target().is_here
    with building_for(OTHER):
        assert target() == Target(OTHER, "linux")
        assert not target().is_here
    assert PLATFORM not in os.environ
    with pytest.raises(SpecError, match="there is no target 'riscv64'"), building_for("riscv64"):
        pass


def test_only_x86_has_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIANT, raising=False)
    family = load_family(SPECS / "leaky_relu.yaml")
    with building_for("aarch64"):
        steps = [s for s in KernelBackend().build(family) if isinstance(s, Compile)]
        assert not [f for s in steps for f in s.flags if f.startswith("-march")]
        assert [*variants()] == ["baseline"]
        assert "-lmvec" not in KernelBackend().link_flags(family)
        assert toolchain.vector_math("Debian clang version 14.0.6") == ()
    with building_for("x86_64"):
        assert [*variants()] == ["baseline", "v3", "v4"]
    with building_for(OTHER):
        assert instruction_sets() == ("baseline",)


def compiler(place: Path, machine: str) -> str:
    """Write what compiles as this machine's c++ does, and says that its code is for another."""
    place.write_text(
        f'#!/bin/sh\n[ "$*" = -dumpmachine ] && echo {machine}-linux-gnu && exit\nexec {toolchain.shutil.which("c++")} "$@"\n'
    )
    place.chmod(0o755)
    return str(place)


def test_a_compiler_is_for_what_is_built(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("CXX", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)
    other = compiler(tmp_path / f"{OTHER}-linux-gnu-g++", OTHER)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert toolchain.find(Config()).command != (other,)
    with building_for(OTHER):
        assert toolchain.find(Config()).command == (other,)
    monkeypatch.setenv("CXX", other)
    with pytest.raises(SpecError, match=rf"of \$CXX makes code for {OTHER}, and not for {OWN}") as caught:
        toolchain.find(Config())
    assert f"opc package --target {OTHER}" in str(caught.value)
    monkeypatch.setenv("CXX", compiler(tmp_path / "own", OWN))
    with building_for(OTHER), pytest.raises(SpecError, match=rf"makes code for {OWN}, and not for {OTHER}"):
        toolchain.find(Config())
    monkeypatch.delenv("CXX")
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    with building_for(OTHER), pytest.raises(SpecError, match=f"no C[+][+] compiler for {OTHER} was found") as caught:
        toolchain.find(Config())
    assert "g++-aarch64-linux-gnu" in str(caught.value)


def test_flags_of_macos(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read, not run: there is no such system here."""
    monkeypatch.setenv(PLATFORM, "macosx-11.0-arm64")
    monkeypatch.setattr(targets.platform, "machine", lambda: "x86_64")
    assert toolchain._machine_flags(target()) == ("-arch", "arm64")
    assert toolchain._link_flags(target()) == ("-dynamiclib", "-undefined", "dynamic_lookup")
    assert tags.tag([]) == "py3-none-macosx_11_0_arm64"
    monkeypatch.setattr(targets.platform, "machine", lambda: "arm64")
    assert toolchain._machine_flags(target()) == ()


def test_tags_name_what_is_built_for() -> None:
    with building_for("aarch64"):
        # Of a library that asks for nothing: there is no older manylinux of that machine.
        assert tags.tag([]) == "py3-none-manylinux_2_17_aarch64"


def test_headers_of_another_machine_are_missed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Debian has a part of Python's headers for each machine; others' are the same for all."""
    include = tmp_path / "python3.11"
    include.mkdir()
    (include / "Python.h").write_text("")
    (include / "pyconfig.h").write_text("#define SIZEOF_LONG 8\n")
    monkeypatch.setattr(numpy_backend, "_python_include", lambda: include)
    family = load_family(SPECS / "leaky_relu.yaml")
    with building_for(OTHER):
        assert numpy_backend.NumpyBackend().build(family)
        (include / "pyconfig.h").write_text(f"#include <{OTHER}-linux-gnu/python3.11/pyconfig.h>\n")
        with pytest.raises(SpecError, match=f"Python's headers for {OTHER}") as caught:
            numpy_backend.NumpyBackend().build(family)
        assert "apt install libpython3.11-dev:" in str(caught.value)
        (tmp_path / f"{OTHER}-linux-gnu/python3.11").mkdir(parents=True)
        (tmp_path / f"{OTHER}-linux-gnu/python3.11/pyconfig.h").write_text("")
        assert numpy_backend.NumpyBackend().build(family)


def test_no_wheel_for_another_machine_is_linked_with_a_framework() -> None:
    family = load_family(SPECS / "leaky_relu.yaml")
    with building_for(OTHER):
        with pytest.raises(SpecError, match=f"no wheel for {OTHER} carries ops for the backend 'paddle'"):
            make.choose(["paddle"], [family])
        assert "paddle" not in [b.name for b in make.choose(None, [family])]
