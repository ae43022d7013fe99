"""Sizes and axis numbers in ONNX functions: what `opc.emit.onnx_function` reads off the inputs' shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opc.emit.array_reductions import ReducingEmitter
from opc.emit.arrays import LIMIT
from opc.emit.frames import ATOM, NotExpressible, Position, Text
from opc.emit.onnx_types import TENSOR_TYPE
from opc.emit.python_text import quoted
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Mod
from opc.ir.dtypes import DType
from opc.ir.op import AttributeKind, Group, Op, Operand

BUILDER = "body"
"""The builder's name in generated source."""


class OnnxSizes(ReducingEmitter):
    """The part of the ONNX emitter that says sizes and places, as int64 tensors unless they are known numbers."""

    def __init__(self, op: Op, reserved: Sequence[str]) -> None:
        super().__init__(op, reserved)
        self.prologue: dict[str, str] = {}

    def onnx_type(self, dtype: DType) -> str:
        """Return the text of an ONNX element type."""
        return f"TensorProto.{TENSOR_TYPE[dtype]}"

    def affine(self, value: Affine, index: Mapping[str, Text] | None = None) -> Text:
        """Return an integer expression as an int64 tensor."""
        support = frozenset[str]().union(*(t.support for t in (index or {}).values()))
        total: str | None = None
        for monomial, coefficient in value.terms:
            factors = [self.atom(a, index or {}) for a in monomial]
            if abs(coefficient) != 1 or not factors:
                factors.append(f"{BUILDER}.number({abs(coefficient)})")
            term = factors[0]
            for factor in factors[1:]:
                term = f"{BUILDER}.Mul({term}, {factor})"
            if total is None:
                total = f"{BUILDER}.Neg({term})" if coefficient < 0 else term
            else:
                total = f"{BUILDER}.{'Sub' if coefficient < 0 else 'Add'}({total}, {term})"
            if len(total) > LIMIT:
                total = self.named(Text(total)).text
        return Text(total or f"{BUILDER}.number(0)", ATOM, support)

    def atom(self, a: Atom, index: Mapping[str, Text]) -> str:
        """Return one atom of an integer expression."""
        match a:
            case Index():
                return index[a.name].text
            case Dim():
                return self.dim(a.name)
            case GroupSize():
                return f"{BUILDER}.ReduceProd({self.group_shape(Group(a.name))}, keepdims=0)"
            case AttrInt():
                element = "" if a.element < 0 else f", element={a.element}"
                if self.op.attribute(a.name).kind is AttributeKind.AXIS:
                    return self.axis()[0]
                return f"{BUILDER}.attribute({quoted(a.name)}, {self.onnx_type(DType.INT64)}{element})"
            case FloorDiv() | Mod():
                name = "floordiv" if isinstance(a, FloorDiv) else "mod"
                return f"{BUILDER}.{name}({self.affine(a.numerator, index).text}, {self.affine(a.denominator, index).text})"

    def axis(self) -> tuple[str, Position]:
        """Return the axis attribute, counted from the front, and the place it stands for."""
        for a in self.op.attributes:
            place = Affine.of(Dim(a.dim or ""))
            for o in sorted(self.op.inputs, key=lambda o: o.optional):
                if a.kind is AttributeKind.AXIS and place in o.dims:
                    before = o.dims[: o.dims.index(place)]
                    groups = tuple(d.name for d in before if isinstance(d, Group))
                    local = self.attribute_local[a.name]
                    self.prologue[local] = f"{local} = {BUILDER}.axis({quoted(a.name)}, {self.local[o.name]})"
                    return local, Position(len(before) - len(groups), groups)
        raise NotExpressible("the number of axes of a group is not known when the model is made")

    def place(self, p: Position) -> str:
        """Return the text of an axis number: an int, or a tensor's name."""
        if p.end or not p.groups:
            return str(-p.fixed if p.end else p.fixed)
        axis, own = self.axis()
        if own.groups != p.groups:
            raise NotExpressible("an axis lies behind a group whose number of axes is not known when the model is made")
        if own.fixed == p.fixed:
            return axis
        return f"{BUILDER}.Add({axis}, {BUILDER}.number({p.fixed - own.fixed}))"

    def bound(self, o: Operand, k: int) -> Position:
        """Return the place where entry `k` of an operand's shape starts."""
        dims = o.dims
        if not any(isinstance(d, Group) for d in dims[k:]):
            return Position(len(dims) - k, (), end=True)
        groups = tuple(d.name for d in dims[:k] if isinstance(d, Group))
        return Position(k - len(groups), groups)

    def holder(self, dim: Affine | Group) -> tuple[str, Operand]:
        """Return an input whose shape has a dimension or group: its text, the first given of several, and the operand."""
        found = [o for o in sorted(self.op.inputs, key=lambda o: o.optional) if dim in o.dims]
        if not found:
            raise NotExpressible(f"no input has the size {dim}")
        if not found[0].optional:
            return self.local[found[0].name], found[0]
        alike = [o for o in found if o.dims == found[0].dims]
        if len(alike) < len(found):
            raise NotExpressible(f"the size {dim} is only known where an optional input is given")
        return self.first(alike), found[0]

    def first(self, operands: Sequence[Operand]) -> str:
        """Return the text of the first given of some optional inputs."""
        locals_ = [self.local[o.name] for o in operands]
        return locals_[0] if len(locals_) == 1 else self.named_once(f"first({', '.join(locals_)})")

    def dim(self, name: str) -> str:
        """Return the size of a dimension, a scalar."""
        derived = dict(self.op.dims)
        if name in derived:
            return self.affine(derived[name]).text
        dim = Affine.of(Dim(name))
        text, o = self.holder(dim)
        return f"{BUILDER}.dim({text}, {self.place(self.bound(o, o.dims.index(dim)))})"

    def group_shape(self, group: Group) -> str:
        """Return the sizes of a group, a vector."""
        text, o = self.holder(group)
        return f"{BUILDER}.Shape({text})" if len(o.dims) == 1 else f"{BUILDER}.shape({self.span(group)})"

    def span(self, group: Group) -> str:
        """Return an input that has a group, and from where to where its shape has it, as arguments."""
        text, o = self.holder(group)
        k = o.dims.index(group)
        start = self.place(self.bound(o, k))
        return f"{text}, {start}" if k + 1 == len(o.dims) else f"{text}, {start}, {self.place(self.bound(o, k + 1))}"

    def shape(self, dims: Sequence[Affine | Group]) -> str:
        """Return a shape, a vector."""
        for o in self.op.inputs:
            if tuple(dims) == o.dims and not o.optional:
                return f"{BUILDER}.Shape({self.local[o.name]})"
        if len(dims) == 1 and isinstance(dims[0], Group) and dims[0].of is None and self.sharers(dims[0].name):
            owners = [o for o in self.op.inputs if o.dims in {(Group(dims[0].name, of),) for of in self.sharers(dims[0].name)}]
            return self.named_once(f"{BUILDER}.broadcast_shape({', '.join(self.local[o.name] for o in owners)})")
        parts = [self.group_shape(d) if isinstance(d, Group) else self.affine(d).text for d in dims]
        if len(parts) == 1 and isinstance(dims[0], Group):
            return parts[0]
        if sum(len(p) for p in parts) > LIMIT:
            parts = [self.named_once(p) for p in parts]
        return self.named_once(f"{BUILDER}.vector({', '.join(parts)})")

    def axes(self, positions: Sequence[tuple[Position, str | None]]) -> str:
        """Return axis numbers, a vector."""
        parts = []
        for p, group in positions:
            if group is None:
                parts.append(self.place(p))
                continue
            span = self.span(Group(group))
            if self.place(p) == span.split(", ")[1]:
                parts.append(f"{BUILDER}.group_axes({span})")
            else:
                parts.append(self.named_once(f"{BUILDER}.axes_from({self.place(p)}, {self.group_shape(Group(group))})"))
        return parts[0] if len(parts) == 1 and positions[0][1] else f"{BUILDER}.vector({', '.join(parts)})"
