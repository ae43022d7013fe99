"""The untyped tree of a kernel body: what was written, with the place of each part, before anything is known of its meaning."""

from __future__ import annotations

from typing import TypeAlias

from opc.diagnostics import Span
from opc.records import dataclass

ORDER = "argsort"
"""What orders an axis: `argsort[k](x[..., k])[i]`. It is called like a reduction, and indexed."""


@dataclass(frozen=True, slots=True)
class Name:
    """A bare name."""

    id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Literal:
    """A number, boolean or string."""

    value: int | float | bool | str
    span: Span


@dataclass(frozen=True, slots=True)
class Dots:
    """`...` in a subscript or as an argument."""

    span: Span


@dataclass(frozen=True, slots=True)
class Star:
    """`*A` in a subscript or as an argument."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class AxisRange:
    """`p:extent` in a reduction's axes."""

    name: Name
    extent: Tree
    span: Span


@dataclass(frozen=True, slots=True)
class Subscript:
    """`base[items]`; no items for `base[()]` and `base[]`."""

    base: Tree
    items: tuple[Item, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Apply:
    """A function call `fn(args)`."""

    fn: Name
    args: tuple[Item, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ReductionCall:
    """`kind[axes](body)`, or `argsort[axes](body, descending)`."""

    kind: Name
    axes: tuple[Item, ...]
    body: Tree
    span: Span
    descending: Tree | None = None


@dataclass(frozen=True, slots=True)
class Operation:
    """An operator applied to one or two arguments; `op` is its name in the function table, `op_text` how it was written."""

    op: str
    op_text: str
    args: tuple[Tree, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Conditional:
    """`then if cond else other`."""

    cond: Tree
    then: Tree
    other: Tree
    span: Span


@dataclass(frozen=True, slots=True)
class Among:
    """`T in floating`, `T in [int8, int16]`; `negated` where `not in` was written."""

    variable: Name
    dtypes: tuple[Name, ...]
    negated: bool
    span: Span


Tree: TypeAlias = Name | Literal | Subscript | Apply | ReductionCall | Operation | Conditional | Among
Item: TypeAlias = Tree | Dots | Star | AxisRange


@dataclass(frozen=True, slots=True)
class Statement:
    """`target[items] = value`; `items` is None where no subscript was written.

    `value` is None where the statement has a mistake that was reported: all that is known then is what it assigns.
    """

    target: Name
    items: tuple[Item, ...] | None
    target_span: Span
    value: Tree | None
    span: Span


def parts(node: Item) -> tuple[Item, ...]:
    """Return the direct parts of a node, in the order written."""
    match node:
        case Subscript():
            return (node.base, *node.items)
        case Apply() | Operation():
            return tuple(node.args)
        case ReductionCall():
            return (*node.axes, node.body, *(() if node.descending is None else (node.descending,)))
        case Conditional():
            return (node.then, node.cond, node.other)
        case Among():
            return (node.variable, *node.dtypes)
        case AxisRange():
            return (node.extent,)
        case _:
            return ()
