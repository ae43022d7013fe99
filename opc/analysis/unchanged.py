"""Which results of an op are one of its operands, element for element.

The gradient of a sum is the cotangent itself, summed over the axes along which the operand was broadcast. Where there are none, a
framework whose autograd is free to do so hands the cotangent on, and no kernel runs.
"""

from __future__ import annotations

from opc.ir.expr import BroadcastAxis, Const, Expr, Present, Read, Reduce, Select
from opc.ir.op import Assign, Op, own_indices
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class UnchangedResult:
    """A result that is an operand's elements wherever the two have one shape, which they `always` have or a call finds out.

    Where the operand is absent, the result is zero.
    """

    operand: str
    always: bool


def unchanged(op: Op) -> dict[str, UnchangedResult]:
    """Return the outputs that are an input of the same type, as it is."""
    found = {}
    for output in op.outputs:
        statement = op.assignments.get(output.name)
        source = _source(statement.value, statement) if statement else None
        operand = next((x for x in op.inputs if x.name == source), None)
        if operand is None or operand.permuted != output.permuted:
            continue
        if operand.type == output.type and len(operand.dims) == len(output.dims):
            found[output.name] = UnchangedResult(operand.name, operand.dims == output.dims)
    return found


def _source(value: Expr, statement: Assign) -> str | None:
    """Return the operand that a value reads at the statement's own point, None where it is any other value."""
    match value:
        case Read(operand=operand, indices=indices, pad=None) if indices == own_indices(statement):
            return operand
        case Reduce(kind="sum", axes=axes, body=body) if all(isinstance(a, BroadcastAxis) for a in axes):
            return _source(body, statement)  # Of equal shapes, nothing was broadcast.
        case Select(cond=Present(operand=operand), then=then, other=Const(value=0)) if _source(then, statement) == operand:
            return operand
        case _:
            return None
