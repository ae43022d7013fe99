"""How much memory the process holds, by which a leak shows."""

from __future__ import annotations

import ctypes
import gc
import resource


class _Mallinfo(ctypes.Structure):
    """`struct mallinfo2` of glibc's <malloc.h>; `hblkhd` are the bytes of mapped blocks, `uordblks` those of others in use."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    )


def most() -> int:
    """Return the most memory the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def allocated() -> int:
    """Return how many bytes the C library has given out and not got back; 0 where it does not say."""
    function = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if function is None:
        return 0
    function.restype = _Mallinfo
    # Errors that were raised hold on to the frames they went through until then.
    gc.collect()
    found = function()
    return int(found.uordblks + found.hblkhd)
