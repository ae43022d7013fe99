"""Runs a function in a process of its own: a crash of a kernel, a hang or a traceback is what it says, and ends nothing else."""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable


def isolated(function: Callable[[], list[str]], seconds: float) -> list[str]:
    """Return what the function returns, or one line about why it did not."""
    assert "jax" not in sys.modules, "JAX has threads, whose locks a child would hold for ever: import it in a process of its own"
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        try:
            found = function()
        except BaseException as error:
            lines = traceback.format_exc().splitlines()
            found = [f"{type(error).__name__}: {error}", *lines[-9:]]
        with os.fdopen(writer, "w") as pipe:
            json.dump(found, pipe)
        os._exit(0)
    os.close(writer)
    deadline, data = time.monotonic() + seconds, b""
    while (left := deadline - time.monotonic()) > 0:
        ready, _, _ = select.select([reader], [], [], left)
        part = os.read(reader, 1 << 16) if ready else b""
        if ready and not part:
            break
        data += part
    else:
        os.killpg(child, signal.SIGKILL)
    os.close(reader)
    status = os.waitpid(child, 0)[1]
    if data and os.WIFEXITED(status):
        found = json.loads(data)
        assert isinstance(found, list)
        return found
    if time.monotonic() >= deadline:
        return [f"hangs: not done in {seconds:.0f} s"]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL):
        return ["hangs: its processor time is spent"]
    return [f"crashes: signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "ends without an answer"]
