"""Fresh virtual environments, and commands run in them."""

from __future__ import annotations

import os
import subprocess
import venv
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*command: object, cwd: Path, environment: dict[str, str] | None = None) -> str:
    """Return what a command prints; it must succeed."""
    done = subprocess.run(
        [str(c) for c in command], cwd=cwd, capture_output=True, text=True, env={**os.environ, **(environment or {})}
    )
    assert done.returncode == 0, f"{done.args}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def make(folder: Path) -> Path:
    """Make an environment without pip and return its folder of packages."""
    venv.create(folder, symlinks=True)
    program = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return Path(run(folder / "bin/python", "-c", program, cwd=folder).strip())
