"""The C++ that adds the vertices of a codelet to a graph, over `opc/poplar/placing.h`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol

from opc.emit.cpp.layout import wrap
from opc.emit.cpp.text import comment, message_literal, string_literal, whole_number
from opc.emit.poplar.dtypes import stored
from opc.emit.scalar.affine import AffineDialect
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import Acc, DType, ElementType, TypeVar
from opc.ir.expr import AttrRef, Present
from opc.ir.op import AttributeKind
from opc.ir.printer import format_assign
from opc.loops.values import Member
from opc.lower.poplar.codelet_nodes import CodeletOperand, CodeletStage, Field, Nonempty, OfNothing, Outside
from opc.lower.poplar.entries import Parts
from opc.records import replace

_OPERATIONS = {"sum": "ADD", "prod": "MUL", "any": "LOGICAL_OR", "all": "LOGICAL_AND"}


class HostNames(Protocol):
    """What the function that a codelet's vertices are added in calls things, as C++ expressions."""

    @property
    def taken(self) -> frozenset[str]:
        """The names that these expressions use, so that no index may have them."""

    def tensor(self, operand: str) -> str:
        """Return the tensor of an operand; it is assigned where it is the target."""

    def shape(self, operand: str) -> str:
        """Return the sizes of an operand, as `std::vector<std::size_t>`."""

    def size(self, symbol: Dim | GroupSize) -> str:
        """Return a size, as `int64_t`, that binds as strongly as a call."""

    def group(self, name: str, of: str | None) -> str:
        """Return the sizes of a group's axes, as `std::vector<std::size_t>`; `of` names the input whose own group it is."""

    def attribute(self, name: str, element: int) -> str:
        """Return an attribute, or an element of one."""

    def present(self, operand: str) -> str:
        """Return whether an optional operand is given."""

    def asked(self, outputs: Iterable[str]) -> str:
        """Return the condition that one of some outputs is wanted and has elements; empty where none are named."""

    def type(self, variable: TypeVar) -> str:
        """Return the `poplar::Type` that operands of a type variable are stored in."""


class _Whole(AffineDialect):
    """Whole numbers over sizes, attributes and intervals of indices."""

    def __init__(self, stage: CodeletStage, names: HostNames, locals_: Mapping[str, str]) -> None:
        self.stage, self.names, self.locals = stage, names, locals_

    def literal(self, value: int, alone: bool) -> str:
        return f"int64_t{{{whole_number(value)}}}" if abs(value) >= 2**31 else str(value)

    def atom(self, atom: Atom, factor: bool) -> str:
        match atom:
            case Index():
                return self.locals[atom.name]
            case Dim() | GroupSize():
                return self.locals.get(str(atom)) or self.names.size(atom)
            case AttrInt():
                text = self.names.attribute(atom.name, atom.element)
                text = f"{text} == {string_literal(atom.text)}" if atom.text is not None else text
                return f"int64_t{{{text} ? 1 : 0}}" if atom.flag else text
            case FloorDiv() | Mod():
                name = "floordiv" if isinstance(atom, FloorDiv) else "mod"
                return f"ipu::{name}({self.affine(atom.numerator)}, {self.affine(atom.denominator)})"
            case Minimum():
                return f"ipu::minimum({self.affine(atom.left)}, {self.affine(atom.right)})"


def codelet_text(stage: CodeletStage, names: HostNames) -> Iterator[str]:
    """Yield the lines of a block that adds the vertices of a codelet, and assigns the tensor of its target.

    It uses `graph`, `prog` and `debug`: the graph, the sequence of programs and the context for debugging; `ipu` is `opc::ipu`.
    """
    for line in _Placing(stage, names).lines():
        yield from wrap(line)


class _Placing:
    def __init__(self, stage: CodeletStage, names: HostNames) -> None:
        self.stage, self.names = stage, names
        taken = {"at", "read", "codelet", "graph", "prog", "debug", "opc", "poplar", *names.taken}
        self.indices = {i: f"{i}_" if i in taken else i for i, _ in (*stage.indices, *stage.ranges)}
        self.parts = {p: group for group, p in stage.parts}
        sizes: dict[str, str] = {}
        for p in self.parts:
            own = self._parts_name(p)
            sizes |= {str(p.own): f"{own}.own", str(p.rest): f"{own}.others"}
        self.whole = _Whole(stage, names, {**self.indices, **sizes})

    def lines(self) -> Iterator[str]:
        """Yield the lines, long ones as they are."""
        s = self.stage
        yield "  {"
        yield comment(format_assign(s.assign), 4)
        for p, v in self.parts.items():
            groups = f"{self.names.group(v, None)}, {self.names.group(v, p.kept)}"
            yield f"    const ipu::broadcast_parts {self._parts_name(p)}({groups});"
        points = [self.whole.affine(x) for _, x in s.indices]
        for n in s.nonempty:
            yield from self._nonempty(n, points)
        types = ", ".join(self.names.type(t) for t in s.types)
        yield f'    ipu::codelet codelet(graph, prog, "{s.name}", {{{types}}}, debug);'
        kept = any(o.name == s.target.name for o in s.op.temporaries)
        result = self._type(replace(s.target, kept=kept))
        yield f'    codelet.target("{s.target.field}", {self._type(s.target)}, {{{", ".join(points)}}}, {result});'
        for o in s.operands:
            extents = ", ".join(self.whole.affine(x) for x in o.extents)
            yield f'    codelet.input("{o.field}", {self._type(o)}, {self._view(o)}, {{{extents}}});'
        if s.split:
            extents = ", ".join(self.whole.affine(x) for _, x in s.split)
            yield f"    codelet.split({{{extents}}}, popops::Operation::{_OPERATIONS[s.kind]});"
        if s.serial:
            yield f"    codelet.serial({{{', '.join(map(str, s.serial))}}});"
        for kind in ("places", "integers", "reals", "flags"):
            if found := [text for f in s.fields if (text := self._field(f, kind))]:
                yield f"    codelet.{kind}({{{', '.join(found)}}});"
        for r in s.refusals:
            yield f"    codelet.refusal({self._refusal(r)});"
        if s.refusals and (asked := self._asked()):
            yield f"    codelet.asked({asked});"
        yield from self._run()
        yield "  }"

    def _parts_name(self, p: Parts) -> str:
        return f"{p.own.name.removesuffix('_own')}_parts"

    def _type(self, o: CodeletOperand) -> str:
        """Return the type that the class has an operand in."""
        t: ElementType = o.type
        known = stored(t)
        if known is not None:
            return f"poplar::{known.constant}"
        of = t.of if isinstance(t, Acc) else t
        assert isinstance(of, TypeVar), "a dtype that Poplar lacks is refused before"
        own = self.names.type(of)
        if isinstance(t, Acc):
            return f"ipu::accumulated({own})"
        return f"ipu::kept({own})" if o.kept and any(d is DType.FLOAT16 for d in of.dtypes) else own

    def _view(self, o: CodeletOperand) -> str:
        """Return the tensor with the axes that the class sees, but that those of a group are not yet one."""
        text = self.names.tensor(o.name)
        for n, v in enumerate(o.view):
            if v.group is None or (v.of is None and v.parts is None):
                continue
            before, after = n, len(o.view) - n - 1
            joint = self.names.group(v.group, None)
            if v.of is not None:
                text = f"ipu::spread({text}, {before}, {after}, {joint})"
            if v.parts is not None:
                text = f"{self._parts_name(v.parts)}.apart({text}, {before})"
        return text

    def _run(self) -> Iterator[str]:
        """Yield the statement that adds the vertices, with the function that tells what is read in a box of the target."""
        s = self.stage
        work = [" * ".join(f"{self.indices[i]}.size()" for i in axes) for axes in s.work if axes]
        used = {i for o in s.operands for r in o.reads for a in r if a is not None for i in a.indices()}
        used |= {i for axes in s.work for i in axes}
        for index, extent in reversed(s.ranges):
            used |= extent.indices() if index in used else set()
        at = "at" if any(i in used for i, _ in (*s.indices, *s.split)) else ""
        read = "read" if work or s.operands else ""
        target = self.names.tensor(s.target.name)
        yield f"    {target} = codelet.run([&](const ipu::box &{at}, ipu::reading &{read}) {{"
        for n, (index, _) in enumerate((*s.indices, *s.split)):
            if index in used:
                yield f"      const ipu::interval {self.indices[index]} = at[{n}];"
        for index, extent in s.ranges:
            if index in used and (index, extent) not in s.split:
                yield f"      const ipu::interval {self.indices[index]} = ipu::range({self.whole.affine(extent)});"
        if work:
            yield f"      read.steps({' + '.join(work)});"
        for o in s.operands:
            for n, r in enumerate(o.reads):
                axes = [self._axis(a, size) for a, size in zip(r, o.extents, strict=True)]
                yield f"      read.{'also' if n else 'of'}({{{', '.join(axes)}}});"
        yield f"    }}, {self.names.shape(s.target.name)});"

    def _axis(self, at: Affine | None, size: Affine) -> str:
        return f"ipu::whole({self.whole.affine(size)})" if at is None else self.whole.affine(at)

    def _field(self, f: Field, wanted: str) -> str:
        """Return a field and what it holds, nothing where it is of another kind."""
        kind = "places" if isinstance(f.what, Member) else {"int": "integers", "float": "reals", "bool": "flags"}[f.kind]
        return f'{{"{f.name}", {self._held(f)}}}' if kind == wanted else ""

    def _held(self, f: Field) -> str:
        match f.what:
            case Member(field="begin" | "end" as end, entry=n):
                return f"ipu::place::{end}, {n}"
            case Member(owner=owner, field=what, entry=n):
                operand = [o.name for o in (*self.stage.operands, self.stage.target)].index(owner)
                return f"ipu::place::{what}, {0 if n is None else n}, {operand}"
            case Dim() | GroupSize() as size:
                return self.whole.affine(Affine.of(size))
            case Present(operand=operand):
                return self.names.present(operand)
            case AttrRef(name=name, element=element):
                text = self._attribute(name, element)
                return f"{text} != 0" if f.kind == "bool" else text

    def _attribute(self, name: str, element: int) -> str:
        attribute, text = self.stage.op.attribute(name), self.names.attribute(name, element)
        if attribute.kind is not AttributeKind.STR:
            return text
        *others, _ = attribute.values
        return "".join(f"{text} == {string_literal(v)} ? {n} : " for n, v in enumerate(others)) + str(len(others))

    # What is refused.

    def _nonempty(self, n: Nonempty, points: list[str]) -> Iterator[str]:
        empty = " || ".join(f"{self.whole.affine(x)} <= 0" for x in n.extents)
        asked = self._asked()
        terms = [f"{p} > 0" for p in points]
        terms += [f"({x})" if " || " in x else x for x in (asked, empty) if x]
        yield f"    if ({' && '.join(terms)}) throw poplar::poplar_error({self._nothing(n.of)});"

    def _asked(self) -> str:
        """Return the condition that an output that needs the target has elements; empty where the target's own tell."""
        s = self.stage
        own = next((o for o in s.op.outputs if o.name == s.target.name), None)
        told = own is not None and (not own.optional or len(s.asked) == 1)
        return "" if told else self.names.asked(s.asked)

    def _nothing(self, r: OfNothing) -> str:
        """Return the text of a refusal."""
        return message_literal(f"{self.stage.op.name}: {r.kind} over {r.over} of nothing")

    def _refusal(self, r: Outside | OfNothing) -> str:
        """Return the text of a refusal; that of an index is made of the op, the operand, the axis and its size."""
        if isinstance(r, OfNothing):
            return self._nothing(r)
        operand = next(o for o in self.stage.operands if o.name == r.operand)
        before = operand.view[: r.entry]
        ranks = [f"{self.names.group(v.group, v.of)}.size()" for v in before if v.group is not None]
        axis = " + ".join([*ranks, str(len(before) - len(ranks))])
        size = self.whole.affine(self._size(operand, r.entry))
        return f"{message_literal(self.stage.op.name)}, {message_literal(r.operand)}, {axis}, {size}"

    @staticmethod
    def _size(o: CodeletOperand, entry: int) -> Affine:
        axes = [n for n, v in enumerate(o.view) for _ in range(1 if v.parts is None else 2)]
        return o.extents[axes.index(entry)]
