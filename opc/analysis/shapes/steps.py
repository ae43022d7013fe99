"""How a call of an op is checked and its sizes are bound, as a list of steps.

One plan serves every consumer, so that all of them agree: `opc.analysis.shapes.inference.infer` runs it, `opc.emit.shapes.cpp`
writes it as the kernel's prologue and `opc.emit.shapes.python` as the package's `shape.py`. Its order:

1. attributes: defaults, types, `values`, and those checks that need no sizes;
2. element types: type variables bound by the first operand that has them, then everything else checked;
3. inputs: rank, then each axis bound (first use) or checked (every later use);
4. broadcasting of the groups of a `broadcast` op;
5. derived dimensions, input axes given by an expression, and the conditions that need sizes;
6. the outputs' shapes.

An optional operand that is absent skips its steps, so a symbol that only optional operands have is `Bound.MAYBE` bound.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from opc.ir.affine import Affine
from opc.ir.dtypes import ElementType, TypeVar
from opc.ir.expr import ELLIPSIS, Expr
from opc.ir.op import Attribute, Op, Operand
from opc.records import dataclass

GroupKey: TypeAlias = tuple[str, str | None]
"""A group's name and, in a broadcast op, the input whose own group it is."""


class Bound(Enum):
    """Whether earlier steps have bound a symbol when a step reaches it."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class TypeName:
    """A type variable, where a dimension's name or a group's key could stand too."""

    name: str


Unsure: TypeAlias = str | GroupKey | TypeName
"""A dimension's name, a group's key or a type variable."""


@dataclass(frozen=True, slots=True)
class CheckAttribute:
    """The attribute has its type and is one of its `values`; when it was not given, its default stands in."""

    attribute: Attribute


@dataclass(frozen=True, slots=True)
class CheckCondition:
    """A condition over attributes and sizes holds. `attribute` is the attribute whose `check` it is, None for a `require`."""

    condition: Expr
    text: str
    attribute: Attribute | None = None


@dataclass(frozen=True, slots=True)
class BindType:
    """A dtype attribute binds a type variable."""

    attribute: Attribute
    variable: TypeVar


@dataclass(frozen=True, slots=True)
class MatchType:
    """The operand's dtype binds its type variable, or agrees with its type as bound."""

    operand: Operand
    known: Bound


@dataclass(frozen=True, slots=True)
class Rest:
    """A group takes all of the operand's remaining axes but the last `after` and those of known groups among them."""

    after: int
    groups: tuple[GroupKey, ...] = ()


@dataclass(frozen=True, slots=True)
class UpTo:
    """A group takes the axes up to `before` axes before the one the axis attribute places, but not the last `after`."""

    attribute: str
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Same:
    """A group takes as many axes as it was bound to, but not the last `after`."""

    after: int


@dataclass(frozen=True, slots=True)
class Among:
    """A group takes the axes that an attribute lists, or those that it does not list, wherever they stand in a mixed operand.

    Where attributes place single dimensions, `attribute` is the first of them, and the axes of these are the listed ones.
    """

    attribute: str
    listed: bool


@dataclass(frozen=True, slots=True)
class Around:
    """A group takes all axes of a thinned operand, but where `keeps` is true those that the attribute lists, of size 1."""

    attribute: str
    keeps: str


GroupLength: TypeAlias = Rest | UpTo | Same | Among | Around


@dataclass(frozen=True, slots=True)
class MatchDim:
    """The next axis binds a named dimension, or equals it; with `slot`, it is the one that an attribute places so."""

    dim: str
    known: Bound
    slot: int | None = None


@dataclass(frozen=True, slots=True)
class MatchGroup:
    """The next axes, as many as `length` says, bind a group or equal it."""

    group: GroupKey
    length: GroupLength
    known: Bound


@dataclass(frozen=True, slots=True)
class SkipAxis:
    """The next axis's size is given by an expression; it is compared by a later `MatchSize`."""

    size: Affine


AxisMatch: TypeAlias = MatchDim | MatchGroup | SkipAxis


@dataclass(frozen=True, slots=True)
class PlaceAxis:
    """An axis attribute is normalised against an operand's rank.

    It must lie in `first <= axis < rank - last`, counted from the end when negative. One that it `adds` is counted too.
    """

    attribute: Attribute
    first: int
    last: int
    known: Bound
    adds: bool = False


@dataclass(frozen=True, slots=True)
class MatchOperand:
    """The operand has `fixed` axes, or at least so many if it has groups; each axis is matched in order."""

    operand: Operand
    fixed: int
    exact: bool
    places: tuple[PlaceAxis, ...]
    axes: tuple[AxisMatch, ...]


@dataclass(frozen=True, slots=True)
class NeedOne:
    """A dimension, group or type is bound only by optional operands, of which at least one must be given."""

    symbol: Unsure
    operands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BroadcastGroup:
    """A group is what the operands' own groups broadcast to; where an operand bound it, the own groups must expand to it."""

    name: str
    sources: tuple[GroupKey, ...]
    known: Bound


@dataclass(frozen=True, slots=True)
class DeriveDim:
    """A derived dimension gets its value, which may not be negative; `text` is its rule as the spec has it."""

    dim: str
    size: Affine
    text: str


@dataclass(frozen=True, slots=True)
class MatchSize:
    """An input's axis equals an expression; `axis` counts from the end when negative.

    Between two groups, `before` are those in front of it, whose ranks are added to `axis`.
    """

    operand: Operand
    axis: int
    size: Affine
    before: tuple[GroupKey, ...] = ()


@dataclass(frozen=True, slots=True)
class SizeOutput:
    """The output's shape and dtype follow.

    What `needs` lists must have been bound, or the output can't be computed; that can fail only for an optional output, such as
    the gradient of an absent operand.
    """

    operand: Operand
    needs: tuple[NeedOne, ...]


Step: TypeAlias = (
    CheckAttribute
    | CheckCondition
    | BindType
    | MatchType
    | MatchOperand
    | NeedOne
    | BroadcastGroup
    | DeriveDim
    | MatchSize
    | SizeOutput
)


@dataclass(frozen=True, slots=True)
class ShapePlan:
    """The steps of an op in order, and the symbols they bind, in order of binding."""

    op: Op
    steps: tuple[Step, ...]
    dims: tuple[str, ...]
    groups: tuple[GroupKey, ...]

    def may_be_unbound(self, t: ElementType) -> bool:
        """Whether a type is a variable of several dtypes that only optional operands have, and no attribute binds."""
        if (
            not isinstance(t, TypeVar)
            or len(t.dtypes) == 1
            or any(isinstance(s, BindType) and s.variable == t for s in self.steps)
        ):
            return False
        having = [s.operand for s in self.steps if isinstance(s, MatchType) and s.operand.type == t]
        return bool(having) and all(o.optional for o in having)


def group_text(key: GroupKey) -> str:
    """Return a group as messages write it."""
    return "..." if key[0] == ELLIPSIS else f"*{key[0]}"


def symbol_text(symbol: Unsure) -> str:
    """Return a dimension, group or type variable as messages write it."""
    match symbol:
        case TypeName():
            return f"type {symbol.name}"
        case str():
            return symbol
        case _:
            return f"{group_text(symbol)} of {symbol[1]}" if symbol[1] else group_text(symbol)
