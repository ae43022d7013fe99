"""The nodes of typed scalar expressions of a kernel body in index notation, and how they are walked and rebuilt.

Every node is frozen, carries its value type and the span of source text it came from (spans do not take part in comparison), and
is a value at one point of the iteration domain: an assignment of integers to index variables and index tuples to axis groups.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, fields
from operator import attrgetter, is_
from typing import Any, ClassVar, TypeAlias

from opc.diagnostics import NO_SPAN, Span
from opc.ir.affine import Affine, GroupSize
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak
from opc.ir.node import ExprNode, interned, remembered, remembering
from opc.names import REDUCTIONS as REDUCTIONS
from opc.records import dataclass, replace

NOTHING: frozenset[str] = frozenset()

ELLIPSIS = "..."
"""The name of the axis group that `...` stands for."""


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class GroupRef:
    """All indices of an axis group at once, in order: `...` or `*A` inside a subscript."""

    name: str

    def __str__(self) -> str:
        return "..." if self.name == ELLIPSIS else f"*{self.name}"


@remembering
@dataclass(frozen=True, slots=True)
class Const(ExprNode):
    """A literal number or bool; `value` is an int, a float (inf and nan included) or a bool. 0 and -0 are two."""

    value: int | float | bool
    type: ValueType
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Const) or self.type != other.type:
            return False
        a, b = self.value, other.value
        return a is b or (a == b and math.copysign(1, a) == math.copysign(1, b))


@remembering
@dataclass(frozen=True, slots=True)
class AttrRef(ExprNode):
    """The value of an attribute, or of one element of a list attribute (`element` >= 0).

    A `str` attribute appears only in comparisons with a `StrConst`.
    """

    name: str
    type: ValueType
    element: int = -1
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@remembering
@dataclass(frozen=True, slots=True)
class StrConst(ExprNode):
    """A string literal; only compared with a `str` attribute, by `eq` or `ne`.

    `among` are the values that the attribute may have, none of one that may have any.
    """

    value: str
    among: tuple[str, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def type(self) -> ValueType:
        """Strings have no value type of their own; they only appear under a comparison."""
        return DType.BOOL


@remembering
@dataclass(frozen=True, slots=True)
class IndexValue(ExprNode):
    """An integer expression over index variables, dimensions and attributes, used as a value (weak int)."""

    value: Affine
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def type(self) -> ValueType:
        """Always weak int."""
        return Weak.INT


@remembering
@dataclass(frozen=True, slots=True)
class GroupIndex(ExprNode):
    """Which point of an axis group this is, counted in row-major order from 0 (weak int)."""

    group: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def type(self) -> ValueType:
        """Always weak int."""
        return Weak.INT


@remembering
@dataclass(frozen=True, slots=True)
class Read(ExprNode):
    """An element of an input, temporary or earlier output.

    `indices` has one entry an axis or axis group of the operand: an affine expression, a group, or (data dependent) an integer
    expression. With `pad` the read may fall outside in any axis, and then has the value of `pad`. `checked` axes are those whose
    index could not be proved inside: a run-time check raises an error there.
    """

    operand: str
    indices: tuple[Affine | GroupRef | Expr, ...]
    type: ValueType
    pad: Expr | None = None
    checked: tuple[int, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@remembering
@dataclass(frozen=True, slots=True)
class Call(ExprNode):
    """A function of the function table applied to arguments; operators are functions too (`add`, `lt`, `and`, ...)."""

    fn: str
    args: tuple[Expr, ...]
    type: ValueType
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@remembering
@dataclass(frozen=True, slots=True)
class Select(ExprNode):
    """`then if cond else other`. Only the chosen side counts: it alone may read, overflow or pass on a gradient."""

    cond: Expr
    then: Expr
    other: Expr
    type: ValueType
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class Axis:
    """One reduction axis: an index variable and its extent; it runs over 0 <= index < extent."""

    index: str
    extent: Affine

    @property
    def size(self) -> Affine:
        """The number of points."""
        return self.extent

    def __str__(self) -> str:
        return f"{self.index}:{self.extent}"


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class GroupAxis:
    """Reduction over every axis of a group."""

    name: str

    @property
    def size(self) -> Affine:
        """The number of points."""
        return Affine.of(GroupSize(self.name))

    def __str__(self) -> str:
        return "..." if self.name == ELLIPSIS else f"*{self.name}"


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class BroadcastAxis:
    """Reduction over the axes of a broadcast group along which `operand` was broadcast (its size is 1 or the axis is missing).

    The transpose of a broadcast read. What is left of the group has the shape of `operand`'s own group.
    """

    name: str
    operand: str

    @property
    def size(self) -> Affine:
        """The number of points of the whole group, along some of whose axes it goes."""
        return Affine.of(GroupSize(self.name))

    def __str__(self) -> str:
        return f"broadcast({self.operand})"


ReduceAxis: TypeAlias = Axis | GroupAxis | BroadcastAxis

SEARCHES = ("argmax", "argmin")
"""Reductions that find a position."""

EXTREMES = ("max", "min", *SEARCHES)
"""Reductions to one of the elements: they have no value for nothing, and may choose among several that are alike."""


@remembering
@dataclass(frozen=True, slots=True)
class Reduce(ExprNode):
    """A reduction of `body` over axes. `kind` is one of REDUCTIONS without `mean`, which the front end writes as sum / size.

    Ties of max, min, argmax and argmin go to the first position in row-major order. Floating sums may be reassociated.
    """

    kind: str
    axes: tuple[ReduceAxis, ...]
    body: Expr
    type: ValueType
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def extents(self) -> dict[str, Affine]:
        """The extent along each index variable that the reduction binds; groups have none."""
        return {a.index: a.extent for a in self.axes if isinstance(a, Axis)}

    @property
    def over(self) -> str:
        """The axes as messages name them."""
        return ", ".join(a.index if isinstance(a, Axis) else str(a) for a in self.axes)


@remembering
@dataclass(frozen=True, slots=True)
class Cast(ExprNode):
    """Conversion to another value type; float to int truncates and saturates, NaN gives 0, integers wrap."""

    arg: Expr
    type: ValueType
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


def is_same_value(e: Cast) -> bool:
    """Whether a cast is between a type variable, or its accumulator, and the same with fewer dtypes: nothing is converted.

    Such a cast stands at the border of a side that `TypeIs` chooses.
    """
    one, other = e.type, e.arg.type
    if isinstance(one, Acc) and isinstance(other, Acc):
        one, other = one.of, other.of
    return isinstance(one, TypeVar) and isinstance(other, TypeVar) and one.name == other.name


@remembering
@dataclass(frozen=True, slots=True)
class Present(ExprNode):
    """Whether an optional operand was given; known when the kernel is called, the same at every point."""

    operand: str
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def type(self) -> ValueType:
        """Always bool."""
        return DType.BOOL


@remembering
@dataclass(frozen=True, slots=True)
class TypeIs(ExprNode):
    """Whether a type variable stands for one of some dtypes; known when the kernel is called, the same at every point."""

    variable: str
    dtypes: tuple[DType, ...]
    span: Span = field(default=NO_SPAN, compare=False, repr=False)

    @property
    def type(self) -> ValueType:
        """Always bool."""
        return DType.BOOL


@dataclass(frozen=True, slots=True)
class Extension(ExprNode):
    """The base of the expressions that a lower IR has beside those here, such as a load from memory."""

    @property
    def type(self) -> ValueType:
        """The value type."""
        raise NotImplementedError(f"{self.__class__.__name__} says what type it has")

    @property
    def span(self) -> Span:
        """None: what a lower IR makes stands in no source text."""
        return NO_SPAN

    TRAITS: ClassVar[int] = 0
    """What the expression itself is, as bits of `traits`."""

    PARTS: ClassVar[tuple[str, ...]] = ()
    """The fields that hold direct subexpressions: one, a tuple of them, or None."""

    def text(self) -> str:
        """Return the expression on one line."""
        raise NotImplementedError(f"{self.__class__.__name__} says how it is printed")

    def parts(self) -> tuple[Expr, ...]:
        """Return the direct subexpressions."""
        return parts_of(self, self.PARTS)

    def with_parts(self, new: tuple[Expr, ...]) -> Any:
        """Return the expression with its direct subexpressions replaced; only asked where there are some."""
        return with_parts(self, self.PARTS, new)


def parts_of(node: Any, fields: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what some fields of a dataclass hold: one thing each, a tuple of them, or None."""
    found: list[Any] = []
    for name in fields:
        held = getattr(node, name)
        if isinstance(held, tuple):
            found += held
        elif held is not None:
            found.append(held)
    return tuple(found)


def with_parts(node: Any, fields: tuple[str, ...], new: Iterable[Any]) -> Any:
    """Return a dataclass with other things in some fields, in the order of `parts_of`."""
    rest, changed = iter(new), {}
    for name in fields:
        held = getattr(node, name)
        if isinstance(held, tuple):
            changed[name] = tuple([next(rest) for _ in held])
        elif held is not None:
            changed[name] = next(rest)
    return replace(node, **changed)


Expr: TypeAlias = (
    Const | StrConst | AttrRef | IndexValue | GroupIndex | Read | Call | Select | Reduce | Cast | Present | TypeIs | Extension
)


def children(e: Expr) -> tuple[Expr, ...]:
    """Return the direct subexpressions, data-dependent indices and pad values included."""
    return CHILDREN[e.__class__](e)


@remembered("_children", often=True)
def _read_children(e: Read) -> tuple[Expr, ...]:
    data = tuple([i for i in e.indices if not isinstance(i, Affine | GroupRef)])
    return data if e.pad is None else (*data, e.pad)


def _no_children(e: Any) -> tuple[Expr, ...]:
    return ()


class _Children(dict[type, Callable[[Any], tuple[Expr, ...]]]):
    """What returns the direct subexpressions of each class of expressions; of a lower IR's, found when it is first asked for."""

    def __missing__(self, cls: type) -> Callable[[Any], tuple[Expr, ...]]:
        found: Callable[[Any], tuple[Expr, ...]] = _no_children
        if issubclass(cls, Extension):
            if cls.parts is not Extension.parts:
                found = cls.parts
            elif len(cls.PARTS) == 1:
                found = _single(cls)
            elif cls.PARTS:
                found = functools.partial(parts_of, fields=cls.PARTS)
        self[cls] = found
        return found


def _single(cls: type[Extension]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what returns the direct subexpressions that one field holds, by what it is declared to hold."""
    (name,) = cls.PARTS
    get = attrgetter(name)
    declared = next(f.type for f in fields(cls) if f.name == name)
    if declared == "tuple[Expr, ...]":
        return get
    if declared == "Expr":
        return lambda e: (get(e),)
    return lambda e: () if (held := get(e)) is None else (held,)


CHILDREN = _Children(
    {
        Read: _read_children,
        Call: attrgetter("args"),
        Select: attrgetter("cond", "then", "other"),
        Reduce: lambda e: (e.body,),
        Cast: lambda e: (e.arg,),
    },
)
"""Asked more often than anything else, of every node of every op: a table is faster than a `match`."""


def is_same(old: Sequence[object], new: Sequence[object]) -> bool:
    """Whether two sequences of one length hold the very same objects: what changes nothing need not make a new node."""
    return all(map(is_, old, new))


def with_children(e: Expr, new: tuple[Expr, ...]) -> Expr:
    """Return `e` with its direct subexpressions replaced, in the order of `children`."""
    cls = e.__class__
    if not new or all(map(is_, new, CHILDREN[cls](e))):
        return e
    build = _REBUILT.get(cls)
    return e.with_parts(new) if build is None else build(e, new)  # type: ignore[union-attr]  # it is an `Extension`


def with_indices(e: Read, indices: tuple[Affine | GroupRef | Expr, ...]) -> Read:
    """Return a read with other indices; itself where they are its own."""
    return e if indices == e.indices else Read(e.operand, indices, e.type, e.pad, e.checked, e.span)


def _read_with(e: Read, new: tuple[Expr, ...]) -> Read:
    rest = iter(new)
    indices = tuple([i if isinstance(i, Affine | GroupRef) else next(rest) for i in e.indices])
    return Read(e.operand, indices, e.type, None if e.pad is None else next(rest), e.checked, e.span)


_REBUILT: dict[type, Callable[[Any, tuple[Expr, ...]], Expr]] = {
    Read: _read_with,
    Call: lambda e, new: Call(e.fn, new, e.type, e.span),
    Select: lambda e, new: Select(new[0], new[1], new[2], e.type, e.span),
    Reduce: lambda e, new: Reduce(e.kind, e.axes, new[0], e.type, e.span),
    Cast: lambda e, new: Cast(new[0], e.type, e.span),
}
"""As often needed: to call the class takes a third of the time of `dataclasses.replace`."""


def walk(e: Expr) -> Iterator[Expr]:
    """Yield `e` and every subexpression, parents first."""
    waiting = [e]
    while waiting:
        node = waiting.pop()
        yield node
        if below := CHILDREN[node.__class__](node):
            waiting += below[::-1]


def rewrite(e: Expr, rule: Callable[[Expr], Expr]) -> Expr:
    """Return `e` with `rule` applied to every node, children first."""
    below = CHILDREN[e.__class__](e)
    return rule(with_children(e, tuple([rewrite(c, rule) for c in below])) if below else e)
