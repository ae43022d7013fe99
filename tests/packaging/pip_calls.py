"""Runs pip many times from one process that has imported it: each call in a fork of it, as fresh as the first.

Importing pip takes as long as what the calls of the tests then do. A call is a line of JSON, a folder and arguments; so is what
comes of it, the status and what was printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path


class Pip:
    """A process that runs pip, without settings of the user's own."""

    def __init__(self) -> None:
        isolated = {k: v for k, v in os.environ.items() if not k.startswith("PIP_")} | {"PIP_CONFIG_FILE": os.devnull}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, __file__], text=True, env=isolated, stdin=pipe, stdout=pipe)

    def run(self, folder: Path, *arguments: str) -> tuple[int, str]:
        """Return the exit status of `pip ARGUMENTS` in a folder, and what it prints on both streams."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(folder), *arguments]) + "\n")
        self._process.stdin.flush()
        status, printed = json.loads(self._process.stdout.readline())
        return status, printed

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def _call(folder: str, arguments: list[str], printed: int) -> int:
    """Run pip in a fork; return its exit status."""
    child = os.fork()
    if child != 0:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 70
    try:
        os.chdir(folder)
        os.dup2(printed, 1)
        os.dup2(printed, 2)
        status = main(arguments)
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _serve() -> None:
    for line in sys.stdin:
        folder, *arguments = json.loads(line)
        with tempfile.TemporaryFile() as file:
            status = _call(folder, arguments, file.fileno())
            file.seek(0)
            print(json.dumps([status, file.read().decode(errors="replace")]), flush=True)


if __name__ == "__main__":
    # What `pip install` imports when it runs.
    import pip._internal.commands.install
    import pip._internal.network.session
    import pip._internal.resolution.resolvelib.resolver  # noqa: F401  # the three are imported as pip does
    from pip._internal.cli.main import main

    _serve()
