"""Which kernels of a family are compiled together: a large source is compiled in parts, side by side.

nvcc takes a tenth of a second for each instance of a kernel, and attention has hundreds. Part 0 has the functions that start
kernels, each other one some of the kernels. A source of few instances is compiled as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.emit.cuda.instances import Instances

INSTANCES = 24
"""How many instances of kernels a part has that nvcc makes in about three seconds."""

MOST = 16
"""How many parts there are at most behind part 0: each one reads the headers, which takes a second."""

TILED = 4
"""How many instances of other kernels take nvcc as long as one that is made in tiles, which is unrolled."""


def weight(instances: Instances) -> int:
    """Return how long nvcc takes for the instances of one kernel, in instances that are not made in tiles."""
    text = instances.text
    dtypes = frozenset(d for t in text.types for d in t.dtypes)
    return len(tuple(instances.of(dtypes))) * (TILED if text.is_tiled else 1)


def in_parts(weights: Mapping[str, int]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the kernels of each part behind part 0, none where a source is compiled as a whole.

    The heaviest are given out first, each to the part that has least so far (Graham, Bounds on Multiprocessing Timing
    Anomalies, 1969). In a part they stay in the order in which they are given.
    """
    count = min(-(-sum(weights.values()) // INSTANCES), MOST)
    if count <= 2:
        return ()
    parts: list[list[str]] = [[] for _ in range(count)]
    loads = [0] * count
    for name in sorted(weights, key=lambda n: -weights[n]):
        least = loads.index(min(loads))
        parts[least].append(name)
        loads[least] += weights[name]
    order = list(weights)
    return tuple(tuple(sorted(part, key=order.index)) for part in parts if part)


__all__ = ["in_parts", "weight"]
