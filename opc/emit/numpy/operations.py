"""Expressions, reductions and reads in generated NumPy code: the operations of `opc.emit.numpy.reference`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from opc.analysis.patterns import Contraction, Entry, ScanPattern, ScatterPattern, conjunction, entries_of, is_uniform
from opc.emit.arrays.boxes import neutral_of
from opc.emit.arrays.frames import (
    ATOM,
    PRODUCT,
    SUM,
    UNARY,
    Frame,
    FrameScope,
    Position,
    PythonText,
    factor_frame,
    missing_entries,
    position,
    size_of,
    strength_of,
)
from opc.emit.arrays.lines import LIMIT
from opc.emit.dtypes import type_variable
from opc.emit.numpy.sizes import NumpySizes
from opc.emit.python.carried import names_in_row
from opc.emit.python.text import quoted
from opc.ir.affine import Affine, GroupSize, Index
from opc.ir.dtypes import DType, ValueType, Weak, accumulated, candidates, is_bool, is_floating, is_integer
from opc.ir.expr import (
    EXTREMES,
    AttrRef,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    Read,
    Reduce,
    Select,
    TypeIs,
)
from opc.ir.functions import FUNCTIONS
from opc.ir.op import Group, Operand
from opc.ir.ordering import Ordering
from opc.ir.precedence import NUMPY
from opc.records import replace

_JOINS = {
    "prod": "np.multiply", "max": "np.maximum", "min": "np.minimum", "any": "np.logical_or", "all": "np.logical_and"
}  # fmt: skip
"""What joins two results of a kind of reduction other than a sum."""


class NumpyOperations(NumpySizes):
    """The part of the NumPy emitter that writes values."""

    REPEAT = "np.broadcast_to"
    SCATTERED = ("sum", *_JOINS)

    # ---- leaves ------------------------------------------------------------------------------------------------------

    def constant(self, e: Const) -> PythonText:
        """As `ArrayEmitter.constant` says."""
        value = e.value
        if not isinstance(e.type, Weak) and is_integer(e.type) and isinstance(value, float):
            return PythonText(f"np.iinfo({self.held(e.type)}).{'max' if value > 0 else 'min'}")
        if isinstance(value, float) and value != value:
            return PythonText("np.nan")
        if value in (float("inf"), float("-inf")):
            return PythonText("np.inf") if value > 0 else PythonText("-np.inf", UNARY)
        return PythonText(repr(value), UNARY if repr(value).startswith("-") else ATOM)

    def attribute(self, e: AttrRef) -> PythonText:
        """As `ArrayEmitter.attribute` says."""
        name = self.attribute_local[e.name]
        return PythonText(name if e.element < 0 else f"{name}[{e.element}]")

    def index(self, name: str, scope: FrameScope) -> PythonText:
        """Return the values of an index variable, along its axis of the frame."""
        text = f"np.arange({self.affine(scope.extents[name]).text})"
        missing = missing_entries(scope.frame, (name,))
        if missing:
            text = self.named_once(self.expand(text, missing))
        return PythonText(text, ATOM, frozenset((name,)))

    def place_of(self, e: GroupIndex, scope: FrameScope) -> PythonText:
        """As `ArrayEmitter.place_of` says."""
        sizes = self.group_in(GroupRef(e.group), scope)
        text = self.named_once(f"np.arange({self.using('math')}.prod({sizes})).reshape({sizes})")
        missing = missing_entries(scope.frame, (GroupRef(e.group),))
        return PythonText(self.expand(text, missing) if missing else text, ATOM, frozenset(self.full(GroupRef(e.group))))

    # ---- operations --------------------------------------------------------------------------------------------------

    def call(self, e: Call, arguments: Sequence[PythonText]) -> PythonText:
        """As `ArrayEmitter.call` says."""
        types = [a.type for a in e.args]
        args = [self.fitted(a, t, types) for a, t in zip(e.args, arguments, strict=True)]
        if all(is_uniform(a) for a in e.args) and e.type is Weak.FLOAT:
            # Python's own numbers raise where NumPy's give inf or nan; but only they take the type of what they meet.
            args = [PythonText(f"np.float64({args[0].text})"), *args[1:]]
            return PythonText(f"float({self.applied(e, args).text})")
        if all(is_uniform(a) for a in e.args) and e.type is Weak.INT and e.fn not in NUMPY.strength:
            return PythonText(f"int({self.applied(e, args).text})")
        return self.applied(e, args)

    def applied(self, e: Call, args: Sequence[PythonText]) -> PythonText:
        """Return a function applied to arguments."""
        fn = FUNCTIONS[e.fn]
        if e.fn == "div" and not args[0].support and not is_uniform(e):
            # An absent operand, for one, is a Python number, and dividing that by 0 would raise.
            return PythonText(f"np.divide({args[0].text}, {args[1].text})")
        if e.fn in ("and", "or", "not") and all(is_uniform(a) for a in e.args):
            # Python's own bools: ~True would be -2.
            return self.static_text(e)
        if e.fn == "pow" and isinstance(e.args[1], Const) and isinstance(e.args[1].value, int) and e.args[1].value >= 0:
            base = args[0].at(ATOM)
            return PythonText(f"{base}{'**' if base.isidentifier() else ' ** '}{args[1].text}", UNARY)
        if e.fn == "pow" and is_integer(e.type):
            return PythonText(f"{self.using('integer_power')}({args[0].text}, {args[1].text})")
        if e.fn not in NUMPY.strength:
            self.uses |= names_in_row(fn.numpy)
            return PythonText(fn.numpy.format(*(a.text for a in args)), strength_of(fn.numpy))
        own = NUMPY.strength[e.fn]
        sides = (own,) if fn.arity == 1 else NUMPY.sides(e.fn)
        self.uses |= names_in_row(fn.numpy)
        return PythonText(fn.numpy.format(*(a.at(side) for a, side in zip(args, sides, strict=True))), own)

    def fitted(self, e: Expr, value: PythonText, types: Sequence[ValueType]) -> PythonText:
        """Return an argument, an array of weak type, or a literal that would not fit, brought to the dtype it meets."""
        strong = next((t for t in types if not isinstance(t, Weak)), None)
        if strong is None or isinstance(strong, Weak) or not isinstance(e.type, Weak) or is_bool(strong):
            return value
        if is_floating(strong):
            if not value.support and is_uniform(e):
                return value  # a number of Python's own takes the type of what it meets
            array = value.at(ATOM) if value.support else f"np.asarray({value.text})"
            return PythonText(f"{array}.astype({self.compute(strong)})", ATOM, value.support)
        if isinstance(e, Const) and all(d.holds(int(e.value)) for d in candidates(strong) if d.is_integer):
            return value
        return PythonText(f"np.asarray({value.text}).astype({self.dtype(strong)})", ATOM, value.support)

    def side(self, side: Expr, e: Select, scope: FrameScope) -> PythonText:
        """As `ArrayEmitter.side` says."""
        if isinstance(side, Const) and not isinstance(side.value, bool) and is_floating(e.type):
            # As an integer of Python's own it would lose the sign of a zero.
            number = self.constant(replace(side, value=float(side.value)))
            typed = self.is_static(e.cond) and not isinstance(e.type, Weak)
            return PythonText(f"np.asarray({number.text}, {self.compute(e.type)})") if typed else number
        value = self.expr(side, scope)
        if is_bool(e.type) and is_uniform(side) and self.is_static(e.cond) and not is_uniform(e):
            return PythonText(f"np.asarray({value.text})")  # ~True of Python's own is -2
        return self.fitted(side, value, (e.type,)) if is_floating(e.type) else value

    def where(self, condition: PythonText, then: PythonText, other: PythonText, e: Select) -> PythonText:
        """As `ArrayEmitter.where` says."""
        return PythonText(f"np.where({condition.text}, {then.text}, {other.text})")

    def cast(self, e: Cast, argument: PythonText) -> PythonText:
        """As `ArrayEmitter.cast` says."""
        if isinstance(e.type, Weak) or is_floating(e.type):
            return PythonText(f"{self.using('convert')}({argument.text}, {self.compute(e.type)})")
        return PythonText(f"{self.using('convert')}({argument.text}, {self.held(e.type)})")

    def transpose(self, text: str, order: tuple[int, ...]) -> str:
        """As `ArrayEmitter.transpose` says."""
        return f"{text}.T" if order == (1, 0) else f"np.transpose({text}, {order})"

    def expand(self, text: str, positions: Sequence[tuple[Position, str | None]]) -> str:
        """As `ArrayEmitter.expand` says."""
        if all(group is None and p.end for p, group in positions):
            inserted = {p.fixed for p, _ in positions}
            last = max(inserted)
            # Only new axes at the end: the usual subscript reads best.
            if inserted == set(range(1, last + 1)):
                return f"{text}[..., {', '.join(['None'] * last)}]"
        return f"np.expand_dims({text}, {self.axes(positions)})"

    def axes(self, positions: Sequence[tuple[Position, str | None]]) -> str:
        """Return the text of one axis number or of a tuple of them."""
        parts = [self.position(p) if g is None else f"*{self.group_range(p, g)}" for p, g in positions]
        if len(parts) == 1:
            return parts[0] if positions[0][1] is None else f"tuple({parts[0][1:]})"
        return f"({', '.join(parts)})"

    def group_range(self, p: Position, group: str) -> str:
        """Return the axes of a group that starts at a place."""
        start, rank = self.position(p), f"len({self.group(group)})"
        return f"range({rank})" if start == "0" else f"range({start}, {start} + {rank})"

    def reduce(
        self, e: Reduce, body: PythonText, axes: Sequence[tuple[Position, str | None]], scope: FrameScope, lazy: bool
    ) -> str:
        """As `ReducingEmitter.reduce` says."""
        everything = len(axes) == len(scope.frame)
        if e.kind in EXTREMES:
            where = "None" if everything else self.axes(axes)
            what = "" if lazy else f', "{self.what(e)}"'
            body = PythonText(f"{self.using('some')}({body.text}, {where}{what})", ATOM, body.support)
        if e.kind in ("argmax", "argmin"):
            if len(axes) == 1 and axes[0][1] is None:
                return f"np.{e.kind}({body.text}, axis={self.axes(axes)})"
            if everything:
                return f"np.{e.kind}({body.text})"
            ranks = [f"len({self.group(g)})" for _, g in axes if g is not None]
            count = " + ".join([*ranks, *([str(len(axes) - len(ranks))] if len(axes) > len(ranks) else [])])
            return f"np.{e.kind}({self.using('flatten')}({self.named(body).text}, {count}), axis=-1)"
        arguments = [body.text] + ([] if everything else [f"axis={self.axes(axes)}"])
        if e.kind in ("sum", "prod") and not is_floating(e.body.type):
            kind = DType.INT64 if isinstance(e.body.type, Weak) else accumulated(e.body.type)
            exact = isinstance(kind, DType)
            arguments.append(
                f"dtype={self.dtype(kind)}" if exact else f"dtype={self.using('accumulator')}({body.at(ATOM)}.dtype)"
            )
        return f"np.{e.kind}({', '.join(arguments)})"

    def check_not_empty(self, e: Reduce, extent: Affine, scope: FrameScope) -> None:
        """As `ReducingEmitter.check_not_empty` says."""
        full = replace(scope, frame=scope.around)
        count = self.affine(extent, {i: self.index(i, full) for i in sorted(extent.indices())})
        seen = extent.indices().union(*map(entries_of, scope.guards))
        arguments = f'{count.text}, "{self.what(e)}"{self.points(seen, scope)}{self.asked(full)}'
        self.line(f"{self.using('not_empty')}({arguments})")

    def points(self, seen: Collection[Entry], scope: FrameScope) -> str:
        """Return the argument that is 0 where sizes not `seen` make the frame empty; no text where there are none."""
        rest = [i for i in scope.around if i not in seen and self.may_be_empty(i, scope)]
        sizes = [Affine.of(GroupSize(i.name)) if isinstance(i, GroupRef) else scope.extents[i] for i in rest]
        covered = self.users and all(size in map(size_of, o.dims) for size in sizes for o in self.users)
        points = [self.affine(prod(sizes, start=Affine.of(1))).text] if sizes and not covered else []
        wanted = [self.elements(o) for o in self.users]
        while len(wanted) > 1:
            together = " + ".join(wanted[:2])
            wanted[:2] = [self.named_once(together) if len(together) > LIMIT // 2 else together]
        points += wanted
        total = points[0] if len(points) == 1 else f"{self.using('least')}({', '.join(points)})"
        return f", points={total}" if points else ""

    def elements(self, o: Operand) -> str:
        """Return how many elements are wanted of an output, or a number that is 0 where there are none."""
        count = self.affine(prod(map(size_of, o.dims), start=Affine.of(1)))
        return f"{count.at(PRODUCT)} * ({quoted(o.name)} in wanted)" if o.optional else count.text

    def check_some(self, e: Reduce, extent: Affine, scope: FrameScope) -> None:
        """As `ReducingEmitter.check_some` says."""
        self.check_not_empty(e, extent, scope)

    def what(self, e: Reduce) -> str:
        """Return what the refusal of a reduction is about."""
        return f"{self.op.name}: {e.kind} over {e.over}"

    def sum_to(self, body: PythonText, own: Group, scope: FrameScope) -> str:
        """As `ReducingEmitter.sum_to` says."""
        sizes = [own if isinstance(d, Group) and d.name == own.name else d for d in scope.dims(scope.frame)]
        return f"{self.using('sum_to')}({body.text}, {self.shape(sizes)})"

    def of_type(self, value: PythonText, target: Operand) -> PythonText:
        """As `ArrayEmitter.of_type` says, where it has no type of its own."""
        if not isinstance(self.op.assignments[target.name].value.type, Weak):
            return value
        dtype = self.compute(target.type) if is_floating(target.type) else self.dtype(target.type)
        return PythonText(f"np.asarray({value.text}, {dtype})", ATOM, value.support)

    def gather(self, e: Read, scope: FrameScope) -> PythonText:
        """As `ArrayEmitter.gather` says."""
        indices = [self.own_position(e, axis, scope) or self.position_of(i, scope) for axis, i in enumerate(e.indices)]
        indices = [self.named(i) if len(i.text) > LIMIT // 2 and not i.text.startswith("*") else i for i in indices]
        operand = self.operands[e.operand]
        for axis in e.checked:
            dim, index = operand.dims[axis], e.indices[axis]
            if isinstance(dim, Affine) and not isinstance(index, Affine | GroupRef):
                what = quoted(f"{self.op.name}: an index of {e.operand}")
                when = f"{self.points(entries_of(index), scope)}{self.asked(scope)}"
                self.line(f"{self.using('inside')}({indices[axis].text}, {self.affine(dim).text}, {what}{when})")
        support = frozenset[str]().union(*(i.support for i in indices))
        arguments = [self.local[e.operand], self.tuple_of(indices)]
        if e.pad is not None:
            pad = self.expr(e.pad, scope)
            support |= pad.support
            arguments.append(f"pad={pad.text}")
        return PythonText(f"{self.using('take')}({', '.join(arguments)})", ATOM, support)

    def own_position(self, e: Read, axis: int, scope: FrameScope) -> PythonText | None:
        """Return the positions along a group that an operand of a broadcast op has for its own; None where it is another's.

        What is read so has the operand's own axes, and broadcasts as the operand does.
        """
        group, dim = e.indices[axis], self.operands[e.operand].dims[axis]
        if not isinstance(group, GroupRef) or not isinstance(dim, Group) or dim.of is None:
            return None
        after = len(e.indices) - axis - 1
        sizes = f"{self.local[e.operand]}.shape[{axis or ''}:{-after or ''}]"
        return PythonText(f"*{self.grid(group, scope.frame, sizes)}", ATOM, frozenset((f"{group}@{dim.of}",)))

    def grid(self, group: GroupRef, frame: Frame, sizes: str) -> str:
        """Return the indices along each axis of a group of these sizes, which broadcast to the frame."""
        behind = frame[frame.index(group) + 1 :]
        rest = [f"len({self.group(g.name)})" for g in behind if isinstance(g, GroupRef)]
        fixed = len(behind) - len(rest)
        trailing = " + ".join([*rest, *([str(fixed)] if fixed or not rest else [])])
        return f"{self.using('grid')}({sizes}, {trailing})"

    def tuple_of(self, items: Sequence[PythonText]) -> str:
        """Return a tuple, by name where it is long."""
        text = f"({', '.join(i.text for i in items)}{',' if len(items) == 1 else ''})"
        return self.named(PythonText(text)).text if len(text) > 3 * LIMIT // 4 else text

    def position_of(self, i: Affine | GroupRef | Expr, scope: FrameScope) -> PythonText:
        """Return the positions along one axis of an operand over a frame, or along each of a group, with a star."""
        if isinstance(i, GroupRef):
            return PythonText(f"*{self.grid(i, scope.frame, self.group_in(i, scope))}", ATOM, frozenset(self.full(i)))
        if isinstance(i, Affine):
            value = self.affine(i, {n: self.index(n, scope) for n in sorted(i.indices())})
            return value if i.indices() else replace(value, support=frozenset())
        return self.expr(i, scope)

    def asked(self, scope: FrameScope) -> str:
        """Return the argument that says at which points of a scope something is evaluated; no text where it always is."""
        guards = [g for g in scope.guards if not self.is_static(g)]
        if not guards or not all(entries_of(g) <= set(scope.frame) for g in guards):
            return ""
        return f", where={self.known_once(conjunction(guards), replace(scope, guards=()))}"

    def known_once(self, condition: Expr, scope: FrameScope) -> str:
        """Return a condition over a frame, written where it is not known yet: what it reads may be evaluated under other
        conditions."""
        sizes = tuple(scope.extents[i] for i in scope.frame if not isinstance(i, GroupRef))
        key = (condition, scope.frame, sizes, scope.own, tuple(o.name for o in self.users))
        for block in self.blocks:
            if key in block:
                return block[key]
        value = self.expr(condition, scope)
        self.blocks[-1][key] = self.named(value).text if len(value.text) > LIMIT // 2 else value.text
        return self.blocks[-1][key]

    # ---- patterns ----------------------------------------------------------------------------------------------------

    def contract(self, c: Contraction, e: Reduce, scope: FrameScope) -> PythonText | None:
        """As `ReducingEmitter.contract` says."""
        outer = c.outer(scope.frame)
        order = (*outer, *c.axes)
        inner = self.within(e, order, scope)
        names = {i: str(i) for i in order}
        values, conditions, terms = list[str](), list[str](), list[str]()
        for f in c.factors:
            own = replace(inner, frame=factor_frame(f, order))
            terms.append(" ".join(names[i] for i in own.frame))
            held = self.named(self.expr(conjunction(f.conditions), own)).text if f.conditions else "None"
            conditions.append(held)
            under = replace(own, guards=(*own.guards, *f.conditions))
            values.append(self.named(self.filled(self.fitted_to(f.value, e, under), own)).text)
        equation = quoted(f"{', '.join(terms)} -> {' '.join(names[i] for i in outer)}".rstrip())
        arguments = [equation, f"[{', '.join(values)}]"]
        groups = [i for i in order if isinstance(i, GroupRef)]
        if len(groups) > 1:
            arguments.append(f"{{{', '.join(f'{quoted(names[g])}: len({self.group_in(g, scope)})' for g in groups)}}}")
        if c.is_conditional:
            arguments.append(f"where=[{', '.join(conditions)}]")
        return PythonText(f"{self.using('contract')}({', '.join(arguments)})", ATOM, self.full_support(outer))

    def reshape(self, value: PythonText, frame: Frame, scope: FrameScope) -> PythonText:
        """As `ReducingEmitter.reshape` says."""
        shape = self.shape(scope.dims(frame))
        return PythonText(f"{value.at(ATOM)}.reshape({shape})", ATOM, self.full_support(frame))

    def computes_floating(self, t: ValueType) -> str:
        """As `ReducingEmitter.computes_floating` says."""
        variable = type_variable(t) if not isinstance(t, Weak) else None
        source = next(o for o in sorted(self.op.inputs, key=lambda o: o.optional) if type_variable(o.type) == variable)
        return f'{self.local[source.name]}.dtype.kind not in "iub"'

    def fitted_to(self, factor: Expr, e: Reduce, scope: FrameScope) -> PythonText:
        """Return a factor in the type of its sum."""
        value = self.expr(factor, scope)
        if isinstance(factor.type, Weak) and not isinstance(e.type, Weak):
            return PythonText(f"np.asarray({value.text}).astype({self.compute(e.type)})", ATOM, value.support)
        return value

    def cumulate(self, s: ScanPattern, body: PythonText, axis: Position, scope: FrameScope) -> str:
        """As `ReducingEmitter.cumulate` says."""
        at = self.axes([(axis, None)])
        function = {"sum": "np.add", "prod": "np.multiply", "max": "np.maximum", "min": "np.minimum"}[s.kind]
        if s.kind in ("sum", "prod") and not is_floating(s.body.type):
            body = self.accumulated(body, s.body.type)
        if s.kind == "sum":
            body = PythonText(f"{body.at(SUM)} + 0", SUM, body.support)  # A sum starts at 0, so -0 alone gives 0.
        if not s.reverse:
            return f"{function}.accumulate({body.text}, axis={at})"
        return f"np.flip({function}.accumulate(np.flip({body.text}, axis={at}), axis={at}), axis={at})"

    def order(self, found: Ordering, body: PythonText, frame: Frame, scope: FrameScope) -> str:
        """As `ReducingEmitter.order` says."""
        descending = found.descending
        how = repr(descending) if isinstance(descending, bool) else self.static_text(descending).text
        at = self.axes([(position(frame, frame.index(found.along)), None)])
        return f"{self.using('argsort')}({body.text}, {at}, {how})"

    def accumulated(self, value: PythonText, t: ValueType) -> PythonText:
        """Return a value in the type that sums of its own are held in."""
        kind = DType.INT64 if isinstance(t, Weak) else accumulated(t)
        if isinstance(kind, DType) and not kind.is_floating:
            return PythonText(f"{value.at(ATOM)}.astype({self.dtype(kind)})", ATOM, value.support)
        name = self.named(value).text
        return PythonText(f"{name}.astype({self.using('accumulator')}({name}.dtype))", ATOM, value.support)

    def scatter(self, s: ScatterPattern, e: Reduce, frame: Frame, scope: FrameScope) -> PythonText | None:
        """As `ReducingEmitter.scatter` says."""
        inner = self.within(e, (*(i for i in frame if i not in s.indices), *s.axes), scope)
        nothing = neutral_of(e.kind, s.value.type)
        conditions = Select(conjunction(s.conditions), s.value, nothing, s.value.type) if s.conditions else s.value
        values = self.filled(self.fitted_to(conditions, e, inner), inner)
        summed = e.kind in ("sum", "prod") and not is_floating(s.value.type)
        value = (self.accumulated(values, s.value.type) if summed else values).text
        positions = dict(zip(s.indices, s.positions, strict=True))
        places = []
        for i in frame:
            if isinstance(i, str) and i in positions:
                places.append(self.named(self.position_of(positions[i], inner)))
            else:
                places.append(self.position_of(i if isinstance(i, GroupRef) else Affine.of(Index(i)), inner))
        shape = self.shape(scope.dims(frame))
        how = "" if e.kind == "sum" else f", {_JOINS[e.kind]}, {self.constant(nothing).text}"
        scattered = f"{self.using('scatter')}({shape}, {self.tuple_of(places)}, {value}{how})"
        return PythonText(scattered, ATOM, self.full_support(frame))

    # ---- conditions Python decides -----------------------------------------------------------------------------------

    def is_static(self, condition: Expr) -> bool:
        """As `ArrayEmitter.is_static` says."""
        return is_uniform(condition)

    def type_is(self, e: TypeIs) -> str:
        """As `ArrayEmitter.type_is` says."""
        bound = next(self.dtype(t) for t in self.op.types if t.name == e.variable)
        if len(e.dtypes) == 1:
            return f"{bound} == {self.dtype(e.dtypes[0])}"
        among = f"[{', '.join(map(self.dtype, e.dtypes))}]"
        # A condition stands on one line.
        return f"{bound} in {among if len(among) < 40 else self.once(e, 'dtypes', among)}"

    def truth(self, e: Expr) -> PythonText:
        """As `ArrayEmitter.truth` says."""
        return self.static_text(e)
