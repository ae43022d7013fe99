"""Attributes and element types that an op can be called with, found from the op alone."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, check_attributes
from opc.ir.dtypes import DType
from opc.ir.expr import Const, IndexValue, walk
from opc.ir.op import Attribute, AttributeKind, Op
from opc.testing.cases.fitting import fit
from opc.testing.cases.sizes import axis_attributes, table_sizes

MOST_OTHERS = 8
"""How many values of the attributes without default are tried beside a value of another attribute."""


@functools.lru_cache(maxsize=64)
def attribute_samples(op: Op, attribute: Attribute) -> tuple[list[Any], list[Any]]:
    """Return values an attribute may take, and values its check, length or `values` refuse.

    Floats are exact in float32, as ONNX stores attributes in it. Tried are the default, the numbers of the check and their
    neighbours, and common values; a value counts as good when the op accepts it with some value of each attribute that has no
    default, and the defaults of the others.
    """
    good: list[Any] = []
    bad: list[Any] = []
    others = _required_values(op, attribute.name)
    for value in _candidates(attribute):
        if value not in good and value not in bad:
            (good if any(accepts(op, {**o, attribute.name: value}) for o in others) else bad).append(value)
    return good, bad


def _required_values(op: Op, apart_from: str) -> list[dict[str, Any]]:
    """Return values for the attributes without default: the first candidate of each, then the second, and so on.

    Attributes that bind a type are float32 where they may be.
    """
    types = {a.name: bindings_of(op)[0][a.binds].value for a in op.attributes if a.required and a.binds is not None}
    pools = {a.name: _candidates(a) for a in op.attributes if a.required and a.name != apart_from and _candidates(a)}
    longest = max((len(p) for p in pools.values()), default=1)
    return [{**types, **{name: pool[k % len(pool)] for name, pool in pools.items()}} for k in range(min(longest, MOST_OTHERS))]


def accepts(op: Op, attributes: Mapping[str, Any]) -> bool:
    """Whether the op takes these attributes on some sizes."""
    tried = [*itertools.islice(table_sizes(op), 5)]
    try:
        check_attributes(op, {**axis_attributes(op, tried[0]), **attributes})
    except ShapeError:
        return False
    return any(fit(op, sizes, {**axis_attributes(op, sizes), **attributes}, limit=None) is not None for sizes in tried)


def _candidates(attribute: Attribute) -> list[Any]:
    numbers = [e.value for e in walk(attribute.check) if isinstance(e, Const)] if attribute.check is not None else []
    numbers += (
        [e.value.constant for e in walk(attribute.check) if isinstance(e, IndexValue) and e.value.constant is not None]
        if attribute.check is not None
        else []
    )
    scalars: list[Any]
    match attribute.kind:
        case AttributeKind.FLOAT:
            raw = [1.0, 0.5, 0.0, -1.0, 2.0, 0.125, -0.25, 3.5, 20.0, 1e-3]
            raw += [float(v) + s for v in numbers for s in (0.0, 0.5, -0.5)]
            scalars = [float(np.float32(v)) for v in raw]
        case AttributeKind.INT:
            raw_ints = [1, 2, 0, 3, -1, 5]
            scalars = raw_ints + [int(v) + s for v in numbers if np.isfinite(v) for s in (0, 1, -1)]
        case AttributeKind.BOOL:
            scalars = [False, True]
        case AttributeKind.STR:
            scalars = [*attribute.values, "no_such_value"] if attribute.values else ["", "text"]
        case _:
            scalars = []
    default = [] if attribute.required else [attribute.default]
    if attribute.length is None:
        return [*scalars, *default]
    length = attribute.length
    lengths = (length,) if length >= 0 else (1, 3, 0)
    scalars = list(dict.fromkeys(scalars))
    # All elements alike, then each with its neighbour, then with the one after.
    starts = [(step, k) for step in (0, 1, 2) for k in range(len(scalars))]
    lists: list[Any] = [tuple(scalars[(i * step + k) % len(scalars)] for i in range(n)) for n in lengths for step, k in starts]
    if length >= 0:
        lists.append(tuple(scalars[i % len(scalars)] for i in range(length + 1)))
    return [*lists, *default]


def bindings_of(op: Op) -> list[dict[str, DType]]:
    """Return bindings of the type variables: every dtype of each, all pairs of the first two while they are few.

    float32 comes first where the first variable has it: it is the binding most cases use.
    """
    if not op.types:
        return [{}]
    pools = [sorted(t.dtypes, key=lambda d: d is not DType.FLOAT32) for t in op.types]
    product = [dict(zip((t.name for t in op.types), combo)) for combo in itertools.product(*pools)]
    if len(product) <= 12:
        return product
    longest = max(len(p) for p in pools)
    return [{t.name: p[k % len(p)] for t, p in zip(op.types, pools)} for k in range(longest)]
