"""One process at a time in an output folder.

The lock is the operating system's (`flock`), so it ends with its holders, however they end. The compiler processes that ninja
starts inherit it: when opc is killed and its compilers live on for a moment, the next run waits for them instead of writing
beside them. (That inheritance is why this is not filelock, which offers no descriptor to hand on.)
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from opc.build import files

PATIENCE = 2.0
"""Seconds after which a waiting process says what it waits for."""


@contextlib.contextmanager
def hold(folder: Path, say: Callable[[str], None] | None = None) -> Iterator[int]:
    """Hold the lock of `folder` and yield its file descriptor, to be passed on to child processes.

    `say` is called once, with a message that names the holder, when the lock is not free within `PATIENCE` seconds.

    Raises:
        SpecError: when the lock file can't be made.
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
            os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


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
        files.make_folder(path.parent)
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise files.failure("write", path, error) from error


def _is(descriptor: int, path: Path) -> bool:
    """Whether a file is still the one at its path."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    return False


def _wait(descriptor: int, path: Path, say: Callable[[str], None] | None) -> None:
    start = time.monotonic()
    pause = 0.005
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        except OSError as error:
            raise files.failure("lock", path, error) from error
        else:
            return
        if say is not None and time.monotonic() - start > PATIENCE:
            holder = os.pread(descriptor, 32, 0).decode(errors="replace").strip()
            who = f"process {holder}, or a compiler it started," if holder else "another process"
            say(f"waiting for {path}: {who} is building there")
            say = None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)
