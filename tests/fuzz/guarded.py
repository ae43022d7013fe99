"""Copies of arrays between pages that may not be touched: a kernel that reads outside of one ends the process."""

from __future__ import annotations

import ctypes
import mmap
import zlib
from collections.abc import Mapping

import numpy as np

from opc.testing.oracle.bounds import Array

PAGE = mmap.PAGESIZE

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def guarded(array: Array, *, at_end: bool) -> Array:
    """Return a contiguous copy that ends just before a page which may not be touched, or begins just behind one.

    Raises:
        OSError: when pages cannot be protected.
    """
    room = -(-array.nbytes // PAGE) * PAGE
    memory = mmap.mmap(-1, room + 2 * PAGE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (address, address + PAGE + room):
        if _libc.mprotect(page, PAGE, 0) != 0:
            raise OSError(ctypes.get_errno(), "pages cannot be protected")
    offset = PAGE + (room - array.nbytes if at_end else 0)
    copy: Array = np.ndarray(array.shape, array.dtype, memory, offset)
    copy[...] = array
    return copy


def some_guarded(name: str, arrays: Mapping[str, Array | None]) -> dict[str, Array | None]:
    """Return the arrays of a call: by its name they lie at the end of such memory, at its beginning, or where they did."""
    place = zlib.crc32(name.encode()) % 4
    return {
        n: a if place == 3 or a is None or not a.size or not a.flags.c_contiguous else guarded(a, at_end=place < 2)
        for n, a in arrays.items()
    }
