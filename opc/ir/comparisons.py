"""What a comparison of whole numbers says: which sums are not negative where it holds.

Terms that move from one side to the other may make up a sum of more than 64 bits, where int attributes are far from 0: `k - n` of
`i <= k - n`, and `i + k` of a gradient that reads at `i + k` what the op reads at `i - k`. `fitting` has no such sum.
"""

from __future__ import annotations

from opc.ir.affine import Affine, Atom, AttrInt, Minimum, Mod, Symbol, parts_of
from opc.ir.node import memoised

OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}
"""The comparison that holds where another one does not."""


def excess(fn: str, a: Affine, b: Affine) -> Affine:
    """Return what is not negative just where `a < b`, `a <= b`, `a > b` or `a >= b` holds."""
    more = a - b if fn in ("gt", "ge") else b - a
    return more if fn in ("le", "ge") else more - 1


def told(fn: str, a: Affine, b: Affine) -> tuple[Affine, ...]:
    """Return what is not negative where any comparison holds; that of `ne` says nothing of what is greater."""
    if fn == "ne":
        return ()
    return (a - b, b - a) if fn == "eq" else (excess(fn, a, b),)


MOST_PARTS = 2**12
"""What products of attributes are divided by at most, so that a sum of them fits: factors of more are not looked at."""


def is_number(a: Symbol) -> bool:
    """Whether a symbol is an int attribute, which may be any number."""
    return isinstance(a, AttrInt) and not a.flag


@memoised
def said_by_attributes(e: Affine) -> Affine:
    """Return the terms of a sum that hold an int attribute, and may be as far from 0 as one."""
    return Affine(tuple((m, c) for m, c in e.terms if any(map(_is_far, m))))


def _is_far(atom: Atom) -> bool:
    """Whether an atom may be as far from 0 as an attribute: a remainder, and what is cut on both sides, are not."""
    match atom:
        case Mod() if atom.denominator.constant is not None:
            return False
        case Minimum() if any(e.constant is not None for e in parts_of(atom)):
            (other,) = [e for e in parts_of(atom) if e.constant is None]
            inner = [a for m, c in other.terms for a in m if c < 0 and isinstance(a, Minimum)]
            return not any(e.constant is not None for a in inner for e in parts_of(a)) and _holds_number(atom)
        case _:
            return _holds_number(atom)


def _holds_number(atom: Atom) -> bool:
    return any(map(is_number, Affine.of(atom).atoms()))


@memoised
def digits(e: Affine, rest: Affine) -> tuple[int, Affine, Affine]:
    """Return s, a and b with `e + rest == s*a + b`: sums that fit into 64 bits where each product of `e`, and `rest`, does."""
    weight = sum(abs(c) for _, c in e.terms) + bool(rest.terms)
    s = 1 << weight.bit_length()
    high, low = rest // s, rest % s
    for monomial, c in e.terms:
        product = Affine(((monomial, 1),))
        high, low = high + product // s * c, low + product % s * c
    return s, high, low


@memoised
def fitting(f: Affine) -> tuple[Affine, Affine] | None:
    """Return two expressions of which the first is not less than the second just where `f` is not negative, both of 64 bits where
    each product of attributes is. None where `f` holds no attribute, or one as the factor of an index.
    """
    said = said_by_attributes(f)
    if not said.terms or said.indices():
        return None
    rest = f - said
    if len(said.terms) == 1 and abs(said.terms[0][1]) == 1:
        return (said, -rest) if said.terms[0][1] == 1 else (rest, -said)
    s, high, low = digits(said, rest)
    return None if s > MOST_PARTS else (high + low // s, Affine.of(0))


@memoised
def compared(fn: str, a: Affine, b: Affine) -> tuple[str, Affine, Affine] | None:
    """Return a comparison that says the same of two sides that fit into 64 bits; None where `a` and `b` are such sides.

    A side that is one product fits as it stands. An equation holds modulo 2^64 too, but for one of several attributes.
    """
    if all(len(e.terms) < 2 or not said_by_attributes(e).terms for e in (a, b)):
        return None
    if fn in ("eq", "ne"):
        said = said_by_attributes(a - b)
        if len(said.terms) != 1 or abs(said.terms[0][1]) != 1 or said.indices():
            return None
        rest = a - b - said
        return (fn, said, -rest) if said.terms[0][1] == 1 else (fn, rest, -said)
    sides = fitting(excess(fn, a, b))
    return None if sides is None else ("ge", *sides)
