"""Fewer dtypes for type variables, and what a body asks of them decided.

A side of `T in floating` is typed for the floating types alone: there T is a narrower variable, between whose values and those of
T itself stand casts that convert nothing. Where T is no more than what is asked, the side is all that is left, and the casts go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.dtypes import Acc, Binding, DType, ElementType, TypeVar, ValueType
from opc.ir.expr import (
    TYPE,
    Call,
    Cast,
    Const,
    Expr,
    Read,
    Reduce,
    Select,
    TypeIs,
    children,
    joined_conditions,
    traits,
    walk,
    with_children,
)
from opc.ir.op import Op, Operand
from opc.records import replace

_TRUTHS = (Const(False, DType.BOOL), Const(True, DType.BOOL))


def narrow(op: Op, types: Mapping[str, tuple[DType, ...]]) -> Op:
    """Return the op with each type variable of these names over some of its dtypes, and no condition that they decide."""
    if not types:
        return op

    def variable(t: TypeVar) -> TypeVar:
        return TypeVar(t.name, tuple(d for d in t.dtypes if d in types[t.name])) if t.name in types else t

    def element(t: ElementType) -> ElementType:
        match t:
            case TypeVar():
                return variable(t)
            case Acc(of=TypeVar() as of):
                return Acc(variable(of))
            case _:
                return t

    def value(t: ValueType) -> ValueType:
        return element(t) if isinstance(t, TypeVar | Acc) else t

    def asked(e: TypeIs) -> Expr:
        if e.variable not in types:
            return e
        left = tuple(d for d in types[e.variable] if d in e.dtypes)
        if 0 < len(left) < len(types[e.variable]):
            return replace(e, dtypes=left)
        return _TRUTHS[bool(left)]

    def expr(e: Expr) -> Expr:
        if isinstance(e, TypeIs):
            return asked(e)
        if isinstance(e, Select) and traits(e.cond) & TYPE:
            cond = expr(e.cond)
            if isinstance(cond, Const):
                chosen = expr(e.then if cond.value else e.other)
                return replace(chosen, type=value(e.type)) if isinstance(chosen, Const) else chosen
        e = with_children(e, tuple([expr(c) for c in children(e)]))
        if isinstance(e, Const | Read | Call | Select | Reduce | Cast) and value(e.type) != e.type:
            e = replace(e, type=value(e.type))
        match e:
            case Call(fn="and" | "or"):
                return joined_conditions(e)
            case Call(fn="not", args=(Const(value=held),)):
                return _TRUTHS[not held]
            case Cast(arg=Cast() | Call() | Read() | Select() | Reduce() as arg) if arg.type == e.type:
                return arg
            case _:
                return e

    def operands(group: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(replace(o, type=element(o.type)) for o in group)

    return replace(
        op,
        types=tuple(TypeVar(t.name, types.get(t.name, t.dtypes)) for t in op.types),
        inputs=operands(op.inputs),
        outputs=operands(op.outputs),
        temporaries=operands(op.temporaries),
        body=tuple(s.with_value(expr(s.value)) for s in op.body),
    )


def declared(op: Op, t: ElementType) -> ElementType:
    """Return a type that a side may have narrowed as the op declares it."""
    types = {own.name: own for own in op.types}
    match t:
        case TypeVar():
            return types.get(t.name, t)
        case Acc(of=TypeVar() as of):
            return Acc(types.get(of.name, of))
        case _:
            return t


def settled(op: Op, binding: Binding) -> Op:
    """Return the op for calls in which type variables are bound so, as far as its body asks; itself where it does not."""
    return narrow(op, {name: (binding[name],) for name in dict.fromkeys(e.variable for e in asked_types(op))})


def asked_types(op: Op) -> Iterator[TypeIs]:
    """Yield what the body asks of type variables."""
    for s in op.body:
        if traits(s.value) & TYPE:
            yield from (e for e in walk(s.value) if isinstance(e, TypeIs))


def cells(op: Op) -> tuple[tuple[str, tuple[tuple[DType, ...], ...]], ...]:
    """Return for each type variable that the body asks about the sets of its dtypes for which all answers are the same."""
    found: dict[str, tuple[tuple[DType, ...], ...]] = {}
    for t in op.types:
        questions = list(dict.fromkeys(e.dtypes for e in asked_types(op) if e.variable == t.name))
        alike: dict[tuple[bool, ...], list[DType]] = {}
        for d in t.dtypes:
            alike.setdefault(tuple(d in q for q in questions), []).append(d)
        if questions:
            found[t.name] = tuple(map(tuple, alike.values()))
    return tuple(found.items())
