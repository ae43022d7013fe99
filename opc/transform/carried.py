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


@dataclass(frozen=True, slots=True)
class CarriedOp:
    """An op in segments, of which those of steps read values of steps before from operands of their own.

    `carried` has for each value of a step, by name, these operands: the first is the value of the step before, the second that of
    the step before that one, and so on. `behind` has the operand of all steps for each value that is read at steps no fixed
    number away: it holds those that have been, and anything in the place of the others.
    """

    segmented: SegmentedOp
    carried: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    behind: Mapping[str, str] = field(default_factory=dict)


def with_carried_values(segmented: SegmentedOp) -> CarriedOp:
    """Return an op whose steps read no values of other steps but those that are carried along."""
    op = segmented.joined
    namer = Namer(op_names(op) | index_names(op))
    carried: dict[str, tuple[str, ...]] = {}
    behind: dict[str, str] = {}
    found: list[Segment] = []
    made: list[Operand] = []
    for segment in segmented.segments:
        if segment.steps is None:
            found.append(segment)
            continue
        step = _Carrying(segment.op, segment.steps, namer)
        body = tuple(s.with_value(rewrite(s.value, step.read)) for s in segment.op.body)
        own = [step.operand(part, n) for part, names in step.names.items() for n in range(len(names))]
        own += [step.all_steps(part) for part in step.behind]
        found.append(replace(segment, op=replace(segment.op, body=body, inputs=(*segment.op.inputs, *own))))
        made += own
        carried |= {part: tuple(names) for part, names in step.names.items()}
        behind |= step.behind
    whole = replace(segmented.op, temporaries=(*segmented.op.temporaries, *made))
    return CarriedOp(SegmentedOp(whole, tuple(found)), carried, behind)


class _Carrying:
    """The values that one recurrence carries along."""

    def __init__(self, op: Op, steps: Steps, namer: Namer) -> None:
        self.op, self.steps, self.namer = op, steps, namer
        self.parts = {whole: part for part, whole in steps.parts}
        self.names: dict[str, list[str]] = {part: [] for part, _ in steps.parts}
        self.behind: dict[str, str] = {}

    def operand(self, part: str, n: int) -> Operand:
        return replace(self.op.operand(part), name=self.names[part][n], optional=False, doc="")

    def all_steps(self, part: str) -> Operand:
        whole = next(whole for whole, of in self.parts.items() if of == part)
        return replace(self.op.operand(whole), name=self.behind[part], optional=False, doc="")

    def read(self, e: Expr) -> Expr:
        """Return a read of another step's value as one of what is carried along."""
        if not isinstance(e, Read) or e.operand not in self.parts:
            return e
        part, at = self.parts[e.operand], e.indices[0]
        away = (at - Affine.of(Dim(self.steps.index))).constant if isinstance(at, Affine) else None
        if away is None or 0 in e.checked:
            if part not in self.behind:
                self.behind[part] = self.namer.fresh(f"{part.removesuffix('_now')}_behind")
            return replace(e, operand=self.behind[part])
        names = self.names[part]
        while len(names) < abs(away):
            names.append(self.namer.fresh(f"{part.removesuffix('_now')}_before"))
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
