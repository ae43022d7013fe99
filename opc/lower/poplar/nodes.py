"""The program of an op for Poplar, as data: steps on whole tensors, in order.

A step defines one tensor or value. A *tensor* is an operand of the op (an input, an output or a temporary) with the axes of its
declaration; inputs and outputs are stored in their own type, temporaries in the type that they are computed in. A *value* is known
inside of its stage alone: it has the axes of the stage's `loops`, in their order, of which those that it does not vary along have
size 1. Expressions name both by reads without indices, `Read("x", (), T)`; `View` says how the axes of a tensor lie among the loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from opc.ir.dtypes import ElementType, ValueType
from opc.ir.expr import Expr
from opc.ir.op import Assign
from opc.lower.loop_ir import Loop
from opc.lower.specialise import Specialisation
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """A tensor whose axes, in order, are `loops`; those of an input's own group are broadcast along the group's."""

    tensor: str
    loops: tuple[Loop, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    """Begins a stage, whose values have the axes `loops`; it names the tensors that it reads, each with its view."""

    name: str
    loops: tuple[Loop, ...]
    views: tuple[View, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """A value that is no tensor: an expression, computed as a part of each that uses it."""

    name: str
    type: ValueType
    value: Expr
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Map:
    """A value kept in memory: one expression at each point of its axes.

    It is done where one of the outputs `needed` is wanted, or always where there are none.
    """

    name: str
    type: ValueType
    value: Expr
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A value reduced over some of the stage's loops: `kind` is sum, prod, max, min, any or all."""

    name: str
    type: ValueType
    kind: str
    value: Expr
    over: tuple[Loop, ...]
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two views, summed over the loops that the result lacks: a matrix product, or several.

    `given` are conditions that a call fixes, without which it is zero. Where a view lacks a group's axes, or has one point along
    them, all points read the same.
    """

    name: str
    type: ValueType
    left: View
    right: View
    loops: tuple[Loop, ...]
    given: tuple[Expr, ...]
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """Writes a tensor: a value of the stage, rounded to the tensor's type once, with its axes as the view has them.

    With a `reduction` it is reduced over all of the stage's points that go to one element.
    """

    target: View
    type: ElementType
    value: Expr
    source: Assign
    reduction: str | None = None
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuse:
    """Ends the call where a reduction has no value: one of `loops` is empty, and none of `asked`."""

    text: str
    loops: tuple[Loop, ...]
    asked: tuple[Loop, ...]
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Codelet:
    """One statement, whose target's points vertices compute; `stage` is what opc.lower.poplar.codelets makes of it.

    The temporary `total` gets the sum of what is computed at all points.
    """

    stage: Any
    source: Assign
    total: str | None = None
    needed: tuple[str, ...] = ()


Step: TypeAlias = Stage | Let | Map | Reduce | Product | Store | Refuse | Codelet


@dataclass(frozen=True, slots=True)
class Case:
    """The steps of one case of the op's attributes, and the type of each tensor and value by name."""

    case: Specialisation
    types: Mapping[str, ValueType]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class PoplarProgram:
    """The steps of an op, case by case."""

    name: str
    cases: tuple[Case, ...]
