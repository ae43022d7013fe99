"""Sums over weighted windows and sums of products as C++: what the runtime is told, which then computes the row."""

from __future__ import annotations

from dataclasses import replace

from opc.emit.cpp.expressions import c_compute
from opc.emit.nests.base import parenthesised
from opc.emit.nests.region import Leaf, Range, Regions
from opc.ir.affine import Affine
from opc.ir.expr import Call, Expr, Read, Reduce, reads
from opc.lower.guards import Guard, is_known_inside
from opc.lower.nests.taps import Taps, at_origin, is_product, taps_of


def weighted_window(regions: Regions, over: Range, e: Reduce, under: tuple[Guard, ...]) -> Taps | None:
    """Return a reduction as a weighted window, if it is one of a whole row over operands that are read where they lie.

    `under` are further conditions under which it counts.
    """
    w = regions.writer
    taps = taps_of(w.op, e, over.lane, under, w.sizes, regions.bounded, regions.positive) if over.low == "0" else None
    if taps is None or not is_known_inside(taps.weight, w.sizes(taps.weight.operand), regions.bounded):
        return None
    return taps if lie(regions, (taps.weight, taps.element)) and runs_along(regions, taps.element) else None


def adds_products(regions: Regions, e: Reduce, body: Expr, lane: str) -> bool:
    """Whether a reduction along its own lane is a sum of products of elements of operands that are read where they lie."""
    if e.kind != "sum" or not is_product(body, e.type, lane):
        return False
    factors = tuple(reads(body))
    return len(factors) == 2 and lie(regions, factors) and all(runs_along(regions, r) for r in factors)


def lie(regions: Regions, found: tuple[Read, ...]) -> bool:
    """Whether reads are of operands that are there, as they are computed."""
    w = regions.writer
    missing = {r.operand for r in found if w.is_optional(r.operand)} - regions.given
    return not missing and all(r.operand not in regions.locals and r.operand not in regions.gathered for r in found)


def runs_along(regions: Regions, r: Read) -> bool:
    """Whether the last index of a read runs along what is contiguous."""
    return regions.units[r.operand] == len(r.indices) - 1


def write_taps(regions: Regions, taps: Taps, lane: str) -> tuple[str, str]:
    """Write the description of a window; return its name and the condition under which it is one, empty where that is always."""
    w = regions.writer
    leaf = Leaf(regions, Range("", "", ""))
    name = w.names.fresh("window")
    axes = taps.axes

    def step(r: Read, index: str) -> str:
        terms = []
        for n, i in enumerate(r.indices):
            coefficient = i.coefficient(index) if isinstance(i, Affine) else None
            if coefficient is None or not coefficient.terms:
                continue
            text = leaf.affine(coefficient)
            unit = n == regions.units[r.operand]
            stride = f"{w.view(r.operand)}.stride[{n}]"
            terms.append(text if unit else stride if text == "1" else f"{parenthesised(text)} * {stride}")
        return " + ".join(terms) or "0"

    def first(r: Read) -> str:
        return leaf.offset(replace(r, indices=tuple(at_origin(i, axes, lane) for i in r.indices if isinstance(i, Affine))), {})

    windows = [f"{{{leaf.affine(a.extent)}, {step(taps.weight, a.index)}, {step(taps.element, a.index)}}}" for a in axes]
    guards = []
    for g in taps.guards:
        along, beside = (g.condition.coefficient(i) or Affine.of(0) for i in (axes[g.axis].index, lane))
        rest = leaf.affine(at_origin(g.condition, axes, lane))
        guards.append(f"{{{g.axis}, {leaf.affine(along)}, {leaf.affine(beside)}, {rest}}}")
    kind = f"opc::tap_sums<{c_compute(taps.element.type)}, {len(axes)}, {len(guards)}>"
    lines = [
        f"{w.view(taps.weight.operand)}.data, {first(taps.weight)},",
        f"{w.view(taps.element.operand)}.data, {first(taps.element)},",
        f"{step(taps.element, lane)}, {'true' if taps.padded else 'false'},",
        f"{{{', '.join(windows)}}},",
        f"{{{', '.join(guards)}}}}};",
    ]
    w.put(f"const {kind} {name} = {{", *(f"    {line}" for line in lines))
    return name, " && ".join(f"{leaf.affine(one)} == 1" for one in taps.ones)


def product_text(result: str, e: Expr, leaf: Leaf, over: Range) -> str:
    """Return the statement that adds the products of a range of a lane."""
    assert isinstance(e, Call), "a product of reads"
    arguments = []
    for r in e.args:
        assert isinstance(r, Read), "a product of reads"
        first = replace(r, indices=tuple(at_origin(i, (), over.lane) for i in r.indices if isinstance(i, Affine)))
        last = r.indices[-1]
        step = last.coefficient(over.lane) if isinstance(last, Affine) else None
        assert step is not None, "its index moves evenly"
        text = "opc::constant<1>()" if step == Affine.of(1) else leaf.step or leaf.affine(step)
        arguments.append(f"{leaf.writer.view(r.operand)}.data + ({leaf.offset(first, {})}), {text}")
    return f"opc::add_products({result}, {', '.join(arguments)}, {over.low}, {over.high});"
