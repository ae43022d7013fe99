"""Partial derivatives of one scalar expression with respect to the elements it reads.

`partials(e)` gives, for every access `x[f(i, r)]` under the reduction loops `r` that surround it, the factor D such that

    d e(i) = sum over accesses, sum over r, of D(i, r) * d x[f(i, r)]

Reverse mode multiplies D by the adjoint and transposes the access; forward mode multiplies it by the tangent there. A conditional
passes its condition on to the factors, so that a side that is not chosen contributes nothing, not even NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from opc.analysis.elaborate.typing import derivative_template
from opc.analysis.patterns import is_number
from opc.analysis.runs import bound_on
from opc.diagnostics import Diagnostic, SpecError
from opc.ir.affine import Affine, Index, product
from opc.ir.dtypes import DType, ValueType
from opc.ir.expr import (
    Axis,
    Call,
    Cast,
    Expr,
    GroupAxis,
    GroupIndex,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    ReduceAxis,
    Select,
    conjuncts,
    free_indices,
    reads,
    walk,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, Group, Operand, Ties
from opc.records import dataclass, replace
from opc.transform import algebra, scalar
from opc.transform.indices import INDEX_NAMES, Namer, bare, bound_indices, rename_bound, store_values, substitute
from opc.transform.scalar import ONE, ZERO


@dataclass(frozen=True, slots=True)
class ReadSite:
    """One way an expression reads an operand: the read, and the reduction loops around it, outermost first."""

    read: Read
    loops: tuple[ReduceAxis, ...] = ()


Partials = dict[ReadSite, Expr]


class Differentiator:
    """Differentiates expressions of one op; `active` says which operands take part."""

    def __init__(self, active: Callable[[str], bool], namer: Namer, ties: Ties = Ties.FIRST) -> None:
        self.active = active
        self.namer = namer
        self.ties = ties

    def partials_of(self, s: Assign, operand: Operand) -> Partials:
        """Return the factor of every access in the value of a statement, whose target is `operand`."""
        found = self.partials(s.value, Read(s.target, bare(s.indices), operand.type))
        for access in found:
            _tell_apart([d.name for d in operand.dims if isinstance(d, Group)], access.loops, s.value)
        return found

    def partials(self, e: Expr, result: Expr | None = None) -> Partials:
        """Return the factor of every access in `e`; `result`, if given, is a cheaper way to write the value of `e`.

        Raises:
            SpecError: for an expression that has no derivative in the language.
        """
        if not any(self.active(r.operand) for r in reads(e)):
            return {}
        match e:
            case Read():
                return self._read(e)
            case Call():
                return self._call(e, e if result is None else result)
            case Select():
                return self._select(e)
            case Cast():
                return {a: scalar.cast(e.type, d) for a, d in self.partials(e.arg).items()} if _floats(e) else {}
            case Reduce():
                return self._reduce(e, e if result is None else result)
            case _:
                return {}

    def _read(self, e: Read) -> Partials:
        return {ReadSite(e): ONE} if self.active(e.operand) else {}

    def _call(self, e: Call, result: Expr) -> Partials:
        if e.type is DType.BOOL:
            return {}
        total: Partials = {}
        texts = FUNCTIONS[e.fn].derivative
        for i, arg in enumerate(e.args):
            inner = self.partials(arg) if texts is None or texts[i] != "0" else {}
            if not inner:
                continue
            if texts is None:
                raise SpecError([Diagnostic(f"the function table has no derivative of {e.fn}", e.span, "use `gradient: none`")])
            types = e.args[0].type, e.args[1].type if len(e.args) > 1 else None, e.type
            factor = _fill(template(texts[i], *types), {"x": e.args[0], "y": e.args[-1], "r": result})
            if bound_indices(factor) & {a.index for access in inner for a in access.loops if isinstance(a, Axis)}:
                # The derivative of a sum squared holds the sum: its index is not that of the access.
                factor = rename_bound(factor, self._clear_of(e))
            for access, d in inner.items():
                total[access] = algebra.add(total.get(access, ZERO), algebra.mul(factor, d))
        return _nonzero(total)

    def _select(self, e: Select) -> Partials:
        then, other = self.partials(e.then), self.partials(e.other)
        accesses = dict.fromkeys((*then, *other))
        return _nonzero({a: scalar.select(e.cond, then.get(a, ZERO), other.get(a, ZERO)) for a in accesses})

    def _reduce(self, e: Reduce, result: Expr) -> Partials:
        if e.kind in ("any", "all", "argmax", "argmin"):
            return {}
        inner = self.partials(e.body)
        if not inner:
            return {}
        for access in inner:
            _tell_apart([a.name for a in e.axes if not isinstance(a, Axis)], access.loops, e.body)
        if e.kind in ("max", "min"):
            return self._of_extremum(e, inner)
        weight: Expr = ONE if e.kind == "sum" else self._product_of_others(e, result)
        return _nonzero({replace(a, loops=(*e.axes, *a.loops)): algebra.mul(weight, d) for a, d in inner.items()})

    def _of_extremum(self, e: Reduce, inner: Partials) -> Partials:
        """Return the partials of a max or min: those of its body, at the position it takes its value from."""
        if self.ties is Ties.EVEN:
            share = self._shared(e)
            return _nonzero({replace(a, loops=(*e.axes, *a.loops)): algebra.mul(share, d) for a, d in inner.items()})
        where = self._position(e) if len(_named_axes(e)) == len(e.axes) else {}
        if not where:
            return _nonzero({replace(a, loops=(*e.axes, *a.loops)): algebra.mul(self._chosen(e), d) for a, d in inner.items()})
        found: Partials = {}
        for access, d in inner.items():
            read, factor = store_values(access.read, where), store_values(d, where)
            sloped = any(isinstance(a, Axis) and a.extent.indices() & where.keys() for a in access.loops)
            if isinstance(read, Read) and factor is not None and not sloped:
                moved = ReadSite(read, access.loops)
                found[moved] = algebra.add(found.get(moved, ZERO), factor)
            else:
                found[replace(access, loops=(*e.axes, *access.loops))] = algebra.mul(self._chosen(e), d)
        return _nonzero(found)

    def _position(self, e: Reduce) -> dict[str, Expr]:
        """Return where a max or min takes its value from: for each index, the first position in row-major order."""
        axes = _named_axes(e)
        first = rename_bound(Reduce(f"arg{e.kind}", e.axes, e.body, DType.INT64), self._clear_of(e))
        where: dict[str, Expr] = {}
        for i, a in enumerate(axes):
            digit: Expr = first
            below = product(b.extent for b in axes[i + 1 :])
            if below.constant != 1:
                digit = scalar.raw("floordiv", digit, scalar.index_value(below))
            if i > 0:
                digit = scalar.raw("mod", digit, scalar.index_value(a.extent))
            where[a.index] = digit
        return where

    def _shared(self, e: Reduce) -> Expr:
        """1 over the number of positions that attain a max or min at each of these, else 0."""
        namer = self._clear_of(e)
        best = rename_bound(e, namer)
        attains = scalar.raw("eq", e.body, best)
        body = scalar.select(attains, scalar.cast_literal(e.body.type, ONE), ZERO)
        count = rename_bound(Reduce("sum", e.axes, body, e.body.type), namer)
        return scalar.select(attains, algebra.div(ONE, count), ZERO)

    def _chosen(self, e: Reduce) -> Expr:
        """1 at the position a max or min takes its value from, the first in row-major order, else 0."""
        position: Expr = ZERO
        for i, a in enumerate(e.axes):
            below = product(b.size for b in e.axes[i + 1 :])
            here = IndexValue(Affine.of(Index(a.index))) if isinstance(a, Axis) else GroupIndex(a.name)
            position = algebra.add(position, algebra.mul(here, scalar.index_value(below)))
        where = rename_bound(Reduce(f"arg{e.kind}", e.axes, e.body, DType.INT64), self._clear_of(e))
        return scalar.select(scalar.raw("eq", position, where), ONE, ZERO)

    def _product_of_others(self, e: Reduce, result: Expr) -> Expr:
        """The product of all other elements, which unlike result / element holds at zeros too.

        Along one axis it is that of the elements before times that of those behind, each a running product, which holds to every
        order. Products over several axes are nested by now (`normalize.nest_products`). Over whole groups and runs, see below.
        """
        axes = _named_axes(e)
        if not axes or _is_over_run(e):
            return self._others_of_all(e, result)
        namer = self._clear_of(e)
        here, extent = Affine.of(Index(axes[0].index)), axes[0].extent
        first, second = namer.fresh(*INDEX_NAMES), namer.fresh(*INDEX_NAMES)
        before = substitute(rename_bound(e.body, namer), {axes[0].index: Affine.of(Index(first))})
        behind = substitute(rename_bound(e.body, namer), {axes[0].index: here + 1 + Index(second)})
        running = Reduce("prod", (Axis(first, here),), before, e.type)
        left = Reduce("prod", (Axis(second, extent - 1 - here),), behind, e.type)
        return scalar.raw("mul", running, left)

    def _others_of_all(self, e: Reduce, result: Expr) -> Expr:
        """The product of all other elements of whole groups, where no element stands before another, and of runs, for each of
        which running products would go through the whole range. It is asked of the elements of the run alone.

        Let P be the product of all elements, Q that of those other than 0, z the number of zeros, and S their sum, which is 0 but
        has slope 1 in each of them. It is P / x where x is not 0; elsewhere Q for z = 1, Q * (S - x) for z = 2, and 0 for z > 2.
        So its own derivative holds at zeros too; that of its derivative would need the zeros two by two.
        """
        namer = self._clear_of(e)
        one = scalar.cast_literal(e.body.type, ONE)
        run = e.body if isinstance(e.body, Select) and _is_over_run(e) else None
        x = e.body if run is None else run.then
        zero = scalar.raw("eq", x, ZERO)

        def over(kind: str, body: Expr, of: ValueType) -> Expr:
            body = body if run is None else scalar.select(run.cond, body, ONE if kind == "prod" else ZERO)
            return rename_bound(Reduce(kind, e.axes, body, of), namer)

        nonzero = over("prod", scalar.select(zero, one, x), e.type)
        count = over("sum", scalar.cast(DType.INT64, zero), DType.INT64)
        other = algebra.sub(over("sum", scalar.select(zero, x, ZERO), e.type), x)
        alone, two = (scalar.raw("eq", count, scalar.number(n)) for n in (1, 2))
        rest = scalar.select(alone, one, scalar.select(two, other, ZERO))
        return scalar.select(zero, algebra.mul(nonzero, rest), algebra.div(result, x))

    def _clear_of(self, e: Call | Reduce) -> Namer:
        return Namer(self.namer.taken | bound_indices(e) | free_indices(e))


def _tell_apart(groups: Sequence[str], loops: Iterable[ReduceAxis], e: Expr) -> None:
    """Refuse loops over a group of axes inside one over the same group: both have its name, and a term may stand in both.

    `normalize.hoist` has moved the inner one, in `e`, to a statement of its own, unless it found no size for that.

    Raises:
        SpecError: if there are such loops.
    """
    twice = {a.name for a in loops if isinstance(a, GroupAxis) and a.name in groups}
    if twice:
        name = GroupRef(min(twice))
        own = (
            r.span for r in walk(e) if isinstance(r, Reduce) and any(a.name in twice for a in r.axes if isinstance(a, GroupAxis))
        )
        message = f"the gradient of this reduction over {name}, inside a loop over {name}, can't be derived"
        hint = "give the inner reduction a statement of its own, or the op `gradient: none`"
        raise SpecError([Diagnostic(message, next(own, e.span), hint)])


def _named_axes(e: Reduce) -> list[Axis]:
    return [a for a in e.axes if isinstance(a, Axis)]


def _is_over_run(e: Reduce) -> bool:
    """Whether a product is over a run that data tells of its axis, and 1 elsewhere."""
    axes = _named_axes(e)
    if len(e.axes) != 1 or not axes or not isinstance(e.body, Select) or not is_number(e.body.other, 1):
        return False
    return any(bound_on(c, axes[0].index) is not None for c in conjuncts(e.body.cond))


def _floats(e: Cast) -> bool:
    return e.type is not DType.BOOL and not (isinstance(e.type, DType) and e.type.is_integer)


def _nonzero(found: Partials) -> Partials:
    return {a: d for a, d in found.items() if not scalar.is_zero(d)}


@lru_cache(maxsize=1024)
def template(text: str, x: ValueType, y: ValueType | None, r: ValueType) -> Expr:
    """Return a derivative of the function table over placeholders of the given types."""
    return derivative_template(text)(Read("x", (), x), None if y is None else Read("y", (), y), Read("r", (), r))


def _fill(template: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return a derivative from the function table with its arguments put in and typed anew."""
    match template:
        case Read():
            return values[template.operand]
        case Call():
            return algebra.call(template.fn, *(_fill(a, values) for a in template.args))
        case Select():
            parts = (_fill(p, values) for p in (template.cond, template.then, template.other))
            return scalar.select(*parts)
        case _:
            return template
