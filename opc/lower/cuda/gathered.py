"""Factors of sums of products that are windows: an element lies where a point and a term tell together, or is 0.

What an index is made of is either a point's or a term's, so that both can be found ahead, and added up for each element. Where it
is divided, as it is where a window is turned round, a term's remainder has to be the one that completes the point's.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping

from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine, Dim, FloorDiv, Index, Mod
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Const, Expr, IndexValue, Read
from opc.ir.op import Op
from opc.lower.cuda.small import most_among
from opc.lower.guards import Guard, inside, without_division
from opc.records import dataclass, replace

_MOST_TESTS = 4
"""How many coordinates may have to be tested."""

_UNBOUNDED = Affine.of(2**63 - 1)
"""The size of coordinates that may be any number which is not negative."""


@dataclass(frozen=True, slots=True)
class Gathered:
    """A factor that is `read` where the coordinates of `tests` are within their sizes and `steps` divide without rest, else 0."""

    read: Read
    tests: tuple[tuple[Affine, Affine], ...]
    steps: tuple[tuple[Affine, Affine], ...]
    """What is divided, each by what."""
    along: str | None
    """The point, or the term, along which elements lie neighbour by neighbour."""
    most: Affine
    """What no coordinate is greater than, and no remainder, as `opc.lower.cuda.small` bounds numbers."""

    @property
    def numbers(self) -> int:
        """How many numbers a place has beside its offset."""
        return len(self.tests) + len(self.steps)


def gathered_of(
    op: Op,
    e: Expr,
    guards: Iterable[Guard],
    terms: frozenset[str],
    extents: Mapping[str, Affine],
    groups: Mapping[str, Affine],
    positive: Callable[[Affine], bool],
) -> Gathered | None:
    """Return a factor as one that is found by places; None where it is none.

    `terms` are the indices of the sum, `extents` what indices are within, and `groups` how many groups an index counts;
    `positive` tells which divisors are known to be.
    """
    optional = {i.name for i in op.inputs if i.optional}
    if not isinstance(e, Read) or e.checked or e.operand in optional or e.pad not in (None, Const(0, Weak.INT)):
        return None
    indices = [i for i in e.indices if isinstance(i, Affine)]
    if len(indices) < len(e.indices):
        return None
    required = known_of(op)
    bounds, steps = list[Affine](), list[tuple[Affine, Affine]]()
    for g in guards:
        if isinstance(g, Affine):
            bounds.append(g)
        elif (step := _step(g)) is not None:
            steps.append(step)
        else:
            return None
    if e.pad is not None:
        sizes = tuple(d for d in op.operand(e.operand).dims if isinstance(d, Affine))
        known = {Affine.of(Index(i)): x for i, x in extents.items()}
        whole = {i: s for i, s in zip(indices, sizes, strict=True) if _is_whole(i, s, extents, groups, required)}
        bounds += (without_division(b, positive) for b in inside(e, sizes, known | whole))
    divided = [FloorDiv(*s) for s in steps]
    for index in indices:
        if isinstance(index.single, FloorDiv) and index.single in divided:
            continue
        if not _is_apart(index, terms):
            return None
    if not all(_is_apart(a, terms) for a in (*bounds, *(n for n, _ in steps))) or any(d.indices() for _, d in steps):
        return None
    tests = _tests(bounds)
    if len(tests) > _MOST_TESTS:
        return None
    last = indices[-1] if indices else Affine.of(0)
    # Neighbours are all there or none is: what is tested is not along them.
    tested = frozenset().union(*(a.indices() for a in (*(t for t, _ in tests), *(n for n, _ in steps))))
    along = next((i for i in sorted(extents) if i not in tested and _is_along(last, i, extents, groups)), None)
    numbers = [*(n for test in tests for n in test if n != _UNBOUNDED), *(divisor for _, divisor in steps)]
    named = frozenset().union(*(n.indices() for n in numbers))
    most = most_among(numbers, {i: extent for i, extent in {**extents, **groups}.items() if i in named})
    return Gathered(replace(e, pad=None), tests, tuple(steps), along, most)


def known_of(op: Op) -> list[Expr]:
    """Return what holds in each call that is allowed: what is required, and what sizes are."""
    sizes = (Call("eq", (IndexValue(Affine.of(Dim(name))), IndexValue(size)), DType.BOOL) for name, size in op.dims)
    return [*(r.condition for r in op.require), *sizes]


def _step(g: Expr) -> tuple[Affine, Affine] | None:
    """Return what a condition asks to be divided without rest, and by what."""
    if not isinstance(g, Call) or g.fn != "eq":
        return None
    a, b = map(affine_of, g.args)
    found = (a - b).single if a is not None and b is not None else None
    return (found.numerator, found.denominator) if isinstance(found, Mod) else None


def _tests(bounds: Iterable[Affine]) -> tuple[tuple[Affine, Affine], ...]:
    """Return what must not be negative as coordinates and the sizes that these have to be below."""
    left, found = list(dict.fromkeys(bounds)), list[tuple[Affine, Affine]]()
    while left:
        low = left.pop(0)
        high = next((b for b in left if not (low + b).indices()), None)
        if high is None:
            found.append((low, _UNBOUNDED))
        else:
            left.remove(high)
            # The one that counts up is the coordinate.
            low, high = (high, low) if str(low).startswith("-") and not str(high).startswith("-") else (low, high)
            found.append((low, low + high + 1))
    return tuple(found)


def _is_apart(a: Affine, terms: frozenset[str]) -> bool:
    """Whether each part of an index is of points alone, or of terms alone."""
    for monomial, _ in a.terms:
        own = frozenset().union(*(Affine.of(atom).indices() for atom in monomial))
        if own & terms and own - terms:
            return False
    return True


def of_terms(a: Affine, terms: tuple[str, ...]) -> Affine:
    """Return the part of an index that terms tell."""
    found = Affine.of(0)
    for monomial, c in a.terms:
        part = Affine(((monomial, c),))
        if part.indices() and part.indices() <= set(terms):
            found += part
    return found


def of_points(a: Affine, terms: tuple[str, ...]) -> Affine:
    """Return the part of an index that points tell, and what is the same everywhere."""
    return a - of_terms(a, terms)


def _is_along(a: Affine, index: str, extents: Mapping[str, Affine], groups: Mapping[str, Affine]) -> bool:
    """Whether an index is another one, or the place of that in one of some groups that lie on end."""
    rest = a - Index(index)
    return not rest.terms or any(rest == extents[index] * Index(g) for g in groups)


def _is_whole(
    a: Affine, size: Affine, extents: Mapping[str, Affine], groups: Mapping[str, Affine], required: Collection[Expr]
) -> bool:
    """Whether an index is the place in one of as many groups as an axis consists of, and so within it."""
    for index, extent in extents.items():
        rest = a - Index(index)
        for g, count in groups.items():
            if rest == extent * Index(g) and is_equal(size, extent * count, required):
                return True
    return False


def is_equal(a: Affine, b: Affine, required: Collection[Expr]) -> bool:
    """Whether two sizes are the same in each call that is allowed."""
    if a == b:
        return True
    if any({a, b} == set(map(affine_of, r.args)) for r in required if isinstance(r, Call) and r.fn == "eq"):
        return True
    # (a // g) * g is a where that is required to be divided by g.
    return any(b == (a // d) * d for d in divisors(a, required))


def divisors(a: Affine, required: Collection[Expr]) -> Iterable[Affine]:
    """Yield what a size is required to be divided by."""
    for r in required:
        if isinstance(r, Call) and (step := _step(r)) is not None and step[0] == a:
            yield step[1]


def multiples(a: Affine, of: Affine, required: Collection[Expr]) -> Affine | None:
    """Return how many times a size is another one, None where it is not known to be a multiple."""
    own = [a, *(x for r in required if isinstance(r, Call) and r.fn == "eq" for x in _other(a, r))]
    for x in own:
        if not (x % of).terms:
            return x // of
    return next((d for d in divisors(a, required) if a // d == of), None)


def _other(a: Affine, r: Call) -> Iterable[Affine]:
    sides = [affine_of(x) for x in r.args]
    if a in sides:
        yield from (x for x in sides if x is not None and x != a)
