"""What evaluations of an op have in common: its literals, and what its types are computed in."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from opc.ir.dtypes import DType, ValueType
from opc.ir.expr import Call, Const
from opc.ir.node import memoised
from opc.ir.op import Op
from opc.testing.oracle.bounds import Array, Bounds, exact
from opc.testing.oracle.conversions import promote
from opc.testing.oracle.orders import Ways


@dataclass(slots=True, eq=False)
class Known:
    """What was found out of the types of an op in calls with one binding.

    `dtypes` has what values of a type are computed in, `kept` whether floating values of a type are taken as they are by an
    operation in a dtype, `operations` what operations are done in, in a context.
    """

    dtypes: dict[ValueType, DType] = field(default_factory=dict)
    kept: dict[tuple[ValueType, DType], bool] = field(default_factory=dict)
    operations: dict[tuple[Call, DType], DType] = field(default_factory=dict)


@lru_cache(maxsize=64)
def known_of(op: Op, precise: bool, binding: tuple[tuple[str, DType], ...]) -> Known:
    """Return what is known of an op with a binding so far, for evaluations to add to."""
    return Known()


@memoised
def constant(e: Const, kind: type, rank: int) -> Bounds:
    """Return a literal as a value over a frame of some rank; `kind` tells 1 from 1.0, which are equal."""
    found = exact(np.asarray(e.value).reshape((1,) * rank))
    return found.map(_fixed)


@memoised
def literal(e: Const, kind: type, rank: int, source: DType | None, dtype: DType) -> Ways:
    """Return a literal computed in `source`, None for a weak one, as an operand of an operation in `dtype`."""
    return Ways(promote(constant(e, kind, rank), source, dtype).map(_fixed))


def _fixed(values: Array) -> Array:
    """Return a copy that nobody can write into, of values that are kept for later."""
    own = np.array(values)
    own.flags.writeable = False
    return own
