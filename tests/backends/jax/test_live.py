"""The tests of live.py, in a process of their own: JAX has threads, and other tests fork the process that runs them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LIVE = Path(__file__).with_name("live.py")
PATIENCE = 400
"""Seconds after which a test that hangs tells where each of its threads is."""


@pytest.mark.rotating(seconds=27)
def test_in_a_process_of_its_own() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", f"faulthandler_timeout={PATIENCE}", LIVE]
    # What xdist tells its workers is not for the tests that one of them starts.
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=LIVE.parents[3], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
