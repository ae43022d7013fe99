"""Memory of one kind for everything that a benchmark reads and writes, whoever runs it.

Where memory lies, in small pages or large ones and how far from a line's begin, is not what contenders are compared by. A
framework's own allocator, and the C library's once much was freed, puts large arrays now here, now there.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

PAGE = 1 << 21
"""A large page, to which large arrays are aligned."""

SMALL = 1 << 20
"""The bytes of an array below which its pages are as they come: it stays in the caches."""

LINE = 64


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


def _pages(nbytes: int) -> mmap.mmap:
    """Return memory that holds so many bytes from the begin of a large page on, and large pages where the system has them."""
    pages = mmap.mmap(-1, nbytes + 2 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages
