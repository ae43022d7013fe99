"""Remainders and quotients of an index that its range decides: of `i` below `n`, `i % n` is `i` and `i // n` is 0.

Digits of a position, `p // s % d` of a `p` below `s * d`, lose the remainder that the first of them does not need. A division
takes longer than what it is an index for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.analysis.bounds.quotients import quotient
from opc.ir.affine import Affine, Atom, FloorDiv, Mod
from opc.ir.expr import Axis, Expr, IndexValue, Read, Reduce, children, with_children
from opc.ir.expr_nodes import with_indices
from opc.ir.op import Op

_Extents = Mapping[str, Affine]


def decide_remainders(op: Op) -> Op:
    """Return the op without the remainders and quotients that the ranges of its indices decide."""
    dims = dict(op.dims)
    body = []
    for s in op.body:
        entries = zip(s.indices, op.operand(s.target).dims, strict=True)
        extents = {i: _whole(d, dims) for i, d in entries if isinstance(i, str) and isinstance(d, Affine)}
        body.append(s.with_value(_Ranges(dims, extents).expr(s.value)))
    return op.with_body(tuple(body))


def _whole(size: Affine, dims: Mapping[str, Affine]) -> Affine:
    """Return a size with derived dimensions written out, so that equal ones compare equal."""
    return size.substitute(lambda s: _whole(dims[s.name], dims) if s.name in dims and str(s) == s.name else None)


class _Ranges:
    """The indices in scope, each from 0 to below its extent."""

    def __init__(self, dims: Mapping[str, Affine], extents: _Extents) -> None:
        self.dims, self.extents = dims, extents

    def expr(self, e: Expr) -> Expr:
        """Return an expression in this scope."""
        match e:
            case IndexValue():
                value = self.affine(e.value)
                return e if value == e.value else IndexValue(value, e.span)
            case Reduce():
                own = {a.index: _whole(a.extent, self.dims) for a in e.axes if isinstance(a, Axis)}
                axes = tuple([Axis(a.index, self.affine(a.extent)) if isinstance(a, Axis) else a for a in e.axes])
                body = _Ranges(self.dims, {**self.extents, **own}).expr(e.body)
                return e if axes == e.axes and body is e.body else Reduce(e.kind, axes, body, e.type, e.span)
            case _:
                kept = children(e)
                new = tuple([self.expr(c) for c in kept])
                e = e if all(a is b for a, b in zip(kept, new)) else with_children(e, new)
        if isinstance(e, Read):
            return with_indices(e, tuple([self.affine(i) if isinstance(i, Affine) else i for i in e.indices]))
        return e

    def affine(self, a: Affine) -> Affine:
        """Return an index in this scope."""
        if not any(isinstance(atom, FloorDiv | Mod) for monomial, _ in a.terms for atom in monomial):
            return a
        return a.map_atoms(self.atom)

    def atom(self, atom: Atom) -> Affine:
        """Return one factor of an index in this scope."""
        if not isinstance(atom, FloorDiv | Mod):
            return Affine.of(atom)
        numerator, divisor = self.affine(atom.numerator), self.affine(atom.denominator)
        if any(bound == _whole(divisor, self.dims) for bound in self.bounds(numerator)):
            return numerator if isinstance(atom, Mod) else Affine.of(0)
        return numerator % divisor if isinstance(atom, Mod) else numerator // divisor

    def bounds(self, a: Affine) -> Iterator[Affine]:
        """Yield what an index, or the quotient of one by a size, is below, where it is not negative."""
        if a.index is not None and a.index in self.extents:
            yield self.extents[a.index]
        digit = a.single
        if isinstance(digit, FloorDiv) and (index := digit.numerator.index) is not None and index in self.extents:
            found = quotient(self.extents[index], _whole(digit.denominator, self.dims))
            yield from () if found is None else (found,)
