"""The iteration domain the oracle evaluates over, and reads of operands from it.

A `Frame` orders the axes of a domain and says which index variable or axis group each belongs to. Values over a frame are arrays
with one axis for every axis of the frame, of size 1 where the value does not change along it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from opc.backends.base import Unsupported
from opc.ir.affine import Affine, Atom, AttrInt, FloorDiv, Index, Minimum, Mod, Symbol
from opc.testing.oracle.bounds import Array, Bounds, every, over_all, some, union

T = TypeVar("T")


class DomainError(Exception):
    """The op has no value here and every kernel must refuse: an index outside its axis, or an empty maximum."""


class UndecidedError(DomainError, Unsupported):
    """It is not known what is right for a call, or whether the op has a value there; the message says why."""


class EmptyReductionError(DomainError):
    """An empty maximum or minimum."""


def asked(value: Callable[[Array], T], may: Array, must: Array) -> T:
    """Return `value` of the points that may count, among them those that do.

    Raises:
        DomainError: when there is none at a point that counts.
        UndecidedError: when there is none at one that only may.
    """
    try:
        return value(may)
    except UndecidedError:
        raise
    except DomainError as error:
        if some(must):
            value(must)
        raise UndecidedError(f"rounding decides whether it counts that {error}") from error


@dataclass(frozen=True, slots=True)
class Frame:
    """Axes of a domain: their sizes, and the positions of index variables and axis groups among them.

    Index variables that are `fixed` have one value, and no axis.
    """

    sizes: tuple[int, ...]
    index: Mapping[str, int]
    groups: Mapping[str, tuple[int, ...]]
    fixed: Mapping[str, int] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sizes)

    def with_index(self, name: str, size: int) -> Frame:
        """Return the frame with an axis for an index variable at the end."""
        fixed = {n: at for n, at in self.fixed.items() if n != name} if name in self.fixed else self.fixed
        return Frame((*self.sizes, size), {**self.index, name: self.rank}, self.groups, fixed)

    def with_group(self, name: str, sizes: tuple[int, ...]) -> Frame:
        """Return the frame with the axes of a group at the end; an outer group of that name is hidden."""
        positions = tuple(range(self.rank, self.rank + len(sizes)))
        return Frame((*self.sizes, *sizes), self.index, {**self.groups, name: positions}, self.fixed)

    def along(self, name: str, size: int) -> Frame:
        """Return the frame with an axis for a fixed index variable, before all others."""
        index = {name: 0, **{n: 1 + at for n, at in self.index.items()}}
        groups = {n: tuple([1 + at for at in axes]) for n, axes in self.groups.items()}
        return Frame((size, *self.sizes), index, groups, {n: at for n, at in self.fixed.items() if n != name})

    def constant(self, value: Any) -> Array:
        """Return a scalar as a value over the frame."""
        return np.asarray(value).reshape((1,) * self.rank)

    def positions(self, name: str) -> Array:
        """Return the value of an index variable at every point."""
        if name in self.fixed:
            return self.constant(np.int64(self.fixed[name]))
        shape = [1] * self.rank
        shape[self.index[name]] = self.sizes[self.index[name]]
        return np.arange(self.sizes[self.index[name]], dtype=np.int64).reshape(shape)

    def place(self, group: str) -> Array:
        """Return the row-major position among the points of a group at every point."""
        axes = self.groups[group]
        shape = [size if axis in axes else 1 for axis, size in enumerate(self.sizes)]
        return np.arange(math.prod(shape), dtype=np.int64).reshape(shape)


EMPTY = Frame((), {}, {})


FAR = 2**31
"""Attributes beyond it are taken into account digit by digit: sums and products of what is nearer fit into 64 bits."""


def affine(e: Affine, frame: Frame, symbol: Callable[[Symbol], int]) -> Array:
    """Return the value of an integer expression at every point; `symbol` gives what is no index variable.

    What does not fit into 64 bits is the end nearest to it: a derived op asks for `i + n < N` where the spec has `i - n`, which
    fits.
    """
    if not is_far(e, symbol):
        return _affine(e, frame, symbol, np.int64)
    # Of a single point NumPy makes a number of its own.
    return np.asarray(np.clip(_affine(e, frame, symbol, _number), -(2**63), 2**63 - 1)).astype(np.int64)


def wrapping(e: Affine, frame: Frame, symbol: Callable[[Symbol], int]) -> Array:
    """Return the same modulo 2^64, as values are."""
    return _affine(e, frame, symbol, np.int64)


def is_far(e: Affine, symbol: Callable[[Symbol], int]) -> bool:
    """Whether an attribute in an expression is so far from 0 that sums with it may not fit into 64 bits."""
    return any(isinstance(a, AttrInt) and not a.flag and not -FAR < symbol(a) < FAR for a in e.atoms())


def _number(value: int) -> Array:
    """Return a number without end as an array."""
    return np.asarray(int(value), dtype=object)


def _affine(e: Affine, frame: Frame, symbol: Callable[[Symbol], int], number: Callable[[int], Any]) -> Array:
    """Return the value of an integer expression at every point, in the integers that `number` makes of numbers."""

    def part(inner: Affine) -> Any:
        return _affine(inner, frame, symbol, number)

    def atom(a: Atom) -> Any:
        match a:
            case Index():
                positions = frame.positions(a.name)
                return positions if number is np.int64 else positions.astype(object)
            case FloorDiv():
                return part(a.numerator) // part(a.denominator)
            case Mod():
                return part(a.numerator) % part(a.denominator)
            case Minimum():
                return np.minimum(part(a.left), part(a.right))
            case _:
                return number(symbol(a))

    total: Any = number(0)
    for monomial, coefficient in e.terms:
        term: Any = number(coefficient)
        for a in monomial:
            term = term * atom(a)
        total = total + term
    # What no index variable is in is a number so far.
    return total if getattr(total, "ndim", 0) else frame.constant(total)


def gather(source: Bounds, axes: list[int | Array | Bounds], frame: Frame) -> Bounds:
    """Return the elements of `source` at one index an axis: a position in the frame (a bare index), or indices over the frame.

    Indices are inside. An index that is one of two neighbours, because it was computed from uncertain values, gives the elements
    at both, and one that may be more gives every element of the operand.
    """
    positions = [a for a in axes if isinstance(a, int)]
    if len(positions) == len(axes) == len(set(positions)):
        # Bare indices, each once: the operand's axes are the frame's, in another order and with axes of size 1 between.
        if positions == list(range(frame.rank)):
            return source
        order = sorted(range(len(positions)), key=positions.__getitem__)
        shape = [1] * frame.rank
        for axis, position in enumerate(positions):
            shape[position] = source.low.shape[axis]
        return source.map(lambda v: v.transpose(order).reshape(shape))
    if not axes:
        return source.map(lambda v: v.reshape((1,) * frame.rank))
    choices: list[list[Array]] = []
    vague = np.zeros((1,) * frame.rank, np.bool_)
    for axis, a in enumerate(axes):
        if isinstance(a, int):
            shape = [1] * frame.rank
            shape[a] = source.low.shape[axis]
            choices.append([np.arange(source.low.shape[axis]).reshape(shape)])
        elif isinstance(a, Bounds):
            if a.high is a.low or every(a.low == a.high):
                choices.append([a.low])
                continue
            vague = vague | (a.high - a.low > 1)
            choices.append([a.low, a.high])
        else:
            choices.append([a])
    places = list(itertools.product(*choices))
    found = source.map(lambda v: v[places[0]])
    for place in places[1:]:
        found = union(found, source.map(lambda v, place=place: v[place]))  # type: ignore[misc]  # a default binds the loop's value
    if some(vague):
        whole = over_all(source)
        parts = (found.low, whole.low), (found.high, whole.high), (found.nan, whole.nan)
        found = Bounds(*(np.where(vague, every, one) for one, every in parts))
    return found
