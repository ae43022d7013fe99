"""Typed scalar expressions: literals, conditions and what they decide, conversions. Nothing here changes a value."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, ElementType, ValueType, Weak
from opc.ir.expr import (
    CHOICE,
    AttrRef,
    Axis,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    TypeIs,
    asked_for,
    children,
    conjuncts,
    free_groups,
    free_indices,
    joined_conditions,
    may_refuse,
    reads,
    traits,
    with_children,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.node import remembered_each
from opc.ir.promotion import join, result_type
from opc.ir.rules import reduction_type, widened
from opc.records import replace

ZERO = Const(0, Weak.INT)
ONE = Const(1, Weak.INT)
TRUE = Const(True, DType.BOOL)
FALSE = Const(False, DType.BOOL)


def number(value: int | float) -> Const:
    """Return a literal with a weak type."""
    return Const(value, Weak.INT if isinstance(value, int) else Weak.FLOAT)


def is_number(e: Expr, value: float) -> bool:
    """Whether `e` is the literal `value`."""
    return isinstance(e, Const) and not isinstance(e.value, bool) and e.value == value


def is_zero(e: Expr) -> bool:
    """Whether `e` is the literal zero, which in a derivative stands for "no contribution"."""
    return is_number(e, 0)


def is_leaf(e: Expr) -> bool:
    """Whether `e` costs nothing to write or compute twice: a literal, attribute, index or plain read."""
    match e:
        case Const() | StrConst() | AttrRef() | IndexValue() | GroupIndex() | Present() | TypeIs():
            return True
        case Read():
            return not children(e)
        case _:
            return False


def joined(a: ValueType, b: ValueType) -> ValueType:
    """Return the common value type of two expressions.

    Raises:
        TypeError: when they do not mix, which the front end has ruled out.
    """
    t = join(a, b)
    if t is None:
        raise TypeError(f"values of types {a} and {b} do not mix")
    return t


def raw(fn: str, *args: Expr) -> Expr:
    """Return the call of a function as it stands, typed by the function table.

    Raises:
        TypeError: when the function does not take arguments of these types.
    """
    args = widened(args)
    t = result_type(FUNCTIONS[fn], tuple(a.type for a in args))
    if t is None:
        raise TypeError(f"{fn} does not take {', '.join(str(a.type) for a in args)}")
    return Call(fn, args, t)


def asks_presence(e: Expr) -> bool:
    """Whether `e` asks if an operand is present, so that what it guards may not be read without it."""
    return bool(asked_for(e))


def any_reads(e: Expr) -> bool:
    """Whether `e` reads an operand."""
    return bool(reads(e))


def select(cond: Expr, then: Expr, other: Expr) -> Expr:
    """Return `conditional(cond, then, other)` for a part of a derivative: one that is 0 on both sides is 0."""
    e = conditional(cond, then, other)
    return e.then if isinstance(e, Select) and e.then == e.other and is_zero(e.then) else e


def conditional(cond: Expr, then: Expr, other: Expr) -> Expr:
    """Return `then if cond else other`, with what `cond` decides inside the two sides decided."""
    if isinstance(cond, Const):
        return then if cond.value else other
    if isinstance(cond, Call) and cond.fn == "not":
        return conditional(cond.args[0], other, then)
    then, other = assume(then, cond, True), assume(other, cond, False)
    refuses = may_refuse(cond)
    if then == other and not refuses:
        return then
    then, other = widened((then, other))
    if isinstance(then, Select) and then.other == other and not refuses and not (asks_presence(cond) and any_reads(then.cond)):
        return conditional(conjunction(cond, then.cond), then.then, other)
    return Select(cond, then, other, joined(then.type, other.type))


def conjunction(a: Expr, b: Expr) -> Expr:
    """Return `a and b`; what reads nothing comes first, as it may tell that the reads of the other are inside.

    But what may refuse the call is asked before whatever follows it.
    """
    if isinstance(a, Const) or isinstance(b, Const):
        return joined_conditions(Call("and", (a, b), DType.BOOL))
    if a == b:
        return a
    if any_reads(a) and not may_refuse(a):
        parts = conjuncts(b)
        free = list(itertools.takewhile(lambda c: not may_refuse(c), parts))
        first = [c for c in free if not any_reads(c)]
        if first:
            rest = [c for c in free if any_reads(c)] + parts[len(free) :]
            return functools.reduce(lambda x, y: raw("and", x, y), [*first, a, *rest])
    return raw("and", a, b)


def conditioned(e: Expr) -> tuple[tuple[Expr, tuple[Expr, ...]], ...]:
    """Return the direct subexpressions of `e`, each with the conditions that hold at the points where `e` needs its value.

    A conditional needs the side it chooses; `and` needs its second condition where the first holds, `or` where it does not.
    """
    match e:
        case Select():
            return (e.cond, ()), (e.then, tuple(conjuncts(e.cond))), (e.other, (negation(e.cond),))
        case Call(fn="and", args=(a, b)):
            return (a, ()), (b, tuple(conjuncts(a)))
        case Call(fn="or", args=(a, b)):
            return (a, ()), (b, (negation(a),))
        case _:
            return tuple((c, ()) for c in children(e))


def unguarded(e: Expr, present: frozenset[str] = frozenset()) -> set[str]:
    """Return the operands that `e` reads outside any side of a conditional that tells they are present."""
    match e:
        case Select():
            given = {c.operand for c in conjuncts(e.cond) if isinstance(c, Present)}
            inverse = conjuncts(negation(e.cond))
            absent = {c.operand for c in inverse if isinstance(c, Present)}
            sides = unguarded(e.then, present | given) | unguarded(e.other, present | absent)
            return unguarded(e.cond, present) | sides
        case Read():
            own = set() if e.operand in present else {e.operand}
            return own.union(*(unguarded(c, present) for c in children(e)))
        case _:
            return set().union(*(unguarded(c, present) for c in children(e)))


def rebuilt(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return `e` with its direct subexpressions replaced, its type and so its precision kept.

    Where typed parts became literals and nothing else tells the type, a literal is converted.
    """
    if isinstance(e, Call):
        before, after = _common(children(e)), _common(new)
        if after != before:
            new = tuple(cast_literal(old.type, n) for old, n in zip(children(e), new, strict=True))
    elif isinstance(e, Reduce):
        new = (cast_literal(e.body.type, new[0]),)
    elif isinstance(e, Select) and _common(new[1:]) != _common((e.then, e.other)):
        new = (new[0], cast_literal(e.then.type, new[1]), cast_literal(e.other.type, new[2]))
    return retyped(with_children(e, new))


def rewritten(e: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Return `e` with `rule` applied to every node, children first; what then has other parts is `rebuilt`."""
    kept = children(e)
    new = tuple([rewritten(c, rule) for c in kept])
    return rule(e if new == kept else rebuilt(e, new))


def retyped(e: Expr) -> Expr:
    """Return `e` with the type that its direct subexpressions now give, where they were of T and acc(T) of a floating T.

    The two are computed alike, so that the value does not change. Numbers of either kind meet anything alike too.
    """
    match e:
        case Call():
            found = result_type(FUNCTIONS[e.fn], tuple(a.type for a in e.args))
        case Select():
            found = join(e.then.type, e.other.type)
        case Reduce():
            found = reduction_type(e.kind, e.body.type)
        case _:
            return e
    if found is None or found == e.type or join(found, e.type) is None:
        return e
    if isinstance(found, Weak) and not isinstance(e.type, Weak):
        return e
    return replace(e, type=found)


def _common(parts: tuple[Expr, ...]) -> ValueType | None:
    common: ValueType | None = parts[0].type
    for p in parts[1:]:
        common = None if common is None else join(common, p.type)
    return common


def cast_literal(t: ValueType, e: Expr) -> Expr:
    """Return `e`, with a conversion where it is weakly typed and `t` is not; a whole number becomes floating as `t` is."""
    if isinstance(e.type, Weak) and not isinstance(t, Weak):
        return Cast(e, t)
    return number(float(e.value)) if isinstance(e, Const) and (e.type, t) == (Weak.INT, Weak.FLOAT) else e


def assume(e: Expr, cond: Expr, value: bool) -> Expr:
    """Return `e` with every conditional decided that `cond`, known to have `value`, decides in whole or in part.

    A reduction over what `cond` varies with has other points inside: nothing is known of these.
    """
    for part in _told(cond, value):
        e = _assumed(e, part, value)
    return e


def _told(cond: Expr, value: bool) -> list[Expr]:
    """Return the conditions that have `value` where `cond` has it: the parts first, then `cond` itself."""
    if isinstance(cond, Call) and cond.fn == ("and" if value else "or"):
        return [*(part for a in cond.args for part in _told(a, value)), cond]
    return [cond]


def _assumed(e: Expr, cond: Expr, value: bool) -> Expr:
    """As `assume`, of one condition whose parts have been assumed."""
    if not traits(e) & CHOICE or rebinds(e, cond):
        return e
    return _decided(e, (cond, value)) or e


@remembered_each("_decided")
def _decided(e: Expr, told: tuple[Expr, bool]) -> Expr | None:
    """As `_assumed`, of what holds a conditional; None where nothing is decided: a node keeps others alive, but not itself."""
    cond, value = told
    if isinstance(e, Select):
        known = _known(e.cond, cond, value)
        if isinstance(known, Const):
            return _assumed(e.then if known.value else e.other, cond, value)
        then, other = _assumed(e.then, cond, value), _assumed(e.other, cond, value)
        return None if (known, then, other) == (e.cond, e.then, e.other) else conditional(known, then, other)
    kept = children(e)
    new = tuple([_assumed(c, cond, value) for c in kept])
    return None if new == kept else rebuilt(e, new)


def still(conditions: Sequence[Expr], e: Expr) -> tuple[Expr, ...]:
    """Return those of the conditions that `e` stands under which say the same inside `e`."""
    return tuple(c for c in conditions if not rebinds(e, c))


def rebinds(e: Expr, cond: Expr) -> bool:
    """Whether inside `e` an index or a group that `cond` holds is another one: that of the reduction `e`."""
    if not isinstance(e, Reduce):
        return False
    indices, groups = free_indices(cond), free_groups(cond)
    return any(a.index in indices if isinstance(a, Axis) else a.name in groups for a in e.axes)


def _known(e: Expr, cond: Expr, value: bool) -> Expr:
    """Return a condition with the parts put in that `cond`, known to have `value`, tells."""
    if e == cond:
        return TRUE if value else FALSE
    if isinstance(e, Call) and e.fn in ("and", "or", "not"):
        args = tuple(_known(a, cond, value) for a in e.args)
        match e.fn:
            case "and" | "or" if any(isinstance(a, Const) for a in args):
                return joined_conditions(replace(e, args=args))
            case "and":
                return conjunction(*args)
            case "or":
                return negation(conjunction(*(negation(a) for a in args)))
            case _:
                return negation(args[0])
    return e


def nothing(t: ValueType) -> Expr:
    """Return what stands for a value of this type where there is none."""
    return FALSE if t is DType.BOOL else ZERO


def negation(a: Expr) -> Expr:
    """Return `not a`."""
    if isinstance(a, Const):
        return FALSE if a.value else TRUE
    return a.args[0] if isinstance(a, Call) and a.fn == "not" else raw("not", a)


def compare(fn: str, a: Expr, b: Expr) -> Expr:
    """Return a comparison, decided where both sides are integer expressions with a constant difference."""
    if isinstance(a, IndexValue) and isinstance(b, IndexValue):
        difference = (a.value - b.value).constant
        if difference is not None:
            return TRUE if COMPARES[fn](difference) else FALSE
    if isinstance(a, Const) and isinstance(b, Const):
        return TRUE if COMPARES[fn](float(a.value) - float(b.value)) else FALSE
    return raw(fn, a, b)


COMPARES: dict[str, Callable[[float], bool]] = {
    "lt": lambda d: d < 0,
    "le": lambda d: d <= 0,
    "gt": lambda d: d > 0,
    "ge": lambda d: d >= 0,
    "eq": lambda d: d == 0,
    "ne": lambda d: d != 0,
}


def index_value(value: Affine | int) -> Expr:
    """Return an integer expression as a value; a plain number becomes a literal."""
    affine = Affine.of(value)
    return IndexValue(affine) if affine.constant is None else number(affine.constant)


def cast(t: ValueType, e: Expr) -> Expr:
    """Return `e` converted to type `t`; literals and values of that type stand as they are."""
    if e.type == t or isinstance(e.type, Weak):
        return e
    if isinstance(e, Select) and (is_zero(e.then) or is_zero(e.other)):
        return select(e.cond, cast(t, e.then), cast(t, e.other))
    return Cast(e, t)


def cast_to(t: ElementType, e: Expr) -> Expr:
    """Return `e` as a value that may be stored as `t`: converted only when the types do not mix."""
    return e if join(t, e.type) is not None else cast(t, e)
