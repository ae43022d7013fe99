"""Sums over weighted windows and sums of products: what the runtime is given, which then computes the row."""

from __future__ import annotations

from dataclasses import replace

from opc.ir.affine import Affine
from opc.ir.dtypes import DType
from opc.ir.expr import Call, Expr, IndexValue, Read, Reduce, reads
from opc.loops.nodes import Body, Let
from opc.loops.values import Address, Init, Named, compare, number, product_of, sum_of
from opc.lower.build.access import Accesses
from opc.lower.build.context import NO_RANGE, Known, Range
from opc.lower.guards import Guard, is_known_inside
from opc.lower.nests.taps import Taps, at_origin, is_product, taps_of


def weighted_window(known: Known, over: Range, e: Reduce, under: tuple[Guard, ...]) -> Taps | None:
    """Return a reduction as a weighted window, if it is one of a whole row over operands that are read where they lie.

    `under` are further conditions under which it counts.
    """
    if over.low != number(0):
        return None
    nest = known.nest
    taps = taps_of(nest.op, e, over.lane, under, nest.sizes, known.bounded, known.positive)
    if taps is None or not is_known_inside(taps.weight, nest.sizes(taps.weight.operand), known.bounded):
        return None
    return taps if lie(known, (taps.weight, taps.element)) and runs_along(known, taps.element) else None


def adds_products(known: Known, e: Reduce, body: Expr, lane: str) -> bool:
    """Whether a reduction along its own lane is a sum of products of elements of operands that are read where they lie."""
    if e.kind != "sum" or not is_product(body, e.type, lane):
        return False
    factors = tuple(reads(body))
    return len(factors) == 2 and lie(known, factors) and all(runs_along(known, r) for r in factors)


def lie(known: Known, found: tuple[Read, ...]) -> bool:
    """Whether reads are of operands that are there, as they are computed."""
    missing = {r.operand for r in found if known.nest.is_optional(r.operand)} - known.given
    return not missing and all(r.operand not in known.locals and r.operand not in known.nest.gathered for r in found)


def runs_along(known: Known, r: Read) -> bool:
    """Whether the last index of a read runs along what is contiguous."""
    return known.units[r.operand] == len(r.indices) - 1


def window_of(known: Known, taps: Taps, lane: str) -> tuple[Body, str, Expr | None]:
    """Return the description of a window, its name, and the condition under which it is one, None where that is always."""
    accesses, axes = Accesses(known, NO_RANGE), taps.axes

    def step(r: Read, index: str) -> Expr:
        terms = []
        for n, i in enumerate(r.indices):
            coefficient = i.coefficient(index) if isinstance(i, Affine) else None
            if coefficient is not None and coefficient.terms:
                stride = None if n == known.units[r.operand] else known.nest.stride(r.operand, n)
                terms.append(product_of(IndexValue(coefficient), stride))
        return sum_of(terms)

    def first(r: Read) -> Expr:
        return accesses.offset(
            replace(r, indices=tuple(at_origin(i, axes, lane) for i in r.indices if isinstance(i, Affine))), {}
        )

    windows = [Init((IndexValue(a.extent), step(taps.weight, a.index), step(taps.element, a.index))) for a in axes]
    guards = []
    for g in taps.guards:
        along, beside = (IndexValue(g.condition.coefficient(i) or Affine.of(0)) for i in (axes[g.axis].index, lane))
        guards.append(Init((number(g.axis), along, beside, IndexValue(at_origin(g.condition, axes, lane)))))
    members = (
        Address(taps.weight.operand, None),
        first(taps.weight),
        Address(taps.element.operand, None),
        first(taps.element),
        step(taps.element, lane),
        number(int(taps.padded)),
        Init(tuple(windows)),
        Init(tuple(guards)),
    )
    name = known.nest.fresh("window")
    kind = Named("opc::tap_sums", (taps.element.type, len(axes), len(guards)))
    ones: Expr | None = None
    for one in taps.ones:
        asked = compare("eq", IndexValue(one), number(1))
        ones = asked if ones is None else Call("and", (ones, asked), DType.BOOL)
    return (Let(name, kind, Init(members)),), name, ones
