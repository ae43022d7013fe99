"""The values of expressions: what each node of the typed IR may be at the points of a frame."""

from __future__ import annotations

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv
from opc.analysis.value_types import affine_of
from opc.ir.affine import Affine
from opc.ir.dtypes import Binding, DType, ValueType, Weak, compute_dtype, is_integer
from opc.ir.expr import (
    EXTREMES,
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    TypeIs,
    is_same_value,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Group, Op
from opc.ir.ordering import compared_places
from opc.testing.oracle import conversions, enclosures, integers
from opc.testing.oracle.ahead import Ahead
from opc.testing.oracle.arithmetic import square
from opc.testing.oracle.bounds import (
    PRECISIONS,
    Array,
    Bounds,
    Precision,
    choose,
    every,
    exact,
    held,
    some,
)
from opc.testing.oracle.frame import DomainError, EmptyReductionError, Frame, affine, asked, gather, is_far, wrapping
from opc.testing.oracle.numbering import ValueNumbers
from opc.testing.oracle.orders import Ways, contraction, either, product, reaching, total
from opc.testing.oracle.ranges import numbered, part_of
from opc.testing.oracle.reductions import gamma, identity, reduce
from opc.testing.oracle.rounding import widened
from opc.testing.oracle.shared import constant, known_of, literal
from opc.testing.oracle.terms import ADDING, REARRANGED, addends, count_terms, guarded, joined, takes_off_a_sum


class Expressions:
    """The values of expressions in one call of an op: its environment and the values of operands so far."""

    def __init__(
        self,
        op: Op,
        env: ShapeEnv,
        binding: Binding,
        values: dict[str, Bounds],
        precise: bool,
        numbers: ValueNumbers | None = None,
    ) -> None:
        self.op, self.env, self.binding, self.values, self.precise = op, env, binding, values, precise
        self.numbers = numbers
        known = known_of(op, precise, tuple(sorted(binding.items(), key=lambda b: b[0])))
        self.dtypes, self.kept, self.operations = known.dtypes, known.kept, known.operations
        self.most: dict[str, Array | None] = {}
        """Of operands that are sums and products, as `Ways.most` has it: statements are no boundary to what is rearranged."""
        self.merged = 0
        """The number of terms of all sums that are added here, and so may be one sum; 0 where there is none."""
        self.ahead: Ahead | None = None
        """Of a recurrence, what is computed at all steps at once."""

    # Types

    def compute(self, t: ValueType, context: DType = DType.FLOAT64) -> DType:
        """Return the dtype values of type `t` are computed in; a weak float takes the context's."""
        if t is Weak.FLOAT:
            return context if context in PRECISIONS else DType.FLOAT64
        dtype = self.dtypes.get(t)
        if dtype is None:
            dtype = compute_dtype(t, self.binding)
            dtype = self.dtypes[t] = DType.FLOAT64 if self.precise and dtype.is_floating else dtype
        return dtype

    def convert(self, a: Bounds, source: ValueType, dtype: DType) -> Bounds:
        """Return values of type `source` taken as operands of an operation in `dtype`."""
        weak = isinstance(source, Weak)
        return conversions.promote(a, None if weak else self.compute(source), dtype)

    # Expressions

    def eval(self, e: Expr, frame: Frame, mask: Array | None, ctx: DType) -> Bounds:
        """Return the set of values of `e` over `frame`. Only points of `mask` count; `ctx` is the type weak values take."""
        return self.ways(e, frame, mask, ctx).settled

    def ways(self, e: Expr, frame: Frame, mask: Array | None, ctx: DType) -> Ways:
        """Return the same of what may be part of a larger sum or product, and rearranged with it."""
        if self.ahead is not None and id(e) in self.ahead.found:
            before = self.merged
            known = self.ahead.at(e, frame, (ctx, before), lambda whole: self.alone(e, whole, None, ctx))
            self.merged = before
            if known is not None:
                return known
        return self.alone(e, frame, mask, ctx)

    def alone(self, e: Expr, frame: Frame, mask: Array | None, ctx: DType) -> Ways:
        """Return the same, of what is computed at this step of a recurrence."""
        match e:
            case Call():
                return self.call(e, frame, mask, ctx)
            case Select():
                return self.select(e, frame, mask, ctx)
            case Reduce():
                return self.reduce(e, frame, mask, ctx)
            case Read():
                return self.read(e, frame, mask, ctx)
            case Cast() if is_same_value(e):
                return self.ways(e.arg, frame, mask, ctx)
            case _:
                return Ways(self.leaf(e, frame, mask, ctx))

    def leaf(self, e: Expr, frame: Frame, mask: Array | None, ctx: DType) -> Bounds:
        """Return the set of what is not made of sums and products."""
        match e:
            case Const():
                return constant(e, type(e.value), frame.rank)
            case AttrRef():
                return exact(frame.constant(self.env.attribute(e.name, e.element)))
            case IndexValue():
                return exact(wrapping(e.value, frame, self.env.symbol))
            case GroupIndex():
                return exact(frame.place(e.group))
            case Present():
                return exact(frame.constant(e.operand in self.values))
            case TypeIs():
                return exact(frame.constant(self.binding[e.variable] in e.dtypes))
            case Cast():
                source, target = self.compute(e.arg.type, ctx), self.compute(e.type, ctx)
                return conversions.cast(self.eval(e.arg, frame, mask, source), source, target)
            case _:
                raise TypeError("a string is only compared with an attribute")

    def select(self, e: Select, frame: Frame, mask: Array | None, ctx: DType) -> Ways:
        """Evaluate each side only where it may be chosen."""
        cond = self.eval(e.cond, frame, mask, ctx)
        dtype = self.compute(e.type, ctx)
        then_mask = _both(mask, cond.high)
        other_mask = _both(mask, ~cond.low)
        if not some(then_mask):
            return self.operand_ways(e.other, frame, other_mask, dtype)
        if not some(other_mask):
            return self.operand_ways(e.then, frame, then_mask, dtype)
        then = asked(lambda m: self.operand_ways(e.then, frame, m, dtype), then_mask, _both(mask, cond.low))
        other = asked(lambda m: self.operand_ways(e.other, frame, m, dtype), other_mask, _both(mask, ~cond.high))
        return either(cond, then, other)

    def operand(self, e: Expr, frame: Frame, mask: Array | None, dtype: DType) -> Bounds:
        """Return `e` as an operand of an operation in `dtype`."""
        return self.operand_ways(e, frame, mask, dtype).settled

    def operand_ways(self, e: Expr, frame: Frame, mask: Array | None, dtype: DType) -> Ways:
        """Return the same of what may be rearranged with the operation."""
        if isinstance(e, Const):
            source = None if isinstance(e.type, Weak) else self.compute(e.type)
            return literal(e, type(e.value), frame.rank, source, dtype)
        found = self.ways(e, frame, mask, dtype)
        kept = self.kept.get((e.type, dtype))
        if kept is None:
            same = dtype is DType.FLOAT64 or (not isinstance(e.type, Weak) and self.compute(e.type) is dtype)
            kept = self.kept[e.type, dtype] = dtype.is_floating and same
        if kept and found.bounds.is_float and (found.precision is None or found.precision.dtype is dtype):
            return found
        if found.precision is not None and found.precision.dtype is not dtype:
            return Ways(self.convert(found.settled, e.type, dtype))
        return found.of(self.convert(found.bounds, e.type, dtype))

    def call(self, e: Call, frame: Frame, mask: Array | None, ctx: DType) -> Ways:
        """Apply a function of the table."""
        fn = FUNCTIONS[e.fn]
        if e.fn in ("eq", "ne") and any(isinstance(a, StrConst) for a in e.args):
            left, right = (a.value if isinstance(a, StrConst) else self.env.attribute(a.name) for a in e.args)  # type: ignore[union-attr]  # texts, by typing
            return Ways(exact(frame.constant((left == right) == (e.fn == "eq"))))
        if fn.types == "logic":
            return Ways(self.logic(e, frame, mask, ctx))
        if (apart := self.apart(e, frame)) is not None:
            return Ways(enclosures.compare(e.fn, exact(apart), exact(frame.constant(np.int64(0)))))
        before = self.merged
        self.merged = (before or count_terms(e, frame, self.env)) if e.fn in ADDING else 0
        dtype = self.operations.get((e, ctx))
        if dtype is None:
            dtype = self.joined(e.args, ctx)
            if fn.types == "float" and not dtype.is_floating and not is_integer(e.type):
                dtype = ctx if ctx in PRECISIONS else DType.FLOAT64
            self.operations[e, ctx] = dtype
        args = [self.operand_ways(a, frame, mask, dtype) for a in e.args]
        if dtype.is_floating and e.fn in REARRANGED:
            result = self.rearranged(e, args, frame, PRECISIONS[dtype])
        else:
            result = Ways(self.apply(e, [a.settled for a in args], dtype))
        self.merged = before
        if self.numbers is None:
            return result
        return result.of(self.numbers.apply(e.fn, [a.bounds for a in args], result.bounds))

    def apart(self, e: Call, frame: Frame) -> Array | None:
        """Return how much greater the left of a comparison of indices is, where attributes are far from 0; None of any other."""
        if FUNCTIONS[e.fn].types != "compare" or not all(isinstance(a, IndexValue | Const | AttrRef) for a in e.args):
            return None
        left, right = (affine_of(a) for a in e.args)
        if left is None or right is None or not (is_far(left, self.env.symbol) or is_far(right, self.env.symbol)):
            return None
        return affine(left - right, frame, self.env.symbol)

    def rearranged(self, e: Call, args: list[Ways], frame: Frame, p: Precision) -> Ways:
        """Return what a sum or a product of two may be, or a negated value."""
        if self.merged:
            # What is added to a sum may be its first term, and then takes part in every rounding.
            steps = gamma(self.merged, p.unit) / (2 * p.unit)
            args = [w if count_terms(a, frame, self.env) else w.of(widened(w.bounds, p, steps)) for a, w in zip(e.args, args)]
        match e.fn:
            case "neg":
                return args[0].negative()
            case "mul":
                return product(args[0], args[1], p, same=e.args[0] == e.args[1])
            case _:
                return total(args[0], args[1].negative() if e.fn == "sub" else args[1], p)

    def apply(self, e: Call, args: list[Bounds], dtype: DType) -> Bounds:
        """Apply a function of values."""
        fn = FUNCTIONS[e.fn]
        if fn.types == "compare":
            return enclosures.compare(e.fn, args[0], args[1], isinstance(e.args[0], Read) and e.args[0] == e.args[1])
        if fn.types == "test":
            return enclosures.classify(e.fn, args[0])
        if not dtype.is_floating:
            return integers.unary(e.fn, args[0], dtype) if fn.arity == 1 else integers.binary(e.fn, args[0], args[1], dtype)
        p = PRECISIONS[dtype]
        if e.fn == "pow" and _is_two(e.args[1]):
            return square(args[0], p)
        return enclosures.unary(e.fn, args[0], p) if fn.arity == 1 else enclosures.binary(e.fn, args[0], args[1], p)

    def joined(self, args: tuple[Expr, ...], ctx: DType) -> DType:
        """Return the dtype an operation on these arguments is done in."""
        strong = [a.type for a in args if not isinstance(a.type, Weak)]
        if strong:
            return max((self.compute(t, ctx) for t in strong), key=lambda d: d.bits)
        return self.compute(Weak.FLOAT, ctx) if any(a.type is Weak.FLOAT for a in args) else DType.INT64

    def logic(self, e: Call, frame: Frame, mask: Array | None, ctx: DType) -> Bounds:
        """Evaluate `and`, `or` (the right side only where it counts) and `not`."""
        left = self.eval(e.args[0], frame, mask, ctx)
        if e.fn == "not":
            return Bounds(~left.high, ~left.low, left.nan)
        undecided = _both(mask, left.high if e.fn == "and" else ~left.low)
        if not some(undecided):
            return left
        sure = left.low if e.fn == "and" else ~left.high
        right = asked(lambda m: self.eval(e.args[1], frame, m, ctx), undecided, _both(mask, sure))
        fn = np.logical_and if e.fn == "and" else np.logical_or
        low, high = fn(left.low, right.low), fn(left.high, right.high)
        if e.fn == "and" and (places := compared_places(e)) is not None:
            # All comparisons of an order see the same keys, however these were rounded: none is ahead of itself.
            k, j = (affine(place, frame, self.env.symbol) for place in places)
            low, high = low & (k != j), high & (k != j)
        return Bounds(low, high, np.zeros(low.shape, np.bool_))

    def read(self, e: Read, frame: Frame, mask: Array | None, ctx: DType) -> Ways:
        """Read an operand, padded where it may fall outside."""
        if e.operand not in self.values:
            raise LookupError(f"{self.op.name} reads {e.operand}, which is absent")
        source = self.values[e.operand]
        shape = source.low.shape
        axes: list[int | Array | Bounds] = []
        inside: Bounds | None = None
        groups: list[Group] | None = None
        for entry in e.indices:
            axis = len(axes)
            if isinstance(entry, GroupRef):
                if groups is None:
                    groups = [d for d in self.op.operand(e.operand).dims if not isinstance(d, Affine)]
                if groups:
                    group = groups.pop(0)
                    rank = len(self.env.groups.get((group.name, group.of), ()))
                else:
                    rank = len(shape) - sum(not isinstance(i, GroupRef) for i in e.indices)
                positions = frame.groups[entry.name]
                positions = positions[len(positions) - rank :]
                for k, position in enumerate(positions):
                    size = shape[axis + k]
                    axes.append(position if size == frame.sizes[position] else frame.constant(np.int64(0)))
                continue
            if isinstance(entry, Affine):
                name = entry.index
                if name is not None and name not in frame.fixed and frame.sizes[frame.index[name]] == shape[axis]:
                    axes.append(frame.index[name])
                    continue
                where = exact(affine(entry, frame, self.env.symbol))
            else:
                where = self.eval(entry, frame, mask, DType.INT64)
            if where.low.size and where.low.min() >= 0 and where.high.max() < shape[axis]:
                axes.append(where)
                continue
            sure, maybe = (where.low >= 0) & (where.high < shape[axis]), (where.high >= 0) & (where.low < shape[axis])
            maybe &= shape[axis] > 0  # of a remainder by 0 nothing is known, and nothing lies in an empty axis
            if e.pad is None and 0 not in frame.sizes and not bool(np.all(maybe | ~_both(mask, frame.constant(True)))):
                raise DomainError(f"an index of {e.operand} is outside axis {axis} of size {shape[axis]}")
            inside = (
                Bounds(sure, maybe, where.nan) if inside is None else Bounds(inside.low & sure, inside.high & maybe, where.nan)
            )
            top = max(shape[axis] - 1, 0)
            low = np.clip(where.low, 0, top)
            axes.append(Bounds(low, low if where.high is where.low else np.clip(where.high, 0, top), where.nan))
        dtype = self.compute(e.type, ctx)
        if 0 in shape:
            found = Ways(self.nothing(frame, dtype))
        else:
            found = Ways(self.convert(gather(source, axes, frame), e.type, dtype))
            if e.operand in self.most:
                most = self.most[e.operand]
                if most is not None and most.ndim:
                    most = gather(Bounds(most, most, source.nan), axes, frame).high
                found = reaching(found.bounds, most, PRECISIONS[dtype])
        if e.pad is None:
            return found
        if inside is None:
            if found.precision is None and isinstance(e.pad, Const):
                return found
            inside = exact(frame.constant(True))
        return either(inside, found, self.operand_ways(e.pad, frame, _both(mask, ~inside.low), dtype))

    def nothing(self, frame: Frame, dtype: DType) -> Bounds:
        """Return the placeholder for a read of an empty operand, which no point that counts can make.

        Where the frame has no points, the result has none: what they would read or reduce is not checked.
        """
        return exact(np.zeros([min(size, 1) for size in frame.sizes], held(dtype)))

    def reduce(self, e: Reduce, frame: Frame, mask: Array | None, ctx: DType) -> Ways:
        """Evaluate the body over the reduction axes too, then reduce them.

        Under a `BroadcastAxis` the frame's group has the operand's own axes and the body's those of the common shape, aligned at
        the right: axes where the sizes agree are the same axis (`kept`), the others are reduced.
        """
        inner, reduced = frame, []
        kept: list[tuple[int, int]] = []
        for axis in e.axes:
            start = inner.rank
            if isinstance(axis, Axis):
                extent = affine(axis.extent, inner, self.env.symbol)
                inner = inner.with_index(axis.index, int(extent.max(initial=0)))
                reduced.append(start)
                continue
            full = self.env.groups.get((axis.name, None), ())
            own: tuple[int, ...] = ()
            same: list[int] = []
            if isinstance(axis, BroadcastAxis):
                own = self.env.groups.get((axis.name, axis.operand), ())
                missing = len(full) - len(own)
                same = [k for k in range(missing, len(full)) if own[k - missing] == full[k]]
                if axis.name not in frame.groups:
                    # The result has no axes of the group to keep, so each value counts once for every axis that is left out.
                    full, same = tuple(1 if k in same else size for k, size in enumerate(full)), []
            inner = inner.with_group(axis.name, full)
            if same:
                kept += [(frame.groups[axis.name][k - missing], start + k) for k in same]
            reduced += [start + k for k in range(len(full)) if start + k not in [p for _, p in kept]]
        inner_mask = None if mask is None else mask.reshape((*mask.shape, *(1,) * (inner.rank - mask.ndim)))
        if inner_mask is not None:
            for position, fresh in kept:
                inner_mask = np.swapaxes(inner_mask, position, fresh)
        left = [p for p in range(inner.rank) if p not in reduced]

        def settle(v: Array) -> Array:
            for position, fresh in kept:
                v = np.swapaxes(v, left.index(fresh), position)
            return v.reshape(v.shape[: frame.rank])

        part = part_of(e, inner, self.env)
        if e.kind in EXTREMES and 0 not in frame.sizes:
            nothing = ~part.any(axis=tuple(reduced), keepdims=True)
            if np.any(nothing if inner_mask is None else nothing & inner_mask):
                raise EmptyReductionError(f"{e.kind} over an empty axis")
        bodies, dtype = self.bodies(e, inner, tuple(reduced), part, inner_mask, ctx)
        body = bodies[0].bounds if len(bodies) == 1 else joined([b.bounds for b in bodies], reduced[0])
        p = PRECISIONS.get(dtype) if body.is_float else None
        found = reduce(e.kind, body, tuple(reduced), dtype, p, self.merged).map(settle)
        if len(bodies) > 1 and takes_off_a_sum(e.body):
            found = Bounds(np.where(found.low == 0, -0.0, found.low), found.high, found.nan)
        if p is not None and e.kind == "sum" and guarded(e.body) is not None and (found.low == 0).any():
            # What a condition leaves out is not added: where all that counts is -0, so may the sum be.
            out = self.left_out(e.body, inner, _both(inner_mask, part), ctx)
            if len(bodies) > 1:
                spanned = np.broadcast_to(out, np.broadcast_shapes(out.shape, bodies[0].bounds.low.shape))
                out = np.concatenate([spanned for _ in bodies], reduced[0])
            minus = ((body.low == 0) & np.signbit(body.low)) | out
            low = np.where((found.low == 0) & settle(np.asarray(minus.all(axis=tuple(reduced)))), -0.0, found.low)
            found = Bounds(low, np.broadcast_to(found.high, low.shape), np.broadcast_to(found.nan, low.shape))
        if p is None or e.kind not in ("sum", "prod"):
            return Ways(
                numbered(e, frame, self.env, [inner.sizes[a] for a in reduced], found) if e.kind.startswith("arg") else found
            )
        return contraction(found, bodies, tuple(reduced), part, settle, p) if e.kind == "sum" else Ways(found, p)

    def left_out(self, e: Expr, frame: Frame, mask: Array | None, ctx: DType) -> Array:
        """Return where conditions may leave a term of a sum out."""
        found = guarded(e)
        if found is None:
            return np.zeros((), np.bool_)
        cond, counts, kept = found
        told = self.eval(cond, frame, mask, ctx)
        out = np.asarray(~told.low if counts else told.high)
        there = _both(mask, told.high if counts else ~told.low)
        return out | self.left_out(kept, frame, there, ctx) if there.any() else out

    def bodies(
        self, e: Reduce, inner: Frame, axes: tuple[int, ...], part: Array, mask: Array | None, ctx: DType
    ) -> tuple[list[Ways], DType]:
        """Return the elements to reduce along `axes` of `inner`, as one or as several reductions, and their dtype.

        Points beyond an extent that varies, which are no `part` of the reduction, change nothing.
        """
        dtype = self.compute(e.body.type if e.kind.startswith("arg") else e.type, ctx)
        varies = not every(part)
        before, self.merged = self.merged, 0
        # The sum of a + b may be the sum of a and that of b: the terms of both in any order.
        parts = addends(e.body) if e.kind == "sum" and axes and dtype.is_floating else [(e.body, False)]
        points = _both(mask, part) if varies else mask
        bodies = []
        for addend, negative in parts:
            ways = self.operand_ways(addend, inner, points, dtype)
            ways = ways.negative() if negative else ways
            body = ways.bounds if e.kind in ("sum", "prod") else ways.settled
            if varies:
                body = choose(exact(part), body, exact(inner.constant(identity(e.kind, dtype))))
            # Along a reduction axis the body does not use, it repeats; and no result is wanted where there are no points.
            shape = [inner.sizes[a] if a in axes or not inner.sizes[a] else s for a, s in enumerate(body.low.shape)]
            bodies.append(ways.of(body.spanning(tuple(shape))))
        self.merged = before
        return bodies, dtype


def _is_two(e: Expr) -> bool:
    return (isinstance(e, Const) and e.value == 2) or (isinstance(e, IndexValue) and e.value.constant == 2)


def _both(mask: Array | None, more: Array) -> Array:
    return more if mask is None else mask & more
