"""Conditions that a call fixes once for all points: types, string and bool attributes, and numbers compared with a literal.

A kernel with `approximate == 'tanh'` in its body is lowered once for each value, so that no loop asks and each computes only what
its case needs. Integer and floating attributes stay variables, but where `p == 2` chooses between two ways to go through operands
there is a case for either answer. So is there where the default of `gamma` makes `x ** gamma` a few multiplications.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from itertools import islice, product
from typing import TypeAlias

from opc.analysis.patterns import is_number
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    ATTRIBUTE,
    INDEX,
    NOTHING,
    POSITION,
    READ,
    AttrRef,
    Call,
    Const,
    Expr,
    Reduce,
    Select,
    StrConst,
    children,
    joined_conditions,
    may_refuse,
    reads,
    rewrite,
    traits,
    walk,
    with_children,
)
from opc.ir.narrow import cells, narrow
from opc.ir.node import remembered
from opc.ir.op import AttributeKind, Op
from opc.lower.powers import exponents, power_at
from opc.lower.zeros import is_unsigned_zero
from opc.records import dataclass, replace
from opc.transform.simplify import simplify_expr

_MOST_CASES = 8


@dataclass(frozen=True, slots=True)
class Equal:
    """Whether (`holds`) an attribute is equal to a number."""

    number: int | float
    holds: bool

    def __str__(self) -> str:
        return f"{'==' if self.holds else '!='} {self.number}"


@dataclass(frozen=True, slots=True)
class Among:
    """That a type variable stands for one of some dtypes."""

    dtypes: tuple[DType, ...]

    def __str__(self) -> str:
        return f"in [{', '.join(map(str, self.dtypes))}]"


Value: TypeAlias = int | bool | Equal | Among
"""What holds of an attribute or a type variable: the position of one of its values, what a bool is, a comparison, or dtypes."""


@dataclass(frozen=True, slots=True)
class GroupedSizes:
    """The sizes that tell whether a grouped product pays: those of the points, how many groups they may be in, and those of the
    loops that each matrix is multiplied along."""

    points: tuple[Affine, ...]
    count: Affine
    elements: tuple[Affine, ...]

    def __str__(self) -> str:
        return f"products of {' * '.join(map(str, self.points))} points pay in {self.count} groups"


@dataclass(frozen=True, slots=True)
class RowSizes:
    """The sizes that tell whether it pays to put rows together for a product: those of the loops along which each element is used
    again, and those of all elements."""

    again: tuple[Affine, ...]
    elements: tuple[Affine, ...]

    def __str__(self) -> str:
        return f"rows pay that are used {' * '.join(map(str, self.again))} times"


@dataclass(frozen=True, slots=True)
class Specialisation:
    """One combination of types and attribute values, and the op with them put in.

    One that names extents is for calls in which one of them is `empty`; it stands before that of the same values for all others.
    So does one for calls in which the axes that an attribute lists lie `across` memory, where another axis is the last, and, with
    `apart`, for those in which they don't lie side by side. One with products is for calls in which each
    of these `pays`.
    """

    values: tuple[tuple[str, Value], ...]
    op: Op
    empty: tuple[Affine, ...] = ()
    across: bool = False
    apart: bool = False
    pays: tuple[GroupedSizes | RowSizes, ...] = ()

    @property
    def suffix(self) -> str:
        """What tells the case's functions apart: `_tanh`."""
        words = "".join(f"_{self._word(name, value)}" for name, value in self.values)
        return f"{words}{'_of_nothing' if self.empty else ''}{'_across' if self.across else ''}{'_products' if self.pays else ''}"

    def _word(self, name: str, value: Value) -> str:
        if isinstance(value, Among):
            return f"{name}_{value.dtypes[0]}"
        if isinstance(value, Equal):
            number = str(value.number).replace(".", "_").replace("-", "minus_")
            return f"{name}_{number}" if value.holds else f"{name}_not_{number}"
        if isinstance(value, bool):
            return name if value else f"not_{name}"
        word = self.op.attribute(name).values[value]
        return word if word.isidentifier() else str(value)


def specialise(op: Op) -> tuple[Specialisation, ...]:
    """Return the cases of an op, one case without values when its body asks for nothing.

    There is one for each answer to what is asked of types, and in each those of attributes, unless these are too many.
    """
    return tuple(case for values, own in _by_types(op) for case in _by_attributes(own, values))


def _by_types(op: Op) -> Iterator[tuple[tuple[tuple[str, Value], ...], Op]]:
    """Yield what types stand for, and the op for these."""
    asked = cells(op)
    for chosen in product(*(among for _, among in asked)):
        types = {name: dtypes for (name, _), dtypes in zip(asked, chosen, strict=True)}
        yield tuple((name, Among(dtypes)) for name, dtypes in types.items()), narrow(op, types)


def _by_attributes(op: Op, values: tuple[tuple[str, Value], ...]) -> tuple[Specialisation, ...]:
    """Return the cases of attributes, one where they are too many."""
    for numbers in (True, False):
        cases = tuple(islice(_cases(op, values, numbers), _MOST_CASES + 1))
        if len(cases) <= _MOST_CASES:
            return cases
        if not any(isinstance(value, Equal) for case in cases for _, value in case.values):
            break
    return (Specialisation(values, op),)


def _cases(op: Op, values: tuple[tuple[str, Value], ...], numbers: bool) -> Iterator[Specialisation]:
    """Yield the cases that are left when `values` are put in: an attribute is asked for only where it still matters."""
    names = _asked(op)
    attribute = next((a for a in op.attributes if a.name in names), None)
    compared = next(_compared(op, {name for name, _ in values}), None) if numbers and attribute is None else None
    if compared is not None:
        name, number = compared
        for equal in (Equal(number, True), Equal(number, False)):
            yield from _cases(_with(op, {name: equal}), (*values, (name, equal)), numbers)
    elif attribute is None:
        yield Specialisation(values, op)
    else:
        for value, put in enumerate(attribute.values) if attribute.values else ((True, True), (False, False)):
            yield from _cases(_with(op, {attribute.name: put}), (*values, (attribute.name, value)), numbers)


def _compared(op: Op, asked: Set[str]) -> Iterator[tuple[str, int | float]]:
    """Yield the numbers that attributes are compared with where the answer chooses between values of operands.

    Defaults that make an exponent a small whole number come last, those of attributes that nothing was `asked` of yet.
    """
    for statement in op.body:
        for e in walk(statement.value):
            if not isinstance(e, Select) or not _attributes(e.cond):
                continue
            if reads(e.then) and reads(e.other) and _work(e.then) != _work(e.other):
                yield from (found for c in walk(e.cond) for found in [_comparison(c)] if found is not None)
    yield from ((name, number) for name, number in exponents(op) if name not in asked)


def _work(e: Expr) -> Expr:
    """Return what is done with operands: an expression without the numbers that a call fixes."""
    if not traits(e) & (READ | INDEX | POSITION):
        return Const(0, Weak.INT)
    return with_children(e, tuple(_work(c) for c in children(e)))


def _comparison(e: Expr) -> tuple[str, int | float] | None:
    """Return the attribute and the number that an expression compares, None where it does something else."""
    if not isinstance(e, Call) or e.fn not in ("eq", "ne"):
        return None
    for attribute, number in (e.args, e.args[::-1]):
        if not isinstance(attribute, AttrRef) or attribute.element >= 0 or not isinstance(number, Const):
            continue
        if isinstance(number.value, int | float) and not isinstance(number.value, bool):
            return attribute.name, number.value
    return None


def _asked(op: Op) -> set[str]:
    """Return the enumerations and bools that the body asks for."""
    return asked(op, *(s.value for s in op.body))


def asked(op: Op, *values: Expr) -> set[str]:
    """Return the enumerations and bools that values ask for."""
    used = NOTHING.union(*map(_attributes, values))
    kinds = (a for a in op.attributes if a.name in used)
    return {a.name for a in kinds if (a.kind is AttributeKind.STR and a.values) or a.kind is AttributeKind.BOOL}


@remembered("_attributes")
def _attributes(e: Expr) -> frozenset[str]:
    """Return the attributes that `e` asks for, elements of lists aside."""
    if not traits(e) & ATTRIBUTE:
        return NOTHING
    if isinstance(e, AttrRef):
        return NOTHING if e.element >= 0 else frozenset((e.name,))
    return NOTHING.union(*map(_attributes, children(e)))


def _with(op: Op, values: Mapping[str, str | bool | Equal]) -> Op:
    """Return the op with values put in: most statements ask for none of these, and are the same in all cases."""
    body = []
    for s in op.body:
        value = _simplified(s.value, values) if _attributes(s.value) & values.keys() else _settled(s.value) or s.value
        body.append(s if value is s.value else replace(s, value=value))
    return replace(op, body=tuple(body))


@remembered("_settled")
def _settled(e: Expr) -> Expr | None:
    """Return what is left of an expression where no value is put in, None if that is all of it."""
    found = _simplified(e, {})
    return None if found is e else found


def decided(e: Expr, values: Mapping[str, str | bool]) -> Expr:
    """Return an expression with the values of enumerations and bools put in, and what they decide decided."""
    return _simplified(e, values)


def _simplified(e: Expr, values: Mapping[str, str | bool | Equal]) -> Expr:
    """Return an expression with the values of attributes put in, and what they decide decided."""

    def rule(e: Expr) -> Expr:
        match e:
            case AttrRef(name=name) if isinstance(values.get(name), bool):
                return Const(values[name] is True, DType.BOOL, e.span)
            case Call(fn="eq" | "ne") if (found := _comparison(e)) is not None:
                equal = values.get(found[0])
                if not isinstance(equal, Equal) or not (equal.holds or equal.number == found[1]):
                    return e
                return Const((equal.holds and equal.number == found[1]) == (e.fn == "eq"), DType.BOOL, e.span)
            case Call(fn="pow", args=(base, exponent)) if (power := _power(e, values)) is not None:
                return simplify_expr(replace(e, args=(base, Const(power, Weak.INT, exponent.span))))
            case Call(fn="eq" | "ne", args=(a, b)) if isinstance(a, StrConst) or isinstance(b, StrConst):
                attribute, text = (a, b) if isinstance(b, StrConst) else (b, a)
                if not isinstance(attribute, AttrRef) or not isinstance(text, StrConst) or attribute.name not in values:
                    return e
                same = values[attribute.name] == text.value
                return Const(same == (e.fn == "eq"), DType.BOOL, e.span)
            case Call(fn="not", args=(Const(value=value),)):
                return Const(not value, DType.BOOL, e.span)
            case Call(fn="and" | "or"):
                return joined_conditions(e)
            case Select(cond=Const(value=value)):
                return _as(e.then if value else e.other, e)
            case Select(then=Const() as a, other=Const()) if is_number(a, 0) and _as(a, e) == _as(e.other, e):
                return e if may_refuse(e.cond) else _as(a, e)
            case Reduce(kind="sum", body=Const(value=0)):
                return Const(0, e.type, e.span)
            case Call(fn="add", args=(Const() as a, Const() as b)) if is_unsigned_zero(a) and is_unsigned_zero(b):
                return replace(b, type=e.type)
            case _:
                return e

    return rewrite(e, rule)


def _power(e: Call, values: Mapping[str, str | bool | Equal]) -> int | None:
    """Return the whole number that an exponent is for an attribute that is known to be a number."""
    for name, value in values.items():
        if isinstance(value, Equal) and value.holds and (power := power_at(e, name, value.number)) is not None:
            return power
    return None


def _as(chosen: Expr, e: Select) -> Expr:
    """Return the chosen side of a conditional, whose literal takes the conditional's type."""
    return replace(chosen, type=e.type) if isinstance(chosen, Const) else chosen
