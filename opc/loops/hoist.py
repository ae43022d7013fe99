"""Loop-invariant code motion, for the loops over lanes: what is the same at all lanes is computed ahead of them.

What is hoisted is what a compiler would not hoist by itself: values read from memory (`Speculative`), whose loads it can't prove
safe to carry out early, strides and sizes that it must assume the loop may write, divisions, and the part of an offset that stays
the same, without which it finds no constant step between lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opc.analysis.bounds.quotients import divisions, every_division
from opc.ir.affine import Affine, Atom, FloorDiv, Index, Mod
from opc.ir.dtypes import Weak
from opc.ir.expr import SPECULATION, Expr, IndexValue, children, traits, with_children
from opc.loops.nodes import Body, How, Let, Loop, Refuse, Statement, bodies, declared_in, own_values, with_bodies, with_own_values
from opc.loops.values import (
    Block,
    Load,
    Local,
    Member,
    Product,
    Speculative,
    Sum,
    is_one,
    product_of,
    sum_of,
    variable,
    variables,
)
from opc.records import replace

LANES = (How.VECTOR, How.REDUCTION, How.LANES)
"""The loops over lanes."""


def hoist(body: Body, fresh: Callable[[str], str], positive: Callable[[Affine], bool]) -> Body:
    """Return a body with what does not change along its loops over lanes ahead of them.

    `fresh` names new variables; `positive` says whether a divisor is greater than zero, so that dividing by it is safe anywhere.
    """
    found: list[Statement] = []
    known: dict[Expr, str] = {}
    for s in body:
        if isinstance(s, Loop) and s.how in LANES:
            hoister = _Hoister(s, fresh, positive, known)
            s = hoister.run()
            found += [*hoister.before, s]
        else:
            s = with_bodies(s, tuple(hoist(b, fresh, positive) for b in bodies(s)))
            found.append(with_own_values(s, tuple([_settled(v) for v in own_values(s)])))
    return tuple(found)


def _settled(e: Expr) -> Expr:
    """Return a value outside of loops over lanes, where nothing is gained by computing a part of it early."""
    if not traits(e) & SPECULATION:
        return e
    e = e.value if isinstance(e, Speculative) else e
    return with_children(e, tuple(map(_settled, children(e))))


class _Hoister:
    def __init__(
        self, loop: Loop, fresh: Callable[[str], str], positive: Callable[[Affine], bool], known: dict[Expr, str]
    ) -> None:
        self.loop, self.fresh, self.positive, self.known = loop, fresh, positive, known
        self.before: list[Statement] = []
        self.inner = {loop.index, *declared_in(loop.body)}

    def run(self) -> Loop:
        """Return the loop without what goes ahead of it."""
        return replace(self.loop, body=self._body(self.loop.body))

    def _body(self, body: Body) -> Body:
        found = []
        for s in body:
            s = with_own_values(s, tuple(map(self._value, own_values(s))))
            found.append(with_bodies(s, tuple(map(self._body, bodies(s)))))
        return tuple(found)

    def _varies(self, e: Expr) -> bool:
        return not self.inner.isdisjoint(variables(e))

    def _value(self, e: Expr) -> Expr:
        match e:
            case Speculative(value=value):
                return self._value(value) if self._varies(value) else self._early(value)
            case Load():
                return self._load(e)
            case Block():
                return replace(e, body=self._body(e.body), value=self._value(e.value))
            case Member(field="size" | "stride"):
                return variable(self._named(e, f"{e.owner}_{'size' if e.field == 'size' else 'step'}"))
            case IndexValue():
                return self._integer(e)
            case _:
                return with_children(e, tuple(map(self._value, children(e))))

    def _named(self, e: Expr, wanted: str) -> str:
        """Return the variable that holds an integer which stays the same."""
        if e not in self.known:
            self.known[e] = self.fresh(wanted)
            self.before.append(Let(self.known[e], Weak.INT, e))
        return self.known[e]

    def _early(self, e: Expr) -> Expr:
        """Return the variable that holds a value which is read ahead of the loop."""
        e = _settled(e)
        if e not in self.known:
            load = e
            if isinstance(e, Block) and all(isinstance(s, Let | Refuse) for s in e.body):
                self.before += e.body
                load = e.value
            operand = next((n.view for n in _loads(e)), "value")
            self.known[e] = self.fresh(f"{operand}_value")
            self.before.append(Let(self.known[e], e.type, load))
        return Local(self.known[e], e.type)

    def _integer(self, e: IndexValue) -> Expr:
        """Return an affine expression with the divisions in it that stay the same as variables."""
        value = self._without_divisions(e.value)
        return e if value is e.value else IndexValue(value, e.span)

    def _without_divisions(self, a: Affine) -> Affine:
        if not divisions(a):
            return a
        return a.map_atoms(self._atom)

    def _atom(self, atom: Atom) -> Affine:
        if not isinstance(atom, FloorDiv | Mod):
            return Affine.of(atom)
        whole = Affine.of(atom)
        if self.inner.isdisjoint(whole.indices()) and all(self.positive(d.denominator) for d in every_division(whole)):
            return Affine.of(Index(self._named(IndexValue(whole), "part")))
        numerator, denominator = (self._without_divisions(x) for x in (atom.numerator, atom.denominator))
        return numerator // denominator if isinstance(atom, FloorDiv) else numerator % denominator

    def _load(self, e: Load) -> Load:
        """Return a load with the part of its offset that stays the same in a variable, and steps along the lanes."""
        base: list[Expr] = []
        along: list[Expr] = []
        lane = Affine.of(Index(self.loop.index))
        for term in e.offset.terms if isinstance(e.offset, Sum) else (e.offset,):
            at, stride = term.factors if isinstance(term, Product) else (term, None)
            if not isinstance(at, IndexValue):
                base.append(self._scaled(self._value(at), stride, e))
                continue
            step = at.value.coefficient(self.loop.index)
            if step is None or not step.terms:
                base.append(self._scaled(self._integer(at), stride, e))
                continue
            rest = self._integer(IndexValue(at.value - step * lane))
            if rest != IndexValue(Affine.of(0)):
                base.append(product_of(rest, stride))
            scale = self._integer(IndexValue(step))
            width = scale if stride is None else variable(self._named(product_of(scale, stride), f"{e.view}_step"))
            along.append(variable(self.loop.index) if is_one(width) else Product((variable(self.loop.index), width)))
        if along and not all(isinstance(b, IndexValue) and b.value.single is not None for b in base):
            moving = [b for b in base if self._varies(b)]
            still = [b for b in base if not self._varies(b)]
            base = [*([variable(self._named(sum_of(still), f"{e.view}_base"))] if still else []), *moving]
        return replace(e, offset=sum_of(base), along=sum_of(along) if along else None)

    def _scaled(self, at: Expr, stride: Expr | None, e: Load) -> Expr:
        """Return an index times a stride, which is known ahead of the loop."""
        if stride is not None and self._varies(at):
            stride = variable(self._named(stride, f"{e.view}_step"))
        return product_of(at, stride)


def _loads(e: Expr) -> Iterator[Load]:
    if isinstance(e, Load):
        yield e
    for c in children(e):
        yield from _loads(c)
