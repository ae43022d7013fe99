"""Statements of the loop IR, and the function that they make up.

A variable is declared by `Let` (which does not change), `Var`, `Buffer`, the head of a `Loop` or the parameters of a
`CallWithBody`, and is in scope from there to the end of the body it stands in. `Store` and `Accumulate` write variables, elements
of arrays, and what pointers point to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from enum import Enum
from operator import attrgetter
from typing import Any, TypeAlias

from opc.diagnostics import NO_SPAN, Span
from opc.ir.dtypes import TypeVar, ValueType
from opc.ir.expr import Expr, is_same
from opc.loops.schedule import Schedule
from opc.loops.values import Intrinsic, Kind, Local, ReferenceType
from opc.records import dataclass, replace


class How(Enum):
    """How the iterations of a loop may run."""

    SERIAL = "for"
    VECTOR = "vector"
    UNROLLED = "unrolled"
    ROLLED = "rolled"
    REDUCTION = "vector reduction"
    LANES = "lane by lane"
    TEAMS = "teams"
    THREADS = "threads"
    GRID = "all threads"


@dataclass(frozen=True, slots=True)
class Comment:
    """What the statements behind it compute, in index notation."""

    text: str


@dataclass(frozen=True, slots=True)
class Let:
    """A variable that does not change: `value` converted to `kind`."""

    name: str
    kind: Kind
    value: Expr


@dataclass(frozen=True, slots=True)
class Var:
    """A variable that statements behind it change."""

    name: str
    kind: Kind
    value: Expr | None = None


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array of `size` elements, a number or a constant of the runtime's; `aligned` to a line of the caches."""

    name: str
    kind: Kind
    size: str | Expr
    aligned: bool = False


@dataclass(frozen=True, slots=True)
class Alias:
    """A type of the function's own: that of a variable."""

    name: str
    variable: str


@dataclass(frozen=True, slots=True)
class Store:
    """`target = value`, converted to the target's type."""

    target: Local
    value: Expr


@dataclass(frozen=True, slots=True)
class Accumulate:
    """`target` takes `value` in: `kind` is sum, prod, max, min, any or all.

    `by` says how, where that is not plain arithmetic: "products" are added with the runtime's accumulators, "atomic" additions
    are seen by other threads where the call shares its terms, "bits" join bools without a branch.
    """

    target: Local
    kind: str
    value: Expr
    by: str = ""


@dataclass(frozen=True, slots=True)
class Search:
    """`best` takes `value` in where that is better, by `kind` max or min, and `positions` become `numbers` there."""

    kind: str
    best: Local
    positions: tuple[Local, ...]
    numbers: tuple[Expr, ...]
    value: Expr


@dataclass(frozen=True, slots=True)
class Loop:
    """The integers from `low` up to `high`, or with `down` from `high` - 1 to `low`, in steps of `step`.

    A `REDUCTION` loop carries the variable `carried` along, which takes values in by `carried_kind`. After each iteration
    `after` is called. A `short` loop is not worth copies for frequent cases. `ahead` is the function that fetches what later rows
    need, vector by vector.
    """

    how: How
    index: str
    low: Expr
    high: Expr
    body: Body
    step: Expr | None = None
    down: bool = False
    carried: str = ""
    carried_kind: str = ""
    short: bool = False
    ahead: str = ""
    after: Intrinsic | None = None


@dataclass(frozen=True, slots=True)
class GroupPoints:
    """The points of a group's axes, or of those along which an operand is broadcast; `name` is the present one."""

    name: str
    over: tuple[Expr, ...]
    body: Body


@dataclass(frozen=True, slots=True)
class While:
    """The body as long as a condition holds."""

    cond: Expr
    body: Body


@dataclass(frozen=True, slots=True)
class If:
    """One of two bodies; the condition of a `static` one is known for each copy of the function."""

    cond: Expr
    then: Body
    other: Body = ()
    static: bool = False


@dataclass(frozen=True, slots=True)
class PassGroup:
    """Statements that transformations take together: a pass over a row."""

    body: Body


@dataclass(frozen=True, slots=True)
class Do:
    """The call of an intrinsic that returns nothing."""

    call: Intrinsic


@dataclass(frozen=True, slots=True)
class CallWithBody:
    """The call of an intrinsic whose last argument is a function with `body`, which it calls with `params`.

    `result` is the variable that gets what the intrinsic returns, a bool: a new one, or one that it `assigns`.
    """

    call: Intrinsic
    params: tuple[tuple[Kind | ReferenceType | str, str], ...]
    body: Body
    inlined: bool = False
    result: str = ""
    assigns: bool = False


@dataclass(frozen=True, slots=True)
class LocalFunction:
    """A function as a variable, to be passed to intrinsics: of parameters with types, which returns `result` as `returns`."""

    name: str
    params: tuple[tuple[Kind | ReferenceType | str, str], ...]
    body: Body
    result: Expr | None = None
    returns: ValueType | None = None
    inlined: bool = False


@dataclass(frozen=True, slots=True)
class Refuse:
    """The call is refused where a condition holds, for the reason that `report` gives; what is left is not computed."""

    cond: Expr
    report: Intrinsic


@dataclass(frozen=True, slots=True)
class Yield:
    """A block has the value, and nothing more of it is computed."""

    value: Expr


@dataclass(frozen=True, slots=True)
class Continue:
    """The next iteration of the innermost loop."""


@dataclass(frozen=True, slots=True)
class Return:
    """Nothing more of the function is computed."""


Statement: TypeAlias = (
    Comment
    | Let
    | Var
    | Buffer
    | Alias
    | Store
    | Accumulate
    | Search
    | Loop
    | PassGroup
    | GroupPoints
    | While
    | If
    | Do
    | CallWithBody
    | LocalFunction
    | Refuse
    | Yield
    | Continue
    | Return
)
Body: TypeAlias = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """The function of one stage: `form` is the kind of function the runtime calls.

    `operands` are the tensors it takes, in order. `views` are those that it reads, with the type of an element and whether it is
    read in the type that it is stored in. It is a template over `types`. `channel` is the index of the target whose points are
    computed together, where there is one, and with `short_rows` only where these are short. `flags` are bools that each copy of
    the function knows. `forms` are other functions that it calls where they are better.
    """

    form: str
    operands: tuple[str, ...]
    types: tuple[TypeVar, ...]
    body: Body
    views: tuple[View, ...] = ()
    channel: int | None = None
    short_rows: bool = False
    flags: tuple[str, ...] = ()
    schedule: Schedule = field(default_factory=Schedule, compare=False)
    forms: tuple[Form, ...] = ()
    span: Span = field(default=NO_SPAN, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Form:
    """Another form of a function, called in its place where a condition holds; its name has the `prefix` and `suffix`."""

    cond: Expr
    prefix: str
    suffix: str
    kernel: Kernel


@dataclass(frozen=True, slots=True)
class View:
    """An operand as the loops of a function see it."""

    name: str
    type: ValueType
    stored: bool
    entry: int


_VALUES: Mapping[type, Callable[[Any], tuple[Expr, ...]]] = {
    Let: lambda s: (s.value,),
    Var: lambda s: () if s.value is None else (s.value,),
    Yield: lambda s: (s.value,),
    Store: attrgetter("target", "value"),
    Accumulate: attrgetter("target", "value"),
    Search: lambda s: (s.best, *s.positions, *s.numbers, s.value),
    Loop: lambda s: (s.low, s.high) if s.step is None else (s.low, s.high, s.step),
    GroupPoints: attrgetter("over"),
    While: lambda s: (s.cond,),
    If: lambda s: (s.cond,),
    Do: lambda s: (s.call,),
    CallWithBody: lambda s: (s.call,),
    Refuse: attrgetter("cond", "report"),
    LocalFunction: lambda s: () if s.result is None else (s.result,),
}
"""What returns the values that a statement of each class computes itself: asked of every statement by every pass."""

_WITH_VALUES: Mapping[type, Callable[[Any, Sequence[Any]], Statement]] = {
    Let: lambda s, new: Let(s.name, s.kind, new[0]),
    Var: lambda s, new: Var(s.name, s.kind, new[0]),
    Yield: lambda s, new: Yield(new[0]),
    Store: lambda s, new: Store(new[0], new[1]),
    Accumulate: lambda s, new: Accumulate(new[0], s.kind, new[1], s.by),
    Search: lambda s, new: _search_with(s, new),
    Loop: lambda s, new: replace(s, **dict(zip(("low", "high", "step"), new))),
    GroupPoints: lambda s, new: GroupPoints(s.name, tuple(new), s.body),
    While: lambda s, new: While(new[0], s.body),
    If: lambda s, new: If(new[0], s.then, s.other, s.static),
    Do: lambda s, new: Do(new[0]),
    CallWithBody: lambda s, new: replace(s, call=new[0]),
    Refuse: lambda s, new: Refuse(new[0], new[1]),
    LocalFunction: lambda s, new: replace(s, result=new[0]),
}
"""What returns a statement of each class with other values."""


def _search_with(s: Search, new: Sequence[Any]) -> Search:
    count = len(s.positions)
    return Search(s.kind, new[0], tuple(new[1 : 1 + count]), tuple(new[1 + count : -1]), new[-1])


_BODIES: Mapping[type, Callable[[Any], tuple[Body, ...]]] = {
    Loop: lambda s: (s.body,),
    PassGroup: lambda s: (s.body,),
    GroupPoints: lambda s: (s.body,),
    While: lambda s: (s.body,),
    CallWithBody: lambda s: (s.body,),
    LocalFunction: lambda s: (s.body,),
    If: attrgetter("then", "other"),
}
"""What returns the bodies inside a statement of each class."""


def bodies(s: Statement) -> tuple[Body, ...]:
    """Return the bodies inside a statement."""
    get = _BODIES.get(s.__class__)
    return () if get is None else get(s)


def with_bodies(s: Statement, new: tuple[Body, ...]) -> Statement:
    """Return a statement with other bodies, in the order of `bodies`."""
    if not new:
        return s
    if isinstance(s, If):
        then, other = new
        same = _is_same_body(s.then, then) and _is_same_body(s.other, other)
        return s if same else If(s.cond, then, other, s.static)
    (body,) = new
    return s if _is_same_body(s.body, body) else replace(s, body=body)  # type: ignore[union-attr]  # `_BODIES` has one of it


def _is_same_body(old: Body, new: Body) -> bool:
    return len(old) == len(new) and is_same(old, new)


def own_values(s: Statement) -> tuple[Expr, ...]:
    """Return the values that a statement computes itself, those in its bodies aside."""
    get = _VALUES.get(s.__class__)
    return () if get is None else get(s)


def with_own_values(s: Statement, new: tuple[Any, ...]) -> Statement:
    """Return a statement with other values, in the order of `own_values`."""
    if not new or is_same(new, _VALUES[s.__class__](s)):
        return s
    return _WITH_VALUES[s.__class__](s, new)


def values_of(body: Body) -> tuple[Expr, ...]:
    """Return every value in a body, in the order in which they stand."""
    found: list[Expr] = []
    _collect(body, found)
    return tuple(found)


def _collect(body: Body, found: list[Expr]) -> None:
    for s in body:
        cls = s.__class__
        get = _VALUES.get(cls)
        if get is not None:
            found += get(s)
        inside = _BODIES.get(cls)
        if inside is not None:
            for inner in inside(s):
                _collect(inner, found)


def with_values(body: Body, new: tuple[Expr, ...]) -> Body:
    """Return a body with other values, in the order of `values_of`."""
    rest = iter(new)
    return map_values(body, lambda _: next(rest))


def statements(body: Body) -> Iterator[Statement]:
    """Yield every statement of a body, outer ones first."""
    waiting = list(body[::-1])
    while waiting:
        s = waiting.pop()
        yield s
        inside = _BODIES.get(s.__class__)
        if inside is not None:
            for inner in inside(s)[::-1]:
                waiting += inner[::-1]


def outline(body: Body) -> tuple[type, ...]:
    """Return the classes of a body's statements but comments, outer ones first: bodies that differ mostly differ in these."""
    return tuple([cls for s in statements(body) if (cls := s.__class__) is not Comment])


def map_values(body: Body, change: Callable[[Expr], Expr]) -> Body:
    """Return a body with `change` applied to every value that a statement computes, in the order of `values_of`."""
    found: list[Statement] = []
    for s in body:
        cls = s.__class__
        get = _VALUES.get(cls)
        if get is not None:
            old = get(s)
            new = [change(v) for v in old]
            if not is_same(old, new):
                s = _WITH_VALUES[cls](s, new)
        inside = _BODIES.get(cls)
        if inside is not None:
            s = with_bodies(s, tuple([map_values(b, change) for b in inside(s)]))
        found.append(s)
    return tuple(found)


def without_comments(kernel: Kernel) -> Kernel:
    """Return a function without what does not change how it computes: comments, and what its target is called."""

    def plain(body: Body) -> Body:
        return tuple(with_bodies(s, tuple(map(plain, bodies(s)))) for s in body if not isinstance(s, Comment))

    forms = tuple(replace(f, kernel=without_comments(f.kernel)) for f in kernel.forms)
    named = ("",) * len(kernel.operands) if kernel.form == "tile" else (*kernel.operands[:-1], "")
    return replace(kernel, body=plain(kernel.body), operands=named, forms=forms)
