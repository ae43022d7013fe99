"""Steps that are handed the values of the steps before: for programs in which no step can read memory that others write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine, Dim
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Const, Expr, IndexValue, Read, Select, rewrite
from opc.ir.op import Op, Operand
from opc.records import dataclass, replace
from opc.transform.indices import Namer, index_names, op_names
from opc.transform.steps import Segment, SegmentedOp, Steps


class UncarriedError(Exception):
    """A step reads what was computed a number of steps before that is not fixed; the message says where."""


@dataclass(frozen=True, slots=True)
class CarriedOp:
    """An op in segments, of which those of steps read values of steps before from operands of their own.

    `carried` has for each value of a step, by name, these operands: the first is the value of the step before, the second that of
    the step before that one, and so on.
    """

    segmented: SegmentedOp
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def with_carried_values(segmented: SegmentedOp) -> CarriedOp:
    """Return an op whose steps read no values of other steps but those that are carried along.

    Raises:
        UncarriedError: where a step reads others.
    """
    op = segmented.joined
    namer = Namer(op_names(op) | index_names(op))
    carried: dict[str, tuple[str, ...]] = {}
    found: list[Segment] = []
    made: list[Operand] = []
    for segment in segmented.segments:
        if segment.steps is None:
            found.append(segment)
            continue
        step = _Carrying(segment.op, segment.steps, namer)
        body = tuple(s.with_value(rewrite(s.value, step.read)) for s in segment.op.body)
        own = [step.operand(part, n) for part, names in step.names.items() for n in range(len(names))]
        found.append(replace(segment, op=replace(segment.op, body=body, inputs=(*segment.op.inputs, *own))))
        made += own
        carried |= {part: tuple(names) for part, names in step.names.items()}
    whole = replace(segmented.op, temporaries=(*segmented.op.temporaries, *made))
    return CarriedOp(SegmentedOp(whole, tuple(found)), carried)


class _Carrying:
    """The values that one recurrence carries along."""

    def __init__(self, op: Op, steps: Steps, namer: Namer) -> None:
        self.op, self.steps, self.namer = op, steps, namer
        self.parts = {whole: part for part, whole in steps.parts}
        self.names: dict[str, list[str]] = {part: [] for part, _ in steps.parts}

    def operand(self, part: str, n: int) -> Operand:
        return replace(self.op.operand(part), name=self.names[part][n], optional=False, doc="")

    def read(self, e: Expr) -> Expr:
        """Return a read of another step's value as one of what is carried along."""
        if not isinstance(e, Read) or e.operand not in self.parts:
            return e
        at = e.indices[0]
        away = (at - Affine.of(Dim(self.steps.index))).constant if isinstance(at, Affine) else None
        if away is None or 0 in e.checked:
            raise UncarriedError(f"a step reads {e.operand} at {at}, which is no fixed number of steps away")
        names = self.names[self.parts[e.operand]]
        while len(names) < abs(away):
            names.append(self.namer.fresh(f"{self.parts[e.operand].removesuffix('_now')}_before"))
        checked = tuple(k - 1 for k in e.checked)
        value: Expr = replace(e, operand=names[abs(away) - 1], indices=e.indices[1:], checked=checked)
        if e.pad is None:
            return value
        assert isinstance(at, Affine)
        inside = [
            Call("ge", (IndexValue(at), Const(0, Weak.INT)), DType.BOOL),
            Call("lt", (IndexValue(at), IndexValue(self.steps.extent)), DType.BOOL),
        ]
        return Select(conjunction(inside), value, e.pad, e.type)
