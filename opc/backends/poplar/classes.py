"""The classes of a family's ops in PopART, as templates see them: identifiers, operands, and how autodiff connects them."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.derived import derivation, gradient_of, title
from opc.backends.poplar.carried import carried, reached
from opc.backends.poplar.recent import of_family
from opc.emit.cpp.text import message_literal, string_literal
from opc.ir.dtypes import Acc, DType, ElementType, candidates
from opc.ir.op import Family, Op, Operand, Role, camel_case
from opc.records import dataclass

VERSION = 1
"""The version of all ops in PopART, whatever that of the spec.

A Builder's `customOp` imports version 1 of every domain; PopART takes the latest op that is no later than what a model imports.
"""

_ROLES = {Role.INPUT: "In", Role.OUTPUT: "Out", Role.COTANGENT: "GradOut"}


@dataclass(frozen=True, slots=True)
class OpClass:
    """One op of a family.

    Attributes:
        op: The op, with the element types that Poplar holds.
        about: What it is to the family, as a sentence.
        prefix: What the names of its classes begin with: `LeakyReluBackward`.
        least: The fewest inputs that a node may list; those behind may be left out.
        optional: The positions of the inputs that may be left out.
        grad_inputs: Of a gradient, the initialiser of each `GradInOutMapper`.
        grad_outputs: Of a gradient, its outputs and the inputs of the other op that they are the gradients of.
        partial: Of a gradient of an op with outputs that may be left out: it takes the gradients of those alone that are there.
        cotangents: Of a gradient of an op of several outputs, the inputs that must be given but that autodiff may leave out, each
            with the output whose gradient it is.
        gradient: The prefix of its gradient, empty where it has none.
        gradient_of: The prefix of the op that it is the gradient of, empty where it is none.
        in_place: The position of the input that its only output may be written to, None where there is none.
    """

    op: Op
    about: str
    prefix: str
    least: int
    optional: tuple[int, ...]
    grad_inputs: tuple[str, ...]
    grad_outputs: tuple[tuple[int, int], ...]
    partial: bool
    cotangents: tuple[tuple[int, int], ...]
    gradient: str
    gradient_of: str
    in_place: int | None

    @property
    def name(self) -> str:
        """The op's name."""
        return self.op.name

    @property
    def title(self) -> str:
        """The literal of its name in messages."""
        return message_literal(self.op.name)

    @property
    def identifier(self) -> str:
        """The arguments of its `popart::OperatorIdentifier`."""
        return self._identifier(self.op.class_name)

    @property
    def in_place_identifier(self) -> str:
        """Those of the variant in place."""
        return self._identifier(f"{self.op.class_name}Inplace")

    def _identifier(self, op_type: str) -> str:
        op = self.op
        numbers = f"{{{self.least}, {len(op.inputs)}}}, {len(op.outputs)}"
        return f"{string_literal(op.domain)}, {string_literal(op_type)}, {VERSION}, {numbers}"

    @property
    def gaps(self) -> bool:
        """Whether an input may be left out in front of one that is given.

        A Builder asks for the size of every input, also of one that is left out, as soon as an op has a function of shapes.
        """
        return any(i < len(self.op.inputs) - 1 for i in self.optional)

    @property
    def outputs(self) -> str:
        """The initialisers of `opc::ipu::Output`."""
        return ", ".join(f"{{{string_literal(o.name)}, {'true' if o.optional else 'false'}}}" for o in self.op.outputs)


@of_family
def op_classes(family: Family) -> tuple[OpClass, ...]:
    """Return the ops that PopART's autodiff reaches, the op itself first."""
    return tuple(_op_class(family, op) for op in reached(family))


def _op_class(family: Family, op: Op) -> OpClass:
    of = _differentiated(family, op)
    gradient = gradient_of(family, op)
    required = [i for i, x in enumerate(op.inputs) if not x.optional]
    return OpClass(
        op=carried(op),
        about=title(family, op),
        prefix=camel_case(op.name),
        least=required[-1] + 1 if required else 0,
        optional=tuple(i for i, x in enumerate(op.inputs) if x.optional),
        grad_inputs=() if of is None else tuple(_mappers(of, op)),
        grad_outputs=() if of is None else tuple(_gradients(of, op)),
        partial=of is not None and any(o.optional for o in of.outputs),
        cotangents=() if of is None or len(of.outputs) == 1 else tuple(_cotangents(of, op)),
        gradient="" if gradient is None else camel_case(gradient.name),
        gradient_of="" if of is None else camel_case(of.name),
        in_place=_in_place(op),
    )


def _differentiated(family: Family, op: Op) -> Op | None:
    """Return the op that another of the family is the gradient of."""
    return next((o for o in reached(family) if gradient_of(family, o) is op), None)


def _mappers(of: Op, gradient: Op) -> Iterator[str]:
    for i, (role, name) in enumerate(derivation(gradient).inputs):
        operands = of.inputs if role is Role.INPUT else of.outputs
        yield f"{{{i}, {_position(operands, name)}, popart::GradOpInType::{_ROLES[role]}}}"


def _gradients(of: Op, gradient: Op) -> Iterator[tuple[int, int]]:
    for i, name in enumerate(derivation(gradient).outputs):
        yield i, _position(of.inputs, name)


def _cotangents(of: Op, gradient: Op) -> Iterator[tuple[int, int]]:
    for i, (x, (role, name)) in enumerate(zip(gradient.inputs, derivation(gradient).inputs, strict=True)):
        if role is Role.COTANGENT and not x.optional:
            yield i, _position(of.outputs, name)


def _position(operands: tuple[Operand, ...], name: str) -> int:
    return [o.name for o in operands].index(name)


def _in_place(op: Op) -> int | None:
    """Return the input that the only output may be written to. PopART's model of aliases has one output an op."""
    if len(op.outputs) != 1 or len(op.inplace) != 1:
        return None
    return _position(op.inputs, op.inplace[0][1])


@dataclass(frozen=True, slots=True)
class Definitions:
    """What the `popart::OpDefinition` of each op says.

    Attributes:
        types: The constants that list the dtypes of operands, each with its initialiser.
        texts: By the op's name, the initialisers of its inputs, outputs and attributes.
    """

    types: dict[str, str]
    texts: dict[str, tuple[str, str, str]]


def definitions(classes: tuple[OpClass, ...]) -> Definitions:
    """Return the definitions of ops. A derived op's type variable may have fewer dtypes, and a list of its own."""
    names: dict[tuple[str, str], str] = {}
    for o in (o for c in classes for o in (*c.op.inputs, *c.op.outputs)):
        key = _type_name(o.type), _data_types(o.type)
        others = sum(name == key[0] for name, _ in names)
        names.setdefault(key, f"{key[0]}_{others + 1}" if others else key[0])

    def of(operands: tuple[Operand, ...]) -> str:
        lists = (names[_type_name(o.type), _data_types(o.type)] for o in operands)
        return ", ".join(f"{{{string_literal(o.name)}, {types}}}" for o, types in zip(operands, lists, strict=True))

    texts = {c.name: (of(c.op.inputs), of(c.op.outputs), _attributes(c.op)) for c in classes}
    return Definitions({name: types for (_, types), name in names.items()}, texts)


def _attributes(op: Op) -> str:
    return ", ".join(f'{{{string_literal(a.name)}, {{"*"}}}}' for a in op.attributes)


def _type_name(t: ElementType) -> str:
    """Return the name of the C++ constant that lists an element type's dtypes."""
    return f"acc_{t.of}_types" if isinstance(t, Acc) else f"{t}_types"


def _data_types(t: ElementType) -> str:
    held = dict.fromkeys(DType.INT32 if d is DType.INT64 else d for d in candidates(t))
    names = [d.row.popart[0] for d in held if d.row.popart is not None]
    return ", ".join(f"popart::DataType::{name}" for name in names)
