"""What a codelet is, as data: its loops, what a vertex is given, and what it refuses.

A vertex computes a box of the points of a statement's target on its tile, in float and int; each worker of the tile computes some
of them. It is given the part of each operand that these can read, as elements in a row. Where in its operand a part lies, how
large the operand is, and what else a call fixes, are fields of the vertex.
"""

from __future__ import annotations

from typing import TypeAlias

from opc.ir.affine import Affine, Dim, GroupSize
from opc.ir.dtypes import ElementType, TypeVar, Weak
from opc.ir.expr import AttrRef, Present
from opc.ir.op import Assign, Op
from opc.loops.nodes import Kernel
from opc.loops.values import Member
from opc.lower.poplar.entries import Parts, ViewEntry
from opc.records import dataclass

STATUS, WORKER = "status", "worker"
"""The field in which each worker says what it found wrong: the number of a refusal, 0 for none, and the value that it is about;
and which worker this is."""
STATUS_OF_WORKER = f"&{STATUS}[2 * {WORKER}]"
"""Where a worker says that."""


@dataclass(frozen=True, slots=True)
class CodeletOperand:
    """A tensor of a codelet.

    `view` tells what its axes are of the operand's own, `extents` are their sizes. `reads` are the indices of each read, None
    where one is computed; a vertex is given the box that all of them can reach. A `kept` operand is in the type that values are
    computed in: a temporary, or a target that vertices add up in. An `optional` one may be absent.
    """

    name: str
    field: str
    type: ElementType
    view: tuple[ViewEntry, ...]
    extents: tuple[Affine, ...]
    reads: tuple[tuple[Affine | None, ...], ...] = ()
    kept: bool = False
    optional: bool = False


Fixed: TypeAlias = Member | Dim | GroupSize | AttrRef | Present
"""What a field of a vertex holds: where its box or a part lies, a size, an attribute, or whether an operand is there."""


@dataclass(frozen=True, slots=True)
class Field:
    """A number or bool that a vertex is given; `kind` is int, float or bool."""

    name: str
    kind: str
    what: Fixed


@dataclass(frozen=True, slots=True)
class Outside:
    """An index of an operand that lies outside of the entry `entry` of its shape."""

    operand: str
    entry: int


@dataclass(frozen=True, slots=True)
class OfNothing:
    """The reduction `kind` over axes, as `over` names them, that turn out to be empty where it has no value then."""

    kind: str
    over: str


@dataclass(frozen=True, slots=True)
class Nonempty:
    """A reduction that each point of the target asks for, so that the host tells by `extents` whether it is one of nothing."""

    of: OfNothing
    extents: tuple[Affine, ...]


@dataclass(frozen=True, slots=True)
class CodeletStage:
    """One statement as a codelet: vertices of the class `name` compute a box of the target each.

    `form` says how: "points" one after the other, a "scatter" goes through the terms of a sum once, a "scan" carries a reduction
    along an index. `indices` are the target's, outermost first, and `ranges` the axes of reductions, with their extents. `work`
    are the indices of each nest of loops, `parts` the groups whose axes are told apart. A target that is a reduction of this
    `kind` may be computed in parts along the axes `split`. Along the indices at the positions `serial` nothing is gained where
    workers share them. `refusals` are what a status of 1, 2, ... stands for; `nonempty` is
    asked before the graph is made. The target's value takes part in the outputs `asked`; where none of these has points, nobody
    asks for those of the target, and nothing is refused.
    """

    name: str
    form: str
    assign: Assign
    op: Op
    target: CodeletOperand
    operands: tuple[CodeletOperand, ...]
    indices: tuple[tuple[str, Affine], ...]
    ranges: tuple[tuple[str, Affine], ...]
    work: tuple[tuple[str, ...], ...]
    split: tuple[tuple[str, Affine], ...]
    kind: str
    serial: tuple[int, ...]
    parts: tuple[tuple[str, Parts], ...]
    fields: tuple[Field, ...]
    refusals: tuple[Outside | OfNothing, ...]
    nonempty: tuple[Nonempty, ...]
    asked: tuple[str, ...]
    kernel: Kernel

    @property
    def types(self) -> tuple[TypeVar, ...]:
        """The type variables that the class is a template over."""
        return self.kernel.types


def attribute_field(name: str, element: int) -> AttrRef:
    """Return what stands for an attribute, or an element of one, wherever it is used."""
    return AttrRef(name, Weak.INT, element)
