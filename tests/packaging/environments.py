"""Fresh virtual environments, and commands run in them."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from importlib.metadata import distribution
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


def install(wheel: Path, python: Path) -> None:
    """Install a wheel; what it requires must be there."""
    options = ("--no-index", "--no-compile", "--disable-pip-version-check", "-q")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, wheel, cwd=python.parent)


def lend(site: Path, *names: str) -> None:
    """Link distributions from where the tests run into a folder of packages; one that is there already stays."""
    for name in names:
        found = distribution(name)
        for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(str(found.locate_file(top))))
