"""Ops that are many independent problems: one for each point of an axis group that every statement runs over.

Attention is one for each batch and head. Such an op is run one problem after the other on each thread, so that its temporaries
stay in cache and there are only as many of them as threads.
"""

from __future__ import annotations

from opc.ir.affine import Affine, FloorDiv, GroupSize, Minimum, Mod, parts_of
from opc.ir.expr import (
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    free_groups,
    free_indices,
    walk,
)
from opc.ir.op import AttributeKind, Group, Op
from opc.lower.loop_ir import ContractionStage, GroupLoop, Program


def sliced_group(op: Op, program: Program) -> str | None:
    """Return the group that an op can be sliced along, None when there is none or nothing to gain.

    Every statement runs over the group, as the first entry of its indices, and reads at the same point of it. What broadcasts
    along the group may be summed over that: a call that does broadcast is not sliced. A product of matrices whose rows are the
    group's points is computed whole: one row after the other would read the other matrix as often.
    """
    if len(program.stages) < 2 or any(a.kind is AttributeKind.AXIS for a in op.attributes):
        return None
    stored = {x.name for t in program.temporaries for x in t.loops[:1] if isinstance(x, GroupLoop) and len(t.loops) > 1}
    for name in sorted(stored):
        group = GroupRef(name)
        if not all(s.indices[:1] == (group,) and stays_at_point(op, s.value, group) for s in op.body):
            continue
        if not any(_has_rows_of(group, s) for s in program.stages if isinstance(s, ContractionStage)):
            return name
    return None


def stays_at_point(op: Op, e: Expr, group: GroupRef) -> bool:
    """Whether an expression at one point of a group needs that point only."""
    for node in walk(e):
        match node:
            case Read():
                dims = op.operand(node.operand).dims
                places = [n for n, d in enumerate(dims) if isinstance(d, Group) and d.name == group.name]
                if places and (places != [0] or node.indices[0] != group):
                    return False
                if any(_counts(i, group) for i in node.indices if isinstance(i, Affine)):
                    return False
            case Reduce():
                if any(isinstance(a, GroupAxis) and a.name == group.name for a in node.axes):
                    return False
            case IndexValue():
                if _counts(node.value, group):
                    return False
            case GroupIndex():
                if node.group == group.name:
                    return False
    return True


def _has_rows_of(group: GroupRef, stage: ContractionStage) -> bool:
    """Whether a contraction multiplies rows, one for each point of a group, with a matrix that is the same for all."""
    target = set(stage.assign.indices)
    for term in stage.terms:
        own = [target & ({GroupRef(n) for n in free_groups(f.read)} | free_indices(f.read)) for f in term.factors]
        if any(a == {group} and group not in b and b for a, b in (own, own[::-1])):
            return True
    return False


def _counts(e: Affine, group: GroupRef) -> bool:
    """Whether the number of a group's points appears in an expression."""
    atoms = [a for m, _ in e.terms for a in m]
    inner = [x for a in atoms if isinstance(a, FloorDiv | Mod | Minimum) for x in parts_of(a)]
    return GroupSize(group.name) in atoms or any(_counts(x, group) for x in inner)
