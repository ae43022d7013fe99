"""From an op to its loops."""

from __future__ import annotations

from dataclasses import dataclass, replace

from opc.ir.op import Op
from opc.lower.flatten import IrregularError, flatten
from opc.lower.loop_ir import Program
from opc.lower.nest import nest
from opc.lower.schedule import schedule
from opc.lower.specialise import Case, specialise


@dataclass(frozen=True, slots=True)
class Variant:
    """The program of one case of attribute values."""

    case: Case
    program: Program


def lower(op: Op) -> tuple[Variant, ...]:
    """Return a program for each case of the op's string and bool attributes that its body asks for."""
    return tuple(Variant(case, _program(case.op, case.suffix)) for case in specialise(op))


def _program(op: Op, suffix: str) -> Program:
    """Return the stages of `op`: row stages where its body is regular, else a loop nest a statement."""
    try:
        stages, temporaries = schedule(op, flatten(op))
    except IrregularError:
        return nest(op, suffix)
    return Program(op.name, tuple(replace(s, name=s.name + suffix) for s in stages), temporaries)
