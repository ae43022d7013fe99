"""Scalar expressions as text: conditions on attributes and sizes, which every target checks before it computes."""

from __future__ import annotations

from abc import abstractmethod

from opc.emit.scalar.affine import AffineDialect
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.expr import AttrRef, Call, Cast, Const, Expr, IndexValue, Present, Select, StrConst
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class BoundText:
    """A text, and how strongly its outermost operator binds."""

    text: str
    strength: int

    def at(self, strength: int) -> str:
        """Return the text, in parentheses where it binds weaker."""
        return self.text if self.strength >= strength else f"({self.text})"


class ScalarDialect(AffineDialect):
    """How a target writes scalar expressions."""

    @abstractmethod
    def size_of_dim(self, name: str) -> str:
        """Return the size of a dimension."""

    @abstractmethod
    def points_of(self, group: str) -> str:
        """Return the number of points of a group."""

    @abstractmethod
    def integer_attribute(self, atom: AttrInt) -> str:
        """Return an integer attribute as a part of an affine form."""

    @abstractmethod
    def quotient(self, atom: FloorDiv | Mod, factor: bool) -> str:
        """Return a quotient that is rounded to minus infinity, or the remainder of one."""

    @abstractmethod
    def lesser(self, left: Affine, right: Affine) -> str:
        """Return the lesser of two forms."""

    @abstractmethod
    def constant(self, e: Const) -> BoundText:
        """Return a literal."""

    @abstractmethod
    def string(self, value: str) -> BoundText:
        """Return a literal of a string."""

    @abstractmethod
    def attribute(self, e: AttrRef) -> BoundText:
        """Return an attribute, or an element of one."""

    @abstractmethod
    def index_value(self, value: Affine) -> BoundText:
        """Return an affine form as a value."""

    @abstractmethod
    def presence(self, operand: str, given: bool) -> BoundText:
        """Return whether an optional operand is given, or is not."""

    @abstractmethod
    def choice(self, e: Select) -> BoundText:
        """Return a conditional."""

    @abstractmethod
    def call(self, e: Call) -> BoundText:
        """Return an operator or function applied to its arguments."""

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says."""
        match atom:
            case Dim():
                return self.size_of_dim(atom.name)
            case GroupSize():
                return self.points_of(atom.name)
            case AttrInt():
                return self.integer_attribute(atom)
            case FloorDiv() | Mod():
                return self.quotient(atom, factor)
            case Minimum():
                return self.lesser(atom.left, atom.right)
            case Index():
                raise TypeError(f"a size may not use the index {atom}")

    def value(self, e: Expr) -> BoundText:
        """Return an expression."""
        match e:
            case Const():
                return self.constant(e)
            case StrConst():
                return self.string(e.value)
            case AttrRef():
                return self.attribute(e)
            case IndexValue():
                return self.index_value(e.value)
            case Present():
                return self.presence(e.operand, True)
            case Cast():
                return self.value(e.arg)
            case Select():
                return self.choice(e)
            case Call(fn="not", args=(Present() as inner,)):
                return self.presence(inner.operand, False)
            case Call():
                return self.call(e)
            case _:
                raise TypeError(f"a condition may not read tensors: {e}")
