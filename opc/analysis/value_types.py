"""Questions about the types and integer values of typed expressions."""

from __future__ import annotations

from opc.analysis.elaborate.scope import DTYPE_NAMES, Scope
from opc.diagnostics import Diagnostics, did_you_mean
from opc.ir.affine import Affine, AttrInt, maximum, minimum, product
from opc.ir.comparisons import OPPOSITE, compared
from opc.ir.dtypes import ELSEWHERE, Acc, DType, ElementType, Weak
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst, TypeIs
from opc.lang.tree import Apply, Item, Name


def affine_of(e: Expr) -> Affine | None:
    """Return the integer expression that `e` is, when it is one over indices, dimensions and int attributes."""
    match e:
        case IndexValue():
            return e.value
        case Const(value=int() as value, type=Weak.INT):
            return Affine.of(value)
        case AttrRef(type=Weak.INT):
            return Affine.of(AttrInt(e.name, e.element))
        case Select() if (flag := flag_of(e.cond)) is not None:
            then, other = affine_of(e.then), affine_of(e.other)
            return None if then is None or other is None else other + flag * (then - other)
        case _:
            return None


def within_64_bits(e: Expr) -> Call | None:
    """Return a comparison of sums of indices, sizes and int attributes as one of sums that fit into 64 bits wherever these do;
    None where there is nothing to change."""
    if not isinstance(e, Call) or e.fn not in OPPOSITE or not all(isinstance(a, IndexValue | Const | AttrRef) for a in e.args):
        return None
    a, b = map(affine_of, e.args)
    found = None if a is None or b is None else compared(e.fn, a, b)
    if found is None:
        return None
    fn, *sides = found
    return Call(fn, tuple(IndexValue(s) if s.constant is None else Const(s.constant, Weak.INT) for s in sides), e.type, e.span)


def integer_of(e: Expr) -> Affine | None:
    """Return sums and products of integers as one expression."""
    known = affine_of(e)
    if known is not None:
        return known
    if isinstance(e, Cast):
        return integer_of(e.arg)
    if not isinstance(e, Call) or e.fn not in ("add", "sub", "mul"):
        return None
    a, b = (integer_of(c) for c in e.args)
    if a is None or b is None:
        return None
    return {"add": a + b, "sub": a - b, "mul": a * b}[e.fn]


MAX_POWER = 8
"""The greatest power that is a product of whole numbers where one must stand."""


def whole_of(e: Expr, size: bool = False) -> Affine | None:
    """Return what an expression is where only a whole number can stand, in an index or a size: there `r ** 2` is `r*r`, which as
    a value is a floating number. In a `size`, comparisons of sizes and attributes choose: `n if k < 0 else m`."""
    known = affine_of(e)
    if known is not None:
        return known
    match e:
        case Select() if size:
            then, other, flag = whole_of(e.then, size), whole_of(e.other, size), decided(e.cond)
            return None if then is None or other is None or flag is None else other + flag * (then - other)
        case Call(fn="pow", args=(base, Const(value=power)), type=Weak.FLOAT) if power in range(MAX_POWER + 1):
            factor = affine_of(base)
            whole = factor is not None and not factor.indices() and len(factor.terms) <= 1
            return product([factor] * int(power)) if factor is not None and whole else None
        case Call(fn="add" | "sub" | "mul" | "neg" | "floordiv" | "mod" | "minimum" | "maximum") if size or e.type is Weak.FLOAT:
            args = [whole_of(c, size) for c in e.args]
            return None if None in args else _arithmetic(e.fn, [a for a in args if a is not None])
        case _:
            return None


def _arithmetic(fn: str, args: list[Affine]) -> Affine | None:
    a, b = args[0], args[-1]
    if (fn == "mul" and a.indices() and b.indices()) or (fn in ("floordiv", "mod") and (b.indices() or b.constant == 0)):
        return None
    match fn:
        case "neg":
            return -a
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "minimum" | "maximum":
            return None if a.indices() or b.indices() else minimum(a, b) if fn == "minimum" else maximum(a, b)
        case _:
            return a // b if fn == "floordiv" else a % b


def decided(cond: Expr) -> Affine | None:
    """Return a condition that compares sizes and attributes as 1 where it holds, 0 elsewhere: `a < b` is b - a, cut to these."""

    def at_least(least: int, e: Affine) -> Affine:
        return minimum(maximum(e - (least - 1), Affine.of(0)), Affine.of(1))

    match cond:
        case Call(fn="not", args=(inner,)):
            flag = decided(inner)
            return None if flag is None else Affine.of(1) - flag
        case Call(fn="and" | "or", args=(a, b)):
            first, second = decided(a), decided(b)
            if first is None or second is None:
                return None
            return first * second if cond.fn == "and" else first + second - first * second
        case Call(fn="lt" | "le" | "gt" | "ge" | "eq" | "ne", args=(a, b)) if not isinstance(b, StrConst):
            left, right = whole_of(a, True), whole_of(b, True)
            if left is None or right is None or left.indices() or right.indices():
                return None
            less, more = right - left, left - right
            same = at_least(0, less) * at_least(0, more)
            strict = {"lt": at_least(1, less), "le": at_least(0, less), "gt": at_least(1, more), "ge": at_least(0, more)}
            return strict.get(cond.fn, same if cond.fn == "eq" else Affine.of(1) - same)
        case _:
            return flag_of(cond)


def flag_of(cond: Expr) -> Affine | None:
    """Return a condition as 1 where it holds and 0 elsewhere, when it is a bool attribute, whether a str attribute has one of its
    values, or `not` of one of these."""
    match cond:
        case AttrRef(type=DType.BOOL):
            return Affine.of(AttrInt(cond.name, cond.element, True))
        case Call(fn="eq" | "ne", args=(AttrRef() as attribute, StrConst() as text)) if text.among:
            *others, last = text.among
            flags = {value: Affine.of(AttrInt(attribute.name, attribute.element, True, value)) for value in others}
            # It has one of its values: the last is none of the others.
            flags[last] = Affine.of(1) - sum(flags.values(), Affine.of(0))
            return flags[text.value] if cond.fn == "eq" else Affine.of(1) - flags[text.value]
        case Call(fn="not", args=(inner,)):
            flag = flag_of(inner)
            return None if flag is None else Affine.of(1) - flag
        case _:
            return None


def presence(cond: Expr, holds: bool) -> frozenset[str]:
    """Return the optional operands that are given whenever `cond` is true (`holds`) or false."""
    match cond:
        case Present():
            return frozenset([cond.operand]) if holds else frozenset()
        case Call(fn="not"):
            return presence(cond.args[0], not holds)
        case Call(fn="and") if holds:
            return presence(cond.args[0], True) | presence(cond.args[1], True)
        case Call(fn="or") if not holds:
            return presence(cond.args[0], False) | presence(cond.args[1], False)
        case _:
            return frozenset()


def types_told(cond: Expr, holds: bool) -> tuple[tuple[str, tuple[DType, ...], bool], ...]:
    """Return what is known of type variables whenever `cond` is true (`holds`) or false: among which dtypes they are, or not."""
    match cond:
        case TypeIs():
            return ((cond.variable, cond.dtypes, holds),)
        case Call(fn="not"):
            return types_told(cond.args[0], not holds)
        case Call(fn="and" | "or") if holds == (cond.fn == "and"):
            return (*types_told(cond.args[0], holds), *types_told(cond.args[1], holds))
        case _:
            return ()


def element_type(tree: Item, scope: Scope, found: Diagnostics) -> ElementType | None:
    """Return the element type a tree names: a dtype, a type variable, or acc(...) of one."""
    match tree:
        case Name():
            if tree.id in scope.types:
                return scope.types[tree.id]
            if tree.id in DTYPE_NAMES:
                return DType(tree.id)
            if tree.id in scope.unread:
                return None
            hint = did_you_mean(tree.id, [*scope.types, *DTYPE_NAMES])
            if tree.id in ("complex64", "complex128"):
                hint = "complex types are not part of version 1"
            elif tree.id.lower() in ELSEWHERE and not scope.types:
                hint = f"{ELSEWHERE[tree.id.lower()]}; a set of types is declared: types: {{T: floating}}"
            elif hint is None:
                hint = f"declare it: types: {{{tree.id}: floating}}"
            found.error(f"unknown type '{tree.id}'", tree.span, hint)
            return None
        case Apply(fn=Name(id="acc"), args=(argument,)):
            of = element_type(argument, scope, found)
            if isinstance(of, Acc):
                return of
            return None if of is None else Acc(of)
        case _:
            found.error("expected a type", tree.span, "a type is a dtype, a type variable, or acc(T)")
            return None
