"""Locks of output folders: who waits for whom, until when, and what is done without one."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from opc.build import builder, locks
from opc.build.generate import generate, prepare
from opc.diagnostics import SpecError
from opc.ir.op import Family
from tests.build.fakes import FakeBackend, make_family

HANGS = "import time; time.sleep(60)"
WORKS = "import time\nfor _ in range(40): time.sleep(0.05); locks.touch(lock)"


@contextmanager
def holder(folder: Path, does: str) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lock of a folder while it does something."""
    program = (
        "import sys; from pathlib import Path; from opc.build import locks\n"
        "with locks.hold(Path(sys.argv[1])) as lock:\n"
        f"    print('held', flush=True)\n    exec({does!r})"
    )
    process = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_a_holder_that_hangs_locks_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who waits gives up, and is told who holds the lock: process, machine, command, since when."""
    monkeypatch.setenv("OPC_LOCK_WAIT", "0.2")
    with holder(tmp_path, HANGS) as process, pytest.raises(SpecError) as error, locks.hold(tmp_path):
        pass
    (mistake,) = error.value.diagnostics
    for part in (f"process {process.pid} on {platform.node()} (-c {tmp_path}; since 20", str(tmp_path / "lock"), "0.2 seconds"):
        assert part in mistake.message
    assert mistake.hint is not None
    assert "OPC_LOCK_WAIT" in mistake.hint


def test_a_holder_that_gets_on_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time counts from its last sign of life."""
    monkeypatch.setenv("OPC_LOCK_WAIT", "1.5")
    with holder(tmp_path, WORKS):
        begin = time.monotonic()
        with locks.hold(tmp_path):
            assert time.monotonic() - begin > 1.5


def test_the_lock_of_a_dead_process_is_free_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_LOCK_WAIT", "0")
    with holder(tmp_path, HANGS) as process:
        process.kill()
        process.wait()
        with locks.hold(tmp_path):
            assert f"process {os.getpid()}" in (tmp_path / "lock").read_text()


@pytest.mark.parametrize("text", ["soon", "-1", "nan"])
def test_how_long_to_wait_is_a_number(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_LOCK_WAIT", text)
    with pytest.raises(SpecError, match=f"OPC_LOCK_WAIT is '{text}'"), locks.hold(tmp_path):
        pass


def test_a_long_command_is_told_in_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["opc", "build", *(f"spec{n}.yaml" for n in range(1000))])
    with locks.hold(tmp_path):
        assert len((tmp_path / "lock").read_text()) < 400


def test_files_are_made_without_the_lock(fake: FakeBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that hangs while it computes holds no lock."""
    free: list[bool] = []

    def emit(family: Family) -> dict[str, str]:
        with locks.hold_now(tmp_path / locks.FOLDER) as held:
            free.append(held)
        return dict(fake.files)

    monkeypatch.setattr(fake, "emit", emit)
    (built,) = builder.build_families([make_family()], tmp_path)
    assert built.ok
    assert free == [True]


def test_what_was_made_ahead_is_made_again_where_the_package_holds_more_by_then(fake: FakeBackend, tmp_path: Path) -> None:
    """Another process added a backend to the package meanwhile: it is generated with the rest."""
    prepared = prepare(make_family(), tmp_path, [])
    generate(make_family(), tmp_path, [fake])
    made = generate(make_family(spec_hash="1" * 64), tmp_path, [], prepared)
    assert [b.name for b in made.backends] == ["fake"]
    assert made.removed == ()
