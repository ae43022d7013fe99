"""What names mean while a spec is elaborated: types, operands, attributes, dimensions, groups, and index variables in scope."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import field

from opc.diagnostics import Span
from opc.ir.affine import Affine, Dim, GroupSize, Symbol
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar, ValueType, is_floating
from opc.ir.expr import REDUCTIONS, Expr
from opc.ir.functions import CALLABLE
from opc.ir.op import Attribute, Operand
from opc.lang.tree import ORDER
from opc.records import dataclass

CONSTANTS = {"inf": float("inf"), "nan": float("nan")}
FORMS = ("cast", "present", "pad", "size", "position", "random", "random_bits")
"""What is called like a function and is none."""
DTYPE_NAMES = tuple(d.value for d in DType)
_SHORT = frozenset(name for name in CALLABLE if re.fullmatch("[a-z][0-9]", name))
RESERVED = frozenset((*CALLABLE, *CONSTANTS, *DTYPE_NAMES, "acc", "broadcast")) - _SHORT
"""The language's own words, which nothing else may be called. But indices are called i0 and i1: parentheses tell a call apart."""
WORDS = RESERVED | frozenset((*REDUCTIONS, ORDER, *FORMS))
"""The words that can't name an index or dimension. Reductions and forms can name operands: brackets tell them apart."""


@dataclass(slots=True)
class Scope:
    """The names a body or expression may use.

    `operands` holds what can be read at this point; `later` what is assigned further down, or is the output being assigned now.
    `dims` maps a dimension to its derived value, or to None when the inputs bind it. `bound` maps names to given expressions.
    """

    types: dict[str, TypeVar] = field(default_factory=dict)
    operands: dict[str, Operand] = field(default_factory=dict)
    later: dict[str, Span] = field(default_factory=dict)
    attributes: dict[str, Attribute] = field(default_factory=dict)
    sizes: dict[str, Span] = field(default_factory=dict)
    """The attributes that the body tells where a caller does not, and where the spec declares their type."""
    dims: dict[str, Affine | None] = field(default_factory=dict)
    groups: dict[str, Span] = field(default_factory=dict)
    bound: dict[str, Expr] = field(default_factory=dict)
    extents: dict[str, Affine] = field(default_factory=dict)
    """The range of each index variable in scope: 0 <= index < extent."""
    unranged: set[str] = field(default_factory=set)
    """Index variables in scope whose range is not known because of an error that was reported."""
    bound_groups: set[str] = field(default_factory=set)
    """The axis groups that the statement's target or an enclosing reduction runs over."""
    poisoned: set[str] = field(default_factory=set)
    """Temporaries whose statement has an error that was reported."""
    unread: frozenset[str] = frozenset()
    """Names that parts of the spec would have declared which have a mistake that was reported."""
    broken_dims: set[str] = field(default_factory=set)
    """Dimensions whose derivation has a mistake that was reported."""
    dims_unread: bool = False
    """Whether a part of the spec that may have declared dimensions has a mistake that was reported."""
    elsewhere: dict[str, str] = field(default_factory=dict)
    """What is known in other parts of the spec and not in this one, and why not."""
    lenient: bool = False
    """Whether a mistake that was reported hides the indices: what can't be told of them is then no mistake of its own."""
    present: frozenset[str] = frozenset()
    """Optional operands known to be given at this point."""
    absent_counts_as_zero: frozenset[str] = frozenset()
    """Optional operands that may be read without asking, and are zero when absent (a derived op's cotangents)."""
    in_body: bool = False
    """Whether this is a body, which may ask what types stand for."""
    at_most: Callable[[Affine, Affine], bool] = lambda a, b: False
    """Whether one size is proved to be no greater than another, from what the spec requires."""
    usual: Callable[[str], Iterable[Affine]] = lambda name: ()
    """Sizes of the axes on which an index of some name stands bare anywhere in the body, for examples in hints."""
    broadcast: bool = False
    out_of_range: str = "error"
    used: set[str] = field(default_factory=set)
    """Every operand and attribute that was used."""

    def expand(self, value: Affine) -> Affine:
        """Return `value` with derived dimensions replaced by their values, so that equal sizes compare equal."""

        def rule(symbol: Symbol) -> Affine | None:
            definition = self.dims.get(symbol.name) if isinstance(symbol, Dim) else None
            return None if definition is None else self.expand(definition)

        try:
            return value.substitute(rule)
        except ZeroDivisionError:
            return value  # a divisor that is derived to be zero is reported where divisors are checked

    def floating(self) -> ElementType:
        """Return a floating type that the spec has, for examples in hints; float32 where it has none."""
        return next((o.type for o in self.operands.values() if is_floating(o.type)), DType.FLOAT32)

    def is_index(self, name: str) -> bool:
        """Whether `name` is an index variable in scope."""
        return name in self.extents or name in self.unranged

    def names(self) -> list[str]:
        """Return every name that means something here, for "did you mean"."""
        return [*self.operands, *self.later, *self.attributes, *self.dims, *self.bound, *self.extents, *WORDS]

    def group_size(self, name: str) -> Affine:
        """Return the number of points of an axis group."""
        return Affine.of(GroupSize(name))

    @contextmanager
    def indices(self, extents: dict[str, Affine | None], groups: set[str]) -> Iterator[None]:
        """Put index variables and groups in scope; an extent of None is one that could not be told."""
        kept = self.extents, self.unranged, self.bound_groups
        self.extents = {**self.extents, **{n: e for n, e in extents.items() if e is not None}}
        self.unranged = self.unranged | {n for n, e in extents.items() if e is None}
        self.bound_groups = self.bound_groups | groups
        try:
            yield
        finally:
            self.extents, self.unranged, self.bound_groups = kept

    @contextmanager
    def without(self, names: Iterable[str], why: str) -> Iterator[None]:
        """Know nothing of some operands or dimensions, and what to say of their names."""
        kept = self.operands, self.dims, self.elsewhere
        gone = set(names)
        self.operands = {n: o for n, o in self.operands.items() if n not in gone}
        self.dims = {n: d for n, d in self.dims.items() if n not in gone}
        self.elsewhere = {**self.elsewhere, **dict.fromkeys(gone, why)}
        try:
            yield
        finally:
            self.operands, self.dims, self.elsewhere = kept

    @contextmanager
    def leniently(self) -> Iterator[None]:
        """Report nothing about indices and groups, of which too little is known."""
        kept = self.lenient
        self.lenient = True
        try:
            yield
        finally:
            self.lenient = kept

    def whole(self, t: ValueType) -> ValueType:
        """Return a type that is over a type variable as that is known at this point."""
        match t:
            case TypeVar():
                return self.types.get(t.name, t)
            case Acc(of=TypeVar() as of):
                return Acc(self.types.get(of.name, of))
            case _:
                return t

    @contextmanager
    def among(self, told: Iterable[tuple[str, tuple[DType, ...], bool]]) -> Iterator[None]:
        """Know of type variables that they are among some dtypes, or are not."""
        kept = self.types
        for name, dtypes, holds in told:
            left = tuple(d for d in self.types[name].dtypes if (d in dtypes) == holds)
            self.types = {**self.types, name: TypeVar(name, left)}
        try:
            yield
        finally:
            self.types = kept

    @contextmanager
    def knowing(self, present: frozenset[str]) -> Iterator[None]:
        """Know that optional operands are given, inside a conditional that asked."""
        kept = self.present
        self.present = self.present | present
        try:
            yield
        finally:
            self.present = kept
