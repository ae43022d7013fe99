"""Convolutions and pooling as the ONNX operators of that name.

They are for a body whose steps are numbers or list attributes, since a function hands an attribute on as it is. Everything else
is said by gathers and products. Padding is not the operator's: a node before it makes each axis as long as all windows together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opc.analysis.patterns import is_number
from opc.analysis.value_types import integer_of
from opc.analysis.windows import Convolution, Pooling, Window, convolution, pooling
from opc.emit.arrays.frames import ATOM, FrameScope, PythonText
from opc.emit.onnx.arrays import OnnxArrays
from opc.emit.onnx.sizes import BUILDER
from opc.emit.python.text import quoted
from opc.ir.affine import Affine, AttrInt, Index
from opc.ir.dtypes import is_floating
from opc.ir.expr import Call, Expr, IndexValue, Read, Reduce, Select
from opc.records import replace


class OnnxWindows(OnnxArrays):
    """The part of the ONNX emitter that knows convolutions and pooling."""

    def pattern(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A convolution or a maximum over windows."""
        if not is_floating(e.type) or not self.counts_everywhere(scope):
            return None
        found = convolution(e)
        if found is not None:
            return self.convolved(found, e, scope)
        windows = pooling(e, scope.frame)
        if windows is not None and windows.kind == "max":
            return self.pooled(windows, "max_pool", e, scope)
        return None

    def call_pattern(self, e: Expr, scope: FrameScope) -> PythonText | None:
        """An average over windows: their sum divided by the size of a window."""
        match e:
            case Call(fn="div", args=(Reduce() as total, count)) if is_floating(total.type) and self.counts_everywhere(scope):
                windows = pooling(total, scope.frame)
                if windows is None or windows.kind != "sum":
                    return None
                if isinstance(count, Select) and self.is_static(count.cond):
                    then, other = (replace(e, args=(total, side)) for side in (count.then, count.other))
                    return self.expr(Select(count.cond, then, other, e.type), scope)
                size = Affine.of(1)
                for v in windows.windows:
                    size = size * v.taps
                return self.pooled(windows, "average_pool", total, scope) if integer_of(count) == size else None
            case _:
                return None

    def counts_everywhere(self, scope: FrameScope) -> bool:
        """Whether a value counts at all points, in calls where it does at one."""
        return all(map(self.is_static, scope.guards))

    def convolved(self, c: Convolution, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A convolution; runtimes have none of float64, which is said the other way then."""
        pad = c.x.pad
        options = self.options(c.windows, c.x, scope)
        groups = self.handed_on("group", [c.groups])
        if options is None or groups is None or not (pad is None or is_number(pad, 0)):
            return None
        extents = {**scope.extents, **e.extents}
        if not (self.runs_over(c.x, (c.batch,), extents) and self.runs_over(c.w, c.filters, extents)):
            return None
        channels, (filters, depth) = self.operands[c.x.operand].dims[1], self.operands[c.w.operand].dims[:2]
        if not (isinstance(channels, Affine) and isinstance(filters, Affine) and isinstance(depth, Affine)):
            return None
        first = c.group_start(filters, depth)
        if not self.boxes.is_equal(channels, depth * c.groups) or c.x.indices[1] != first + Index(c.filters[1]):
            return None
        x, w = self.local[c.x.operand], self.local[c.w.operand]
        text = f"{BUILDER}.convolution({x}, {w}, {', '.join([*options, groups])})"
        outer = tuple(i for i in scope.frame if i in c.entries)
        general = self.capture(lambda: self.contracted(e, replace(scope, frame=outer)) or self.boxed(e, scope))
        own = self.capture(lambda: PythonText(self.permuted(text, c.entries, outer)))
        name = self.either(f"{BUILDER}.has_convolution({quoted(self.variable(e.type))})", own, general)
        return self.put_back(name.over(self.full_support(outer)), outer, scope)

    def pooled(self, p: Pooling, method: str, e: Reduce, scope: FrameScope) -> PythonText | None:
        """Pooling."""
        pad = p.x.pad
        options = self.options(p.windows, p.x, scope)
        shape = self.handed_on("kernel_shape", [v.taps for v in p.windows])
        empty = float("-inf") if p.kind == "max" else 0
        if options is None or shape is None or not (pad is None or is_number(pad, empty)):
            return None
        outer = tuple(i for i in scope.frame if i in p.entries)
        if outer != p.entries or not self.runs_over(p.x, p.batch, scope.extents):
            return None
        text = f"{BUILDER}.{method}({self.local[p.x.operand]}, {', '.join([*options, shape])})"
        if method == "max_pool":
            return self.put_back(PythonText(text, ATOM, self.full_support(outer)), outer, scope)
        general, other = self.capture(lambda: self.boxed(e, replace(scope, frame=outer)))
        count = self.fit(self.count_of(p), e.type, FrameScope(()))
        average = PythonText(f"{BUILDER}.Div({other.text}, {count.text})")
        has_one = f"{BUILDER}.has_convolution({quoted(self.variable(e.type))})"
        name = self.either(has_one, ([], PythonText(text)), (general, average))
        return self.put_back(name.over(self.full_support(outer)), outer, scope)

    def runs_over(self, x: Read, indices: Sequence[str], extents: Mapping[str, Affine]) -> bool:
        """Whether indices run over the first axes of an operand, the whole of each: an operator takes no part of one."""
        lengths = self.operands[x.operand].dims[: len(indices)]
        pairs = zip(indices, lengths, strict=True)
        return all(isinstance(n, Affine) and self.boxes.is_equal(extents[i], n) for i, n in pairs)

    def count_of(self, p: Pooling) -> Expr:
        """Return the number of elements of a window."""
        size = Affine.of(1)
        for v in p.windows:
            size = size * v.taps
        return IndexValue(size)

    def variable(self, t: object) -> str:
        """Return the name of a value's type variable, or of its type."""
        return str(t).removeprefix("acc(").removesuffix(")")

    def options(self, windows: Sequence[Window], x: Read, scope: FrameScope) -> list[str] | None:
        """Return the arguments that describe the windows; None where the operator has none for them."""
        before, behind = [v.padding for v in windows], list[Affine]()
        for v in windows:
            length = self.operands[x.operand].dims[v.axis]
            if not isinstance(length, Affine):
                return None
            alike = self.boxes.is_equal(scope.extents[v.out], v.size(length))
            behind.append(v.padding if alike else v.reach(scope.extents[v.out]) - v.padding - length)
        strides = self.handed_on("strides", [v.stride for v in windows])
        dilations = self.handed_on("dilations", [v.dilation for v in windows])
        if strides is None or dilations is None:
            return None
        if all(p == Affine.of(0) for p in (*before, *behind)):
            return ["None", strides, dilations]
        pads = [f"[{', '.join([self.length(p) for p in side])}]" for side in (before, behind)]
        return [f"({', '.join(pads)})", strides, dilations]

    def length(self, size: Affine) -> str:
        """Return the name of a length."""
        text = self.affine(size).text
        return text if text.isidentifier() else self.named_once(text)

    def handed_on(self, name: str, values: Sequence[Affine]) -> str | None:
        """Return an argument for an operator's attribute: numbers, or the name of the attribute that holds just these values."""
        constants = [v.constant for v in values]
        single = name == "group"
        if all(c is not None for c in constants):
            return f"{name}={constants[0] if single else constants}"
        atoms = [v.single for v in values]
        # What a flag says is no attribute of the operator.
        if not all(isinstance(a, AttrInt) and not a.flag for a in atoms):
            return None
        attributes = [a for a in atoms if isinstance(a, AttrInt)]
        length = self.op.attribute(attributes[0].name).length
        places = [-1] if single else list(range(len(values)))
        alike = {a.name for a in attributes} == {attributes[0].name} and [a.element for a in attributes] == places
        whole = length is None if single else length == len(values)
        return f"{name}={quoted(attributes[0].name)}" if alike and whole else None
