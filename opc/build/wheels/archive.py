"""Archives that are the same, byte for byte, whenever and wherever they are made of the same files."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import tarfile
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

from opc.build import files
from opc.diagnostics import Diagnostic, SpecError

_FIRST = 315532800
"""The start of 1980 in seconds since 1970, before which a ZIP archive knows no time."""


def moment() -> int:
    """Return the time that files in an archive bear, in seconds since 1970: $SOURCE_DATE_EPOCH, else the start of 1980.

    Raises:
        SpecError: when the variable holds no such number.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    try:
        return max(int(given or _FIRST), _FIRST)
    except ValueError:
        raise SpecError([Diagnostic(f"$SOURCE_DATE_EPOCH is '{given}'", hint="seconds since 1970")]) from None


def write_wheel(place: Path, info: str, held: Mapping[str, bytes]) -> None:
    """Write a wheel of files by their paths, the folder `info` of metadata last, with its RECORD."""
    record = io.StringIO(newline="")
    rows = csv.writer(record, lineterminator="\n")
    rows.writerows((path, f"sha256={_digest(content)}", len(content)) for path, content in sorted(held.items()))
    rows.writerow((f"{info}/RECORD", "", ""))
    date = time.gmtime(moment())[:6]
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path in (*sorted(held, key=lambda p: (p.startswith(f"{info}/"), p)), f"{info}/RECORD"):
            entry = zipfile.ZipInfo(path, date)
            entry.compress_type, entry.create_system = zipfile.ZIP_DEFLATED, 3
            entry.external_attr = (0o100755 if path.endswith(".so") else 0o100644) << 16
            archive.writestr(entry, held.get(path, record.getvalue().encode()), compresslevel=9)
    _write(place, made.getvalue())


def write_sdist(place: Path, folder: str, held: Mapping[str, bytes]) -> None:
    """Write a `.tar.gz` of files by their paths below `folder`."""
    import gzip

    stamp = moment()
    made = io.BytesIO()
    with (
        gzip.GzipFile("", "wb", compresslevel=9, fileobj=made, mtime=stamp) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path, content in sorted(held.items()):
            entry = tarfile.TarInfo(f"{folder}/{path}")
            entry.size, entry.mtime, entry.mode = len(content), stamp, 0o644
            archive.addfile(entry, io.BytesIO(content))
    _write(place, made.getvalue())


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def _write(place: Path, content: bytes) -> None:
    """Write a file so that nobody sees a part of it."""
    temporary = place.with_name(f".{place.name}.unfinished")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        os.replace(temporary, place)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise files.failure("write", place, error) from error
