"""How an attribute that lists axes arranges the axes of operands.

An operand `x: T[*K, *R]` of an op with `axes: {type: axes, group: R}` is *mixed*: in memory, and for whoever calls the op, its
axes stand in any order, and those that the attribute names are the axes of `*R`, the others those of `*K`, each in their order.
Within the op it has the axes of its declaration: the same elements, read by other strides. With `keepdims: {type: bool, keeps:
R}` an operand `T[*K]` is *thinned*: where the attribute is true, it has an axis of size 1 in the place of each axis of `*R`.

Attributes of type axis that place their dimensions among the axes of one group arrange operands too: of an op with `axis1:
{type: axis, dim: N}` and `axis2: {type: axis, dim: M}`, an operand `T[*K, N, M]` has the axis of N where `axis1` says, that of M
where `axis2` does, and those of `*K` around them. It is the order of the declaration that counts: an output `T[*K, M, N]` has the
axis of M where `axis1` says.

A permutation arranges the operand that it is of, and its gradients: with `perm: {type: permutation, group: R, of: x}`, axis i of
the declaration of `x: T[*R]` is the axis `perm[i]` of x for callers, so that all else over `*R` has the axes in the order of the
list. Such operands are `permuted`, and mixed: all their axes are picked, in the order of the list.

All other operands, temporaries too, have their axes as they are declared. So only what meets a call has to know of arrangements:
shape rules, entries of kernels, references at their first and last lines. Bodies and what is derived from them do not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from opc.ir.affine import Affine, Dim
from opc.ir.node import remembered
from opc.ir.op import Attribute, Group, Op, Operand
from opc.records import dataclass

Size = TypeVar("Size")


@dataclass(frozen=True, slots=True)
class Arrangement:
    """What an op's attribute of axes says: its name, the group that it picks, the group of the other axes, and the name of the
    bool attribute that keeps picked axes where they are reduced, None without one.

    Where attributes place single dimensions, `slots` has the name of each with that of its dimension, `axes` is the first of the
    names, and `picked` is empty: no group has this name. Where `permutes` is true, the attribute is a permutation, and `rest` is
    empty."""

    axes: str
    picked: str
    rest: str
    keeps: str | None = None
    slots: tuple[tuple[str, str], ...] = ()
    permutes: bool = False

    @property
    def attributes(self) -> tuple[str, ...]:
        """The names of the attributes that say where axes stand."""
        return tuple(name for name, _ in self.slots) or (self.axes,)

    def places(self, values: Mapping[str, Any], rank: int) -> tuple[int, ...]:
        """Return the places of the picked axes among so many, from the front, in the order in which an operand's declaration has
        them; `values` are the attributes' by name.

        Raises:
            ValueError: when one is out of range, or stands twice, or when a permutation lacks one.
        """
        if self.permutes:
            return permutation([int(a) for a in values[self.axes]], rank)
        if not self.slots:
            return places([int(a) for a in values[self.axes]], rank)
        given = [int(values[name]) for name, _ in self.slots]
        places(given, rank)
        return tuple(a + rank if a < 0 else a for a in given)

    def slot_dims(self, o: Operand) -> tuple[str, ...]:
        """Return the dimensions that a mixed operand has at single places, in order; none of an op whose attribute is a list."""
        return tuple(str(d) for d in o.dims if isinstance(d, Affine)) if self.slots else ()

    def is_mixed(self, o: Operand) -> bool:
        """Whether an input or output has all axes, in the order that the attributes tell."""
        if self.permutes:
            return o.permuted
        if self.slots:
            placed = {Affine.of(Dim(dim)) for _, dim in self.slots}
            own = [d for d in o.dims if not isinstance(d, Group)]
            ends = Group(self.rest) in (o.dims[:1] + o.dims[-1:])
            return ends and len(own) == len(o.dims) - 1 == len(self.slots) and set(own) == placed
        return len(o.dims) == 2 and {d.name for d in o.dims if isinstance(d, Group)} == {self.picked, self.rest}

    def is_untold(self, op: Op) -> bool:
        """Whether no input of an op is sure to tell how many axes the list picks, as some derived ops have none that is mixed."""
        return bool(self.picked and self.rest) and not any(self.is_mixed(o) and not o.optional for o in op.inputs)

    def is_thinned(self, o: Operand) -> bool:
        """Whether an input or output may have axes of size 1 in place of the picked ones."""
        return self.keeps is not None and o.dims == (Group(self.rest),)

    def is_seen(self, op: Op) -> bool:
        """Whether an input or output of an op has its axes otherwise than its declaration, in some call."""
        return any(self.is_mixed(o) or self.is_thinned(o) for o in (*op.inputs, *op.outputs))

    def picked_first(self, o: Operand) -> bool:
        """Whether the declaration of a mixed operand has the picked axes in front."""
        return o.dims[0] != Group(self.rest)


@remembered("_arrangement", often=True)
def arrangement(op: Op) -> Arrangement | None:
    """Return how the op's operands are arranged; None of an op without an attribute of axes."""
    placing = sorted((a.among[1], a.among[0], a.name, a.dim or "") for a in op.attributes if a.among is not None)
    if placing:
        slots = tuple((name, dim) for _, _, name, dim in placing)
        return Arrangement(slots[0][0], "", placing[0][1], slots=slots)
    permuting = next((a for a in op.attributes if a.permutes is not None), None)
    if permuting is not None and permuting.permutes is not None:
        return Arrangement(permuting.name, permuting.permutes, "", permutes=True)
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


def permutation(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the axes that a permutation lists, counted from the front; all in reverse where the list is empty.

    Raises:
        ValueError: when one is out of range, stands twice, or is missing.
    """
    counted = tuple(a + rank if a < 0 else a for a in axes) or tuple(reversed(range(rank)))
    if sorted(counted) != list(range(rank)):
        raise ValueError(f"{list(axes)} of {rank} axes")
    return counted


def order(picked: Sequence[int], rank: int, picked_first: bool) -> tuple[int, ...]:
    """Return the axes of a mixed operand's array in the order of its declaration: what NumPy's transpose takes."""
    rest = tuple(a for a in range(rank) if a not in picked)
    return (*picked, *rest) if picked_first else (*rest, *picked)


def mixed(rest: Sequence[Size], of_picked: Sequence[Size], picked: Sequence[int]) -> tuple[Size, ...]:
    """Return the sizes of a mixed operand as its callers see them: those of the picked axes at their places, in order."""
    others = iter(rest)
    return tuple(of_picked[picked.index(a)] if a in picked else next(others) for a in range(len(rest) + len(of_picked)))
