"""Reads at computed indices, contractions, scans and scatters in standard ONNX operators.

A function's tensors have no known rank where a spec has groups of axes, and `Transpose` and `Gather` need to know it. So what
moves axes first makes one axis of each group (`flatten`) and of the result its axes again (`unflatten`); without groups, and
where the axes are in order already, neither is needed.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from opc.analysis.patterns import Contraction, Entry, Roles, ScanPattern, ScatterPattern, conjunction, entries_of, is_uniform
from opc.emit.arrays.frames import ATOM, Frame, FrameScope, Position, PythonText, factor_frame, missing_entries
from opc.emit.dtypes import type_variable
from opc.emit.onnx.sizes import BUILDER, OnnxSizes
from opc.emit.python.text import quoted
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak, accumulated, candidates, is_bool, is_floating, is_integer
from opc.ir.expr import Call, Const, Expr, GroupRef, IndexValue, Read, Reduce, Select
from opc.ir.op import Group
from opc.ir.ordering import Ordering
from opc.records import dataclass, replace


@dataclass(slots=True)
class _Axis:
    """One axis of a tensor that is read: the entries that it becomes, the index tensor over them, or None for a bare axis.

    `points` is a number that is 0 where nothing is read because the axis is empty; no text where that can't be.
    """

    entries: tuple[Entry, ...]
    index: str | None
    size: str
    points: str = ""


class OnnxArrays(OnnxSizes):
    """The part of the ONNX emitter that moves elements."""

    splits_sums = True

    @abstractmethod
    def literal(self, value: float | bool) -> str:
        """Return the text of a number."""

    @abstractmethod
    def fit(self, e: Expr, t: ValueType, scope: FrameScope) -> PythonText:
        """Return a value in the type `t`, where its own is weak."""

    # ---- axes --------------------------------------------------------------------------------------------------------

    def flat_size(self, entry: Entry, scope: FrameScope) -> str:
        """Return the size of an index's range, or the number of points of a group, a scalar."""
        if isinstance(entry, GroupRef):
            return f"{BUILDER}.count({self.group_shape(scope.group(entry))})"
        return self.size(scope.extents[entry])

    def flatten(self, text: str, frame: Sequence[Entry], scope: FrameScope) -> str:
        """Return a tensor over a frame with one axis for each of its groups."""
        if not any(isinstance(i, GroupRef) for i in frame):
            return text
        return self.reshaped(text, [self.flat_size(i, scope) for i in frame])

    def unflatten(self, text: str, frame: Sequence[Entry], scope: FrameScope) -> str:
        """Return a tensor with one axis for each entry of a frame with all axes of its groups."""
        if not any(isinstance(i, GroupRef) for i in frame):
            return text
        return self.named(PythonText(f"{BUILDER}.reshape({text}, {self.shape(scope.dims(frame))})")).text

    def reshaped(self, text: str, sizes: Sequence[str]) -> str:
        """Return a tensor with axes of these sizes."""
        shape = f"{BUILDER}.vector({', '.join(sizes)})"
        return self.named(PythonText(f"{BUILDER}.reshape({text}, {self.named_once(shape) if len(shape) > 40 else shape})")).text

    def permuted(self, text: str, have: Sequence[Entry], want: Sequence[Entry]) -> str:
        """Return a flat tensor over `have` with its axes in the order `want`."""
        if list(have) == list(want):
            return text
        return self.named(PythonText(self.transpose(text, tuple(have.index(i) for i in want)))).text

    def product(self, sizes: Sequence[str]) -> str:
        """Return the product of scalars."""
        total = sizes[0] if sizes else f"{BUILDER}.number(1)"
        for size in sizes[1:]:
            total = self.named_once(f"{BUILDER}.Mul({total}, {size})")
        return total

    def value_over(self, e: Expr, frame: Frame, scope: FrameScope) -> str:
        """Return an expression as a tensor that has its full size along every axis of a frame."""
        inner = replace(scope, frame=frame)
        return self.named(self.filled(self.expr(e, inner), inner)).text

    # ---- reads -------------------------------------------------------------------------------------------------------

    def gather(self, e: Read, scope: FrameScope) -> PythonText:
        """A read at computed indices, or with padding: an index tensor for each axis, or one for axes that share an index."""
        if e.pad is not None and not is_uniform(e.pad):
            return self.expr(self.without_pad(e), scope)
        operand = self.operands[e.operand]
        text = self.local[e.operand]
        full = [scope.group(GroupRef(d.name)) if isinstance(d, Group) else d for d in operand.dims]
        if full != list(operand.dims):
            text = self.named(PythonText(f"{BUILDER}.Expand({text}, {self.shape(full)})")).text
        needed = [self.index_entries(i, scope) for i in e.indices]
        frame = tuple(i for i in scope.frame if any(i in n for n in needed))
        apart = all(not (a & b) for k, a in enumerate(needed) for b in needed[:k])
        grouped = any(isinstance(d, Group) for d in operand.dims)
        if grouped:
            text = self.reshaped(text, [self.size_of(d) for d in full])
        text, axes = self.axes_read(e, text, full, scope, frame)
        if not apart:
            text, axes = self.joined(text, axes, scope)
        rank = len(axes)
        for k in reversed(range(len(axes))):
            index = axes[k].index
            if index is not None:
                points = axes[k].points
                read, some, told = ("gather_some", f", {points}", f", rank={rank}") if points else ("Gather", "", "")
                text = self.named(PythonText(f"{BUILDER}.{read}({text}, {index}{some}, axis={k}{told})")).text
                rank += len(axes[k].entries) - 1
        have = [i for a in axes for i in a.entries]
        result = self.unflatten(self.permuted(text, have, frame), frame, scope)
        missing = missing_entries(scope.frame, frame)
        return PythonText(self.expand(result, missing) if missing else result, ATOM, self.full_support(frame))

    def index_entries(self, i: Affine | GroupRef | Expr, scope: FrameScope) -> frozenset[Entry]:
        """Return the entries that an index runs over."""
        if isinstance(i, GroupRef):
            return frozenset((i,))
        return frozenset(i.indices()) if isinstance(i, Affine) else entries_of(i)

    def without_pad(self, e: Read) -> Expr:
        """Return a read padded with what is not one number, as a conditional on a read padded with 0."""
        inside: list[Expr] = []
        for i, dim in zip(e.indices, self.operands[e.operand].dims, strict=True):
            if isinstance(i, GroupRef) or isinstance(dim, Group):
                continue
            index = IndexValue(i) if isinstance(i, Affine) else i
            inside.append(Call("ge", (index, Const(0, Weak.INT)), DType.BOOL))
            inside.append(Call("lt", (index, IndexValue(dim)), DType.BOOL))
        zero = Const(False, DType.BOOL) if is_bool(e.type) else Const(0, Weak.INT)
        assert e.pad is not None
        return Select(conjunction(inside), replace(e, pad=zero), e.pad, e.type)

    def size_of(self, dim: Affine | Group) -> str:
        """Return the size of a dimension, or the number of points of a group, a scalar."""
        return f"{BUILDER}.count({self.group_shape(dim)})" if isinstance(dim, Group) else self.size(dim)

    def axes_read(
        self, e: Read, text: str, dims: Sequence[Affine | Group], scope: FrameScope, frame: Frame
    ) -> tuple[str, list[_Axis]]:
        """Return the tensor to read from, padded where an index may fall outside, and what is read along each axis."""
        axes: list[_Axis] = []
        padded: list[int] = []
        for k, (i, dim) in enumerate(zip(e.indices, dims, strict=True)):
            size = self.size_of(dim)
            own = tuple(n for n in frame if n in self.index_entries(i, scope))
            if isinstance(i, GroupRef) or isinstance(dim, Group):
                axes.append(_Axis(own, None, size))
                continue
            if isinstance(i, Affine) and i.index is not None and scope.extents[i.index] == dim:
                axes.append(_Axis(own, None, size))
                continue
            index, points = (
                self.flatten(self.value_over(IndexValue(i) if isinstance(i, Affine) else i, own, scope), own, scope),
                "",
            )
            if not isinstance(i, Affine):
                index = self.named(PythonText(f"{BUILDER}.cast({index}, {self.onnx_type(DType.INT64)})")).text
            # Where a loop that it does not use is empty, an axis may be too, and a runtime refuses the index.
            around = {n: x for n, x in scope.extents.items() if isinstance(i, Affine) and n in i.indices()}
            inside = isinstance(i, Affine) and self.boxes.is_inside(i, dim, around)
            if not inside and k in e.checked and e.pad is None and not self.is_guarded(scope):
                # The runtime refuses what is too great itself, and takes negative numbers as counted from the end.
                index = self.named(PythonText(f"{BUILDER}.not_negative({index}, {size})")).text
                points = self.points_beside(dim, own, scope)
            elif not inside:
                padded.append(k)
                index = self.named(PythonText(f"{BUILDER}.inside({index}, {size})")).text
                size = f"{BUILDER}.Add({size}, {BUILDER}.number(1))"
            axes.append(_Axis(own, index, size, points))
        if padded:
            text = self.named(PythonText(text)).text
            value = self.pad_value(e, text)
            text = self.named(PythonText(f"{BUILDER}.pad_end({text}, {len(axes)}, {padded}, {value})")).text
        return text, axes

    def points_beside(self, dim: Affine, own: Frame, scope: FrameScope) -> str:
        """Return a number that is 0 where a read along an axis is evaluated at no point, because a loop that its index does not
        use is empty: one of the axis' own size, or one of a reduction whose result is used. No text where none can be."""
        beside = [n for n in scope.around if n not in own and self.may_be_empty(n, scope)]
        reduced = [n for n in beside if n in scope.reduced]
        alike = [n for n in beside if isinstance(n, str) and scope.extents[n] == dim and n not in reduced]
        sizes = [self.flat_size(n, scope) for n in (*reduced, *alike[:1])]
        return self.product(sizes) if sizes else ""

    def pad_value(self, e: Read, text: str) -> str:
        """Return what stands behind the end of a tensor, in its own type, for indices that fall outside."""
        if e.pad is None or isinstance(e.pad, Const):
            value = 0 if e.pad is None else e.pad.value
            return self.named(PythonText(f"{BUILDER}.number({self.literal(value)}, {text})")).text
        return self.named(PythonText(f"{BUILDER}.cast({self.expr(e.pad, FrameScope(())).text}, {text})")).text

    def joined(self, text: str, axes: list[_Axis], scope: FrameScope) -> tuple[str, list[_Axis]]:
        """Return the tensor with axes that share an index as one axis, and what is read along each.

        `x[i, i]` is the element `i * N + i` of the tensor as a vector, and `x[i, k[i]]` the element `i * N + k[i]`.
        """
        parts: list[list[int]] = []
        for k, axis in enumerate(axes):
            shared = [p for p in parts if any(set(axes[j].entries) & set(axis.entries) for j in p)]
            parts = [p for p in parts if p not in shared] + [sorted([k, *(j for p in shared for j in p)])]
        parts.sort()
        order = [k for p in parts for k in p]
        if order != sorted(order):
            text = self.named(PythonText(self.transpose(text, tuple(order)))).text
        result = []
        for p in parts:
            if len(p) == 1:
                result.append(axes[p[0]])
                continue
            entries = tuple(i for i in scope.frame if any(i in axes[k].entries for k in p))
            index = ""
            for k in p:
                own = axes[k].index or f"{BUILDER}.arange({axes[k].size})"
                own = self.over(own, axes[k].entries, entries)
                index = own if not index else f"{BUILDER}.Add({BUILDER}.Mul({index}, {axes[k].size}), {own})"
                index = self.named(PythonText(index)).text
            shape = f"{BUILDER}.vector({', '.join(self.flat_size(i, scope) for i in entries)})"
            index = self.named(PythonText(f"{BUILDER}.Expand({index}, {shape})")).text
            points = next((axes[k].points for k in p if axes[k].points), "")
            result.append(_Axis(entries, index, self.product([axes[k].size for k in p]), points))
        return self.reshaped(text, [a.size for a in result]), result

    def over(self, text: str, own: Sequence[Entry], entries: Sequence[Entry]) -> str:
        """Return a flat tensor over some entries with axes of size 1 for the others."""
        places = [k for k, i in enumerate(entries) if i not in own]
        if not places:
            return text
        return self.named(PythonText(f"{BUILDER}.Unsqueeze({text}, {BUILDER}.vector({', '.join(map(str, places))}))")).text

    # ---- patterns ----------------------------------------------------------------------------------------------------

    def contract(self, c: Contraction, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A contraction of two factors: a product of matrices, as far as it is the sum under its conditions too."""
        if c.roles is None:
            return None
        if not c.is_conditional:
            return self.product_of_matrices(c, c.roles, e, scope)
        # A term that does not count is 0, but 0 times what is not finite is none.
        outer = c.outer(scope.frame)
        inner = self.within(e, (*outer, *c.axes), scope)
        finite = ""
        for f in c.factors:
            if any(g.conditions for g in c.factors if g is not f):
                over = replace(inner, frame=factor_frame(f, inner.frame))
                value = self.named(self.fit(f.expr, e.type, over)).text
                text = f"{BUILDER}.all_finite({value})"
                finite = self.named(PythonText(f"{BUILDER}.And({finite}, {text})" if finite else text)).text
        roles = c.roles
        branches = [
            self.capture(lambda: self.named(self.product_of_matrices(c, roles, e, scope))),
            self.capture(lambda: self.named(self.boxed(e, replace(scope, frame=outer)))),
        ]
        names = [self.names.fresh() for _ in branches]
        for name, (lines, found) in zip(names, branches, strict=True):
            self.line(f"with {BUILDER}.branch() as {name}:")
            self.lines += [f"    {line}" for line in (*lines, f"{name}.result = {found.text}")]
        support = branches[0][1].support & branches[1][1].support
        then, other = names
        return PythonText(f"{BUILDER}.If({finite}, then_branch={then}.graph, else_branch={other}.graph)", ATOM, support)

    def product_of_matrices(self, c: Contraction, roles: Roles, e: Reduce, scope: FrameScope) -> PythonText:
        """Return a contraction of two factors as a product of matrices; what does not count is 0 in one of them."""
        outer = c.outer(scope.frame)
        order = (*outer, *c.axes)
        inner = self.within(e, order, scope)
        first, second = c.factors
        if roles.rows and roles.columns and min(map(order.index, roles.columns)) < min(map(order.index, roles.rows)):
            first, second, roles = second, first, Roles(roles.batch, roles.columns, roles.rows, roles.summed)
        parts = [tuple(i for i in order if i in r) for r in (roles.batch, roles.rows, roles.columns, roles.summed)]
        terms = [factor_frame(f, order) for f in (first, second)]
        scopes = [replace(inner, frame=t) for t in terms]
        values = [self.named(self.fit(f.expr, e.type, s)) for f, s in zip((first, second), scopes, strict=True)]
        batch, rows, columns, summed = parts
        straight = len(rows) == len(columns) == len(summed) == 1 and outer == (*batch, *rows, *columns)
        # A group may have any number of axes, where a product of matrices has one.
        straight = straight and not any(isinstance(i, GroupRef) for i in (*rows, *columns, *summed))
        if straight and terms == [(*batch, *rows, *summed), (*batch, *summed, *columns)]:
            # MatMul broadcasts what stands before the last two axes itself.
            ends = [({str(i)} for i in t[-2:]) for t in terms]
            if all(all(n <= v.support for n in end) for v, end in zip(values, ends, strict=True)):
                kind = "products" if batch else "MatMul"
                support = self.full_support(batch) & (values[0].support | values[1].support)
                support |= self.full_support((*rows, *columns))
                return PythonText(f"{BUILDER}.{kind}({values[0].text}, {values[1].text})", ATOM, support)
        tensors = [self.named(self.filled(v, s)).text for v, s in zip(values, scopes, strict=True)]
        return PythonText(self.matrix_product(tensors, terms, parts, outer, inner), ATOM, self.full_support(outer))

    def matrix_product(
        self, tensors: Sequence[str], terms: Sequence[Frame], parts: Sequence[Frame], outer: Frame, scope: FrameScope
    ) -> str:
        """Return the product of two tensors over the frames `terms`; `parts` are its axes: batch, rows, columns, summed."""
        batch, rows, columns, summed = parts
        (left, right), (left_term, right_term) = tensors, terms
        plain = not batch and len(columns) == 1 and len(summed) == 1 and outer == (*rows, *columns)
        plain = plain and not any(isinstance(i, GroupRef) for i in (*columns, *summed))
        if plain and left_term == (*rows, *summed):
            return self.named(
                PythonText(f"{BUILDER}.MatMul({left}, {self.permuted(right, right_term, (*summed, *columns))})")
            ).text
        left = self.permuted(self.flatten(left, left_term, scope), left_term, (*batch, *rows, *summed))
        right = self.permuted(self.flatten(right, right_term, scope), right_term, (*batch, *summed, *columns))
        have = (*batch, *rows, *columns)
        if len(rows) == len(columns) == len(summed) == 1:
            found = self.named(PythonText(f"{BUILDER}.products({left}, {right})")).text
        else:
            sizes = [[self.flat_size(i, scope) for i in part] for part in parts]
            b, m, n, k = (self.product(s) for s in sizes)
            product = f"{BUILDER}.products({self.reshaped(left, [b, m, k])}, {self.reshaped(right, [b, k, n])})"
            found = self.reshaped(product, [*sizes[0], *sizes[1], *sizes[2]])
        return self.unflatten(self.permuted(found, have, outer), outer, scope)

    def reshape(self, value: PythonText, frame: Frame, scope: FrameScope) -> PythonText:
        """As `ReducingEmitter.reshape` says."""
        return PythonText(f"{BUILDER}.reshape({value.text}, {self.shape(scope.dims(frame))})", ATOM, self.full_support(frame))

    def accumulated(self, text: str, t: ValueType) -> str:
        """Return a tensor in the type that sums of its own are held in."""
        variable = type_variable(t) if not isinstance(t, Weak) else None
        kind = DType.INT64 if isinstance(t, Weak) else accumulated(t)
        if isinstance(kind, DType) or variable is None:
            return f"{BUILDER}.cast({text}, {self.onnx_type(candidates(kind)[0])})"
        return f"{BUILDER}.accumulate({text}, {quoted(variable.name)})"

    def computes_floating(self, t: ValueType) -> str:
        """As `ReducingEmitter.computes_floating` says."""
        variable = type_variable(t) if not isinstance(t, Weak) else None
        if variable is None or is_integer(t) or is_bool(t):
            return str(is_floating(t))
        return f"{BUILDER}.is_floating({quoted(variable.name)})"

    def order(self, found: Ordering, body: PythonText, frame: Frame, scope: FrameScope) -> str:
        """As `ReducingEmitter.order` says."""
        kind = found.key.type
        how = repr(found.descending) if isinstance(found.descending, bool) else self.static(found.descending)
        rest = "" if is_floating(kind) else f", nan={self.computes_floating(kind)}"
        if not isinstance(kind, Weak) and DType.UINT64 in candidates(kind):
            known = quoted(kind.name) if isinstance(kind, TypeVar) else ""
            rest += f", uint64={f'{BUILDER}.is_uint64({known})' if known else True}"
        flat = self.flatten(body.text, frame, scope)
        return self.unflatten(f"{BUILDER}.argsort({flat}, {frame.index(found.along)}, {how}{rest})", frame, scope)

    def cumulate(self, s: ScanPattern, body: PythonText, axis: Position, scope: FrameScope) -> str | None:
        """A running sum."""
        if s.kind != "sum":
            return None
        place = self.place(axis)
        at = place if place.startswith(BUILDER) or place.isidentifier() else f"{BUILDER}.number({place})"
        value = body.text if is_floating(s.body.type) else self.accumulated(body.text, s.body.type)
        return f"{BUILDER}.CumSum({value}, {at}{', reverse=1' if s.reverse else ''})"

    def scatter(self, s: ScatterPattern, e: Reduce, frame: Frame, scope: FrameScope) -> PythonText | None:
        """A scatter: rows added at indices, with one row more for what falls outside."""
        rest = tuple(i for i in frame if i not in s.indices)
        inner = self.within(e, (*rest, *s.axes), scope)
        shared = tuple(i for i in rest if any(i in entries_of(p) for p in s.positions))
        others = tuple(i for i in rest if i not in shared)
        places, order = (*shared, *s.axes), (*shared, *s.axes, *others)
        value = Select(conjunction(s.conditions), s.value, Const(0, s.value.type), e.type) if s.conditions else s.value
        under = replace(inner, frame=order)
        values = self.named(self.filled(self.fit(value, e.type, under), under)).text
        if not is_floating(e.type):
            values = self.accumulated(values, s.value.type)
        sizes = [self.flat_size(i, scope) for i in s.indices]
        flat = [self.flatten(self.value_over(p, places, inner), places, inner) for p in s.positions]
        flat = [self.named(PythonText(f"{BUILDER}.cast({p}, {self.onnx_type(DType.INT64)})")).text for p in flat]
        size = self.product(sizes)
        index = self.named(PythonText(f"{BUILDER}.place([{', '.join(flat)}], [{', '.join(sizes)}])")).text
        more = f"{BUILDER}.Add({size}, {BUILDER}.number(1))"
        rows = self.product([self.flat_size(i, inner) for i in shared])
        if shared:
            first = self.named(PythonText(f"{BUILDER}.Mul({BUILDER}.arange({rows}), {more})")).text
            first = self.reshaped(first, [*(self.flat_size(i, inner) for i in shared), *("1" for _ in s.axes)])
            index = self.named(PythonText(f"{BUILDER}.Add({index}, {first})")).text
        tail = [self.flat_size(i, inner) for i in others]
        count = self.product([rows, *(self.flat_size(i, inner) for i in s.axes)])
        values = self.reshaped(values, [count, *tail])
        index = self.reshaped(index, [count, "1"])
        shape = f"{BUILDER}.vector({', '.join([f'{BUILDER}.Mul({rows}, {more})', *tail])})"
        total = self.named(PythonText(f"{BUILDER}.scatter_add({self.named(PythonText(shape)).text}, {index}, {values})")).text
        total = self.reshaped(total, [rows, more, *tail])
        total = self.named(PythonText(f"{BUILDER}.drop_last({total}, 1)")).text
        total = self.reshaped(total, [*(self.flat_size(i, inner) for i in shared), *sizes, *tail])
        have = (*shared, *s.indices, *others)
        return PythonText(self.unflatten(self.permuted(total, have, frame), frame, scope), ATOM, self.full_support(frame))
