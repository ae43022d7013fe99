"""How the statement of a loop nest runs: row by row, as a scatter, as a scan, or as the stable order of rows."""

from __future__ import annotations

from opc.analysis.runs import Bound
from opc.ir.affine import Affine
from opc.ir.expr import Axis, Expr, Reduce, size
from opc.ir.ordering import Ordering
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Flat:
    """A statement in which each axis group is one index variable.

    `extents` are those of the target's `indices`. `trailing` is the last index where it stands for a group behind another index,
    so that the group may turn out to have one point.
    """

    target: str
    indices: tuple[str, ...]
    extents: tuple[Affine, ...]
    value: Expr
    trailing: str | None = None


@dataclass(frozen=True, slots=True)
class VectorPlan:
    """A statement run row by row.

    `vector_axis` is the index that is vectorised, the last one of the target, with every reduction outside of it; None when each
    reduction is vectorised along an axis of its own. `looked_up` are the operands of which rows of elements are fetched from
    indices found lane by lane, `inner` the target's indices along which these do not change.
    """

    statement: Flat
    vector_axis: str | None
    looked_up: tuple[str, ...] = ()
    inner: tuple[str, ...] = ()

    @property
    def outer(self) -> tuple[str, ...]:
        """The indices other than the vector axis, in the order in which their loops run."""
        outer = [i for i in self.statement.indices if i != self.vector_axis and i not in self.inner]
        return (*outer, *self.inner)


@dataclass(frozen=True, slots=True)
class WindowSearch:
    """A search that finds the indices of a scatter in what it reads: they are `scatter_indices` at the point of its axes that it
    found."""

    search: Reduce
    scatter_indices: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """The places of the target's `index` that a term of a scatter goes to: those that are as all `bounds` say."""

    index: str
    bounds: tuple[Bound, ...]


@dataclass(frozen=True, slots=True)
class ScatterPlan:
    """A reduction run as one pass over its terms, each taken in at the index that it names.

    `scatter_indices` are the computed positions along the target's indices that the terms name; `guards` the other conditions for
    a term `body` to count, affine expressions that must not be negative or conditions; `given` conditions that a call fixes.
    `vector_axis` is the last index of the target when no index is computed along it. `window` is there when the indices are found
    in windows of a row, tile by tile; `row` is an axis of a sum along which indices and terms are computed in rows, and then
    added. `shared` tells that threads may take some of the terms each and add to the same elements atomically. With a `run` each
    term goes to all places of it, and nothing else is computed.
    """

    statement: Flat
    reduction: Reduce
    scatter_indices: tuple[tuple[str, Expr], ...]
    guards: tuple[Affine | Expr, ...]
    body: Expr
    vector_axis: str | None
    given: tuple[Expr, ...]
    window: WindowSearch | None = None
    row: str | None = None
    shared: bool = False
    run: Run | None = None

    @property
    def named(self) -> tuple[str, ...]:
        """The indices of the target that the terms name."""
        return tuple(i for i, _ in self.scatter_indices) if self.run is None else (self.run.index,)

    @property
    def starts_from_zero(self) -> bool:
        """Whether memory of zeros is what the reduction starts from."""
        return self.reduction.kind in ("sum", "any")

    @property
    def parts(self) -> int:
        """The most ranges of indices that threads share out, where no vector axis is: of each, all terms are looked at.

        Terms that cost no more than to look at them are added by one thread in less time.
        """
        costly = self.shared or size(self.body) + sum(size(p) for _, p in self.scatter_indices) > SIMPLE_TERM
        return SCATTER_PARTS if costly else 1


SCATTER_PARTS = 4
"""How many ranges of the indices of a scatter threads share out."""

SIMPLE_TERM = 16
"""The number of nodes of a term and its indices up to which it costs no more than to look at it."""


@dataclass(frozen=True, slots=True)
class ScanPlan:
    """A reduction that is carried along one index of the target.

    Along `index`, which falls if `descending`, the reduction takes in the terms below its extent that it has not yet, or with
    `from_here` those from the index on. `vector_axis` is the index that is vectorised, None when there is no other. A reduction
    that is `nonempty` wherever it is asked for is never refused.
    """

    statement: Flat
    reduction: Reduce
    index: str
    vector_axis: str | None
    descending: bool
    from_here: bool
    nonempty: bool

    @property
    def axis(self) -> Axis:
        """The axis of the reduction, whose index is the number of a term."""
        (axis,) = self.reduction.axes
        assert isinstance(axis, Axis), "a scan goes along an axis"
        return axis


@dataclass(frozen=True, slots=True)
class OrderPlan:
    """The stable order of rows: the positions of the elements at some places of it.

    `ordering` says what is ordered, over the indices of `statement`. Its places are those of `index`, an index of the target, or
    one. `vector_axis` is the last index of the target where that is another one: rows that it tells apart are read together.
    """

    statement: Flat
    ordering: Ordering
    index: str | None
    vector_axis: str | None
