"""Packages as a user generates them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def generated(spec: Path, backend: str, out: Path) -> Path:
    """Generate the package of a spec below a folder, for one backend; return it."""
    command = [sys.executable, "-m", "opc", "generate", str(spec), "--backend", backend, "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return out / spec.stem
