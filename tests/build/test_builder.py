"""Builds: what is rebuilt and what is not, mistakes, and builds that are killed, run side by side, or out of disk."""

from __future__ import annotations

import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.build import builder, locks, ninja, stamp
from opc.diagnostics import SpecError
from tests.build.fakes import HEADER, FakeBackend, call, make_family

ROOT = Path(__file__).parents[2]
# Runs a build of two packages in a process of its own: argv is the output folder and the number the kernel adds.
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.build import fakes
backend = fakes.install(setattr)
slow = "".join(f"int f{i}(int x) {{ return x * {i} + SALT; }}\\n" for i in range(300))
slow = f"{fakes.HEADER}#define SALT {sys.argv[3]}\\n{slow}"
backend.files = {f"fake/part{i}.cpp": slow.replace("int f", f"int f{i}_") for i in range(3)}
from pathlib import Path
from opc.build import builder
from opc.diagnostics import SpecError
print("ready", flush=True)
try:
    built = builder.build_families([fakes.make_family("one"), fakes.make_family("two")], Path(sys.argv[2]), say=print)
    mistakes = [d for b in built for d in b.diagnostics]
except SpecError as error:
    mistakes = error.diagnostics
for mistake in mistakes:
    print(mistake.render())
print("failed" if mistakes else "built", flush=True)
"""


def start(out: Path, salt: int = 0, **options: object) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-c", PROGRAM, str(ROOT), str(out), str(salt)]
    return subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)


def finish(process: subprocess.Popen[str]) -> str:
    return process.communicate(timeout=120)[0]


def build(out: Path, *names: str) -> tuple[list[str], tuple[builder.Built, ...]]:
    """Build packages; return the files that were made, in order, and the results."""
    made: list[str] = []
    families = [make_family(name) for name in names or ("one",)]
    return made, builder.build_families(families, out, progress=lambda done, total, file: made.append(file))


def test_builds_then_does_nothing(fake: FakeBackend, tmp_path: Path) -> None:
    made, (one, two) = build(tmp_path, "one", "two")
    assert one.ok
    assert two.ok
    assert len(made) == 6
    assert call(tmp_path / "one/build/libfake.so", 1) == 42
    assert build(tmp_path, "one", "two")[0] == []


def test_one_package_does_not_disturb_the_other(fake: FakeBackend, tmp_path: Path) -> None:
    build(tmp_path, "one")
    made, _ = build(tmp_path, "two")
    assert {m.split("/")[0] for m in made} == {"two"}
    assert build(tmp_path, "one", "two")[0] == []


def test_changed_header_rebuilds_what_includes_it(fake: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.build.fakes import FakeKernel

    build(tmp_path)
    emit = FakeKernel.emit
    monkeypatch.setattr(FakeKernel, "emit", lambda self, f: {k: v.replace("41", "1") for k, v in emit(self, f).items()})
    assert build(tmp_path)[0] == ["one/build/answer.o", "one/build/libfake.so"]
    assert call(tmp_path / "one/build/libfake.so", 1) == 2


def test_changed_compiler_or_flags_rebuild_everything(fake: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build(tmp_path)
    wrapper = tmp_path / "compiler"
    wrapper.write_text('#!/bin/sh\nexec c++ "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("CXX", str(wrapper))
    assert len(build(tmp_path)[0]) == 3
    monkeypatch.setenv("CXXFLAGS", "-DMORE=1")
    assert len(build(tmp_path)[0]) == 3
    # The same command, but another compiler behind it.
    wrapper.write_text('#!/bin/sh\n[ "$1" = --version ] && echo next && exit\nexec c++ "$@"\n')
    assert len(build(tmp_path)[0]) == 3


def test_compiler_error_points_at_the_line_and_spares_other_packages(fake: FakeBackend, tmp_path: Path) -> None:
    build(tmp_path, "one", "two")
    fake.files["fake/more.cpp"] = f"{HEADER}#if 0\n#endif\nint more() {{ return missing; }}\n"
    _, (one,) = build(tmp_path, "one")
    text = one.diagnostics[0].render()
    assert f"{tmp_path}/one/fake/more.cpp:4:21: error:" in text
    assert "int more() { return missing; }" in text
    assert "the command was:" in text
    assert call(tmp_path / "two/build/libfake.so", 1) == 42
    fake.files["fake/more.cpp"] = f"{HEADER}int more() {{ return 2; }}\n"
    assert build(tmp_path, "one")[1][0].ok


def test_line_directive_leads_to_the_users_file(fake: FakeBackend, tmp_path: Path) -> None:
    spec = tmp_path / "mine.yaml"
    spec.write_text("native:\n  cpp: |\n    int x = missing;\n")
    fake.files["fake/more.cpp"] = f'{HEADER}#line 3 "{spec}"\n    int x = missing;\n'
    _, (one,) = build(tmp_path / "out")
    assert one.diagnostics[0].render().startswith(f"{spec}:3:13: error: the compiler says: ")


def test_linker_error_is_a_diagnostic(fake: FakeBackend, tmp_path: Path) -> None:
    fake.files["fake/more.cpp"] = f'{HEADER}extern "C" int answer(int x) {{ return x; }}\n'
    _, (one,) = build(tmp_path)
    assert "building" in one.diagnostics[0].message
    assert "multiple definition" in one.diagnostics[0].render()
    assert not (tmp_path / "one/build/libfake.so").exists()


def test_two_specs_of_one_name_are_refused(fake: FakeBackend, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"two specs describe an op 'one': one\.yaml and one\.yaml"):
        build(tmp_path, "one", "one")


def test_stamp_sees_every_change(fake: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    monkeypatch.setattr(stamp, "registered", lambda: ("fake",))
    spec = tmp_path / "one.yaml"
    spec.write_text("# yaml-language-server: ...\nop: one\n")
    out = tmp_path / "out"

    def fresh(backends: list[str] | None = None) -> bool:
        return stamp.fresh_package(spec, out, backends) is not None

    def rebuild() -> None:
        family = make_family("one", hashlib.sha256(spec.read_bytes()).hexdigest())
        assert builder.build_families([family], out)[0].ok
        assert fresh()

    assert not fresh()
    rebuild()
    assert fresh(["fake"])
    assert not fresh(["fake", "other"])
    changes: list[tuple[str, Callable[[], object]]] = [
        ("spec", lambda: spec.write_text("op: one\ndoc: more\n")),
        ("generated file", lambda: (out / "one/shape.py").write_text("edited\n")),
        ("generated file gone", lambda: (out / "one/kernel/answer.h").unlink()),
        ("library gone", lambda: (out / "one/build/libfake.so").unlink()),
        ("library touched", lambda: os.utime(out / "one/build/libfake.so")),
        ("manifest", lambda: (out / "one/manifest.json").unlink()),
        ("stamp broken", lambda: (out / "one/build/stamp.json").write_text("{")),
        ("stamp gone", lambda: (out / "one/build/stamp.json").unlink()),
        ("package gone", lambda: shutil.rmtree(out / "one")),
        ("everything gone", lambda: shutil.rmtree(out)),
    ]
    for what, change in changes:
        change()
        assert not fresh(), what
        rebuild()
    monkeypatch.setenv("CXXFLAGS", "-g")
    assert not fresh()
    rebuild()
    (tmp_path / "work").mkdir()
    (tmp_path / "work/pyproject.toml").write_text('[tool.opc]\ncxxflags = ["-g0"]\n')
    monkeypatch.chdir(tmp_path / "work")
    assert not fresh()
    rebuild()
    (tmp_path / "work/pyproject.toml").write_text('[tool.opc]\ncxxflags = ["-g1"]\n')
    assert not fresh()
    spec.write_text("op: two\n")
    assert not fresh()


def test_stamp_knows_files_that_opc_itself_consists_of(tmp_path: Path) -> None:
    own = stamp.own_files()
    assert str(ROOT / "opc/build/stamp.py") in own
    assert str(ROOT / "runtime/include/opc/abi.h") in own
    assert not [p for p in own if p.endswith(".pyc")]


def test_stamp_is_refused_when_a_file_of_opc_is_new(fake: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib

    spec = tmp_path / "one.yaml"
    spec.write_text("op: one\n")
    family = make_family("one", hashlib.sha256(spec.read_bytes()).hexdigest())
    builder.build_families([family], tmp_path)
    assert stamp.fresh_package(spec, tmp_path, ["fake"]) is not None
    more = tmp_path / "more.py"
    more.write_text("")
    own = stamp.own_files()
    monkeypatch.setattr(stamp, "own_files", lambda: [*own, str(more)])
    assert stamp.fresh_package(spec, tmp_path, ["fake"]) is None


@pytest.mark.rotating
def test_killed_builds_do_not_spoil_the_next(tmp_path: Path) -> None:
    """A build killed with all its compilers, or alone with its compilers left running, at any moment."""
    random.seed(2)
    for attempt in range(4):
        process = start(tmp_path, salt=attempt, start_new_session=True)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        try:
            process.wait(timeout=random.uniform(0.0, 0.5))
        except subprocess.TimeoutExpired:
            if attempt % 2:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
        process.stdout.close()
    assert "built\n" in finish(start(tmp_path, salt=99))
    for name in ("one", "two"):
        assert call(tmp_path / f"{name}/build/libfake.so", 1) == 42
    assert finish(start(tmp_path, salt=99)) == "ready\nbuilt\n"


def test_two_builds_at_once(tmp_path: Path) -> None:
    both = [start(tmp_path), start(tmp_path)]
    for process in both:
        assert finish(process).endswith("built\n")
    assert call(tmp_path / "two/build/libfake.so", 1) == 42


@pytest.mark.rotating
def test_limited_disk_is_a_diagnostic_and_the_next_build_succeeds(tmp_path: Path) -> None:
    for limit in (0, 300, 3_000, 15_000):

        def restrict(limit: int = limit) -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        said = finish(start(tmp_path, preexec_fn=restrict))
        assert "Traceback" not in said, said
        assert said.endswith("failed\n"), (limit, said)
    assert finish(start(tmp_path)).endswith("built\n")
    assert call(tmp_path / "one/build/libfake.so", 1) == 42


@pytest.mark.rotating
def test_full_file_system_is_a_diagnostic_and_the_next_build_succeeds(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=140k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("mounting a small file system needs root")
    try:
        said = finish(start(disk))
        assert "Traceback" not in said, said
        assert said.endswith("failed\n")
        assert "free some space" in said, said
        subprocess.run(["mount", "-o", "remount,size=64m", str(disk)], check=True)
        assert finish(start(disk)).endswith("built\n")
        assert call(disk / "one/build/libfake.so", 1) == 42
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_waiting_build_says_for_whom(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "PATIENCE", 0.05)
    said: list[str] = []
    holder = subprocess.Popen(
        [sys.executable, "-c", "import sys; from pathlib import Path; from opc.build import locks\n"
         "with locks.hold(Path(sys.argv[1])): print('held', flush=True); sys.stdin.read()", str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    def say(text: str) -> None:
        said.append(text)
        holder.kill()

    with locks.hold(tmp_path, say):
        pass
    assert len(said) == 1
    assert f"process {holder.pid}" in said[0]
    holder.wait()


def test_lock_is_held_by_the_compilers_of_a_killed_build(tmp_path: Path) -> None:
    folder = tmp_path / "lock"
    program = (
        "import subprocess, sys, time; from pathlib import Path; from opc.build import locks\n"
        "with locks.hold(Path(sys.argv[1])) as lock:\n"
        "    child = subprocess.Popen(['sleep', '0.7'], pass_fds=(lock,), stdout=subprocess.DEVNULL)\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    begin = time.monotonic()
    holder.kill()
    holder.wait()
    with locks.hold(folder):
        assert time.monotonic() - begin > 0.3


def test_ninja_that_cannot_run_is_a_diagnostic(tmp_path: Path) -> None:
    (tmp_path / ".opc").mkdir()
    (tmp_path / ".opc/build.ninja").write_text("build broken\n")
    with pytest.raises(SpecError, match=r"the build could not run: ninja: error: .*expected ':'"):
        ninja.run(tmp_path, [], 1)
