"""What the functions of all loop nests share: names, arguments, operands, and text that is indented as it is written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from opc.emit.cpp.layout import ARGUMENTS, Names, present_member, size_member, spec_names, wrap
from opc.ir.affine import Affine, Dim, GroupSize, Index
from opc.ir.dtypes import Acc
from opc.ir.expr import ELLIPSIS, GroupRef, reads, walk
from opc.ir.op import AttributeKind, Group, Op, Operand
from opc.lower.loop_ir import NestStage


class Unsupported(Exception):
    """A statement that a form of loop nest can't express; the message says what in it."""


def axes_member(name: str, of: str | None) -> str:
    """Return the member of the arguments struct that points to a group's sizes."""
    return f"axes_{'ellipsis' if name == ELLIPSIS else name}" + ("" if of is None else f"_of_{of}")


def symbol_type(member: str) -> str:
    """Return the C++ type of a member of the arguments struct."""
    if member.startswith("has_"):
        return "int32_t"
    return "const opc::extents *" if member.startswith("axes_") else "int64_t"


def parenthesised(text: str) -> str:
    """Return an integer expression as an operand of a product."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


class NestWriter:
    """The names, arguments and lines of one nest's function.

    `operands` are the tensors it takes in order, the target last; `symbols` the members of the arguments struct it reads; `types`
    the type variables of what it computes. What stages are called stands in no part of it but the `text` under that name.
    """

    def __init__(self, op: Op, stage: NestStage, own_names: frozenset[str]) -> None:
        self.op, self.stage = op, stage
        assign = stage.assign
        names = dict.fromkeys(r.operand for r in reads(assign.value))
        self.operands = (*names, assign.target)
        used = {t for e in walk(assign.value) for t in [e.type]} | {op.operand(n).type for n in self.operands}
        variables = {t.of if isinstance(t, Acc) else t for t in used}
        self.types = tuple(t for t in op.types if t in variables)
        self.own_names = own_names
        self.names = Names(spec_names(op) | own_names)
        self.attributes: dict[tuple[str, int, str], str] = {}
        self.symbols: dict[str, None] = {}
        self.indices: dict[str, str] = {}
        self.lines: list[str] = []
        self.margin = "  "
        self.signature = ("", "")
        self.after: list[str] = []

    def define(self, signature: tuple[str, str], after: Iterable[str]) -> None:
        """Take down what stands before and after the name of the function, and what follows on that line."""
        self.signature = signature
        self.after = [line for text in after for piece in text.split("\n") for line in wrap(piece)]

    def text(self, name: str) -> str:
        """Return the definition of the function under a name: stages that compute alike are written once."""
        template = ", ".join(f"typename {t}" for t in self.template)
        head = [f"template <{template}>"] if template else []
        return "\n".join([*(line for text in (*head, name.join(self.signature)) for line in wrap(text)), *self.after])

    @property
    def template(self) -> tuple[str, ...]:
        """The types that the function is a template over."""
        return tuple(t.name for t in self.types)

    def put(self, *lines: str) -> None:
        """Write lines at the present depth."""
        self.lines += [f"{self.margin}{line}" for line in lines]

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        """Write `head {`, what is written inside deeper, and `}`."""
        self.put(f"{head} {{" if head else "{")
        self.margin += "  "
        yield
        self.margin = self.margin[:-2]
        self.put(tail)

    def prologue(self) -> Iterator[str]:
        """Yield the locals that hold attributes and sizes, which the text of the body asked for."""
        if not self.attributes and not self.symbols:
            yield "  static_cast<void>(call);"
            return
        yield f"  const {ARGUMENTS} &arguments = *static_cast<const {ARGUMENTS} *>(call);"
        for (name, element, target), local in self.attributes.items():
            place = f"arguments.attributes->{name}" + ("" if element < 0 else f"[{element}]")
            declared = self.op.attribute(name)
            if declared.kind is AttributeKind.STR and not declared.values:
                yield f"  const char *const {local} = {place};"
            else:
                yield f"  const {target or 'int64_t'} {local} = {target or 'int64_t'}({place});"
        for member in self.symbols:
            kind = symbol_type(member)
            declaration = f"{kind}const {member}" if kind.endswith("*") else f"const {kind} {member}"
            yield f"  {declaration} = arguments.{member};"

    def view(self, operand: str) -> str:
        """Return the local that holds an operand's view; no name of a spec ends in an underscore."""
        return f"{operand}_" if operand in self.own_names else operand

    def axes(self, group: Group) -> str:
        """Return the local that points to a group's sizes."""
        member = axes_member(group.name, group.of)
        self.symbols[member] = None
        return member

    def attribute(self, name: str, element: int, target: str) -> str:
        """Return the local that holds an attribute as a C++ type."""
        key = (name, element, target)
        if key not in self.attributes:
            taken = any(k[:2] == key[:2] for k in self.attributes) or element >= 0 or name in self.own_names
            self.attributes[key] = self.names.fresh(name if element < 0 else f"{name}_{element}") if taken else name
        return self.attributes[key]

    def symbol(self, symbol: Dim | GroupSize | Index) -> str:
        """Return the text of an index or size."""
        if isinstance(symbol, Index):
            return self.indices[symbol.name]
        member = size_member(symbol)
        self.symbols[member] = None
        return member

    def present(self, operand: str) -> str:
        """Return the local that tells whether an operand was given."""
        member = present_member(operand)
        self.symbols[member] = None
        return member

    def axis_of(self, operand: Operand, entry: int) -> str:
        """Return the position of an operand's first axis that one entry of its dims describes."""
        before = operand.dims[:entry]
        ranks = [f"{self.axes(d)}->rank" for d in before if isinstance(d, Group)]
        fixed = len(before) - len(ranks)
        return " + ".join([*ranks, *([str(fixed)] if fixed or not ranks else [])])

    def sizes(self, operand: str) -> tuple[Affine, ...]:
        """Return the size of each entry of an operand's shape."""
        return tuple(d if isinstance(d, Affine) else Affine.of(GroupSize(d.name)) for d in self.op.operand(operand).dims)

    def is_optional(self, operand: str) -> bool:
        """Whether an operand is an input that may be absent."""
        return any(i.name == operand and i.optional for i in self.op.inputs)


def gathered(stage: NestStage) -> frozenset[str]:
    """Return the operands that a statement reads at data-dependent places: of those no copy is worth making."""
    found = (r for r in reads(stage.assign.value) if any(not isinstance(i, Affine | GroupRef) for i in r.indices))
    return frozenset(r.operand for r in found)
