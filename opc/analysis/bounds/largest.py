"""The largest that an extent gets over the ranges of the indices in it."""

from __future__ import annotations

from collections.abc import Mapping

from opc.analysis.bounds.knowledge import Knowledge
from opc.analysis.bounds.prover import Prover
from opc.analysis.bounds.quotients import divisions, split_off
from opc.ir.affine import Affine, AttrInt, Symbol, maximum


def largest(known: Knowledge, extent: Affine, ranges: Mapping[str, Affine]) -> Affine | None:
    """Return a bound of an extent over the ranges of the indices in it, None when none is found."""
    # Of a size that another one divides, each part is as large; the size is then plainly a multiple, in sizes of its own.
    same = known.unplain(known.plain(extent))
    if not same.indices() and same.atoms() <= extent.atoms().union(*(r.atoms() for r in ranges.values())):
        return same
    return _bound(known, extent, ranges, known.facts)


def _bound(known: Knowledge, extent: Affine, ranges: Mapping[str, Affine], facts: tuple[Affine, ...]) -> Affine | None:
    least = Prover(facts, ranges).least(-extent)
    if least is None:
        least = Prover(facts, {n: known.expand(r) for n, r in ranges.items()}).least(known.expand(-extent))
    if least is None:
        least = Prover(tuple(map(known.plain, facts)), {n: known.plain(r) for n, r in ranges.items()}).least(known.plain(-extent))
        # A size that another divides is plainly a multiple of it, in sizes that the extent may not have.
        own = extent.atoms().union(*(r.atoms() for r in ranges.values()))
        least = found if least is not None and (found := known.unplain(least)).atoms() <= own else None
    if least is not None:
        return -least
    # Which way an index goes may be for a bool attribute to say: each has a bound of its own.
    for flag in sorted((a for a in extent.atoms() if isinstance(a, AttrInt) and a.flag), key=str):
        chosen: tuple[dict[Symbol, Affine], ...] = ({flag: Affine.of(0)}, {flag: Affine.of(1)})
        off, on = (_bound(known, extent.substitute(values.get), ranges, facts) for values in chosen)
        return None if off is None or on is None else off + Affine.of(flag) * (on - off)
    # A quotient by a size of nothing is 0; with any other size it has the bound that it has then.
    for atom in sorted(divisions(extent), key=str):
        positive = atom.denominator - 1
        if positive not in facts and known.nonnegative(atom.denominator, {}):
            some = _bound(known, extent, ranges, (*facts, positive))
            none = _bound(known, split_off(extent, atom)[1], ranges, facts)
            return None if some is None or none is None else maximum(some, none)
    return None
