"""Holds generated Python to ruff, which comes with the extra `test`."""

import subprocess
import sys


def accepts(*arguments: object, text: str | None = None) -> str:
    """Run ruff by its own defaults on files or a text, assert that it has nothing to say, and return what it printed."""
    command = [sys.executable, "-m", "ruff", arguments[0], "--isolated", *arguments[1:]]
    done = subprocess.run([str(c) for c in command], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
