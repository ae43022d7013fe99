"""Byte code of templates, kept as Python keeps that of modules: compiling them took a third of the time of `opc generate`."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import marshal
import os
import sys
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket


class TemplateCode(jinja2.BytecodeCache):
    """Keeps the code of a template in the `__pycache__` beside it, or wherever Python keeps that of modules.

    `settings` distinguishes environments that compile the same source differently. Code is used only as long as the source,
    these, Jinja and Python are the same. A folder that can't be written costs nothing but time.
    """

    def __init__(self, settings: str) -> None:
        self._made_by = f"{jinja2.__version__} {importlib.util.MAGIC_NUMBER.hex()} {settings}"

    def get_cache_key(self, name: str, filename: str | None = None) -> str:
        """Return the path of the template, empty when it is no file."""
        return filename or ""

    def get_source_checksum(self, source: str) -> str:
        """Return a checksum of the source and everything else that its code depends on."""
        return hashlib.sha256(f"{self._made_by}\n{source}".encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Put the code of a template into the bucket, when it is kept and is that of its source."""
        place = _place(bucket.key)
        if place is None:
            return
        try:
            held = place.read_bytes()
        except OSError:
            return
        size = hashlib.sha256().digest_size
        digest, code = held[:size], held[size:]
        # Checked before it is read: damaged byte code can crash the interpreter.
        if digest == _digest(bucket, code):
            bucket.code = marshal.loads(code)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep the code in the bucket, unless Python was told to keep none."""
        place = _place(bucket.key)
        if place is None or sys.dont_write_bytecode:
            return
        code = marshal.dumps(bucket.code)
        unfinished = place.with_name(f"{place.name}.{os.getpid()}.{id(bucket)}")
        with contextlib.suppress(OSError):
            # Who may not read the source may not read its code.
            mode = Path(bucket.key).stat().st_mode & 0o666 | 0o200
            place.parent.mkdir(parents=True, exist_ok=True)
            try:
                with open(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode), "wb") as file:
                    file.write(_digest(bucket, code) + code)
                # Other processes see the old file or the new one, never a part.
                os.replace(unfinished, place)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise


def _place(template: str) -> Path | None:
    """Return the file of a template's code, or None when it has none."""
    if not template:
        return None
    try:
        # Python's own rule takes the suffix away, by which some templates differ: it gets one to take.
        return Path(importlib.util.cache_from_source(f"{template}.py"))
    except NotImplementedError:  # this Python keeps no byte code
        return None


def _digest(bucket: Bucket, code: bytes) -> bytes:
    """Return what shows that a file is whole and of this source."""
    return hashlib.sha256(bucket.checksum.encode() + code).digest()
