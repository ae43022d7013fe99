"""The package that docs/backends.md shows, as files."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "backends.md"
NAME = "opc-ctypes"
"""What the page calls the package's folder, and the distribution."""

_FILE = re.compile(r"^`([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_package(folder: Path) -> Path:
    """Write the files that the page shows into a folder, and return it."""
    for name, text in _FILE.findall(PAGE.read_text()):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder
