"""Which glibc a built library needs: the newest version that it names of glibc's symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_VERSION = re.compile(r"GLIBC_(\d+)\.(\d+)(?:\.(\d+))?")

Version = tuple[int, ...]


def needed(libraries: Iterable[Path]) -> str | None:
    """Return the least glibc that all of these libraries load on, such as "2.17"; None where none of them names one."""
    versions = [version for library in libraries for version in _versions(library)]
    return ".".join(map(str, max(versions))) if versions else None


def _versions(library: Path) -> list[Version]:
    """Return the versions of glibc that a file names; none of a file that is no ELF file."""
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    try:
        with library.open("rb") as file:
            sections = [s for s in ELFFile(file).iter_sections() if isinstance(s, GNUVerNeedSection)]
            names = [version.name for section in sections for _, versions in section.iter_versions() for version in versions]
    except (OSError, ELFError):
        return []
    found = map(_VERSION.fullmatch, names)
    return [tuple(int(part) for part in match.groups() if part) for match in found if match]
