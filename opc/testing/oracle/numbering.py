"""Value numbering at run time: which elements are the same real number, so that comparing one with itself is decided.

A set of values does not tell that two reads of an element give one number: on a box around a point, `x[j] < x[k]` is undecided
for j = k, and so is `x[k] == max[j](x[j])` for the element that is the maximum. Elements with the same number are equal,
whatever they are; those with different numbers, or none, may or may not be. Functions of the same numbers have the same number,
as in Cocke and Schwartz, Programming Languages and Their Compilers (1970). This is about real numbers: two computations of one
may round differently, so a kernel's answers are not held to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opc.ir.expr import Call, reads, walk
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Op
from opc.testing.oracle.bounds import UNKNOWN, Array, Bounds


class ValueNumbers:
    """The numbers given so far. Evaluations that share them know each other's elements again."""

    def __init__(self) -> None:
        self._table: dict[tuple[str, tuple[int, ...]], int] = {}
        self._count = 0

    def _next(self) -> int:
        self._count += 1
        return self._count - 1

    def fresh(self, values: Bounds) -> Bounds:
        """Return a set with a new number for each element."""
        first, self._count = self._count, self._count + values.low.size
        return replace(values, number=np.arange(first, self._count).reshape(values.low.shape))

    def of(self, values: Bounds) -> Bounds:
        """Return a floating set with numbers for its single points, the same for the same values; others keep theirs."""
        if values.number is not None or not values.is_float:
            return values
        # A zero's sign counts: its reciprocals differ.
        bits = np.ascontiguousarray(values.low).view(np.int64).reshape(values.low.shape)
        return replace(values, number=np.where(values.point, self._look_up("value", [bits]), UNKNOWN))

    def apply(self, fn: str, args: Sequence[Bounds], result: Bounds) -> Bounds:
        """Return `result`, the set of values of a function, with numbers where those of all arguments are known."""
        if not result.is_float or all(a.number is None for a in args):
            return result
        numbers = [np.broadcast_to(np.asarray(self.of(a).number), result.low.shape) for a in args]
        known = np.logical_and.reduce([n != UNKNOWN for n in numbers])
        return replace(result, number=np.where(known, self._look_up(fn, numbers), UNKNOWN))

    def _look_up(self, fn: str, keys: Sequence[Array]) -> Array:
        rows, inverse = np.unique(np.stack([k.reshape(-1) for k in keys], axis=1), axis=0, return_inverse=True)
        found = np.empty(len(rows), np.int64)
        for k, row in enumerate(rows.tolist()):
            key = fn, tuple(row)
            if key not in self._table:
                self._table[key] = self._next()
            found[k] = self._table[key]
        return found[inverse.reshape(-1)].reshape(keys[0].shape)


def compares(op: Op) -> bool:
    """Whether a body compares computed floating values with one another, which is what numbers are for."""
    return any(
        isinstance(e, Call) and FUNCTIONS[e.fn].types == "compare" and all(any(reads(a)) for a in e.args)
        for statement in op.body
        for e in walk(statement.value)
    )


__all__ = ["ValueNumbers", "compares"]
