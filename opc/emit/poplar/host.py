"""What the text of a body's function is made of: names, sizes and types, as C++ of the host that builds a graph.

Sizes are `int64_t`, groups of axes `opc::ipu::shape`, types `poplar::Type`. Only what the text has asked for is bound ahead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce

from opc.analysis.shapes.plan import plan
from opc.analysis.shapes.steps import (
    Among,
    Around,
    AxisMatch,
    BindType,
    Bound,
    BroadcastGroup,
    DeriveDim,
    GroupKey,
    GroupLength,
    MatchDim,
    MatchGroup,
    MatchOperand,
    PlaceAxis,
    Rest,
    Same,
    UpTo,
)
from opc.emit.cpp.text import string_literal, whole_number
from opc.emit.poplar.dtypes import TYPES
from opc.emit.scalar.affine import AffineDialect
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import Acc, DType, TypeVar, ValueType, Weak, is_floating
from opc.ir.expr import ELLIPSIS
from opc.ir.op import AttributeKind, Group, Op
from opc.lower.loop_ir import GroupLoop, IndexLoop, Loop
from opc.transform.indices import Namer

PARAMETERS = ("graph", "prog", "inputs", "wanted", "attributes", "debug")
"""The parameters of a body's function."""
RESERVED = (*PARAMETERS, "outputs", "body", "loops", "ipu", "opc", "poplar", "popops", "poplin", "std")
"""What no other variable is called."""
_MOST_LITERAL = 2**31 - 1


class HostText(AffineDialect):
    """Names and sizes of one op's function.

    `tensors` are the C++ texts of the tensors that a case makes, by name; inputs have theirs from the start. `case` is the op as
    a case of its attributes has it.
    """

    def __init__(self, op: Op) -> None:
        self.op = self.case = op
        self.plan = plan(op)
        self.namer = Namer({*RESERVED, op.name, *(a.name for a in op.attributes)})
        self.tensors = {o.name: f"inputs[{n}]" for n, o in enumerate(op.inputs)}
        self.outputs = {o.name: f"outputs[{n}]" for n, o in enumerate(op.outputs)}
        self.dims = {d: self.namer.fresh(d) for d in self.plan.dims}
        self.types = {t.name: self.namer.fresh(t.name) for t in op.types}
        self.groups: dict[GroupKey, str] = {}
        self.axes: dict[str, str] = {}
        self.used: set[str] = set()
        self.indices: dict[str, str] = {}
        """The variables of indices that are known as numbers, where affine forms use them."""

    # ---- names ----

    @property
    def taken(self) -> frozenset[str]:
        """The names that no other variable may have."""
        return frozenset(self.namer.taken)

    def tensor(self, name: str) -> str:
        """Return the variable of a tensor, which is not valid where an optional one is absent."""
        return self.tensors[name]

    def present(self, operand: str) -> str:
        """Return the condition that an optional input was given."""
        return f"{self.tensors[operand]}.valid()"

    def dim(self, name: str) -> str:
        """Return the size of a dimension."""
        return self._use(self.dims[name])

    def group(self, name: str, of: str | None = None) -> str:
        """Return the axes of a group, or of an input's own group in a broadcast op."""
        if (name, of) not in self.groups:
            word = "rest" if name == ELLIPSIS else name
            self.groups[name, of] = self.namer.fresh(f"{word}_axes" if of is None else f"{word}_axes_of_{of}")
        return self._use(self.groups[name, of])

    def attribute(self, name: str, element: int = -1) -> str:
        """Return an attribute or an element of one; of an axis, its position from the front."""
        if self.op.attribute(name).kind is AttributeKind.AXIS:
            return self.axis(name)
        return f"attributes.{name}" + (f"[{element}]" if element >= 0 else "")

    def axis(self, name: str) -> str:
        """Return the position of an axis attribute, counted from the front."""
        if name not in self.axes:
            self.axes[name] = self.namer.fresh(f"{name}_from_front")
        return self._use(self.axes[name])

    def _use(self, name: str) -> str:
        self.used.add(name)
        return name

    # ---- types ----

    def type(self, t: ValueType) -> str:
        """Return the `poplar::Type` that a tensor of a type is stored in; float64 and numbers without a type are FLOAT."""
        match t:
            case Weak():
                return "poplar::FLOAT" if t is Weak.FLOAT else "poplar::INT"
            case DType():
                found = TYPES.get(t) or TYPES[DType.FLOAT32 if t.is_floating else DType.INT32]
                return f"poplar::{found.constant}"
            case TypeVar():
                return self._use(self.types[t.name])
            case Acc(of=DType() as of):
                return self.type(of.accumulator)
            case _:
                return "poplar::FLOAT" if is_floating(t.of) else f"ipu::accumulated({self.type(t.of)})"

    def computed(self, t: ValueType) -> str:
        """Return the type that values of a type are computed in."""
        if is_floating(t):
            return "poplar::FLOAT"
        return f"ipu::computed({self.type(t)})" if isinstance(t, TypeVar) else self.type(t)

    # ---- sizes ----

    def extent(self, loop: Loop) -> str:
        """Return the axes of a loop: a group's, or the size of one axis."""
        return self.group(loop.name, loop.of) if isinstance(loop, GroupLoop) else self.affine(loop.extent)

    def points(self, loop: Loop) -> str:
        """Return the number of points of a loop."""
        return self.affine(loop.extent) if isinstance(loop, IndexLoop) else f"ipu::points({self.extent(loop)})"

    def size(self, symbol: Dim | GroupSize) -> str:
        """Return the size of a dimension, or the number of points of a group."""
        return self.atom(symbol, True)

    def shape(self, operand: str) -> str:
        """Return the sizes of an operand of the case's op."""
        return self.dims_of(self.case.operand(operand).dims)

    def dims_of(self, dims: tuple[Affine | Group, ...]) -> str:
        """Return the shape that the entries of an operand's declaration stand for."""
        texts = (self.group(d.name, d.of) if isinstance(d, Group) else self.affine(d) for d in dims)
        return f"ipu::joined({{{', '.join(texts)}}})"

    def literal(self, value: int, alone: bool) -> str:
        """As `AffineDialect.literal` says."""
        return whole_number(value) if abs(value) <= _MOST_LITERAL else f"INT64_C({value})"

    def atom(self, atom: Atom, factor: bool) -> str:
        """As `AffineDialect.atom` says."""
        match atom:
            case Dim():
                return self.dim(atom.name)
            case GroupSize():
                return f"ipu::points({self.group(atom.name)})"
            case Index():
                return self.indices[atom.name]
            case AttrInt():
                text = self.attribute(atom.name, atom.element)
                if atom.text is not None:
                    return f"({text} == {string_literal(atom.text)} ? 1 : 0)"
                return f"({text} != 0 ? 1 : 0)" if atom.flag else text
            case FloorDiv() | Mod():
                name = "floordiv" if isinstance(atom, FloorDiv) else "mod"
                return f"ipu::{name}({self._number(atom.numerator)}, {self._number(atom.denominator)})"
            case Minimum():
                return f"ipu::minimum({self._number(atom.left)}, {self._number(atom.right)})"

    def _number(self, value: Affine) -> str:
        return f"int64_t{{{self.affine(value)}}}" if value.constant is not None else self.affine(value)

    def asked(self, outputs: Iterable[str]) -> str:
        """Return the condition that one of some outputs is wanted and has elements; empty where none are named."""
        names = [o.name for o in self.op.outputs]
        found = []
        for name in outputs:
            output = self.op.output(name)
            wanted = [f"wanted[{names.index(name)}]"] if output.optional else []
            found.append(" && ".join([*wanted, f"ipu::points({self.dims_of(output.dims)}) > 0"]))
        return " || ".join(f"({f})" for f in found) if len(found) > 1 else "".join(found)

    # ---- what is bound ahead ----

    def bindings(self) -> list[str]:
        """Return the statements that bind what has been asked for, in the order of the plan of the op's shapes.

        What several operands may tell, since some of them are optional, is declared ahead.
        """
        lines: list[str] = []
        declared: dict[str, None] = {}
        for step in reversed(self.plan.steps):
            match step:
                case DeriveDim() if self.dims[step.dim] in self.used:
                    lines[:0] = [f"const int64_t {self.dims[step.dim]} = {self.affine(step.size)};"]
                case BroadcastGroup() if (name := self.groups.get((step.name, None), "")) in self.used:
                    texts = [*([] if step.known is Bound.NO else [name]), *(self.group(*s) for s in step.sources)]
                    text = reduce(lambda a, b: f"ipu::broadcast({a}, {b})", texts)
                    lines[:0] = [f"{'const ipu::shape ' if step.known is Bound.NO else ''}{name} = {text};"]
                case MatchOperand():
                    lines[:0] = self._operand(step, declared)
                case _:
                    pass
        groups = sorted(n for n in declared if n in self.groups.values())
        sizes = sorted(n for n in declared if n not in groups)
        head = [self._type(t) for t in self.op.types if self.types[t.name] in self.used]
        head += [f"int64_t {', '.join(f'{n} = 0' for n in sizes)};"] if sizes else []
        head += [f"ipu::shape {', '.join(groups)};"] if groups else []
        return [*head, *lines]

    def _operand(self, step: MatchOperand, declared: dict[str, None]) -> list[str]:
        """Return the statements that bind what an input tells of what is used, and note what they need declared."""
        wanted = [n for n, a in enumerate(step.axes) if self._binds(a)]
        tensor = self.tensors[step.operand.name]
        reader = self.namer.fresh(f"{step.operand.name}_axes")
        lines = []
        for n, a in enumerate(step.axes[: wanted[-1] + 1] if wanted else ()):
            match a:
                case MatchGroup():
                    text = f"{reader}.group({self._length(reader, a.length, a.group)})"
                    kind, name = "ipu::shape", self.groups.get(a.group, "")
                case MatchDim():
                    text = f"{reader}.{'next' if n in wanted else 'skip'}()"
                    kind, name = "int64_t", self.dims[a.dim]
                case _:
                    text, kind, name = f"{reader}.skip()", "", ""
            lines.append(self._bound(step, a, kind, name, text, declared) if n in wanted else f"{text};")
        if lines:
            lines.insert(0, f"ipu::axes {reader}({tensor});")
        # Where an axis lies may be asked by the length of a group.
        for p in reversed(step.places):
            if (name := self.axes.get(p.attribute.name, "")) in self.used:
                rank = f"{tensor}.rank(){' + 1' if p.adds else ''}"
                text = f"ipu::axis_of(attributes.{p.attribute.name}, {rank})"
                lines.insert(0, self._bound(step, p, "int64_t", name, text, declared))
        if step.operand.optional and lines:
            return [f"if ({tensor}.valid()) {{", *(f"  {line}" for line in lines), "}"]
        return lines

    def _bound(
        self, step: MatchOperand, what: AxisMatch | PlaceAxis, kind: str, name: str, text: str, declared: dict[str, None]
    ) -> str:
        """Return the declaration of what one input alone tells, or else an assignment."""
        match what:
            case MatchGroup(group=group):
                tell = sum(isinstance(a, MatchGroup) and a.group == group and self._binds(a) for a in self._matches())
                tell += any(isinstance(s, BroadcastGroup) and s.name == group[0] and group[1] is None for s in self.plan.steps)
            case MatchDim(dim=dim):
                tell = sum(isinstance(a, MatchDim) and a.dim == dim and self._binds(a) for a in self._matches())
            case PlaceAxis(attribute=attribute):
                tell = sum(p.attribute == attribute for p in self._places())
            case _:
                raise TypeError("what is skipped tells nothing")
        if not step.operand.optional and tell == 1:
            return f"const {kind} {name} = {text};"
        declared[name] = None
        return f"{name} = {text};"

    def _matches(self) -> Iterator[AxisMatch]:
        for step in self.plan.steps:
            if isinstance(step, MatchOperand):
                yield from step.axes

    def _places(self) -> Iterator[PlaceAxis]:
        for step in self.plan.steps:
            if isinstance(step, MatchOperand):
                yield from step.places

    def _binds(self, a: object) -> bool:
        match a:
            case MatchDim(dim=dim, known=known):
                return known is not Bound.YES and self.dims[dim] in self.used
            case MatchGroup(group=group, known=known):
                return known is not Bound.YES and self.groups.get(group) in self.used
            case _:
                return False

    def _length(self, reader: str, length: GroupLength, own: GroupKey) -> str:
        match length:
            case Rest():
                behind = " + ".join(f"{self.group(*g)}.size()" for g in length.groups)
                return f"{reader}.rest({length.after}{f', {behind}' if behind else ''})"
            case UpTo():
                return f"{reader}.up_to({self.axis(length.attribute)}, {length.before}, {length.after})"
            case Same():
                return f"{reader}.same({self.group(*own)}, {length.after})"
            case Among() | Around():
                raise TypeError("ops with an attribute of axes are refused")

    def _type(self, t: TypeVar) -> str:
        """Return the declaration of a type variable's type."""
        name = self.types[t.name]
        for step in self.plan.steps:
            if isinstance(step, BindType) and step.variable == t:
                return f"const poplar::Type {name} = attributes.{step.attribute.name};"
        having = [o for o in self.op.inputs if o.type == t]
        sure = next((o for o in having if not o.optional), None)
        if sure is not None:
            return f"const poplar::Type {name} = {self.tensors[sure.name]}.elementType();"
        given = ", ".join(f"&{self.tensors[o.name]}" for o in having)
        return f"const poplar::Type {name} = ipu::type_of({{{given}}});"
