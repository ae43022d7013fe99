"""Memory of one kind for everything that a benchmark reads and writes, whoever runs it.

Where memory lies, in small pages or large ones and how far from a line's begin, is not what contenders are compared by. A
framework's own allocator, and the C library's once much was freed, puts large arrays now here, now there. Nor is what the caches
hold when a call begins: results that wait to be written slow the next call down, inputs that were just read speed it up. So all
large arrays made here can be dropped from the caches.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import subprocess
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from opc import config
from opc.build import toolchain
from opc.diagnostics import Diagnostic, SpecError

PAGE = 1 << 21
"""A large page, to which large arrays are aligned."""

SMALL = 1 << 20
"""The bytes of an array below which its pages are as they come: it stays in the caches."""

LINE = 64

_SOURCE = Path(__file__).parent / "templates" / "evict.cpp"

_large: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
"""The memory of all large arrays that are in use."""


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an array on large pages of its own where it is large, and else at the begin of a line."""
    kind = np.dtype(dtype)
    nbytes = int(np.prod(shape, dtype=np.int64)) * kind.itemsize
    large = nbytes >= SMALL
    memory = np.frombuffer(_pages(nbytes), np.uint8) if large else np.empty(nbytes + LINE, np.uint8)
    start = -memory.ctypes.data % (PAGE if large else LINE)
    return memory[start : start + nbytes].view(kind).reshape(shape)


def full(shape: tuple[int, ...], value: Any, dtype: Any) -> Any:
    """Return such an array, filled: each of its pages is there."""
    array = empty(shape, dtype)
    array[...] = value
    return array


def copy(array: Any) -> Any:
    """Return the array in such memory."""
    return full(array.shape, array, array.dtype)


def evict() -> None:
    """Write all large arrays made here back to memory and drop them from the caches; code and all else stays there.

    Raises:
        SpecError: when there is no compiler, or it can't build the few lines that this takes.
    """
    drop = _evictor()
    for pages in _large:
        memory = np.frombuffer(pages, np.uint8)
        drop(memory.ctypes.data, memory.nbytes, LINE)


@functools.cache
def _evictor() -> Callable[[int, int, int], None]:
    """Return the function that drops memory from the caches: address, bytes, bytes of a line."""
    compiler = toolchain.find(config.load())
    with tempfile.TemporaryDirectory(prefix="opc-evict-") as folder:
        library = Path(folder) / "evict.so"
        command = [*compiler.command, "-O2", "-fPIC", "-shared", str(_SOURCE), "-o", str(library)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            message = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
            raise SpecError([Diagnostic(f"caches can't be emptied: {message}")])
        function = ctypes.CDLL(str(library)).opc_evict
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
    function.restype = None
    return function


def _pages(nbytes: int) -> mmap.mmap:
    """Return memory that holds so many bytes from the begin of a large page on, and large pages where the system has them."""
    pages = mmap.mmap(-1, nbytes + 2 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    _large.add(pages)
    return pages
