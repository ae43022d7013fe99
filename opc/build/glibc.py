"""Which glibc a built library needs: the newest version that it names of glibc's symbols."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

_VERSION = re.compile(r"(GLIBC|GLIBCXX|CXXABI|GCC)_(\d+(?:\.\d+)*)")

Version = tuple[int, ...]


def needed(libraries: Iterable[Path]) -> str | None:
    """Return the least glibc that all of these libraries load on, such as "2.17"; None where none of them names one."""
    found = [version for library in libraries for version in versions(library)]
    return ".".join(map(str, max(found))) if found else None


def versions(library: Path, kind: str = "GLIBC") -> list[Version]:
    """Return the versions of glibc's symbols that a file names; none of a file that is no ELF file.

    `kind` may be another set of symbols: GLIBCXX or CXXABI of libstdc++, GCC of libgcc.
    """
    from elftools.common.exceptions import ELFError
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    try:
        with library.open("rb") as file:
            sections = [s for s in ELFFile(file).iter_sections() if isinstance(s, GNUVerNeedSection)]
            names = [version.name for section in sections for _, needs in section.iter_versions() for version in needs]
    except (OSError, ELFError):
        return []
    found = map(_VERSION.fullmatch, names)
    return [tuple(map(int, match[2].split("."))) for match in found if match and match[1] == kind]
