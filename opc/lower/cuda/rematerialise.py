"""Reductions over values that are made anew of sums of products, tile by tile, and never stored.

The gradient of a softmax between two sums of products, as in attention, has a value for each row and column: exponentials of
scores, and what these are multiplied with. They have many more elements than what they are made of, or what is made of them.
Where a value of rows and columns is a factor of another sum of products, or what a row's greatest or sum is of, it is made anew
in that statement: a tile of rows passes over the columns, makes the sums of products that values are made of as it goes, and
reduces them. What values of a row alone are used, such as the greatest score, are stored. The rule looks at what statements say
and asks for no op by name.
"""

from __future__ import annotations

from collections.abc import Mapping

from opc.ir.expr import Axis, Call, Const, Expr, Read, Reduce, Select, free_indices, outermost, reads, rewrite, walk
from opc.ir.op import Assign, Op, Operand
from opc.lower.cuda.rematerialised import rematerialised_of
from opc.lower.cuda.weigh import is_sum_of_weights, weighed_of, weights_of
from opc.lower.guards import replace_node
from opc.lower.heuristics import runs_often
from opc.lower.loop_ir import NestStage
from opc.records import replace
from opc.transform import scalar
from opc.transform.indices import Namer, bare, index_names, op_names, rename_bound
from opc.transform.normalize import placed, prune, put


def with_rematerialised(op: Op) -> tuple[Op, frozenset[str]]:
    """Return an op whose reductions make values of rows and columns anew, and the statements that do."""
    if not runs_often(op):
        return op, frozenset()
    return _Rule(op).result()


class _Rule:
    """Looks for statements that may make a factor anew."""

    def __init__(self, op: Op) -> None:
        temporaries = {t.name for t in op.temporaries}
        self.op = op
        self.body = {s.target: s for s in op.body}
        self.temporaries = {name: s for name, s in self.body.items() if name in temporaries and s.indices}
        self.found: dict[str, Assign] = {}
        self.namer = Namer(op_names(op) | index_names(op))
        self.inverses: dict[Expr, tuple[Operand, Assign]] = {}
        """Of each divisor that a row has, the temporary that holds 1 divided by it."""

    def result(self) -> tuple[Op, frozenset[str]]:
        """Return the op, and the targets of what has been changed in it."""
        for s in self.op.body:
            product = self._product(s)
            rows = None if product is None else self._values_of_rows(product)
            if product is not None and rows is not None:
                self.found |= {product.target: product, **rows}
        if not self.found:
            return self.op, frozenset()
        made: dict[str, Assign] = {}
        for s in (self.found.get(s.target, s) for s in self.op.body):
            used = {r.operand for r in reads(s.value)}
            made |= {u.target: u for _, u in self.inverses.values() if u.target in used}
            made[s.target] = s
        inverses = [o for o, _ in self.inverses.values()]
        changed = replace(self.op, body=tuple(made.values()), temporaries=(*self.op.temporaries, *inverses))
        return prune(changed, [o.name for o in self.op.outputs]), frozenset((*self.found, *(o.name for o in inverses)))

    def _product(self, s: Assign) -> Assign | None:
        """Return a statement whose factor, a temporary of rows and columns, is made anew; None where it has none."""
        match [*outermost(s.value)]:
            case [Reduce(kind="sum", body=Call(fn="mul", args=(Read() as a, Read() as b))) as e]:
                pass
            case _:
                return None
        inner = weights_of(self.op, stage := NestStage(s.target, s, ()))
        if inner is not None and weighed_of(self.op, replace(stage, assign=inner[1])) is not None:
            return None  # one pass makes all of it
        own = {str(i) for i in s.indices if isinstance(i, str)}
        columns = set(e.extents)
        for factor, other in ((a, b), (b, a)):
            rows = free_indices(factor) & own - free_indices(other)
            over = free_indices(factor) & columns
            if factor.operand not in self.temporaries or not rows or not over:
                continue
            names = frozenset((*rows, *over))
            value = self._made(s, factor, names)
            value, other = self._without_scale(value, other, free_indices(other) - free_indices(factor))
            made = s.with_value(replace_node(s.value, e, replace(e, body=scalar.raw("mul", value, other))))
            if rematerialised_of(self.op, NestStage(s.target, made, ())) is not None:
                return made
        return None

    def _made(self, s: Assign, e: Expr, names: frozenset[str]) -> Expr:
        """Return a value with what temporaries that have these indices, of a row and a column, are made of in their place."""
        namer = Namer(op_names(self.op) | {n for n in s.indices if isinstance(n, str)} | free_indices(s.value) | names)
        namer.taken |= {a.index for r in outermost(s.value) for a in r.axes if isinstance(a, Axis)}
        known: dict[Read, Expr] = {}

        def rule(e: Expr) -> Expr:
            if isinstance(e, Read) and e.operand in self.temporaries and names <= free_indices(e) and placed(e) and e.pad is None:
                if e not in known:
                    known[e] = rewrite(rename_bound(put(self.temporaries[e.operand], e), namer), rule)
                return known[e]
            return self._scaled(e) if isinstance(e, Reduce) else _with_factor_outside(e)

        return rewrite(e, rule)

    def _scaled(self, e: Reduce) -> Expr:
        """Return a sum of products with what a factor's elements are all divided by, or multiplied with, outside of it."""
        match e:
            case Reduce(kind="sum", axes=(Axis(index=term),), body=Call(fn="mul", args=(Read() as a, Read() as b))):
                for factor, other in ((a, b), (b, a)):
                    parts = self._parts(factor, term)
                    if parts is not None:
                        fn, element, scale = parts
                        return self._times(fn, replace(e, body=scalar.raw("mul", other, element)), scale)
        return e

    def _times(self, fn: str, e: Expr, scale: Expr) -> Expr:
        """Return a value divided by what a row has, or multiplied with it; for a sum of weights, of which one is 1, with 1
        divided by that, which is computed once for a row."""
        found = {r.operand: r for r in reads(scale)}
        if fn != "div" or len(found) != 1 or not is_sum_of_weights(self.temporaries, *found):
            return scalar.raw(fn, e, scale)
        ((name, read),) = found.items()
        own = self.temporaries[name]
        if read.indices != bare(own.indices):
            return scalar.raw(fn, e, scale)
        if scale not in self.inverses:
            temporary = replace(self.op.operand(name), name=self.namer.fresh(f"{name}_inverse"))
            value = scalar.raw("div", Const(1, scale.type), scale)
            self.inverses[scale] = temporary, replace(own, target=temporary.name, value=value)
        return scalar.raw("mul", e, replace(read, operand=self.inverses[scale][0].name))

    def _without_scale(self, value: Expr, other: Read, own: frozenset[str]) -> tuple[Expr, Read]:
        """Return a factor and another with what all elements of that along its own index are divided by, or multiplied with."""
        parts = self._parts(other, *own) if len(own) == 1 else None
        if parts is None:
            return value, other
        fn, element, scale = parts
        return self._times(fn, value, scale), element

    def _parts(self, e: Read, *over: str) -> tuple[str, Read, Expr] | None:
        """Return the element and the scale that a temporary is the quotient or the product of, which does not have an index."""
        if e.operand not in self.temporaries or not placed(e) or e.pad is not None:
            return None
        match put(self.temporaries[e.operand], e):
            case Call(fn=("div" | "mul") as fn, args=(Read() as element, scale)):
                stored = element.operand not in self.temporaries and element.type == scale.type == e.type
                if stored and not set(over) & free_indices(scale) and not any(isinstance(r, Reduce) for r in walk(scale)):
                    return fn, element, scale
        return None

    def _values_of_rows(self, made: Assign) -> Mapping[str, Assign] | None:
        """Return the statements that a statement depends on which reduce values of rows and columns, with these made anew; None
        where one does anything else with them, so that they would be stored all the same."""
        found: dict[str, Assign] = {}
        left = [r.operand for r in reads(made.value)]
        while left:
            s = self.temporaries.get(left.pop())
            if s is None or s.target in found or s.target in self.found:
                continue
            s = self._with_reduction(s)
            own, value = {i for i in s.indices if isinstance(i, str)}, s.value
            for e in dict.fromkeys(outermost(s.value)):
                over = set(e.extents)
                both = [n & (own | over) for n in map(free_indices, reads(e.body)) if n & own and n & over]
                body = self._made(s, e.body, both[0]) if both else e.body
                if any(isinstance(r, Reduce) for r in walk(body)):
                    value = replace_node(value, e, replace(e, body=body))
            if value != s.value:
                s = s.with_value(value)
                if rematerialised_of(self.op, NestStage(s.target, s, ())) is None:
                    return None
                found[s.target] = s
            left += [r.operand for r in reads(s.value)]
        return found

    def _with_reduction(self, s: Assign) -> Assign:
        """Return a statement without reductions with the one in it that it alone reads."""
        if any(isinstance(e, Reduce) for e in walk(s.value)):
            return s
        for name in dict.fromkeys(r.operand for r in reads(s.value)):
            inner = self.temporaries.get(name)
            users = [u for u in self.op.body if any(r.operand == name for r in reads(u.value))]
            if inner is None or users != [s] or not isinstance(inner.value, Reduce):
                continue
            if all(placed(r) and r.pad is None for r in reads(s.value) if r.operand == name):

                def rule(e: Expr, name: str = name, inner: Assign = inner) -> Expr:
                    return put(inner, e) if isinstance(e, Read) and e.operand == name else e

                return s.with_value(rewrite(s.value, rule))
        return s


def _with_factor_outside(e: Expr) -> Expr:
    """Return a choice of two products as the product of what they share and a choice."""
    match e:
        case Select(then=Call(fn="mul", args=(a, x)), other=Call(fn="mul", args=(b, y))) if x == y and a.type == b.type:
            return scalar.raw("mul", replace(e, then=a, other=b, type=a.type), x)
    return e
