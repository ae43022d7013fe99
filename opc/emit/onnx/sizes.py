"""Sizes and axis numbers in ONNX functions: what `opc.emit.onnx.function` reads off the inputs' shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opc.emit.arrays.frames import ATOM, NotExpressible, Position, PythonText
from opc.emit.arrays.lines import LIMIT
from opc.emit.arrays.statements import StatementEmitter
from opc.emit.onnx.types import TENSOR_TYPE
from opc.emit.python.text import quoted
from opc.emit.scalar.affine import AffineDialect
from opc.ir.affine import Affine, Atom, AttrInt, Dim, FloorDiv, GroupSize, Index, Minimum, Mod
from opc.ir.dtypes import DType
from opc.ir.op import AttributeKind, Group, Op, Operand
from opc.ir.placing import placing

BUILDER = "body"
"""The builder's name in generated source."""


class _OnnxForm(AffineDialect):
    """Writes affine forms as calls of the builder, with texts for their index variables; what gets long is named."""

    literal_first = False

    def __init__(self, sizes: OnnxSizes, index: Mapping[str, PythonText]) -> None:
        self.sizes, self.index = sizes, index

    def literal(self, value: int, alone: bool) -> str:
        return f"{BUILDER}.number({value})"

    def atom(self, atom: Atom, factor: bool) -> str:
        return self.sizes.atom(atom, self.index)

    def times(self, left: str, right: str) -> str:
        return f"{BUILDER}.Mul({left}, {right})"

    def first(self, term: str, negative: bool) -> str:
        return self._short(f"{BUILDER}.Neg({term})" if negative else term)

    def joined(self, total: str, term: str, negative: bool) -> str:
        return self._short(f"{BUILDER}.{'Sub' if negative else 'Add'}({total}, {term})")

    def _short(self, total: str) -> str:
        return self.sizes.named(PythonText(total)).text if len(total) > LIMIT else total


class OnnxSizes(StatementEmitter):
    """The part of the ONNX emitter that says sizes and places, as int64 tensors unless they are known numbers."""

    def __init__(self, op: Op, reserved: Sequence[str]) -> None:
        super().__init__(op, reserved)
        self.prologue: dict[str, str] = {}

    def onnx_type(self, dtype: DType) -> str:
        """Return the text of an ONNX element type."""
        return f"{self.using('TensorProto')}.{TENSOR_TYPE[dtype]}"

    def affine(self, value: Affine, index: Mapping[str, PythonText] | None = None) -> PythonText:
        """Return an integer expression as an int64 tensor."""
        support = frozenset[str]().union(*(t.support for t in (index or {}).values()))
        return PythonText(_OnnxForm(self, index or {}).affine(value), ATOM, support)

    def atom(self, a: Atom, index: Mapping[str, PythonText]) -> str:
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
                if a.text is not None:
                    return f"{BUILDER}.number(int({self.attribute_local[a.name]} == {quoted(a.text)}))"
                if a.flag and a.element < 0:  # an element of a list of bools is one of a list of integers to ONNX
                    return f"{BUILDER}.number(int({self.attribute_local[a.name]}))"
                value = f"{BUILDER}.attribute({quoted(a.name)}, {self.onnx_type(DType.INT64)}{element})"
                return value if a.element < 0 else self.named_once(value, f"{a.name}_{a.element}")
            case FloorDiv() | Mod():
                function = self.using("floordiv") if isinstance(a, FloorDiv) else "Mod"
                numerator, denominator = self.affine(a.numerator, index).text, self.affine(a.denominator, index).text
                if not a.denominator.indices() and not self.boxes.is_divisor(a.denominator):
                    name, one = ("Min", -1) if self.boxes.is_downward(a.denominator) else ("Max", 1)
                    denominator = f"{BUILDER}.{name}({denominator}, {BUILDER}.number({one}))"
                return f"{BUILDER}.{function}({numerator}, {denominator})"
            case Minimum():
                return f"{BUILDER}.Min({self.affine(a.left, index).text}, {self.affine(a.right, index).text})"

    def axis(self) -> tuple[str, Position]:
        """Return the axis attribute, counted from the front, and the position it denotes."""
        for a in self.op.attributes:
            if a.kind is not AttributeKind.AXIS or a.among is not None:
                continue
            places = sorted(placing(self.op, a), key=lambda p: p.operand.optional)
            for place in places:
                groups = tuple(d.name for d in place.before if isinstance(d, Group))
                local = self.attribute_local[a.name]
                several = place.operand.optional and len(places) > 1
                names = ", ".join(self.local[p.operand.name] for p in places)
                given = f"{self.using('first')}({names})" if several else self.local[place.operand.name]
                more = ", more=1" if place.adds else ""
                self.prologue[local] = f"{local} = {BUILDER}.axis({quoted(a.name)}, {given}{more})"
                return local, Position(len(place.before) - len(groups), groups)
        raise NotExpressible("the number of axes of a group is not known when the model is made")

    def place(self, p: Position) -> str:
        """Return the text of an axis number: an int, or a tensor's name."""
        if p.end or not p.groups:
            return str(-p.fixed if p.end else p.fixed)
        axis = self.placed(p)
        if axis is not None:
            return axis
        known = self.known_place(p)
        if known is not None:
            return known
        total = f"{BUILDER}.number({p.fixed})"
        for group in p.groups:
            total = f"{BUILDER}.Add({total}, {BUILDER}.Size({self.group_shape(Group(group))}))"
        return self.named_once(total)

    def listed_rank(self, group: str) -> str | None:
        """Return how many axes a group has as a number that is known when the model is made; None where that is not known."""
        how = self.arrangement
        if how is None or group not in (how.picked, how.rest):
            return None
        return f"len({BUILDER}.listed)" if group == how.picked else f"{BUILDER}.unlisted"

    def known_place(self, p: Position) -> str | None:
        """Return the text of an axis number that is known when the model is made by the listed axes; None where it is not."""
        ranks = [self.listed_rank(group) for group in p.groups]
        if p.end or self.arrangement is None or None in ranks:
            return None
        return " + ".join([*map(str, ranks), *([str(p.fixed)] if p.fixed or not ranks else [])])

    def placed(self, p: Position) -> str | None:
        """Return a place by the axis attribute, where that stands behind the same groups."""
        if not self.has_axis():
            return None
        axis, own = self.axis()
        if own.groups != p.groups:
            return None
        return axis if own.fixed == p.fixed else f"{BUILDER}.Add({axis}, {BUILDER}.number({p.fixed - own.fixed}))"

    def bound(self, o: Operand, k: int) -> Position:
        """Return the place where entry `k` of an operand's shape starts."""
        dims = o.dims
        if not any(isinstance(d, Group) for d in dims[k:]):
            return Position(len(dims) - k, (), end=True)
        groups = tuple(d.name for d in dims[:k] if isinstance(d, Group))
        behind = tuple(d.name for d in dims[k:] if isinstance(d, Group))
        if groups and not self.is_placed(groups) and not self.is_told(groups) and self.is_told(behind):
            return Position(len(dims) - k - len(behind), behind, end=True)
        return Position(k - len(groups), groups)

    def is_placed(self, groups: tuple[str, ...]) -> bool:
        """Whether an axis attribute stands behind the same groups."""
        return self.has_axis() and self.axis()[1].groups == groups

    def has_axis(self) -> bool:
        """Whether an attribute places a dimension between two groups."""
        return any(a.kind is AttributeKind.AXIS and a.among is None for a in self.op.attributes)

    def bound_of(self, o: Operand, k: int) -> str:
        """Return the axis at which entry `k` of an operand's shape starts."""
        if (
            self.arrangement is not None
            and not self.arrangement.slots
            and not self.arrangement.permutes
            and self.is_mixed(o)
            and k == 1
        ):
            listed = f"len({BUILDER}.listed)"
            return listed if self.arrangement.picked_first(o) else f"-{listed}"
        p = self.bound(o, k)
        if not p.end or not p.groups:
            return self.place(p)
        total = f"{BUILDER}.from_end({self.local[o.name]}, {p.fixed})"
        for group in p.groups:
            total = f"{BUILDER}.Sub({total}, {BUILDER}.Size({self.group_shape(Group(group))}))"
        return self.named_once(total)

    def holders(self, dim: Affine | Group) -> list[Operand]:
        """Return inputs whose shapes have a dimension or group, one of which is given where any is.

        Raises:
            NotExpressible: when no input has it.
        """
        told = isinstance(dim, Group) and self.is_told([dim.name])
        found = [o for o in self.op.inputs if dim in o.dims]
        found.sort(key=lambda o: (o.optional, told and isinstance(dim, Group) and not self.tells(o, dim.name)))
        if not found:
            raise NotExpressible(f"no input has the size {dim}")
        return [found[0]] if not found[0].optional else found

    def of_first(self, dim: Affine | Group, text: Callable[[str, Operand], str]) -> str:
        """Return what `text` makes of the first given input that has a dimension or group; nothing where all are absent.

        Of a derived op whose cotangents are all absent, what has that size is neither read nor an output that is wanted.
        """
        found = self.holders(dim)
        if not found[0].optional:
            return text(self.local[found[0].name], found[0])
        nothing = f"{BUILDER}.vector()" if isinstance(dim, Group) else f"{BUILDER}.number(0)"
        if all(o.dims == found[0].dims for o in found):
            first = self.first(found)
            return self.named_once(f"{text(first, found[0])} if {first} is not None else {nothing}")
        chain = [f"{text(self.local[o.name], o)} if {self.local[o.name]} is not None else " for o in found]
        return self.named_once("".join([*chain, nothing]))

    def first(self, operands: Sequence[Operand]) -> str:
        """Return the text of the first given of some optional inputs."""
        locals_ = [self.local[o.name] for o in operands]
        return locals_[0] if len(locals_) == 1 else self.named_once(f"{self.using('first')}({', '.join(locals_)})")

    def dim(self, name: str) -> str:
        """Return the size of a dimension, a scalar."""
        derived = dict(self.op.dims)
        if name in derived:
            return self.affine(derived[name]).text
        dim = Affine.of(Dim(name))
        return self.of_first(dim, lambda x, o: f"{BUILDER}.dim({x}, {self.bound_of(o, o.dims.index(dim))})")

    def group_shape(self, group: Group) -> str:
        """Return the sizes of a group, a vector."""
        if self.is_broadcast(group):
            return self.broadcast_group(group.name)
        return self.of_first(group, lambda x, o: self.own_shape(x, o, group))

    def own_shape(self, text: str, o: Operand, group: Group) -> str:
        """Return the sizes of an operand's group."""
        return f"{BUILDER}.Shape({text})" if len(o.dims) == 1 else f"{BUILDER}.shape({text}, {self.span(o, group)})"

    def broadcast_group(self, name: str) -> str:
        """Return the sizes that the groups of some inputs broadcast to, a vector."""
        parts = []
        for group in self.sharing(name):
            shapes = [(self.own_shape(self.local[o.name], o, group), o) for o in self.holders(group)]
            chain = [f"{shape} if {self.local[o.name]} is not None else " if o.optional else shape for shape, o in shapes]
            parts.append("".join([*chain, *(["None"] if shapes[-1][1].optional else [])]))
        return self.named_once(f"{BUILDER}.broadcast_shapes({', '.join(parts)})")

    def span(self, o: Operand, group: Group) -> str:
        """Return from where to where the shape of an operand has a group, as arguments."""
        k = o.dims.index(group)
        start = self.bound_of(o, k)
        return start if k + 1 == len(o.dims) else f"{start}, {self.bound_of(o, k + 1)}"

    def shape(self, dims: Sequence[Affine | Group]) -> str:
        """Return a shape, a vector."""
        for o in self.op.inputs:
            if tuple(dims) == o.dims and not o.optional:
                return f"{BUILDER}.Shape({self.local[o.name]})"
        group = dims[0] if len(dims) == 1 else None
        if isinstance(group, Group) and self.is_broadcast(group):
            alone = {(g,) for g in self.sharing(group.name)}
            owners = [o for o in self.op.inputs if o.dims in alone]
            # One that has other axes beside the group is no shape of it, and may be the only one that is as large.
            if {o.dims for o in owners} != alone:
                return self.broadcast_group(group.name)
            return self.named_once(f"{BUILDER}.broadcast_shape({', '.join(self.local[o.name] for o in owners)})")
        parts = [self.group_shape(d) if isinstance(d, Group) else self.size(d) for d in dims]
        if len(parts) == 1 and isinstance(dims[0], Group):
            return parts[0]
        if sum(len(p) for p in parts) > LIMIT:
            parts = [self.named_once(p) for p in parts]
        return self.named_once(f"{BUILDER}.vector({', '.join(parts)})")

    def size(self, extent: Affine) -> str:
        """Return the size of an axis with this extent: 0 for a negative one."""
        text = self.affine(extent).text
        return text if self.boxes.is_size(extent) else f"{BUILDER}.Max({text}, {BUILDER}.number(0))"

    def axes(self, positions: Sequence[tuple[Position, str | None]], of: str | None = None) -> str:
        """Return axis numbers, a vector; where a tensor `of` is named, all counted from its front.

        ONNX Runtime leaves an axis as it is that is counted from the end of a tensor without elements.
        """
        parts = []
        for p, group in positions:
            if group is None and p.end and of is not None:
                parts.append(f"{BUILDER}.from_end({of}, {p.fixed})")
                continue
            if group is None:
                parts.append(self.place(p))
                continue
            found = self.holders(Group(group)) if not self.sharers(group) else []
            known, rank = self.known_place(p), self.listed_rank(group)
            if known is not None and rank is not None:
                parts.append(f"*range({rank})" if known == "0" else f"*range({known}, {known} + {rank})")
                continue
            start = self.place(p)
            if len(found) == 1 and start == self.span(found[0], Group(group)).split(", ")[0]:
                parts.append(f"{BUILDER}.group_axes({self.local[found[0].name]}, {self.span(found[0], Group(group))})")
            else:
                parts.append(self.named_once(f"{BUILDER}.axes_from({start}, {self.group_shape(Group(group))})"))
        alone = len(parts) == 1 and positions[0][1] and not parts[0].startswith("*")
        return parts[0] if alone else f"{BUILDER}.vector({', '.join(parts)})"
