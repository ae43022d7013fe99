"""Calls of kernels written to a file, for a process that has neither Python nor a framework in it.

A file holds the number of calls, then each call: the function's name; the number of inputs and of outputs; the operands; the
attributes. `opc.backends.call_bytes` says how each of these is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.backends import call_bytes
from opc.emit import abi
from opc.ir.dtypes import DType, numpy_dtype, resolve
from opc.ir.op import Family, Op
from opc.testing.cases.calls import Case
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import askable


@dataclass(frozen=True, slots=True)
class KernelCall:
    """One call of the kernel of `op`, a member of a family."""

    op: Op
    case: Case


def call_file(family: Family, calls: Iterable[KernelCall]) -> bytes:
    """Return the contents of the file that holds these calls, in order."""
    parts = [_call(family, c.op, c.case) for c in calls]
    return call_bytes.numbers(len(parts)) + b"".join(parts)


def _call(family: Family, op: Op, case: Case) -> bytes:
    arrays = {n: a for n, a in case.arrays().items() if a is not None}
    outputs = _outputs(op, case, arrays)
    operands = [call_bytes.operand(arrays.get(o.name)) for o in op.inputs]
    operands += [call_bytes.operand(outputs.get(o.name)) for o in op.outputs]
    head = call_bytes.text(abi.function_name(op)) + call_bytes.numbers(len(op.inputs), len(op.outputs))
    return head + b"".join(operands) + call_bytes.attributes(family, case.attributes)


def _outputs(op: Op, case: Case, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return memory for the outputs that the call wants; of any shape when the call is one to be refused."""
    names = (
        askable(op, arrays) if case.wanted is None else [o.name for o in op.outputs if not o.optional or o.name in case.wanted]
    )
    try:
        env = infer(op, {n: a.shape for n, a in arrays.items()}, case.attributes)
        binding = infer_types(op, {n: DType(str(a.dtype)) for n, a in arrays.items()}, case.attributes)
        return {n: np.zeros(env.outputs[n], numpy_dtype(resolve(op.output(n).type, binding))) for n in names if n in env.outputs}
    except (ShapeError, KeyError):
        return {n: np.zeros((), np.float32) for n in names}


__all__ = ["KernelCall", "call_file"]
