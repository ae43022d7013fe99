"""Memory of one kind for everything that a benchmark reads and writes, whoever runs it.

Where memory lies, in small pages or large ones and how far from a line's begin, is not what contenders are compared by. A
framework's own allocator, and the C library's once much was freed, puts large arrays now here, now there. Nor is what the caches
hold when a call begins: results that wait to be written slow the next call down, inputs that were just read speed it up.
"""

from __future__ import annotations

import functools
import mmap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

PAGE = 1 << 21
"""A large page, to which large arrays are aligned."""

SMALL = 1 << 20
"""The bytes of an array below which its pages are as they come: it stays in the caches."""

LINE = 64

CACHES = 1 << 25
"""The bytes of the caches of a machine that does not tell."""


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


@functools.cache
def cache_emptier(threads: int) -> Callable[[], object]:
    """Return a function that fills the caches, on so many threads, with what no contender reads or writes.

    What the caches hold of results goes to memory. All processors that contenders run on are awake afterwards, and have their own
    caches emptied too.
    """
    lines = full((2 * largest_cache() // 8,), 1, np.int64)[:: LINE // 8]
    parts = np.array_split(lines, threads)
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(np.max, parts))


def largest_cache() -> int:
    """Return the bytes of the largest cache, by what Linux tells of the first processor's."""
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size[:-1]) << 10 for size in sizes if size.endswith("K")), default=CACHES)


def _pages(nbytes: int) -> mmap.mmap:
    """Return memory that holds so many bytes from the begin of a large page on, and large pages where the system has them."""
    pages = mmap.mmap(-1, nbytes + 2 * PAGE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        pages.madvise(mmap.MADV_HUGEPAGE)
    return pages
