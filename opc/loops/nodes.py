"""Statements of the loop IR, and the function that they make up.

A variable is declared by `Let` (which does not change), `Var`, `Buffer`, the head of a `Loop` or the parameters of a
`CallWithBody`, and is in scope from there to the end of the body it stands in. `Store` and `Accumulate` write variables, elements
of arrays, and what pointers point to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias

from opc.diagnostics import NO_SPAN, Span
from opc.ir.dtypes import TypeVar, ValueType
from opc.ir.expr import Expr, is_same, parts_of, with_parts
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


_VALUES: Mapping[type, tuple[str, ...]] = {
    Let: ("value",),
    Var: ("value",),
    Yield: ("value",),
    Store: ("target", "value"),
    Accumulate: ("target", "value"),
    Search: ("best", "positions", "numbers", "value"),
    Loop: ("low", "high", "step"),
    GroupPoints: ("over",),
    While: ("cond",),
    If: ("cond",),
    Do: ("call",),
    CallWithBody: ("call",),
    Refuse: ("cond", "report"),
    LocalFunction: ("result",),
}
"""The fields of each statement that hold the values which it computes itself."""

_BODIES: Mapping[type, tuple[str, ...]] = {
    Loop: ("body",),
    PassGroup: ("body",),
    GroupPoints: ("body",),
    While: ("body",),
    CallWithBody: ("body",),
    LocalFunction: ("body",),
    If: ("then", "other"),
}
"""The fields of each statement that hold bodies."""


def bodies(s: Statement) -> tuple[Body, ...]:
    """Return the bodies inside a statement."""
    fields = _BODIES.get(s.__class__)
    return tuple([getattr(s, name) for name in fields]) if fields else ()


def with_bodies(s: Statement, new: tuple[Body, ...]) -> Statement:
    """Return a statement with other bodies, in the order of `bodies`."""
    if not new:
        return s
    fields = zip(_BODIES[s.__class__], new, strict=True)
    changed: dict[str, Any] = {name: b for name, b in fields if not _is_same_body(getattr(s, name), b)}
    return replace(s, **changed) if changed else s


def _is_same_body(old: Body, new: Body) -> bool:
    return len(old) == len(new) and is_same(old, new)


def own_values(s: Statement) -> tuple[Expr, ...]:
    """Return the values that a statement computes itself, those in its bodies aside."""
    fields = _VALUES.get(s.__class__)
    return parts_of(s, fields) if fields else ()


def with_own_values(s: Statement, new: tuple[Any, ...]) -> Statement:
    """Return a statement with other values, in the order of `own_values`."""
    if not new or is_same(new, own_values(s)):
        return s
    changed: Statement = with_parts(s, _VALUES[s.__class__], new)
    return changed


def values_of(body: Body) -> tuple[Expr, ...]:
    """Return every value in a body, in the order in which they stand."""
    found: list[Expr] = []
    _collect(body, found)
    return tuple(found)


def _collect(body: Body, found: list[Expr]) -> None:
    for s in body:
        cls = s.__class__
        fields = _VALUES.get(cls)
        if fields:
            found += parts_of(s, fields)
        for name in _BODIES.get(cls, ()):
            _collect(getattr(s, name), found)


def with_values(body: Body, new: tuple[Expr, ...]) -> Body:
    """Return a body with other values, in the order of `values_of`."""
    rest = iter(new)

    def changed(body: Body) -> Body:
        found = []
        for s in body:
            s = with_own_values(s, tuple(next(rest) for _ in own_values(s)))
            found.append(with_bodies(s, tuple(changed(b) for b in bodies(s))))
        return tuple(found)

    return changed(body)


def statements(body: Body) -> Iterator[Statement]:
    """Yield every statement of a body, outer ones first."""
    for s in body:
        yield s
        for inner in bodies(s):
            yield from statements(inner)


def outline(body: Body) -> tuple[type, ...]:
    """Return the classes of a body's statements, outer ones first: bodies that differ mostly differ in these."""
    return tuple([s.__class__ for s in statements(body)])


def map_values(body: Body, change: Callable[[Expr], Expr]) -> Body:
    """Return a body with `change` applied to every value that a statement computes."""
    return with_values(body, tuple(change(v) for v in values_of(body)))


def without_comments(kernel: Kernel) -> Kernel:
    """Return a function without what does not change how it computes: comments, and what its target is called."""

    def plain(body: Body) -> Body:
        return tuple(with_bodies(s, tuple(map(plain, bodies(s)))) for s in body if not isinstance(s, Comment))

    forms = tuple(replace(f, kernel=without_comments(f.kernel)) for f in kernel.forms)
    named = ("",) * len(kernel.operands) if kernel.form == "tile" else (*kernel.operands[:-1], "")
    return replace(kernel, body=plain(kernel.body), operands=named, forms=forms)
