"""Headers compiled ahead: for many packages or for an environment, of GCC, and objects as without.

Glue is not optimised for this machine alone.
"""

from __future__ import annotations

import ctypes
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from opc.backends.base import BuildStep, Compile, Link
from opc.backends.kernel.backend import VARIANT
from opc.build import builder, headers, ninja
from opc.ir.op import Family
from tests.build.fakes import HEADER, FakeBackend, call, make_family

NAMES = tuple(f"op{i}" for i in range(headers.LEAST))


@pytest.fixture
def glue(fake: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """A backend whose source begins with a header of the runtime."""
    fake.files = {"fake/more.cpp": f'{HEADER}#include "opc/core/tensor.h"\nint more(DLTensor *x) {{ return int(x->ndim); }}\n'}

    def build(self: FakeBackend, family: Family) -> tuple[BuildStep, ...]:
        compiled = Compile("fake/more.cpp", "build/more.o", ("-O2",), glue=True, header="opc/core/tensor.h")
        return (compiled, Link((compiled.object, "build/answer.o"), "build/libfake.so"))

    monkeypatch.setattr(FakeBackend, "build", build)
    monkeypatch.delenv(VARIANT, raising=False)
    return fake


def build(out: Path, *names: str) -> list[str]:
    made: list[str] = []
    built = builder.build_families(
        [make_family(name) for name in names], out, progress=lambda done, total, file: made.append(file)
    )
    assert all(b.ok for b in built), [b.diagnostics for b in built]
    return made


def ahead(made: list[str]) -> list[str]:
    return [re.sub(r"/\w{16}/", "/", file) for file in made if file.endswith(".gch")]


def test_one_is_compiled_ahead_for_many_packages_and_no_object_differs(glue: FakeBackend, tmp_path: Path) -> None:
    alone, many = tmp_path / "alone", tmp_path / "many"
    assert ahead(build(alone, NAMES[0])) == []
    assert ahead(build(many, *NAMES)) == [".opc/headers/opc/core/tensor.h.gch"]
    assert (many / NAMES[0] / "build/more.o").read_bytes() == (alone / NAMES[0] / "build/more.o").read_bytes()
    assert call(many / NAMES[0] / "build/libfake.so", 1) == 42
    assert build(many, *NAMES) == []
    # One more package takes what is there.
    build(many, "other")
    assert f"-I{headers.FOLDER}" in (many / "other/build/build.ninja").read_text()


def test_one_is_compiled_ahead_for_few_packages_of_many_that_come(glue: FakeBackend, tmp_path: Path) -> None:
    made: list[str] = []
    families = [make_family(name) for name in NAMES[:2]]
    for family in families:
        built = builder.build_families([family], tmp_path, many=["fake"], progress=lambda done, total, file: made.append(file))
        assert all(b.ok for b in built), [b.diagnostics for b in built]
    assert ahead(made) == [".opc/headers/opc/core/tensor.h.gch"]
    assert all(f"-I{headers.FOLDER}" in (tmp_path / f.name / "build/build.ninja").read_text() for f in families)


def test_another_compiler_makes_it_anew(glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path, *NAMES)
    monkeypatch.setenv("CXXFLAGS", "-DMORE=1")
    made = build(tmp_path, *NAMES)
    assert len(ahead(made)) == 1
    assert len(made) == 1 + 3 * len(NAMES)


def test_a_changed_header_is_compiled_anew_with_what_begins_with_it(
    glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "include"
    shutil.copytree(Path(__file__).parents[2] / "runtime/include", include)
    for module in (headers, ninja):
        monkeypatch.setattr(module, "runtime_include", lambda: include)
    tensor = include / "opc/core/tensor.h"
    out = tmp_path / "out"
    build(out, *NAMES)
    assert build(out, *NAMES) == []
    tensor.write_text(f"{tensor.read_text()}\nint changed();\n")
    made = build(out, *NAMES)
    assert len(ahead(made)) == 1
    assert sum(file.endswith("more.o") for file in made) == len(NAMES)


def kept(environment: Path, monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """Have the backend's header be kept in an environment."""
    step = {"flags": ("-O2",), "header": "opc/core/tensor.h", "kept": str(environment), **changed}

    def build(self: FakeBackend, family: Family) -> tuple[BuildStep, ...]:
        compiled = Compile("fake/more.cpp", "build/more.o", glue=True, **step)
        return (compiled, Link((compiled.object, "build/answer.o"), "build/libfake.so"))

    monkeypatch.setattr(FakeBackend, "build", build)


def test_one_of_an_environment_is_compiled_once_for_all_output_folders(
    glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept(tmp_path / "env", monkeypatch)
    assert ahead(build(tmp_path / "one", "op")) == []
    (compiled,) = (tmp_path / "env").rglob("*.gch")
    before = compiled.stat().st_mtime_ns
    build(tmp_path / "other", "op")
    assert compiled.stat().st_mtime_ns == before
    objects = [tmp_path / out / "op/build/more.o" for out in ("one", "other")]
    assert len({made.read_bytes() for made in objects}) == 1
    assert f"-I{tmp_path}/env" in (tmp_path / "other/op/build/build.ninja").read_text()
    assert call(tmp_path / "other/op/build/libfake.so", 1) == 42


def test_functions_of_one_of_an_environment_are_compiled_once(
    glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIANT, "native")
    include, other = tmp_path / "include", tmp_path / 'of "another"'
    shutil.copytree(Path(__file__).parents[2] / "runtime/include", include)
    other.mkdir()
    (other / "other.h").write_text("struct Other { virtual int more() const; };\ninline int Other::more() const { return 1; }\n")
    (include / "opc/shared.h").write_text("#include <other.h>\ninline int sum(int x) { return x + Other().more(); }\n")
    for module in (headers, ninja):
        monkeypatch.setattr(module, "runtime_include", lambda: include)
    own = 'extern "C" __attribute__((visibility("default"))) int more(int x) { return sum(x) + Other().more(); }\n'
    glue.files = {"fake/more.cpp": f'{HEADER}#include "opc/shared.h"\n{own}'}
    defined = []
    for folder, inlined in (("", ()), ("env", ()), ("both", (str(other),))):
        environment = str(tmp_path / folder) if folder else ""
        kept(
            Path(environment),
            monkeypatch,
            flags=("-isystem", str(other)),
            header="opc/shared.h",
            kept=environment,
            inlined=inlined,
        )
        out = tmp_path / f"out_{folder}"
        build(out, "op")
        assert ctypes.CDLL(str(out / "op/build/libfake.so")).more(1) == 3
        symbols = subprocess.run(["nm", "-C", str(out / "op/build/more.o")], capture_output=True, text=True, check=True).stdout
        defined.append([name in symbols for name in (" W sum(int)", " W Other::more() const")])
    assert defined == [[True, True], [False, True], [False, False]]


def test_one_of_an_environment_is_compiled_anew_when_what_it_reads_changes(
    glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    include = tmp_path / "a folder"
    shutil.copytree(Path(__file__).parents[2] / "runtime/include", include)
    for module in (headers, ninja):
        monkeypatch.setattr(module, "runtime_include", lambda: include)
    kept(tmp_path / "env", monkeypatch)
    build(tmp_path / "out", "op")
    (compiled,) = (tmp_path / "env").rglob("*.gch")
    read = json.loads(Path(f"{compiled}.json").read_text())["files"]
    assert str(include / "opc/core/tensor.h") in read
    before = compiled.stat().st_mtime_ns
    text = (include / "opc/core/tensor.h").read_text()
    (include / "opc/core/tensor.h").write_text(f"{text}\nint changed();\n")
    made = build(tmp_path / "out", "op")
    assert compiled.stat().st_mtime_ns > before
    assert any(file.endswith("more.o") for file in made)


def test_where_one_of_an_environment_cannot_be_made_the_header_is_read(
    glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    kept(tmp_path / "file", monkeypatch)
    build(tmp_path / "out", "op")
    kept(tmp_path / "env", monkeypatch, header="opc/nothing.h")
    build(tmp_path / "out", "op")
    assert not [*(tmp_path / "env").rglob("*.gch")]


def test_clang_compiles_none_ahead(glue: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = tmp_path / "compiler"
    wrapper.write_text('#!/bin/sh\n[ "$1" = --version ] && echo A compiler 1.0 && exit\nexec c++ "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    assert ahead(build(tmp_path / "out", *NAMES)) == []


def test_glue_is_optimised_in_libraries_for_all_machines_alone(glue: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> None:
    step = Compile("a.cpp", "a.o", ("-O2",), glue=True)
    assert headers.flags(step) == ("-O2",)
    monkeypatch.setenv(VARIANT, "native")
    assert headers.flags(step) == ("-O2", "-O0")
    assert headers.flags(Compile("a.cpp", "a.o", ("-O2",))) == ("-O2",)
