"""What the statements of a recurrence compute from other values than its own: at all steps at once, in place of step by step.

A step costs as long for one element as for a hundred. The sets of elements are the same either way: what decides at a step which
side of a condition is computed stays there, as do reductions, of which one number may bound all partial results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from opc.ir.expr import Call, Cast, Expr, Read, Reduce, Select, children, free_indices, operands_read, walk
from opc.ir.op import Assign
from opc.ir.recurrence import Recurrence
from opc.testing.oracle.bounds import Array, Bounds
from opc.testing.oracle.frame import DomainError, Frame
from opc.testing.oracle.orders import Ways

COMPUTED = (Call, Cast, Read, Select)
"""What takes long enough to be kept."""


class Ahead:
    """What of a statement is the same whatever the steps before gave; `found` has the identities of these expressions.

    They are the largest such parts. Each is computed where it is asked for first, over a frame with all `size` steps.
    """

    def __init__(self, s: Assign, recurrence: Recurrence, size: int) -> None:
        self.index, self.size = recurrence.index_of(s), size
        own = frozenset(recurrence.targets)
        self.found = {id(e) for e in _parts(s.value, own, self.index)} if size > 1 else set[int]()
        self.kept: dict[object, Ways | None] = {}

    def at(self, e: Expr, frame: Frame, context: Sequence[object], compute: Callable[[Frame], Ways]) -> Ways | None:
        """Return what an expression of `found` may be over a frame with one step; `compute` gives it over a frame with all.

        None where it has no value at some step: whether it counts there, that step decides.
        """
        step = frame.fixed.get(self.index)
        if step is None:
            return None
        key = id(e), *context, frame.sizes, *frame.index, *frame.groups.items()
        if key not in self.kept:
            try:
                self.kept[key] = compute(frame.along(self.index, self.size))
            except (DomainError, LookupError):
                self.kept[key] = None
        whole = self.kept[key]
        return None if whole is None else _of_step(whole, step)


def _parts(e: Expr, own: frozenset[str], index: str) -> Iterator[Expr]:
    if isinstance(e, COMPUTED) and not operands_read(e) & own and not any(_varies(part, index) for part in walk(e)):
        yield e
        return
    for part in children(e):
        yield from _parts(part, own, index)


def _varies(e: Expr, index: str) -> bool:
    """Whether a step decides what of `e` is computed there, or how far its partial results reach, which one number may say."""
    return isinstance(e, Reduce) or (isinstance(e, Select) and index in free_indices(e.cond))


def _of_step(whole: Ways, step: int) -> Ways:
    def taken(v: Array) -> Array:
        # What is one number bounds all elements.
        return v if not v.ndim else v[step if v.shape[0] > 1 else 0]

    def sets(of: tuple[Bounds, ...]) -> tuple[Bounds, ...]:
        return tuple([b.map(taken) for b in of])

    masses = None if whole.masses is None else (taken(whole.masses[0]), taken(whole.masses[1]))
    return Ways(whole.bounds.map(taken), whole.precision, sets(whole.factors), sets(whole.addends), masses, whole.terms)
