"""The memory that contenders read and write: where it lies, and that it can leave the caches."""

from __future__ import annotations

import numpy as np
import pytest

from opc.testing.bench import memory


def test_all_large_arrays_in_use_leave_the_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[tuple[int, int]] = []
    monkeypatch.setattr(memory, "_evictor", lambda: lambda start, size, line: dropped.append((start, start + size)))
    kept, gone, small = (memory.full((n,), 1, np.int8) for n in (memory.SMALL, memory.SMALL, 100))
    spans = [(a.ctypes.data, a.ctypes.data + a.nbytes) for a in (kept, gone, small)]
    del gone
    memory.evict()
    inside = [any(low <= begin and end <= high for low, high in dropped) for begin, end in spans]
    assert inside == [True, False, False]


def test_arrays_keep_their_values_when_they_leave_the_caches() -> None:
    array = memory.copy(np.arange(memory.SMALL, dtype=np.int64))
    memory.evict()
    assert (array == np.arange(memory.SMALL)).all()


def test_memory_is_of_one_kind() -> None:
    for shape, dtype in (((3, 5), np.float32), ((1 << 19,), np.float32), ((7,), np.bool_), ((), np.int64), ((0, 4), np.float64)):
        array = memory.full(shape, 1, dtype)
        assert (array.shape, array.dtype) == (shape, dtype)
        assert array.flags.c_contiguous
        assert array.flags.writeable
        start = memory.PAGE if array.nbytes >= memory.SMALL else memory.LINE
        assert array.size == 0 or array.ctypes.data % start == 0
        assert (array == 1).all()
