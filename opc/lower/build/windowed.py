"""Windowed reductions: the description of a row of windows, and of the planes of channels, that the runtime reduces.

The gradient of a maximum over windows is a search, which finds for each window how far from the row's own index in the target the
best element's index is, so that adding a term takes one addition of integers. Where it found nothing it keeps a number that lies
outside whatever is added to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opc.analysis.patterns import conjunction
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Axis, Call, Expr, IndexValue, Read, Reduce, map_affine
from opc.loops.nodes import Alias, Body, Buffer, CallWithBody, Do, Let, Statement
from opc.loops.values import (
    Address,
    Init,
    Intrinsic,
    Local,
    Member,
    Named,
    Product,
    Sum,
    Word,
    call,
    compare,
    number,
    product_of,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.access import Accesses
from opc.lower.build.context import NO_RANGE, LoopContext, VectorRange
from opc.lower.guards import Guard, bounded, is_known_inside
from opc.lower.nest_plans import WindowSearch
from opc.lower.nests.windowed import WindowedReduction, at_zero, read_at_zero, row_window

_AHEAD = 4
"""Rows of windows are fetched so many rows before they are searched."""

BEGIN = Product((variable("@low_index"), Member("@nest", "scatter_stride", 0)))
"""Where the part of the target that a unit owns begins."""


def windows_of_row(known: LoopContext, over: VectorRange, e: Reduce, under: tuple[Guard, ...] = ()) -> WindowedReduction | None:
    """Return a reduction as one over the windows of a whole row of an operand that is read where it lies, None when it is none.

    `under` are further conditions under which it counts.
    """
    found = row_window(known.nest.op, e, over.vector_axis, known.facts, under) if over.low == number(0) else None
    if found is None or not lie(known, found.operands) or not runs_along(known, found.element):
        return None
    weight = found.weight
    return found if weight is None or is_known_inside(weight, known.nest.sizes(weight.operand), known.bounded) else None


def lie(known: LoopContext, found: tuple[Read, ...]) -> bool:
    """Whether reads are of operands that are there, as they are computed."""
    missing = {r.operand for r in found if known.nest.is_optional(r.operand)} - known.given
    return not missing and all(r.operand not in known.locals and r.operand not in known.nest.gathered for r in found)


def runs_along(known: LoopContext, r: Read) -> bool:
    """Whether the last index of a read runs along what is contiguous."""
    return known.units[r.operand] == len(r.indices) - 1


def reduce_row(known: LoopContext, found: WindowedReduction, result: str, count: Expr) -> tuple[Body, Expr]:
    """Return what describes a row of windows, and the call that reduces it: whether that could be."""
    steps = {a.axis.index: number(0) if found.weight is None else _step(known, found.weight, a.axis.index) for a in found.axes}
    described, reduced = _reduce_windows(known, found, steps, result, count)
    asked = [compare("eq", IndexValue(one), number(1)) for one in found.ones]
    return described, conjunction([*asked, reduced])


def _reduce_windows(
    known: LoopContext, found: WindowedReduction, taps: Mapping[str, Expr], result: str, count: Expr
) -> tuple[Body, Expr]:
    """Return the description of a row of windows, whose taps are so far apart along each axis, and the call that reduces it."""
    accesses, axes, guards = Accesses(known, NO_RANGE), [], []
    for n, a in enumerate(found.axes):
        index = a.axis.index
        axes.append(Init((IndexValue(a.axis.extent), _step(known, found.element, index), taps[index])))
        for g in a.guards:
            assert isinstance(g, Affine), "the conditions of a row are affine"
            steps = [g.coefficient(i) or Affine.of(0) for i in (index, found.vector)]
            guards.append(
                Init((number(n), *map(IndexValue, (*steps, at_zero(bounded(g, known.positive), {index, found.vector})))))
            )
    element, weight = (
        (Word("nullptr"), number(0)) if r is None else (Address(r.operand, None), accesses.offset(found.at_origin(r), {}))
        for r in (found.element, found.weight)
    )
    name = known.nest.fresh("window")
    kind = Named("opc::window_row", (found.element.type, len(axes), len(guards)))
    members = (*element, _step(known, found.element, found.vector), *weight, number(int(found.padded)), *_rows(known, found))
    described = Init((*members, Init(tuple(axes)), Init(tuple(guards))))
    padded = ref(known.nest.padded_rows(found.element.type))
    combine = f"opc::combine::{found.combine}"
    reduced = call("reduce_windows", ref(name), ref(result), count, padded, type=DType.BOOL, types=(combine,))
    return (Let(name, kind, described),), reduced


def _rows(known: LoopContext, found: WindowedReduction) -> tuple[Expr, Expr]:
    """Return how far apart rows of elements are, and how many of these neighbouring positions are apart along the window's last
    axis but one; 0 and 0 where such positions are not rows."""
    read, index = found.element, found.axes[-2].axis.index if len(found.axes) > 1 else ""
    moving = [n for n, i in enumerate(read.indices) if isinstance(i, Affine) and index in i.indices()]
    step = read.indices[moving[0]] if len(moving) == 1 else None
    coefficient = step.coefficient(index) if isinstance(step, Affine) else None
    if coefficient is None:
        return number(0), number(0)
    return known.nest.stride(read.operand, moving[0]), IndexValue(coefficient)


def _step(known: LoopContext, r: Read, index: str) -> Expr:
    """Return how far apart the elements are that a read finds at neighbouring points of an index."""
    strides = [None if n == known.units[r.operand] else known.nest.stride(r.operand, n) for n in range(len(r.indices))]
    steps = [i.coefficient(index) if isinstance(i, Affine) else None for i in r.indices]
    return sum_of(product_of(IndexValue(c), s) for c, s in zip(steps, strides, strict=True) if c is not None and c.terms)


def search_row(
    known: LoopContext, row: VectorRange, window: WindowSearch, moved: Callable[[Affine], Affine], add: Callable[[Expr], Body]
) -> Body:
    """Return the search of a row of windows, and by `add` the use of what it found: where in the unit's part of the target a
    lane's term goes. `moved` puts the row's first lane and its own lane for the index that the row runs along."""
    nest, axes = known.nest, [a for a in window.search.axes if isinstance(a, Axis)]
    for a in axes:
        known.bound(a.index, a.extent)
    search = map_affine(window.search, moved)
    assert isinstance(search, Reduce), "a search is a reduction"
    found = row_window(nest.op, search, row.vector_axis, known.facts)
    assert found is not None, "the search is one over windows"
    scatter_indices = [moved(p) for p in window.scatter_indices]
    steps = {a.index: nest.fresh(f"{a.index}_step") for a in axes}
    body: list[Statement] = [
        Let(name, Weak.INT, _distance([p.coefficient(index) for p in scatter_indices])) for index, name in steps.items()
    ]
    rest = [at_zero(p, {*steps}) for p in scatter_indices]
    ahead = [p.coefficient(row.vector_axis) for p in rest]
    origin, advance, taps = (nest.fresh(n) for n in ("origin", "advance", "found"))
    begin = _distance([p - c * Affine.of(Index(row.vector_axis)) for p, c in zip(rest, ahead) if c is not None])
    body.append(Let(origin, Weak.INT, Call("sub", (begin, BEGIN), Weak.INT)))
    body.append(Let(advance, Weak.INT, _distance(ahead)))
    reach = sum_of(call("reach", IndexValue(a.extent), variable(steps[a.index])) for a in axes)
    vector_axis = variable(row.vector_axis)
    position = Sum((Local(taps, Weak.INT, vector_axis), variable(origin), Product((vector_axis, variable(advance)))))
    described, searched = _reduce_windows(known, found, {i: variable(s) for i, s in steps.items()}, taps, row.high)
    assert isinstance(searched, Intrinsic), "one call searches the row"
    buffer = Buffer(taps, Named("position"), "opc::nest_columns")
    inner: Body = (Alias("position", "@zero"), buffer, *described, Do(searched), *add(position))
    scope = CallWithBody(call("with_positions", reach, types=(found.element.type,)), (("auto", "@zero"),), inner, True)
    return (*body, scope)


def fetch_rows(known: LoopContext, window: WindowSearch, vector_axis: str, index: str) -> Body:
    """Return the fetching of what a few rows of windows ahead, along an outer index, read first."""
    search = window.search
    assert isinstance(search.body, Read), "a window is a part of an operand"
    read = read_at_zero(search.body, {vector_axis, *search.extents})
    moves = [i.coefficient(index) for i in read.indices if isinstance(i, Affine)]
    if any(m is None for m in moves) or not any(m is not None and m.terms for m in moves):
        return ()
    step = known.nest.fresh("step")
    offset = Accesses(known, NO_RANGE).offset(read, {})
    address = Address(read.operand, Sum((offset, Product((number(_AHEAD), variable(step))))))
    return Let(step, Weak.INT, _step(known, read, index)), Do(call("fetch_ahead", address, variable(step)))


def _distance(moves: list[Affine | None]) -> Expr:
    """Return how far apart in the target indices are that differ by so much along each index."""
    return sum_of(
        Product((IndexValue(m), Member("@nest", "scatter_stride", n))) for n, m in enumerate(moves) if m is not None and m.terms
    )
