"""How an attribute that lists axes arranges the axes of operands.

An operand `x: T[*K, *R]` of an op with `axes: {type: axes, group: R}` is *mixed*: in memory, and for whoever calls the op, its
axes stand in any order, and those that the attribute names are the axes of `*R`, the others those of `*K`, each in their order.
Within the op it has the axes of its declaration: the same elements, read by other strides. With `keepdims: {type: bool, keeps:
R}` an operand `T[*K]` is *thinned*: where the attribute is true, it has an axis of size 1 in the place of each axis of `*R`.

All other operands, temporaries too, have their axes as they are declared. So only what meets a call has to know of arrangements:
shape rules, entries of kernels, references at their first and last lines. Bodies and what is derived from them do not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from opc.ir.node import remembered
from opc.ir.op import Attribute, Group, Op, Operand
from opc.records import dataclass

Size = TypeVar("Size")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What an op's attribute of axes says: its name, the group that it picks, the group of the other axes, and the name of the
    bool attribute that keeps picked axes where they are reduced, None without one."""

    axes: str
    picked: str
    rest: str
    keeps: str | None = None

    def is_mixed(self, o: Operand) -> bool:
        """Whether an input or output has both groups, in the order that the attribute tells."""
        return len(o.dims) == 2 and {d.name for d in o.dims if isinstance(d, Group)} == {self.picked, self.rest}

    def is_thinned(self, o: Operand) -> bool:
        """Whether an input or output may have axes of size 1 in place of the picked ones."""
        return self.keeps is not None and o.dims == (Group(self.rest),)

    def picked_first(self, o: Operand) -> bool:
        """Whether the declaration of a mixed operand has the picked group in front."""
        return o.dims[0] == Group(self.picked)


@remembered("_arrangement", often=True)
def arrangement(op: Op) -> Arrangement | None:
    """Return how the op's operands are arranged; None of an op without an attribute of axes."""
    axes: Attribute | None = next((a for a in op.attributes if a.picks is not None), None)
    if axes is None or axes.picks is None:
        return None
    keeps = next((a.name for a in op.attributes if a.keeps is not None), None)
    return Arrangement(axes.name, *axes.picks, keeps)


def places(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the places that a list of axes names, counted from the front, in order; all of them where the list is empty.

    Raises:
        ValueError: when one is out of range, or stands twice.
    """
    counted = [a + rank if a < 0 else a for a in axes] or list(range(rank))
    if not all(0 <= a < rank for a in counted) or len(set(counted)) < len(counted):
        raise ValueError(f"{list(axes)} of {rank} axes")
    return tuple(sorted(counted))


def order(picked: Sequence[int], rank: int, picked_first: bool) -> tuple[int, ...]:
    """Return the axes of a mixed operand's array in the order of its declaration: what NumPy's transpose takes."""
    rest = tuple(a for a in range(rank) if a not in picked)
    return (*picked, *rest) if picked_first else (*rest, *picked)


def mixed(rest: Sequence[Size], of_picked: Sequence[Size], picked: Sequence[int]) -> tuple[Size, ...]:
    """Return the sizes of a mixed operand as its callers see them: those of the picked axes at their places."""
    others, own = iter(rest), iter(of_picked)
    return tuple(next(own) if a in picked else next(others) for a in range(len(rest) + len(of_picked)))
