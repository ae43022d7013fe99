"""Moves reductions into statements of their own, and temporaries back into their uses.

* `hoist` gives a statement to every reduction that stands under a loop it does not depend on, so that no sum is computed anew at
  every point, and to every running one beside another, which alone is one pass; `hoist(op, every=True)` to every reduction that
  is not the whole value, which differentiation asks for.
* `sink` puts a temporary that is read inside a conditional back there, so that its gradient stays inside too.
* `prune` drops statements that no output needs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from opc.analysis.bounds.largest import largest
from opc.ir.access import accesses, place
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import is_floating
from opc.ir.expr import (
    EXTREMES,
    SEARCHES,
    Axis,
    Call,
    Expr,
    GroupRef,
    Present,
    Read,
    Reduce,
    Select,
    children,
    conjuncts,
    free_groups,
    free_indices,
    has_reduction,
    operands_read,
    reads,
    rewrite,
    size,
    walk,
    with_children,
)
from opc.ir.function import CHEAP
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Assign, Op
from opc.ir.recurrence import kept_on, recurrences, recurrent
from opc.records import dataclass, replace
from opc.transform import scalar
from opc.transform.affine_rules import is_affine
from opc.transform.domain import Domain
from opc.transform.extract import Extractor, is_shadowing
from opc.transform.indices import Namer, index_names, op_names, rename_bound, substitute

LARGE = 84
"""The number of nodes beyond which a temporary is not copied into the conditionals that read it."""


def unshadow(op: Op) -> Op:
    """Return the op with the index variables a statement binds all different from one another."""
    body = []
    for s in op.body:
        if not has_reduction(s.value):
            body.append(s)
            continue
        namer = Namer({i for i in s.indices if isinstance(i, str)} | op_names(op))
        body.append(s.with_value(rename_bound(s.value, namer)))
    return op.with_body(tuple(body))


def nest_products(op: Op) -> Op:
    """Return the op with products over several axes nested, one axis in another and whole groups innermost.

    The product of all elements but one is then that of the rows beside it times that of the elements beside it in its row.
    """

    def rule(e: Expr) -> Expr:
        if not isinstance(e, Reduce) or e.kind != "prod":
            return e
        named = [a for a in e.axes if isinstance(a, Axis)]
        groups = tuple(a for a in e.axes if not isinstance(a, Axis))
        if len(named) + bool(groups) < 2:
            return e
        body = replace(e, axes=groups) if groups else e.body
        for a in reversed(named):
            body = replace(e, axes=(a,), body=body)
        return body

    return op.with_body(tuple(s.with_value(rewrite(s.value, rule)) if has_reduction(s.value) else s for s in op.body))


def hoist(op: Op, every: bool = False, exact: bool = False) -> Op:
    """Return the op with reductions moved into statements of their own; see the module's docstring, and `Extractor.exact`."""
    op = unshadow(op)
    namer = Namer(op_names(op) | index_names(op))
    extractor = Extractor(op, namer, exact)
    body: list[Assign] = []
    stepping = recurrent(op)
    for s in op.body:
        domain = Domain.of(s, op.operand(s.target))
        beside = domain if s.target not in stepping and _most_reductions(s.value) > 1 else None
        value = _hoisted(s.value, domain, (), True, _Hoist(extractor, s.target, every, beside, domain if exact else None))
        body += [*extractor.statements, s.with_value(value)]
        extractor.statements.clear()
    if not extractor.temporaries:
        return op.with_body(tuple(body))
    return replace(op, body=tuple(body), temporaries=(*op.temporaries, *extractor.temporaries))


@dataclass(frozen=True, slots=True)
class _Hoist:
    extractor: Extractor
    target: str
    every: bool
    beside: Domain | None = None
    """The loops over the target, where the statement has more than one reduction in one call, and is none of a recurrence."""
    outer: Domain | None = None
    """The loops over the target, where what nobody asks for must not be refused."""

    def made(self, e: Reduce, domain: Domain, around: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return those of the conditions `around` that tell that what `e` reads of its own recurrence is made by then."""
        op = self.extractor.op
        own = next((r for r in recurrences(op) if self.target in r.targets), None)
        if own is None:
            return ()
        index = Affine.of(Index(own.index_of(op.assignments[self.target])))
        for access in accesses(op, e):
            at = place(access.read.indices[own.axis_of(access.read.operand)]) if access.read.operand in own.targets else None
            if at is not None:
                step = index - at if own.falls else at - index
                if not replace(access, loops=(*domain.axes, *access.loops)).is_most(step, 0):
                    return tuple(c for c in around if is_affine(c))
        return ()

    def asked(self, e: Reduce, domain: Domain) -> Expr:
        """Return a maximum or minimum under the condition that the sums around it have terms, unless they have its size."""
        found: Expr = e
        if self.outer is None or e.kind not in EXTREMES:
            return e
        own = {a.extent for a in e.axes if isinstance(a, Axis) and not a.extent.indices()}
        known, free, ranges = self.extractor.inside.known(), free_indices(e), {a.index: a.extent for a in domain.axes}
        kept = {i: x for i, x in ranges.items() if i in free}  # a loop's own range says that it has a point
        for a in domain.axes[len(self.outer.axes) :]:
            if a.extent in own or a.index in free:
                continue
            count = a.extent if a.extent.indices() <= free else largest(known, a.extent, ranges)
            if count is not None and count.indices() <= free and not known.nonnegative(count - 1, kept):
                found = Select(scalar.raw("gt", scalar.index_value(count), scalar.ZERO), found, scalar.nothing(e.type), e.type)
        return found


def _hoisted(e: Expr, domain: Domain, guards: tuple[Expr, ...], root: bool, how: _Hoist, around: tuple[Expr, ...] = ()) -> Expr:
    """Return `e`, which stands inside `domain` under conditions `around`, with its reductions moved out.

    `guards` are those among the conditions that are the same at every point: they go with a reduction, so that it is not computed
    where it is not needed.
    """
    if not has_reduction(e):
        return e
    if isinstance(e, Select):
        fixed = [c for c in conjuncts(e.cond) if _is_fixed(c)]
        whole = len(fixed) == len(conjuncts(e.cond))
        inverse = (scalar.negation(e.cond),) if whole else ()
        cond = _hoisted(e.cond, domain, guards, False, how, around)
        then = _hoisted(e.then, domain, (*guards, *fixed), root and whole, how, (*around, *conjuncts(e.cond)))
        other = _hoisted(e.other, domain, (*guards, *inverse), root and whole, how, (*around, scalar.negation(e.cond)))
        return replace(e, cond=cond, then=then, other=other)
    inner = domain.inside(e.axes) if isinstance(e, Reduce) else domain
    parts, left = scalar.conditioned(e), scalar.still(around, e)
    e = with_children(e, tuple(_hoisted(c, inner, guards, False, how, (*left, *more)) for c, more in parts))
    if not isinstance(e, Reduce):
        return e
    if not ((how.every and not root) or _repeated(e, domain) or (domain == how.beside and _is_running(e))):
        return e
    found, name = None, f"{how.target}_{e.kind}"
    value = how.asked(e, domain)
    for g in reversed([g for g in how.made(e, domain, around) if g not in guards]):
        value = scalar.select(g, value, scalar.nothing(value.type))
    for g in reversed(guards):
        value = Select(g, value, scalar.nothing(value.type), value.type)
    if not any(r.checked for r in reads(e)) and not scalar.unguarded(value) & how.extractor.optional:
        found = how.extractor.extract(value, domain, name, around)
    if found is None and how.every and is_shadowing(e, domain) and any(is_floating(r.type) for r in reads(e)):
        # A derivative has both loops around each of its terms, where one would hide the other.
        found = how.extractor.set_apart(e, domain, name, (*guards, *around))
    return found or e


def _is_fixed(c: Expr) -> bool:
    """Whether a condition is the same at all points of a call."""
    return not (scalar.any_reads(c) or free_indices(c) or free_groups(c))


def _most_reductions(e: Expr) -> int:
    """Return how many reductions one call has in `e` at most, without those in others."""
    if isinstance(e, Reduce) or not has_reduction(e):
        return int(isinstance(e, Reduce))
    if isinstance(e, Select) and all(map(_is_fixed, conjuncts(e.cond))):
        return _most_reductions(e.cond) + max(_most_reductions(e.then), _most_reductions(e.other))
    return sum(map(_most_reductions, children(e)))


def hoist_from(e: Expr, domain: Domain, name: str, extractor: Extractor) -> Expr:
    """Return `e`, which stands inside `domain`, with reductions that are computed more than once moved to statements."""
    return _hoisted(e, domain, (), False, _Hoist(extractor, name, False))


def hoist_positions(
    e: Expr, domain: Domain, name: str, extractor: Extractor, guards: tuple[Expr, ...] = (), asked: bool = True
) -> Expr:
    """Return `e` with running reductions and those in the indices of its reads moved to statements.

    It stands inside `domain` under the conditions `guards`, and is `asked` for by each call that asks for something there.
    """

    def moved(e: Expr, domain: Domain, index: bool, around: tuple[Expr, ...]) -> Expr:
        if not has_reduction(e):
            return e
        if isinstance(e, Reduce) and (index or runs(e) or e.kind in SEARCHES):
            value: Expr = e
            for optional in sorted(scalar.unguarded(e) & extractor.optional):
                value = Select(Present(optional), value, scalar.nothing(e.type), e.type)
            return extractor.extract(value, domain, f"{name}_{e.kind}", around, asked) or e
        inner = domain.inside(e.axes) if isinstance(e, Reduce) else domain
        indexes = [isinstance(e, Read) and c is not e.pad for c in children(e)]
        parts, left = zip(scalar.conditioned(e), indexes, strict=True), scalar.still(around, e)
        return with_children(e, tuple(moved(c, inner, index or also, (*left, *more)) for (c, more), also in parts))

    return moved(e, domain, False, guards)


def runs(e: Expr) -> bool:
    """Whether `e` is a reduction up to or from an index on, which is cheap at all points together and dear at each alone."""
    return isinstance(e, Reduce) and len(e.axes) == 1 and isinstance(e.axes[0], Axis) and bool(e.axes[0].extent.indices())


def _is_running(e: Reduce) -> bool:
    """Whether `e` has at each point the terms that it has at the one beside it, and more: one pass computes all of them."""
    if not runs(e):
        return False
    (axis,) = e.axes
    assert isinstance(axis, Axis), "what runs up to an index has an axis"
    for index in axis.extent.indices():
        step = axis.extent.coefficient(index)
        if step is None or step.constant not in (1, -1):
            continue
        from_here = (
            substitute(e.body, {axis.index: Affine.of(Index(axis.index)) - Index(index)}) if step.constant == -1 else e.body
        )
        if index not in free_indices(e.body) or index not in free_indices(from_here):
            return True
    return False


def leading_conditions(e: Expr) -> tuple[Expr, ...]:
    """Return the conditions without which `e` is zero."""
    if isinstance(e, Select) and scalar.is_zero(e.other):
        return (*conjuncts(e.cond), *leading_conditions(e.then))
    if isinstance(e, Select) and scalar.is_zero(e.then):
        return (scalar.negation(e.cond), *leading_conditions(e.other))
    return ()


def _repeated(e: Reduce, domain: Domain) -> bool:
    """Whether `e` is computed more than once with the same result inside `domain`."""
    free, groups = free_indices(e), free_groups(e)
    return any(a.index not in free for a in domain.axes) or any(name not in groups for name, _ in domain.groups)


def sink(op: Op) -> Op:
    """Return the op with every pointwise temporary that is read inside a conditional put back there.

    A gradient can only stay inside a conditional together with what it flows to: of `t = log(x); y = t if x > 0 else 0`, the
    gradient at 0 would otherwise be 0 * inf. What grows beyond `LARGE` nodes by this stays: see `opc.transform.needed`. So does
    what steps are handed of steps before: only the last step would be put there, and each derivative would put in one more. And
    so do the gates of a recurrence, whose slopes are finite: what steps is read by its own gradient, and again by that of the
    gradient.
    """
    temporaries, steps, states, moving = {o.name for o in op.temporaries}, recurrent(op), kept_on(op), _moving(op)
    values: dict[str, Assign] = {}
    body = []
    for s in op.body:
        new = replace(s, value=_sunk(s.value, values, False))
        body.append(new)
        may = is_unbounded if s.target in steps else is_steep
        steep = any(
            (may(e) and not operands_read(e).isdisjoint(moving)) or (isinstance(e, Read) and e.operand in values)
            for e in walk(new.value)
        )
        if s.target in temporaries and steep and not has_reduction(new.value):
            # Inside a conditional its own reads are inside too: what counts is how large it is with these put in.
            whole = _sunk(new.value, values, True)
            if size(whole) <= LARGE and s.target not in states:
                values[s.target] = replace(new, value=whole)
    return prune(replace(op, body=tuple(body)), {o.name for o in op.outputs})


def chosen_outside(op: Op) -> bool:
    """Whether what a conditional chooses may have an infinite derivative outside of it.

    Such are the temporaries that `sink` has left, and reductions, each of which gets a statement of its own.
    """
    temporaries, moving = {o.name for o in op.temporaries}, _moving(op)
    steep: set[str] = set()
    known = -1
    while len(steep) > known:
        known = len(steep)
        steep |= {s.target for s in op.body if s.target in temporaries and _any_steep(s.value, steep, moving)}
    above: set[str] = set()
    for s in op.body:
        # Of what steps, a condition on the index alone, as `t > 0`, leaves out the first or last steps, and no value between.
        if _steep_inside(s.value, above, moving) or _steep_inside(s.value, steep - above, moving, counts=scalar.any_reads):
            return True
        if s.target in steep:
            above.add(s.target)
    return False


def _moving(op: Op) -> frozenset[str]:
    """Return the operands that a derivative goes through: those that depend on floating inputs."""
    found = {o.name for o in op.inputs if is_floating(o.type)}
    known = -1
    while len(found) > known:
        known = len(found)
        more = {s.target for s in op.body if not operands_read(s.value).isdisjoint(found)}
        found |= {name for name in more if is_floating(op.operand(name).type)}
    return frozenset(found)


def _any_steep(e: Expr, names: Collection[str], moving: Collection[str]) -> bool:
    """Whether the derivative of a part of `e`, or of one of these temporaries that it reads, may be infinite."""
    return any(
        (is_singular(part) and not operands_read(part).isdisjoint(moving)) or (isinstance(part, Read) and part.operand in names)
        for part in walk(e)
    )


def _steep_inside(
    e: Expr,
    names: Collection[str],
    moving: Collection[str],
    inside: bool = False,
    counts: Callable[[Expr], bool] = lambda _: True,
) -> bool:
    """Whether a side of a conditional, of which the condition counts, reads one of these temporaries, or holds a reduction whose
    terms may be as steep."""
    if inside and isinstance(e, Read) and e.operand in names:
        return True
    if inside and isinstance(e, Reduce) and _any_steep(e.body, names, moving):
        return True
    side = isinstance(e, Select) and counts(e.cond)
    sides = (False, side, side) if isinstance(e, Select) else (False,) * len(children(e))
    return any(_steep_inside(c, names, moving, inside or s, counts) for c, s in zip(children(e), sides, strict=True))


def is_steep(e: Expr) -> bool:
    """Whether the derivative of `e` may be infinite."""
    return isinstance(e, Call) and FUNCTIONS[e.fn].cost > CHEAP


def is_singular(e: Expr) -> bool:
    """Whether the derivative of `e` may be infinite at a finite argument, and not by overflow alone."""
    return is_steep(e) and isinstance(e, Call) and not FUNCTIONS[e.fn].smooth


def is_unbounded(e: Expr) -> bool:
    """Whether the derivative of `e` may be infinite at a finite argument, by overflow or not."""
    return is_steep(e) and isinstance(e, Call) and not (FUNCTIONS[e.fn].smooth and FUNCTIONS[e.fn].finite)


def _sunk(e: Expr, values: dict[str, Assign], inside: bool) -> Expr:
    if isinstance(e, Read) and inside and e.operand in values and e.pad is None and placed(e):
        return put(values[e.operand], e)
    if isinstance(e, Read):
        # An index passes no gradient on, and a condition may say of it, as it is read, that it lies behind a step.
        return scalar.retyped(with_children(e, tuple(_sunk(c, values, inside and c is e.pad) for c in children(e))))
    if isinstance(e, Select):
        # A condition passes no gradient on, so that what it reads need not be copied into it.
        cond = _sunk(e.cond, values, False)
        return scalar.retyped(replace(e, cond=cond, then=_sunk(e.then, values, True), other=_sunk(e.other, values, True)))
    return scalar.retyped(with_children(e, tuple(_sunk(c, values, inside) for c in children(e))))


def placed(r: Read) -> bool:
    """Whether a read depends on no data, so that the value of what it reads can stand in its place."""
    return all(isinstance(i, Affine | GroupRef) for i in r.indices)


def put(definition: Assign, read: Read) -> Expr:
    """Return the value of a temporary at the place where it is read."""
    values = {
        name: index
        for name, index in zip(definition.indices, read.indices, strict=True)
        if isinstance(name, str) and isinstance(index, Affine)
    }
    if not placed(read):
        raise ValueError(f"{read.operand} is read at a data-dependent index")
    return substitute(definition.value, values)


def prune(op: Op, wanted: Iterable[str]) -> Op:
    """Return the op without the statements and temporaries that the operands `wanted` do not depend on."""
    needed = set(wanted)
    waiting, statements = list(needed), op.assignments
    while waiting:
        s = statements.get(waiting.pop())
        new = operands_read(s.value) - needed if s is not None else ()
        needed.update(new)
        waiting += new
    temporaries = tuple(o for o in op.temporaries if o.name in needed)
    return replace(op, body=tuple(s for s in op.body if s.target in needed), temporaries=temporaries)
