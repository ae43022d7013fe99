"""Objects of the runtime's sources that packages share: made once for an output folder, and a mistake in one is told of each."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.backends.base import BuildStep, Compile, Link
from opc.backends.kernel.backend import KernelBackend
from opc.build import builder, ninja, shared
from opc.build.headers import LEAST
from opc.build.toolchain import Toolchain
from opc.ir.op import Family
from tests.build.fakes import FakeBackend, call, make_family


@pytest.fixture
def source(fake: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source outside of the packages that a backend's libraries take in."""
    source = tmp_path / "runtime" / "common.cpp"
    source.parent.mkdir()
    source.write_text('extern "C" int common() { return 1; }\n')
    fake.files = {}

    def build(self: FakeBackend, family: Family) -> tuple[BuildStep, ...]:
        common = Compile(str(source), "common.o", ("-O0",))
        return (Link(("build/answer.o",), "build/libfake.so", shared=(common,)),)

    monkeypatch.setattr(FakeBackend, "build", build)
    return source


def build(out: Path, *names: str) -> tuple[list[str], list[bool]]:
    made: list[str] = []
    built = builder.build_families(
        [make_family(name) for name in names], out, progress=lambda done, total, file: made.append(file)
    )
    return [file for file in made if file.endswith("common.o")], [b.ok for b in built]


def test_it_is_made_once_and_anew_when_its_source_changes(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made, fine = build(out, "first", "second")
    assert (len(made), fine) == (1, [True, True])
    assert made[0].startswith(".opc/objects/")
    assert call(out / "second" / "build/libfake.so", 1) == 42
    assert build(out, "first", "third") == ([], [True, True])
    source.write_text('extern "C" int common() { return 2; }\n')
    assert len(build(out, "first")[0]) == 1


def test_a_mistake_is_told_of_each_package(source: Path, tmp_path: Path) -> None:
    source.write_text("int common( { return 1; }\n")
    assert build(tmp_path / "out", "first", "second")[1] == [False, False]


def test_functions_of_entry_files_are_compiled_once_for_many_packages_of_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proof of all ops runs libraries that are built so; here it is held where they are."""
    monkeypatch.setenv("OPC_VARIANT", "baseline")
    family = make_family("one")
    steps = KernelBackend().build(family)
    toolchain = Toolchain(("g++",), "g++", (), (), ("-shared",), precompiles=True)
    assert not shared.worth([steps] * (LEAST - 1), tmp_path, toolchain)
    (made,) = apart = shared.worth([steps] * LEAST, tmp_path, toolchain)
    assert shared.worth([steps], tmp_path, toolchain, sure=True) == apart
    entry, *loops = (step for step in steps if isinstance(step, Compile))
    assert {f for f in made.flags if f not in entry.flags} == {"-x", "c++", shared.HERE}
    assert [shared.functions(step) for step in loops] == [None] * len(loops)
    link = Link(tuple(step.object for step in (entry, *loops)), "build/library.so")
    for taken in (apart, frozenset[Compile]()):
        edges = [
            line.splitlines() for line in ninja.package_file("one", steps, {"numpy": (link,)}, apart=taken).split("\nbuild ")
        ]
        assert [shared.ELSEWHERE in " ".join(lines) for lines in edges] == [bool(taken)] + [False] * (len(edges) - 1)
        assert [shared.path(made) in lines[0] for lines in edges] == [
            bool(taken) and "library.so:" in lines[0] for lines in edges
        ]
    # Once it is there it stays in use, so that what is built alone is not another library.
    (tmp_path / shared.path(made)).parent.mkdir(parents=True)
    (tmp_path / shared.path(made)).touch()
    assert shared.worth([steps], tmp_path, toolchain) == apart
    # A library that is shipped has them in its own file.
    monkeypatch.delenv("OPC_VARIANT")
    assert not shared.worth([KernelBackend().build(family)] * LEAST, tmp_path, toolchain)
