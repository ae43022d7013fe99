"""Statements whose operands have one axis for each entry of their shapes: what a codelet computes.

The ranks of axis groups are known when a graph is made, and not when its codelets are compiled. So the host hands each group over
as one axis, its points in row-major order; where operands broadcast, what it hands over is a view of the whole group. A sum over
the axes along which an operand is broadcast has two axes for the group: the operand's own points, and those of the other axes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from opc.ir.affine import Affine, Dim, GroupSize, Index
from opc.ir.expr import (
    ELLIPSIS,
    Axis,
    BroadcastAxis,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    children,
    reads,
    with_children,
)
from opc.ir.op import Assign, Group, Op, Operand
from opc.lower.build.context import UnsupportedForm
from opc.records import dataclass, replace
from opc.transform.indices import Namer, index_names, op_names


@dataclass(frozen=True, slots=True)
class Parts:
    """A group whose axes are told apart: those that the input `kept` has, with `own` points, and the `rest`."""

    kept: str
    own: Dim
    rest: Dim


@dataclass(frozen=True, slots=True)
class ViewEntry:
    """What one entry of an operand's shape is in the view of it that a codelet is given.

    Without a group, that is the axis itself. The axes of a group are first broadcast to the joint group where the operand has its
    own (`of`), and then one axis, or two with `parts`.
    """

    group: str | None = None
    of: str | None = None
    parts: Parts | None = None


@dataclass(frozen=True, slots=True)
class Entries:
    """A statement of `op`, of which each operand has the axes of its view.

    `views` tells what these are of the operand's own, and `parts` has the groups whose axes are told apart.
    """

    op: Op
    assign: Assign
    views: Mapping[str, tuple[ViewEntry, ...]]
    parts: Mapping[str, Parts]


_Point: TypeAlias = tuple[Affine, ...]
"""Where in a group this is: one index, or two where its axes are told apart."""


def entries_of(op: Op, assign: Assign) -> Entries:
    """Return a statement with groups as single axes.

    Raises:
        UnsupportedForm: when it asks for what these no longer tell.
    """
    return _Entries(op, assign).run()


class _Entries:
    def __init__(self, op: Op, assign: Assign) -> None:
        self.op, self.assign = op, assign
        self.namer = Namer(op_names(op) | index_names(op))
        self.used = dict.fromkeys((*(r.operand for r in reads(assign.value)), assign.target))
        target = op.operand(assign.target)
        self.parts: dict[str, Parts] = {}
        for d in target.dims:
            if isinstance(d, Group) and d.of is not None and d.name not in self.parts:
                own, rest = (Dim(self.namer.fresh(f"{group_word(d.name)}_{w}")) for w in ("own", "rest"))
                self.parts[d.name] = Parts(d.of, own, rest)

    def run(self) -> Entries:
        """Return the statement."""
        op, assign = self.op, self.assign
        views = {name: self._view(op.operand(name)) for name in self.used}
        flat = {name: self._flat(op.operand(name)) for name in self.used}
        indices: list[str] = []
        points: dict[str, _Point] = {}
        for entry in assign.indices:
            if isinstance(entry, GroupRef):
                # Of a target with a group of its own there is one point for each of its own.
                indices.append(self.namer.fresh(_point_word(entry.name)))
                at = Affine.of(Index(indices[-1]))
                points[entry.name] = (at, Affine.of(0)) if entry.name in self.parts else (at,)
            else:
                indices.append(entry)
        value = self._value(assign.value, points)
        target = flat[assign.target]
        flat[assign.target] = replace(target, dims=tuple(self._target_dims(op.operand(assign.target))))
        views[assign.target] = tuple(replace(v, of=None, parts=None) for v in views[assign.target])
        own = Assign(assign.target, tuple(indices), value, assign.span)
        inputs, outputs, temporaries = (
            tuple(flat[o.name] for o in declared if o.name in flat) for declared in (op.inputs, op.outputs, op.temporaries)
        )
        changed = replace(op, body=(own,), inputs=inputs, outputs=outputs, temporaries=temporaries)
        return Entries(changed, own, views, self.parts)

    def _view(self, operand: Operand) -> tuple[ViewEntry, ...]:
        return tuple(
            ViewEntry(d.name, d.of, self.parts.get(d.name)) if isinstance(d, Group) else ViewEntry() for d in operand.dims
        )

    def _flat(self, operand: Operand) -> Operand:
        dims: list[Affine] = []
        for d in operand.dims:
            if not isinstance(d, Group):
                dims.append(d)
            elif d.name in self.parts:
                dims += [Affine.of(self.parts[d.name].own), Affine.of(self.parts[d.name].rest)]
            else:
                dims.append(Affine.of(GroupSize(d.name)))
        return replace(operand, dims=tuple(dims))

    def _target_dims(self, target: Operand) -> list[Affine]:
        sizes = []
        for d in target.dims:
            if isinstance(d, Group):
                parts = self.parts.get(d.name)
                sizes.append(Affine.of(GroupSize(d.name) if parts is None else parts.own))
            else:
                sizes.append(d)
        return sizes

    def _value(self, e: Expr, points: Mapping[str, _Point]) -> Expr:
        if isinstance(e, Reduce):
            return self._reduction(e, points)
        e = with_children(e, tuple(self._value(c, points) for c in children(e)))
        match e:
            case Read():
                declared = self.op.operand(e.operand)
                indices: list[Affine | GroupRef | Expr] = []
                checked: list[int] = []
                for n, (index, _) in enumerate(zip(e.indices, declared.dims, strict=True)):
                    if n in e.checked:
                        checked.append(len(indices))
                    indices += points[index.name] if isinstance(index, GroupRef) else (index,)
                return replace(e, indices=tuple(indices), checked=tuple(checked))
            case GroupIndex():
                (*others, last) = points[e.group]
                if others:
                    raise UnsupportedForm("which point of a broadcast group this is")
                return IndexValue(last, e.span)
            case _:
                return e

    def _reduction(self, e: Reduce, points: Mapping[str, _Point]) -> Expr:
        inner, axes = dict(points), list[Axis]()
        for a in e.axes:
            match a:
                case Axis():
                    axes.append(a)
                case GroupAxis():
                    parts = self.parts.get(a.name)
                    sizes = (Affine.of(GroupSize(a.name)),) if parts is None else (Affine.of(parts.own), Affine.of(parts.rest))
                    own = [Axis(self.namer.fresh(_point_word(a.name)), size) for size in sizes]
                    axes += own
                    inner[a.name] = tuple(Affine.of(Index(x.index)) for x in own)
                case BroadcastAxis():
                    parts = self.parts.get(a.name)
                    if parts is None or parts.kept != a.operand:
                        raise UnsupportedForm(f"a sum over the axes along which {a.operand} is broadcast, to another shape")
                    axis = Axis(self.namer.fresh(_point_word(a.name)), Affine.of(parts.rest))
                    axes.append(axis)
                    inner[a.name] = points[a.name][0], Affine.of(Index(axis.index))
        return replace(e, axes=tuple(axes), body=self._value(e.body, inner))


def group_word(group: str) -> str:
    """Return what a group is called where its name is part of another."""
    return "ellipsis" if group == ELLIPSIS else group


def _point_word(group: str) -> str:
    return "point" if group == ELLIPSIS else f"{group}_point"
