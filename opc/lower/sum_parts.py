"""The products that a sum adds up, and the rewriting of statements whose products get temporaries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import Call, Cast, Const, Expr, GroupRef, Read, Reduce, Select, conjuncts, free_groups, free_indices
from opc.ir.op import Assign, DimSpec, Op, Operand
from opc.lower.contractions.terms import is_invariant, multiplicands
from opc.records import replace
from opc.transform.indices import Namer, bare, index_names, op_names

Loop: TypeAlias = "str | GroupRef"
Loops: TypeAlias = "dict[str | GroupRef, DimSpec]"
"""The loops around a value, outermost first, with their extents."""


class Rewriting:
    """Statements and temporaries that come before a statement of an op."""

    def __init__(self, op: Op, s: Assign) -> None:
        self.op, self.statement = op, s
        self.target: Loops = dict(zip(s.indices, op.operand(s.target).dims, strict=True))
        self.namer = Namer(op_names(op) | index_names(op))
        self.new: list[Assign] = []
        self.temporaries: list[Operand] = []

    def op_with(self, value: Expr) -> Op:
        """Return the op with them, and with another value of the statement."""
        s = self.statement
        body = tuple(new for old in self.op.body for new in ((*self.new, replace(s, value=value)) if old is s else (old,)))
        return replace(self.op, body=body, temporaries=(*self.op.temporaries, *self.temporaries))

    def stored(self, kind: str, value: Expr, own: Sequence[Loop], loops: Loops, numbers: bool = False) -> Read:
        """Return a read of a temporary, its name from `kind`, that holds a value along its `own` ones among loops."""
        name = self.namer.fresh(kind)
        element = DType.FLOAT64 if isinstance(value.type, Weak) else value.type
        self.temporaries.append(Operand(name, element, tuple(loops[i] for i in own), numbers=numbers))
        self.new.append(Assign(name, tuple(own), value, self.statement.span))
        return Read(name, bare(tuple(own)), element)

    def rows(self, factor: Expr, loops: Loops, given: Sequence[Expr]) -> Read | None:
        """Return a read of a temporary that holds a factor, a read, where all this holds, and else 0; None where that asks for
        more loops than the factor has."""
        read = factor_read(factor)
        own = [] if read is None else in_order(read, loops)
        asked = {i for i in loops if any(varies(c, i) for c in given)}
        if read is None or isinstance(factor.type, Weak) or not asked <= set(own):
            return None
        return self.stored("rows", under(factor, given), own, loops)


def parts(e: Expr, conditions: tuple[Expr, ...] = ()) -> Iterator[tuple[tuple[Expr, ...], Expr]]:
    """Yield what a sum adds up, each with its conditions."""
    match e:
        case Call(fn="add", args=(a, b)):
            yield from parts(a, conditions)
            yield from parts(b, conditions)
        case Select(other=Const(value=0)):
            yield from parts(e.then, (*conditions, *conjuncts(e.cond)))
        case Select(cond=cond) if is_invariant(cond):
            yield conditions, _with_common_factors(e)
        case _:
            yield conditions, e


def _with_common_factors(e: Select) -> Expr:
    """Return a choice between two products with the factors that they share before it: `a * b if c else a` has a."""
    then, other = list(multiplicands(e.then)), list(multiplicands(e.other))
    common = []
    for a in tuple(then):
        if a in other:
            then.remove(a)
            other.remove(a)
            common.append(a)
    if not common:
        return e
    one = Const(1, Weak.INT)
    return times([*common, replace(e, then=times(then or [one], e), other=times(other or [one], e))], e)


def under(e: Expr, conditions: Iterable[Expr]) -> Expr:
    """Return a value where all conditions hold, the first one asked first, and else 0."""
    for c in reversed(tuple(conditions)):
        e = Select(c, e, Const(0, Weak.INT), e.type)
    return e


def total(values: list[Expr], of: Expr) -> Expr:
    """Return the sum of some values, of the type of another."""
    found = values[0]
    for other in values[1:]:
        found = Call("add", (found, other), of.type)
    return found


def times(factors: list[Expr], product: Expr) -> Expr:
    """Return the product of some factors, of the type of another."""
    found = factors[0]
    for other in factors[1:]:
        found = Call("mul", (found, other), product.type)
    return found


def around(loops: Loops, e: Reduce) -> Loops:
    """Return the loops around the body of a reduction."""
    found = dict(loops)
    found.update(e.extents)
    return found


def varies(e: Expr, loop: Loop) -> bool:
    """Whether a value has a loop's index."""
    return loop.name in free_groups(e) if isinstance(loop, GroupRef) else loop in free_indices(e)


def computed_axes(e: Read) -> tuple[int, ...]:
    """Return the axes of a read whose places are data."""
    return tuple(n for n, i in enumerate(e.indices) if not isinstance(i, Affine | GroupRef))


def factor_read(e: Expr) -> Read | None:
    """Return the read that a factor is, converted or not; None for others, and for one that is padded."""
    while isinstance(e, Cast):
        e = e.arg
    return e if isinstance(e, Read) and e.pad is None else None


def with_read(e: Expr, read: Read) -> Expr:
    """Return a factor with another read in it."""
    return replace(e, arg=with_read(e.arg, read)) if isinstance(e, Cast) else read


def in_order(read: Read, loops: Loops) -> list[Loop]:
    """Return the loops that a read varies with, as its elements lie in memory."""
    found: dict[Loop, None] = {}
    for index in read.indices:
        alone = replace(read, indices=(index,))
        found |= dict.fromkeys(i for i in loops if varies(alone, i))
    return list(found)
