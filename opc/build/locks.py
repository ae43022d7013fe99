"""One process at a time in an output folder.

The lock is the operating system's (`flock`), so it ends with its holders, however they end. The compiler processes that ninja
starts inherit it: when opc is killed and its compilers live on for a moment, the next run waits for them instead of writing
beside them. (That inheritance is why this is not filelock, which offers no descriptor to hand on.)

Who waits names the holder, and gives up when that has shown no sign of life for long: a process that hangs locks nobody out for
ever. Holders show one with each step they take (`touch`).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import platform
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from opc.build import files
from opc.diagnostics import Diagnostic, SpecError

FOLDER = ".opc"
"""The folder of an output folder for the lock, for ninja's own files, and for what is known of packages."""

PATIENCE = 2.0
"""Seconds after which a waiting process says what it waits for."""

LIMIT = 900.0
"""Seconds without a sign of life from the holder after which a waiting process gives up; `OPC_LOCK_WAIT` sets others."""

_LONGEST = 200
"""How many characters of the holder's command are shown."""


@contextlib.contextmanager
def hold(folder: Path, say: Callable[[str], None] | None = None) -> Iterator[int]:
    """Hold the lock of `folder` and yield its file descriptor, to be passed on to child processes.

    `say` is called once, with a message that names the holder, when the lock is not free within `PATIENCE` seconds.

    Raises:
        SpecError: when the lock file can't be made, or the holder shows no sign of life for `LIMIT` seconds.
    """
    path = folder / "lock"
    descriptor = _open(path)
    try:
        _wait(descriptor, path, say)
        while not _is(descriptor, path):
            # Who held it has removed the folder, and somebody else may hold the lock of the new one.
            os.close(descriptor)
            descriptor = _open(path)
            _wait(descriptor, path, say)
        # The name of the holder is for messages only, so a disk too full to hold it is no reason to stop.
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, _myself().encode(errors="replace"), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def touch(descriptor: int) -> None:
    """Show whoever waits for a lock that its holder gets on."""
    with contextlib.suppress(OSError):
        os.utime(descriptor)


@contextlib.contextmanager
def hold_now(folder: Path) -> Iterator[bool]:
    """Hold the lock of `folder` if it is free, without waiting, and yield whether it was.

    Raises:
        SpecError: when the lock file can't be made.
    """
    path = folder / "lock"
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = _is(descriptor, path)
        except BlockingIOError:
            held = False
        yield held
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        if path.parent.name == FOLDER:
            files.refuse_link(path.parent)
        files.make_folder(path.parent)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise files.failure("write", path, error) from error


def _is(descriptor: int, path: Path) -> bool:
    """Whether a file is still the one at its path."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _wait(descriptor: int, path: Path, say: Callable[[str], None] | None) -> None:
    start = quiet = time.monotonic()
    limit, seen, pause = _limit(), None, 0.005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            raise files.failure("lock", path, error) from error
        else:
            return
        now = time.monotonic()
        if (sign := os.fstat(descriptor).st_mtime_ns) != seen:
            seen, quiet = sign, now
        if now - quiet > limit:
            message = (
                f"gave up waiting for {path}: {_holder(descriptor)} is building there, and did nothing for {limit:g} seconds"
            )
            hint = "end that process, or wait longer: OPC_LOCK_WAIT sets the seconds"
            raise SpecError([Diagnostic(message, hint=hint)])
        if say is not None and now - start > PATIENCE:
            say(f"waiting for {path}: {_holder(descriptor)} is building there")
            say = None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)


def _myself() -> str:
    """Return who holds a lock from now on, for messages: process, machine, command and time."""
    command = shlex.join(sys.argv)
    command = command if len(command) <= _LONGEST else command[: _LONGEST - 4] + " ..."
    return f"process {os.getpid()} on {platform.node()} ({command}; since {time.strftime('%Y-%m-%d %H:%M:%S')})"


def _holder(descriptor: int) -> str:
    """Return who holds a lock, by what it wrote when it took it."""
    holder = os.pread(descriptor, 4096, 0).decode(errors="replace").strip()
    return f"{holder}, or a compiler it started," if holder else "another process"


def _limit() -> float:
    """Return after how many seconds without a sign of life a waiting process gives up.

    Raises:
        SpecError: when `OPC_LOCK_WAIT` is no number of seconds.
    """
    text = os.environ.get("OPC_LOCK_WAIT")
    try:
        seconds = float(text) if text else LIMIT
    except ValueError:
        seconds = -1.0
    if not seconds >= 0:
        raise SpecError([Diagnostic(f"OPC_LOCK_WAIT is '{text}', which is no number of seconds", hint="write 60 or 3600")])
    return seconds
