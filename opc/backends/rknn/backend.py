"""RKNN: custom ops of Rockchip's NPU toolkit, which converts models and simulates them on x86, and of its runtime on boards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from opc.backends import environments
from opc.backends.base import Availability, Backend, BuildStep, Environment, Session
from opc.backends.dtypes import lacking
from opc.backends.rknn import board, emit
from opc.backends.rknn.graph import SIMULATED
from opc.diagnostics import Diagnostic
from opc.emit.numpy.reference import inexpressible
from opc.ir.dtypes import DType, candidates
from opc.ir.op import AttributeKind, Family, Operand


class RknnBackend(Backend):
    """Custom ops of RKNN's toolkit and runtime."""

    name = "rknn"
    title = "RKNN"
    wraps = True
    takes_name = True
    environment = Environment("rknn", alone=("rknn-toolkit2",))

    def probe(self) -> Availability:
        """Say whether the toolkit is installed where this backend runs."""
        return environments.probe("rknn", "rknn-toolkit2")

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why RKNN can't carry the op. Ops derived from it take no part: RKNN runs inference only."""
        return tuple(_requires(family))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the subpackage `rknn`."""
        return emit.files(family)

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/rknn/<machine>/lib<op>_rknn.so`, for this machine and for boards."""
        return tuple(board.steps(family))

    def session(self, family: Family, package: Path) -> Session:
        """Load the custom op."""
        from opc.backends.rknn.session import RknnSession

        return RknnSession(family, package)


def _requires(family: Family) -> Iterator[Diagnostic]:
    op = family.forward
    if op.opaque:
        yield Diagnostic(f"{op.name} has native code only, and RKNN's toolkit simulates an op by a body in NumPy")
    if not op.inputs:
        yield Diagnostic(f"{op.name} has no inputs, and RKNN takes them for the inputs of a model")
    for a in op.attributes:
        if a.kind is AttributeKind.STR and a.length is not None:
            yield Diagnostic(f"RKNN's C interface has no lists of strings such as '{a.name}'", a.span)
    yield from lacking([op], "RKNN", SIMULATED.__contains__)
    yield from inexpressible(op)
    for operands, what in ((op.inputs, "inputs"), (op.outputs, "outputs")):
        if len(operands) > board.MAX_OPERANDS:
            yield Diagnostic(f"{op.name} has {len(operands)} {what}; RKNN's adapter takes {board.MAX_OPERANDS}")
    for o in (*op.inputs, *op.outputs):
        dtypes = candidates(o.type)
        if set(dtypes) & set(SIMULATED) and _only_half(o):
            yield Diagnostic(
                f"{o.name} of {op.name} can't be float32, as which RKNN's toolkit gives every floating tensor", o.span
            )


def _only_half(o: Operand) -> bool:
    floating = [d for d in candidates(o.type) if d.is_floating]
    return bool(floating) and DType.FLOAT32 not in floating
