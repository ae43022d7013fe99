"""Access maps: where each read of a body stands relative to what is written, and whether an output may be written in place."""

from __future__ import annotations

from collections.abc import Iterator

from opc.analysis.wording import shape_text
from opc.diagnostics import Diagnostics, Span, one_of
from opc.ir.affine import Affine
from opc.ir.expr import Axis, BroadcastAxis, Call, Expr, GroupAxis, GroupRef, Read, Reduce, Select, children, operands_read
from opc.ir.op import Assign, Op
from opc.ir.recurrence import circles
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Access:
    """One read of a statement, the reductions around it, and the conditions it stands under with the value each must have."""

    statement: Assign
    read: Read
    reductions: tuple[Reduce, ...]
    conditions: tuple[tuple[Expr, bool], ...] = ()

    @property
    def extents(self) -> dict[str, Affine]:
        """The extent of each reduction index in scope at the read."""
        return {a.index: a.extent for r in self.reductions for a in r.axes if isinstance(a, Axis)}

    @property
    def at_target(self) -> bool:
        """Whether the read stands at the index the statement writes: the same indices in the same order, none of them reduced."""
        reduced = {a.name for r in self.reductions for a in r.axes if isinstance(a, GroupAxis | BroadcastAxis)}
        if len(self.read.indices) != len(self.statement.indices):
            return False
        for index, written in zip(self.read.indices, self.statement.indices):
            match index:
                case GroupRef():
                    if index != written or index.name in reduced:
                        return False
                case Affine():
                    if index.index is None or index.index != written:
                        return False
                case _:
                    return False
        return True


def accesses(statement: Assign) -> Iterator[Access]:
    """Yield every read of a statement, those inside data-dependent indices and pad values included."""

    def visit(e: Expr, around: tuple[Reduce, ...], conditions: tuple[tuple[Expr, bool], ...]) -> Iterator[Access]:
        if isinstance(e, Select):
            yield from visit(e.cond, around, conditions)
            yield from visit(e.then, around, (*conditions, (e.cond, True)))
            yield from visit(e.other, around, (*conditions, (e.cond, False)))
            return
        if isinstance(e, Call) and e.fn in ("and", "or"):
            first, second = e.args
            yield from visit(first, around, conditions)
            yield from visit(second, around, (*conditions, (first, e.fn == "and")))
            return
        if isinstance(e, Read):
            yield Access(statement, e, around, conditions)
        inside = (*around, e) if isinstance(e, Reduce) else around
        for child in children(e):
            yield from visit(child, inside, conditions)

    yield from visit(statement.value, (), ())


def check_inplace(op: Op, output: str, source: str, span: Span, found: Diagnostics) -> bool:
    """Whether `output` may be written into the memory of `source`; records why not.

    It may when both have one type and shape, when every read of the source stands at the index its statement writes, when what
    carries it on to the output does so too, and when nothing reads the source after the output's own statement. Then each element
    is read for the last time at the point that overwrites it, in whatever order the points are visited.
    """
    outputs, inputs = {o.name: o for o in op.outputs}, {o.name: o for o in op.inputs}
    if output not in outputs:
        found.error(f"'{output}' is no output", span, one_of(output, outputs, "outputs"))
        return False
    if source not in inputs:
        found.error(f"'{source}' is no input", span, one_of(source, inputs, "inputs"))
        return False
    y, x = outputs[output], inputs[source]
    if x.optional:
        found.error(
            f"'{source}' may be absent, so '{output}' can't take its memory",
            span,
            f"leave '{output}' out of inplace, or let '{source}' always be given",
        )
        return False
    if y.type != x.type:
        found.error(
            f"'{output}' is {y.type} and '{source}' is {x.type}, so they can't share memory",
            span,
            f"leave '{output}' out of inplace, or declare both of one type",
        )
        return False
    if op.broadcast and any(not isinstance(d, Affine) for d in x.dims):
        found.error(
            f"'{source}' may be smaller than '{output}' where it is broadcast, so they can't share memory",
            span,
            f"leave '{output}' out of inplace",
        )
        return False
    if y.dims != x.dims:
        shapes = f"'{output}' has the shape {shape_text(y.dims)} and '{source}' {shape_text(x.dims)}"
        found.error(
            f"{shapes}, so they can't share memory", span, f"leave '{output}' out of inplace, or declare both of one shape"
        )
        return False
    if y.permuted != x.permuted:
        found.error(
            f"the axes of '{output}' and '{source}' stand in different orders, so they can't share memory",
            span,
            f"leave '{output}' out of inplace",
        )
        return False
    if circles(op):
        found.error(
            f"'{output}' can't take the memory of '{source}': the op has a recurrence, which keeps what is behind it",
            span,
            f"leave '{output}' out of inplace",
        )
        return False
    problem = _conflict(op, output, source)
    if problem is not None:
        hint = f"leave '{output}' out of inplace"
        if _may_stand_below(op, output, source):
            hint = f"move the statement of '{output}' below all that read '{source}', or {hint}"
        found.error(f"'{output}' can't take the memory of '{source}': {problem[0]}", span, hint)
        return False
    return True


def _may_stand_below(op: Op, output: str, source: str) -> bool:
    """Whether an output could take the memory of an input if its statement stood below all others that it does not feed."""
    fed = {output}
    for s in op.body:
        if operands_read(s.value) & fed:
            fed.add(s.target)
    above = [s for s in op.body if s.target not in fed]
    below = [s for s in op.body if s.target in fed and s.target != output]
    moved = op.with_body((*above, op.assignments[output], *below))
    return moved.body != op.body and _conflict(moved, output, source) is None


def _conflict(op: Op, output: str, source: str) -> tuple[str, Access] | None:
    carriers = {source}
    written = False
    for statement in op.body:
        touched = False
        for access in accesses(statement):
            if access.read.operand not in carriers:
                continue
            touched = True
            line = f" on line {access.read.span.line}" if access.read.span.line else ""
            if written and access.read.operand == source:
                return f"it is still read{line}, after '{output}' is written", access
            if not access.at_target:
                return f"the read of '{access.read.operand}'{line} is not at the index that is written", access
        if statement.target == output:
            written = True
        elif touched and not written:
            carriers.add(statement.target)
    return None
