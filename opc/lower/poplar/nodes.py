"""The program of an op for Poplar, as data: steps on whole tensors, in order.

A step defines one tensor or value. A *tensor* is an operand of the op, or a temporary between its stages, with the axes of its
declaration; inputs and outputs are stored in their own type, temporaries in the type that they are computed in. A *value* is
known inside of its stage alone: it has the axes of the stage's `loops`, in their order, of which those that it does not vary
along have size 1. Expressions name both by reads without indices, `Read("x", (), T)`; a `View` says how the axes of a tensor lie
among the loops, whose positions stand for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from opc.ir.affine import Affine
from opc.ir.dtypes import ElementType, ValueType
from opc.ir.expr import Expr
from opc.ir.op import Assign
from opc.lower.loop_ir import GroupLoop, Loop
from opc.lower.specialise import Specialisation
from opc.records import dataclass

if TYPE_CHECKING:
    from opc.lower.poplar.codelets import CodeletStage


@dataclass(frozen=True, slots=True)
class Taken:
    """Which elements of an axis a loop has: at its index i that at `(step * i + offset) // divisor`, `fill` outside of it."""

    step: Affine
    offset: Affine
    divisor: Affine
    fill: float = 0.0


@dataclass(frozen=True, slots=True)
class Along:
    """Axes of a tensor that lie along the loop at position `loop`.

    They are the loop's, or the tensor's `own`, which are broadcast along them: those of a group, or one axis and its size. An
    axis of which the loop may have the first points alone is there in `part`; one that does not lie there as it is, is `taken`.
    """

    loop: int
    own: GroupLoop | Affine | None = None
    part: bool = False
    taken: Taken | None = None


@dataclass(frozen=True, slots=True)
class Picked:
    """An axis of which a view has one element alone, zero where it is outside of the axis."""

    index: Affine


@dataclass(frozen=True, slots=True)
class View:
    """A tensor, and for each entry of its shape where its axes lie; `name` is that of its value."""

    name: str
    tensor: str
    axes: tuple[Along | Picked, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """A value that is no tensor: an expression, computed as a part of each that uses it.

    A step is done where one of the outputs `needed` is wanted, or always where none are named.
    """

    name: str
    type: ValueType
    value: Expr
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Map:
    """A value kept in memory: one expression at each point of its axes."""

    name: str
    type: ValueType
    value: Expr
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reduce:
    """A value reduced over the loops at the positions `over`: `kind` is sum, prod, max, min, any or all."""

    name: str
    type: ValueType
    kind: str
    value: Expr
    over: tuple[int, ...]
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two factors, summed along the loops at the positions `over`: one or more matrix products.

    What a call fixes decides by the conditions `given` whether there is one; it is zero elsewhere. The result has the axes
    `kept`; where one is a tensor's own, the products of all points that it is broadcast along are added up.
    """

    name: str
    type: ValueType
    left: Expr
    right: Expr
    kept: tuple[Along, ...]
    over: tuple[int, ...]
    given: tuple[Expr, ...]
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AxisRole:
    """What an axis of a factor, or a loop of the result, is to a convolution.

    `role` is batch, channel (summed over, in both factors), out or field; `place` counts those of a role. A `grouped` axis has
    the groups one after the other.
    """

    role: str
    place: int
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Window:
    """Which index of the input the indices `i` of the result and `p` of the kernel make along a field.

    It is `step * i + dilation * p + offset`, or where it is `transposed` `(i - dilation * p + offset) / step`. Outside of the
    field is nothing, or where the window is `padded` a zero, which is multiplied.
    """

    step: Affine
    dilation: Affine
    offset: Affine
    transposed: bool
    padded: bool


@dataclass(frozen=True, slots=True)
class Convolution:
    """A sum of products over windows of the tensor `input` with the tensor `kernel`.

    `result` tells the role of each of the stage's first loops, which are the result's. There are `groups[0] / groups[1]` groups
    of channels. What a call fixes decides by the conditions `given` whether there is one; it is zero elsewhere.
    """

    name: str
    type: ValueType
    input: str
    input_axes: tuple[AxisRole, ...]
    kernel: str
    kernel_axes: tuple[AxisRole, ...]
    windows: tuple[Window, ...]
    groups: tuple[Affine, Affine]
    result: tuple[AxisRole, ...]
    given: tuple[Expr, ...]
    source: Assign
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Store:
    """Writes a tensor: a value of the stage, rounded to the tensor's type once.

    With a `reduction` it is reduced over all points that go to one element; there are points along the loops at the positions
    `over`.
    """

    target: View
    type: ElementType
    value: Expr
    source: Assign
    reduction: str | None = None
    over: tuple[int, ...] = ()
    needed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refuse:
    """Ends the call where one of the loops at the positions `empty` has no point, and all at the positions `asked` have some.

    That is so where one of the outputs `users` is wanted and has elements.
    """

    text: str
    empty: tuple[int, ...]
    asked: tuple[int, ...]
    users: tuple[str, ...]
    needed: tuple[str, ...] = ()


Step: TypeAlias = Let | Map | Reduce | Product | Convolution | Store | Refuse


@dataclass(frozen=True, slots=True)
class TensorStage:
    """Steps whose values have the axes `loops`, the tensors that they read, and the loops whose index is a number to them.

    `indices` names these values: the index of the loop at a position, of a group its points in row-major order.
    """

    name: str
    loops: tuple[Loop, ...]
    views: tuple[View, ...]
    indices: tuple[tuple[str, int], ...]
    steps: tuple[Step, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its values, in the order in which they are defined."""
        own = (s.name for s in self.steps if not isinstance(s, Store | Refuse))
        return (*(v.name for v in self.views), *(name for name, _ in self.indices), *own)


@dataclass(frozen=True, slots=True)
class Codelet:
    """One statement, whose target's points vertices compute. The temporary `total` gets the sum of what they compute."""

    stage: CodeletStage
    total: str | None = None
    needed: tuple[str, ...] = ()


PoplarStage: TypeAlias = TensorStage | Codelet


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor that a case makes: an output, or a temporary between its stages."""

    name: str
    type: ElementType
    output: bool


@dataclass(frozen=True, slots=True)
class Case:
    """The stages of one case of the op's attributes, after the tensors that they make."""

    case: Specialisation
    tensors: tuple[Tensor, ...]
    stages: tuple[PoplarStage, ...]


@dataclass(frozen=True, slots=True)
class PoplarProgram:
    """The stages of an op, case by case."""

    name: str
    cases: tuple[Case, ...]
