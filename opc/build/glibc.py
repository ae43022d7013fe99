"""Which glibc a built library needs: the newest version that it names of glibc's symbols, read from the ELF file itself.

The layout is that of the System V ABI's ELF chapter and of the LSB's "Symbol Versioning" (sections of type SHT_GNU_verneed).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path

_VERNEED = 0x6FFFFFFE
_VERSION = re.compile(rb"GLIBC_(\d+)\.(\d+)(?:\.(\d+))?$")

Version = tuple[int, ...]


def needed(libraries: Iterable[Path]) -> str | None:
    """Return the least glibc that all of these libraries load on, such as "2.17"; None where none of them names one."""
    versions = [version for library in libraries for version in _versions(library)]
    return ".".join(map(str, max(versions))) if versions else None


def _versions(library: Path) -> list[Version]:
    """Return the versions of glibc that a file names; none of a file that is no 64-bit little-endian ELF file."""
    try:
        data = library.read_bytes()
        names = [*_names(data)] if data[:6] == b"\x7fELF\x02\x01" else []
    except (OSError, struct.error):
        return []
    found = (_VERSION.match(name) for name in names)
    return [tuple(int(part) for part in match.groups() if part) for match in found if match]


def _names(data: bytes) -> Iterator[bytes]:
    """Yield the names of the versions that an ELF file needs of any library."""
    (sections,) = struct.unpack_from("<Q", data, 0x28)
    size, count = struct.unpack_from("<HH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, sections + size * i) for i in range(count)]
    for header in headers:
        if header[1] != _VERNEED:
            continue
        start, strings = header[4], headers[header[6]][4]
        while True:
            _, auxiliaries, _, first, following = struct.unpack_from("<HHIII", data, start)
            at = start + first
            for _ in range(auxiliaries):
                _, _, _, name, step = struct.unpack_from("<IHHII", data, at)
                yield data[strings + name : data.index(b"\0", strings + name)]
                at += step
            if following == 0:
                break
            start += following
