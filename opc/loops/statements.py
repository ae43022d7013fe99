"""Statements of the loop IR, and the function that they make up.

A variable is declared by `Let` (which does not change), `Var`, `Buffer`, the head of a `Loop` or the parameters of a
`CallWithBody`, and is in scope from there to the end of the body it stands in. `Store` and `Accumulate` write variables, elements
of arrays, and what pointers point to.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TypeAlias

from opc.diagnostics import NO_SPAN, Span
from opc.ir.dtypes import TypeVar, ValueType
from opc.ir.expr import Expr
from opc.loops.schedule import Schedule
from opc.loops.values import Intrinsic, Kind, Local, ReferenceType
from opc.records import dataclass


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
    """The call of an intrinsic whose last argument is a function with `body`, which it calls with `params`."""

    call: Intrinsic
    params: tuple[tuple[Kind | ReferenceType | str, str], ...]
    body: Body
    inlined: bool = False


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
    the function knows. `converts` is the type of the elements that it takes as they are stored, and converts itself, if there is
    one. `forms` are other functions that it calls where they are better.
    """

    form: str
    operands: tuple[str, ...]
    types: tuple[TypeVar, ...]
    body: Body
    views: tuple[View, ...] = ()
    channel: int | None = None
    short_rows: bool = False
    flags: tuple[str, ...] = ()
    converts: TypeVar | None = None
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
