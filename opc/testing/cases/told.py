"""Calls whose sizes data tells: what a framework that can tell them is not given, and the oracle computes."""

from __future__ import annotations

from dataclasses import replace

from opc.analysis.shapes.inference import ShapeError, infer
from opc.ir.op import Op
from opc.testing.cases.calls import Case
from opc.testing.cases.fitting import volume
from opc.testing.oracle.evaluation import DomainError, told_sizes
from opc.testing.oracle.frame import UndecidedError

LARGEST = 2_000_000
"""The most points of the largest loop of a call whose sizes data tells, as of any large call."""


def left_to_data(op: Op, case: Case) -> Case:
    """Return a call with the sizes that data tells, but for one that sets some of its attributes apart.

    Where a rounding decides how many there are, the op has no value, or data tells of more than is computed, it stays as it is.
    """
    if not op.told or case.op != op.name or case.refused or case.kind in ("attribute", "attributes"):
        return case
    given = {name: value for name, value in case.attributes.items() if name not in op.told}
    try:
        sizes = told_sizes(op, case.arrays(), given)
        shapes = {name: a.data.shape for name, a in case.inputs.items() if a is not None}
        if volume(op, infer(op, shapes, {**given, **sizes})) > LARGEST:
            return case
    except (ShapeError, DomainError, UndecidedError):
        return case
    return replace(case, attributes={**given, **sizes}, told=op.told)
