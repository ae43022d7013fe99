"""Calls by which an op's body in standard operators is proved, where a framework runs such bodies without the op's library."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from opc.testing.plan import Item, ProofPlan

CALLS = 6
"""How many calls of each op of a family are run by its body: one of each kind, in the order of the plan."""


def function_items(plan: ProofPlan) -> Iterator[Item]:
    """Yield calls with finite inputs and outputs that have elements, of as many kinds as there are.

    How a standard operator treats infinities and NaN differs between runtimes, and some refuse empty windows.
    """
    count: dict[str, int] = {}
    kinds: set[tuple[str, ...]] = set()
    for item in plan.items:
        if item.kind not in ("forward", "derived", "example") or item.expected is None:
            continue
        arrays = [arg.data for arg in item.case.inputs.values() if arg is not None]
        kind = (item.case.op, item.case.kind, *(str(a.dtype) for a in arrays))
        if kind in kinds or item.case.kind == "large" or count.get(item.case.op, 0) == CALLS:
            continue
        finite = all(np.isfinite(a.astype(np.float64)).all() for a in arrays)
        if not finite or any(0 in v.shape for v in item.expected.values()):
            continue
        kinds.add(kind)
        count[item.case.op] = count.get(item.case.op, 0) + 1
        yield item
