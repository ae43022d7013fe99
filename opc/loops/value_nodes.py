"""The nodes of the loop IR's values: variables, memory, integers that the runtime holds, and calls of intrinsics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import SPECULATION, STATEMENTS, Expr, Extension
from opc.ir.node import remembering
from opc.ir.printer import format_expr
from opc.loops.kinds import Kind, Named, Pointer, ReferenceType, type_text
from opc.records import dataclass, replace

if TYPE_CHECKING:
    from opc.loops.nodes import Body


@remembering
@dataclass(frozen=True, slots=True)
class Integer(Extension):
    """The base of integers, which are int64."""

    @property
    def type(self) -> ValueType:
        """Weak int, as index values are."""
        return Weak.INT


@remembering
@dataclass(frozen=True, slots=True)
class Local(Extension):
    """The value of a variable, or with `index` an element of the array or of the memory that it points to.

    `member` is the function of a struct of the runtime's that returns its value, or a member that is one.
    """

    PARTS: ClassVar = ("index",)

    name: str
    type: ValueType
    index: Expr | None = None
    member: str = ""

    def text(self) -> str:
        """Return `name`, `name.member` or `name[index]`."""
        member = f".{self.member}" if self.member else ""
        return f"{self.name}{member}" if self.index is None else f"{self.name}[{format_expr(self.index)}]"

    def with_parts(self, new: tuple[Expr, ...]) -> Local:
        """As `Extension` says."""
        return Local(self.name, self.type, new[0], self.member)


@remembering
@dataclass(frozen=True, slots=True)
class Member(Integer):
    """An integer that the runtime holds: `x.stride[0]`, `nest.parts`."""

    owner: str
    field: str
    entry: int | Expr | None = None

    def text(self) -> str:
        """Return `owner.field[entry]`."""
        entry = self.entry if isinstance(self.entry, int | None) else format_expr(self.entry)
        return f"{self.owner}.{self.field}" + ("" if entry is None else f"[{entry}]")


@remembering
@dataclass(frozen=True, slots=True)
class Rank(Integer):
    """The number of axes of a group; `of` names the input whose own group it is."""

    group: str
    of: str | None = None

    def text(self) -> str:
        """Return `rank(group)`."""
        return f"rank({self.group}{'' if self.of is None else f' of {self.of}'})"


@remembering
@dataclass(frozen=True, slots=True)
class Axes(Integer):
    """The sizes of a group's axes, as an argument of intrinsics; `of` names the input whose own group it is."""

    group: str
    of: str | None = None

    def text(self) -> str:
        """Return `axes(group)`."""
        return f"axes({self.group}{'' if self.of is None else f' of {self.of}'})"


@remembering
@dataclass(frozen=True, slots=True)
class Sum(Integer):
    """A sum of integers, in the order given."""

    PARTS: ClassVar = ("terms",)

    terms: tuple[Expr, ...]

    def text(self) -> str:
        """Return the sum in parentheses."""
        return f"({' + '.join(map(format_expr, self.terms))})"

    def with_parts(self, new: tuple[Expr, ...]) -> Sum:
        """As `Extension` says."""
        return Sum(new)


@remembering
@dataclass(frozen=True, slots=True)
class Product(Integer):
    """A product of integers."""

    PARTS: ClassVar = ("factors",)

    factors: tuple[Expr, ...]

    def text(self) -> str:
        """Return the product, with sums in parentheses."""
        return "*".join(t if _is_word(t) else f"({t})" for t in map(format_expr, self.factors))

    def with_parts(self, new: tuple[Expr, ...]) -> Product:
        """As `Extension` says."""
        return Product(new)


@remembering
@dataclass(frozen=True, slots=True)
class Load(Extension):
    """The element of an operand at `offset` elements from its first, one that is inside wherever the load stands.

    A `stored` operand is read in the type that it is stored in. `along` is the part of the offset that changes from one lane to
    the next, where that is kept separate.
    """

    view: str
    offset: Expr
    type: ValueType
    stored: bool = False
    along: Expr | None = None

    def text(self) -> str:
        """Return `view[offset]`."""
        along = "" if self.along is None else f" + {format_expr(self.along)}"
        return f"{self.view}[{format_expr(self.offset).removeprefix('(').removesuffix(')')}{along}]"

    def parts(self) -> tuple[Expr, ...]:
        """As `Extension` says."""
        return (self.offset,) if self.along is None else (self.offset, self.along)

    def with_parts(self, new: tuple[Expr, ...]) -> Load:
        """As `Extension` says."""
        return Load(self.view, new[0], self.type, self.stored, None if self.along is None else new[1])


@remembering
@dataclass(frozen=True, slots=True)
class Address(Integer):
    """Where the element of an operand at `offset` lies, None at the first: an argument of intrinsics."""

    PARTS: ClassVar = ("offset",)

    view: str
    offset: Expr | None

    def text(self) -> str:
        """Return `&view[offset]`."""
        return f"&{self.view}[{'0' if self.offset is None else format_expr(self.offset).removeprefix('(').removesuffix(')')}]"


@remembering
@dataclass(frozen=True, slots=True)
class Speculative(Extension):
    """A value that may be computed speculatively, wherever its variables are known."""

    PARTS: ClassVar = ("value",)
    TRAITS: ClassVar = SPECULATION

    value: Expr

    @property
    def type(self) -> ValueType:
        """That of the value."""
        return self.value.type

    def text(self) -> str:
        """Return the value."""
        return _wrapped(format_expr(self.value))


@remembering
@dataclass(frozen=True, slots=True)
class Construct(Extension):
    """A value converted to a type that may be none of the value types."""

    PARTS: ClassVar = ("value",)

    kind: Kind
    value: Expr

    @property
    def type(self) -> ValueType:
        """That of the value, where the kind is no value type."""
        return self.value.type if isinstance(self.kind, Named | Pointer) else self.kind

    def text(self) -> str:
        """Return `kind(value)`."""
        return f"{type_text(self.kind)}({format_expr(self.value)})"

    def with_parts(self, new: tuple[Expr, ...]) -> Construct:
        """As `Extension` says."""
        return Construct(self.kind, new[0])


@remembering
@dataclass(frozen=True, slots=True)
class As(Extension):
    """A value as one of another type that it mixes with: a literal or an attribute takes the type, others are converted."""

    PARTS: ClassVar = ("value",)

    value: Expr
    type: ValueType

    def text(self) -> str:
        """Return the value."""
        return _wrapped(format_expr(self.value))


@remembering
@dataclass(frozen=True, slots=True)
class Deref(Extension):
    """What a pointer that an intrinsic returns points to."""

    PARTS: ClassVar = ("pointer",)

    pointer: Expr
    type: ValueType

    def text(self) -> str:
        """Return `*pointer`."""
        return f"*{format_expr(self.pointer)}"


@remembering
@dataclass(frozen=True, slots=True)
class Intrinsic(Extension):
    """A function of the runtime's headers, with template arguments `types`; `opc.loops.intrinsics` lists them."""

    PARTS: ClassVar = ("args",)

    name: str
    args: tuple[Expr, ...]
    type: ValueType
    types: tuple[Any, ...] = ()

    def text(self) -> str:
        """Return the call."""
        types = f"<{', '.join(map(type_text, self.types))}>" if self.types else ""
        return f"{self.name}{types}({', '.join(map(format_expr, self.args))})"

    def with_parts(self, new: tuple[Expr, ...]) -> Intrinsic:
        """As `Extension` says."""
        return Intrinsic(self.name, new, self.type, self.types)


@remembering
@dataclass(frozen=True, slots=True)
class Word(Integer):
    """What stands as an argument of an intrinsic and has no value type: `nest`, `opc::nowhere`, a list of constants."""

    word: str

    def text(self) -> str:
        """Return the word."""
        return self.word


@remembering
@dataclass(frozen=True, slots=True)
class Init(Integer):
    """The members of a struct of the runtime's, in order."""

    PARTS: ClassVar = ("members",)

    members: tuple[Expr, ...]

    def text(self) -> str:
        """Return the members in braces."""
        return f"{{{', '.join(map(format_expr, self.members))}}}"


@remembering
@dataclass(frozen=True, slots=True)
class Static(Extension):
    """A constant of a struct of the runtime's: `limits<T>::lowest`."""

    owner: Named
    name: str
    type: ValueType

    def text(self) -> str:
        """Return `owner::name`, or the owner where that is a constant itself."""
        return f"{self.owner}::{self.name}" if self.name else str(self.owner)


@remembering
@dataclass(frozen=True, slots=True)
class IntegerChoice(Integer):
    """One of two integers, or of what else has no value type."""

    cond: Expr
    then: Expr
    other: Expr

    def text(self) -> str:
        """Return the choice."""
        return f"({format_expr(self.then)} if {format_expr(self.cond)} else {format_expr(self.other)})"

    def parts(self) -> tuple[Expr, ...]:
        """As `Extension` says."""
        return self.cond, self.then, self.other

    def with_parts(self, new: tuple[Expr, ...]) -> IntegerChoice:
        """As `Extension` says."""
        return IntegerChoice(*new)


@remembering
@dataclass(frozen=True, slots=True)
class Block(Extension):
    """Statements that compute a value where it is used; `Result` and `Refuse` leave them early."""

    TRAITS: ClassVar = STATEMENTS

    body: Body
    value: Expr
    type: ValueType

    def text(self) -> str:
        """Return the statements on one line."""
        from opc.loops.printer import format_inline

        return f"{{{format_inline(self.body)}; {format_expr(self.value)}}}"

    def parts(self) -> tuple[Expr, ...]:
        """Return the values in the statements, and that of the block."""
        from opc.loops.nodes import values_of

        return (*values_of(self.body), self.value)

    def with_parts(self, new: tuple[Expr, ...]) -> Block:
        """Return the block with other values."""
        from opc.loops.nodes import with_values

        return Block(with_values(self.body, new[:-1]), new[-1], self.type)


@remembering
@dataclass(frozen=True, slots=True)
class Lambda(Integer):
    """A function as a value, which keeps copies of the variables `captures`."""

    params: tuple[tuple[Kind | ReferenceType | str, str], ...]
    body: Body
    captures: tuple[str, ...]

    def text(self) -> str:
        """Return the function on one line."""
        from opc.loops.printer import format_inline

        return f"({', '.join(name for _, name in self.params)}) -> {{{format_inline(self.body)}}}"

    def parts(self) -> tuple[Expr, ...]:
        """Return the values in the body."""
        from opc.loops.nodes import values_of

        return values_of(self.body)

    def with_parts(self, new: tuple[Expr, ...]) -> Lambda:
        """Return the function with other values."""
        from opc.loops.nodes import with_values

        return replace(self, body=with_values(self.body, new))


def _wrapped(text: str) -> str:
    return f"({text})" if " " in text and not text.endswith(("]", ")")) else text


def _is_word(text: str) -> bool:
    return all(c.isalnum() or c in "_.[]" for c in text) or (text.startswith("(") and text.endswith(")"))
