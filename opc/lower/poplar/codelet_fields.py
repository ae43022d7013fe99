"""The numbers that a codelet is given, and the types that it counts in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from opc.ir.affine import AttrInt, Dim, GroupSize
from opc.ir.dtypes import DType, ValueType, Weak
from opc.ir.expr import (
    SEARCHES,
    AttrRef,
    Call,
    Cast,
    Const,
    Expr,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    children,
    reductions,
    walk,
    with_children,
)
from opc.ir.op import AttributeKind, Op
from opc.loops.nodes import Body, Buffer, Let, Statement, Var, bodies, own_values, values_of, with_bodies, with_own_values
from opc.loops.values import Block, Construct, Intrinsic, Load, Local, Member, Named, Pointer, Static
from opc.lower.build.context import UnsupportedForm
from opc.lower.poplar.codelet_nodes import STATUS, WORKER, Field, Fixed, attribute_field
from opc.lower.poplar.entries import group_word
from opc.records import replace
from opc.transform.indices import Namer

RESERVED = frozenset(("compute", STATUS, WORKER, "half", "opc", "poplar"))
"""The names in a class of vertices that are not the spec's."""

_ORDER = {Member: 0, Dim: 1, GroupSize: 1, AttrRef: 2, Present: 3}


def fields_of(op: Op, body: Body, indices: tuple[str, ...], operands: Mapping[str, str], namer: Namer) -> tuple[Field, ...]:
    """Return the fields of what a body uses that a call or a tile fixes.

    `operands` tells what the operands' own fields are called, and `indices` those of the target.
    """

    def name(what: Fixed) -> str:
        match what:
            case Member(field="begin" | "end" as end, entry=int() as n):
                return namer.fresh(f"{indices[n]}_{end}")
            case Member(owner=owner, field=field, entry=n):
                return namer.fresh(f"{operands[owner]}_{field}" + ("" if n is None else f"_{n}"))
            case Dim(name=own) | AttrRef(name=own, element=-1):
                return namer.fresh(f"{own}_size") if own in RESERVED else own
            case AttrRef(name=own, element=n):
                return namer.fresh(f"{own}_{n}")
            case GroupSize(name=own):
                return namer.fresh(f"{group_word(own)}_points")
            case Present(operand=operand):
                return namer.fresh(f"has_{operand}")

    found = [Field(name(what), _kind(op, what), what) for what in dict.fromkeys(_fixed(body))]
    return tuple(sorted(found, key=lambda f: _ORDER[type(f.what)]))


def _kind(op: Op, what: Fixed) -> str:
    if isinstance(what, AttrRef):
        attribute = op.attribute(what.name)
        if attribute.kind is AttributeKind.STR and not attribute.values:
            raise UnsupportedForm(f"the text of {what.name}")
        return {AttributeKind.FLOAT: "float", AttributeKind.BOOL: "bool"}.get(attribute.kind, "int")
    return "bool" if isinstance(what, Present) else "int"


def _fixed(body: Body) -> Iterator[Fixed]:
    """Yield what a body uses that a call or a tile fixes."""
    for e in nodes_of(body):
        match e:
            case Member() | Present():
                yield e
            case AttrRef():
                yield attribute_field(e.name, e.element)
            case IndexValue():
                for a in sorted(e.value.atoms(), key=str):
                    if isinstance(a, Dim | GroupSize):
                        yield a
                    elif isinstance(a, AttrInt):
                        yield attribute_field(a.name, a.element)


def nodes_of(body: Body) -> Iterator[Expr]:
    """Yield every value in a body and the parts of each."""
    for v in values_of(body):
        yield from walk(v)


# Integers of 32 bits: what a tile holds has no more elements, and the host sees to it that indices and attributes fit.


_TYPED = (Const, AttrRef, Call, Select, Cast, Local, Load, Intrinsic)
"""The values that have a type of their own."""


def narrowed(body: Body, value: Expr) -> Body:
    """Return loops whose variables of whole numbers are int32, and those of numbers of no other type float32.

    Where the statement's `value` has numbers of int64 other than places that searches find, these stay what they are.

    Raises:
        UnsupportedForm: for a literal that has more bits.
    """
    narrow: dict[ValueType, ValueType] = {} if _is_wide(value) else {DType.INT64: DType.INT32}
    declared = {Weak.INT: DType.INT32, Weak.FLOAT: DType.FLOAT32, **narrow}

    def rule(e: Expr) -> Expr:
        if isinstance(e, _TYPED):
            literal = e.value if isinstance(e, Const) and e.type in (DType.INT64, Weak.INT) else 0
            if isinstance(literal, int) and not -(2**31) <= literal < 2**31:
                raise UnsupportedForm(f"the number {literal}, which has more than 32 bits")
            return replace(e, type=narrow[e.type]) if e.type is DType.INT64 and narrow else e
        match e:
            case Block():
                return replace(e, body=in_body(e.body), value=over(e.value), type=narrow.get(e.type, e.type))
            case Static() if isinstance(e.owner, Named):
                return replace(e, owner=replace(e.owner, of=tuple(narrow.get(t, t) for t in e.owner.of)))
            case Construct() if not isinstance(e.kind, Named | Pointer):
                return replace(e, kind=narrow.get(e.kind, e.kind))
            case _:
                return e

    def over(e: Expr) -> Expr:
        return rule(e if isinstance(e, Block) else with_children(e, tuple(map(over, children(e)))))

    def in_statement(s: Statement) -> Statement:
        s = with_own_values(s, tuple(map(over, own_values(s))))
        if isinstance(s, Let | Var | Buffer) and not isinstance(s.kind, Named | Pointer):
            s = replace(s, kind=declared.get(s.kind, s.kind))
        return with_bodies(s, tuple(map(in_body, bodies(s))))

    def in_body(body: Body) -> Body:
        return tuple(map(in_statement, body))

    return in_body(body)


def _is_wide(value: Expr) -> bool:
    """Whether a value has numbers of int64 other than the places that searches find."""
    found = (e for e in walk(value) if isinstance(e, Cast | Read) or (isinstance(e, Reduce) and e.kind not in SEARCHES))
    return any(e.type is DType.INT64 for e in found)


def adds_up(value: Expr) -> bool:
    """Whether a value has sums of int64, which are kept without the bits beyond 32: so is what they are cast to."""
    return any(e.kind not in SEARCHES and e.type is DType.INT64 for e in reductions(value))
