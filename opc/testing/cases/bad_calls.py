"""Calls of an op that every framework must refuse: element type, rank, size, missing operand, attribute, index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.ir.affine import Affine
from opc.ir.dtypes import DTYPES, DType, candidates
from opc.ir.op import AttributeKind, Op
from opc.ir.placing import placing
from opc.testing.cases.arguments import TensorArg, random_values
from opc.testing.cases.calls import Case, Maker, with_inputs
from opc.testing.cases.fitting import fit
from opc.testing.cases.index_limits import index_limits, outside
from opc.testing.cases.sizes import Shape, Shapes, Sizes, dims_of, shapes_of
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import DomainError, evaluate
from opc.testing.oracle.frame import UndecidedError


def refused(op: Op, parent: Op | None = None) -> list[Case]:
    """Return calls of `op` that every framework must refuse: element type, rank, size, missing operand, attribute, index."""
    maker = Maker(op, parent)
    middle = maker.ordinary()
    base = maker.make("base", middle)
    if base is None:
        return []
    result = [*_bad_types(op, base), *_bad_shapes(op, base), *_bad_sizes(op, base, middle)]
    result += [*_bad_attributes(maker, base, middle), *_bad_indices(op, base)]
    return [replace(c, name=f"{op.name}/bad{k:02d}-{c.name}") for k, c in enumerate(result)]


def _bad_types(op: Op, base: Case) -> Iterator[Case]:
    for o in op.inputs:
        arg = base.inputs[o.name]
        if arg is None:
            continue
        own = DType(str(arg.data.dtype))
        labels = set()
        for dtype in [d for d in DTYPES if d is not own]:
            dtypes = {n: DType(str(a.data.dtype)) for n, a in base.inputs.items() if a is not None} | {o.name: dtype}
            try:
                infer_types(op, dtypes, base.attributes)
            except ShapeError as error:
                # One dtype that the operand never takes, or one that does not agree with another operand.
                label = "mixed" if dtype in candidates(o.type) else "foreign"
                if label not in labels:
                    labels.add(label)
                    changed = TensorArg(random_values(np.random.default_rng(1), arg.data.shape, dtype))
                    yield with_inputs(base, f"dtype-{o.name}-{label}", str(error), **{o.name: changed})
        if not o.optional:
            yield with_inputs(base, f"missing-{o.name}", f"the input {o.name} must be given", **{o.name: None})


def _bad_shapes(op: Op, base: Case) -> Iterator[Case]:
    shapes: Shapes = {n: None if a is None else a.data.shape for n, a in base.inputs.items()}
    for o in op.inputs:
        arg, shape = base.inputs[o.name], shapes[o.name]
        if arg is None or shape is None:
            continue
        fixed = sum(isinstance(d, Affine) for d in o.dims)
        tries: list[tuple[str, Shape]] = [("rank", (*shape, 1)), ("rank", shape[1:]), ("rank", (2,) * (fixed - 1))]
        tries += [("size", (*shape[:a], shape[a] + 1, *shape[a + 1 :])) for a in range(len(shape))]
        for label, changed in tries:
            if changed == shape or len(changed) < 0:
                continue
            try:
                infer(op, {**shapes, o.name: changed}, base.attributes)
            except ShapeError as error:
                yield with_inputs(base, f"{label}-{o.name}", str(error), **{o.name: TensorArg(_resized(base, o.name, changed))})


def _bad_sizes(op: Op, base: Case, middle: Sizes) -> Iterator[Case]:
    """Yield calls whose inputs agree with one another but break a shape rule, such as a window larger than its axis."""
    absent = frozenset(n for n, a in base.inputs.items() if a is None)
    fitted = fit(op, middle, base.attributes, absent)
    if fitted is None:
        return
    for name in dims_of(op):
        for size in (1, 40):
            try:
                shapes = shapes_of(op, replace(fitted, dims={**fitted.dims, name: size}), base.attributes, absent)
            except ShapeError:
                # An input of a derived op would have a negative size.
                continue
            try:
                infer(op, shapes, base.attributes)
            except ShapeError as error:
                changed = {n: None if s is None else TensorArg(_resized(base, n, s)) for n, s in shapes.items()}
                yield with_inputs(base, f"sizes-{name}", str(error), **changed)


def _resized(base: Case, name: str, shape: Shape) -> Array:
    arg = base.inputs[name]
    data = np.zeros(1) if arg is None else arg.data
    return np.resize(data, shape) if data.size else np.ones(shape, data.dtype)


def _bad_attributes(maker: Maker, base: Case, middle: Sizes) -> Iterator[Case]:
    op = maker.op
    shapes: Shapes = {n: None if a is None else a.data.shape for n, a in base.inputs.items()}

    def refuse(label: str, /, **changed: Any) -> Iterator[Case]:
        attributes = {**base.attributes, **changed}
        try:
            infer(op, shapes, attributes)
        except ShapeError as error:
            yield replace(base, name=label, refused=str(error), attributes=attributes)

    for a in op.attributes:
        if a.picks is not None:
            rank = max(len(s) for s in shapes.values() if s is not None)
            for listed in ([rank], [-rank - 1], [0, 0], [rank - 1, -1], [2**40]):
                yield from refuse(f"axes-{a.name}", **{a.name: listed})
        elif a.permutes is not None:
            rank = max(len(s) for s in shapes.values() if s is not None)
            for listed in ([rank], [0], [0, 0], [*range(rank - 1), -1, 0], [-rank - 1, *range(1, rank)], [2**40]):
                yield from refuse(f"axes-{a.name}", **{a.name: listed})
        elif a.kind is AttributeKind.AXIS and a.dim is not None:
            home = shapes_of(op, middle, base.attributes)
            rank = max(len(s) for s in home.values() if s is not None)
            rank += any(place.adds for place in placing(op, a)) if a.among is None else 0
            for value in (rank, -rank - 1, 2**40):
                yield from refuse(f"axis-{a.name}", **{a.name: value})
            for other in op.attributes if a.among is not None else ():
                if other.among is not None and other is not a:
                    yield from refuse(f"axis-{a.name}", **{a.name: base.attributes[other.name]})
        elif a.kind is not AttributeKind.DTYPE:
            for value in maker.bad[a.name][:3]:
                yield from refuse(f"attribute-{a.name}", **{a.name: value})


def _bad_indices(op: Op, base: Case) -> Iterator[Case]:
    env = infer(op, {n: None if a is None else a.data.shape for n, a in base.inputs.items()}, base.attributes)
    for name, limits in index_limits(op).items():
        arg = base.inputs[name]
        if arg is None or not arg.data.size:
            continue
        for value in outside(limits, env):
            data = arg.data.copy()
            if not DType(data.dtype.name).holds(value):
                continue
            data.flat[-1] = value
            case = with_inputs(base, f"index-{name}", "", **{name: TensorArg(data)})
            try:
                evaluate(op, case.arrays(), case.attributes)
            except UndecidedError:
                continue
            except DomainError as error:
                yield replace(case, refused=str(error))
