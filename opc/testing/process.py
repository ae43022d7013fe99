"""Worker processes as their parent sees them: tasks in, answers out, and what happens when it crashes or hangs."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

PATIENCE = 300.0
"""Seconds a worker may be silent before it is taken to hang."""


class CrashedError(Exception):
    """The worker ended, or went silent, in the middle of a task; the message says how."""


class Worker:
    """A running worker; one task at a time.

    `path` is the folder it imports opc from, as `opc.build.imports.links` makes it.
    """

    def __init__(self, python: str, path: Path, patience: float = PATIENCE) -> None:
        given = os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), str(path)) if p)
        # Idle threads of one framework must not take the cores from the other workers.
        env = {**os.environ, "PYTHONPATH": given, "OMP_WAIT_POLICY": "passive", "PYTHONUNBUFFERED": "1"}
        self.patience = patience
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the process
        self.process = subprocess.Popen(
            [python, "-m", "opc.testing.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env=env,
            text=True,
            encoding="utf-8",
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        if self.process.stdout is not None:
            for line in self.process.stdout:
                self.lines.put(line)
        self.lines.put(None)

    def prepare(self, modules: Sequence[str]) -> None:
        """Have the worker import modules before its first task; it answers nothing to that."""
        with contextlib.suppress(OSError):
            self._send({"task": "import", "modules": [*modules]})

    def _send(self, task: Mapping[str, Any]) -> None:
        _opened(self.process.stdin).write(json.dumps(task) + "\n")
        _opened(self.process.stdin).flush()

    def run(self, task: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Send a task and yield its answers, the last one `done` or `error`.

        Raises:
            CrashedError: when the worker ends or hangs before the task is done.
        """
        try:
            self._send(task)
        except OSError:
            raise CrashedError(self.last_words()) from None
        while True:
            try:
                line = self.lines.get(timeout=self.patience)
            except queue.Empty:
                self.kill()
                raise CrashedError(f"gave no sign of life for {self.patience:.0f} s") from None
            if line is None:
                raise CrashedError(self.last_words())
            answer: dict[str, Any] = json.loads(line)
            yield answer
            if "done" in answer or "error" in answer:
                return

    def last_words(self) -> str:
        """Return how the process ended, with the last line it wrote to standard error."""
        try:
            code = self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.kill()
            code = self.process.wait()
        how = f"ended with code {code}"
        if code < 0:
            try:
                how = f"crashed with {signal.Signals(-code).name}"
            except ValueError:
                how = f"crashed with signal {-code}"
        self.errors.seek(0)
        words = [w for w in self.errors.read().decode("utf-8", "replace").splitlines() if w.strip()]
        return f"the process {how}{f': {words[-1].strip()}' if words else ''}"

    def kill(self) -> None:
        """End the process at once."""
        self.process.kill()

    def close(self) -> None:
        """End the process: it stops by itself when its input ends."""
        if self.process.stdin is not None:
            with contextlib.suppress(OSError):
                self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.errors.close()


class Workers:
    """The workers of a run: those that were started before there was a task for them, and new ones."""

    def __init__(self, path: Path, patience: float = PATIENCE) -> None:
        self.path, self.patience = path, patience
        self.waiting: dict[tuple[str, str], Worker] = {}
        self.begun: set[tuple[str, str]] = set()

    def start(self, python: str, backend: str, modules: Sequence[str], most: int) -> None:
        """Start a worker for a backend, which imports modules until its task comes, unless `most` have been started."""
        key = python, backend
        if key not in self.begun and len(self.begun) < most:
            self.begun.add(key)
            # An interpreter that can't be started is a failure of the task that needs it.
            with contextlib.suppress(OSError):
                self.waiting[key] = Worker(python, self.path, self.patience)
                self.waiting[key].prepare(modules)

    def waits(self, python: str, backend: str) -> bool:
        """Whether a worker waits for a task of a backend."""
        return (python, backend) in self.waiting

    def take(self, python: str, backend: str) -> Worker:
        """Return the worker that waits for a task of a backend, or a new one.

        Raises:
            OSError: when the interpreter can't be started.
        """
        worker = self.waiting.pop((python, backend), None)
        if worker is not None and worker.process.poll() is not None:
            # What it died of would be taken for the task's doing.
            worker.close()
            worker = None
        return worker or Worker(python, self.path, self.patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End those for which no task came."""
        for worker in self.waiting.values():
            worker.kill()
            worker.close()
        self.waiting.clear()


def _opened(pipe: IO[str] | None) -> IO[str]:
    """Return a pipe that was requested when the process was started.

    Raises:
        CrashedError: when there is none.
    """
    if pipe is None:
        raise CrashedError("the process has no standard input")
    return pipe
