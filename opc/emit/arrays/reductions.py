"""Reductions as array programs: by what they are recognised as, else over a box with the reduced axes put in.

`sum[k](a(i, k) * b(k, j))` would need an array over i, k and j at once; as a contraction it needs none. A cumulative sum
would need one over i and k, and a scatter one over the places and what is added to them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import ClassVar

from opc.analysis.needs import outputs_that_need
from opc.analysis.patterns import (
    Contraction,
    Entry,
    ScanPattern,
    ScatterPattern,
    conjunction,
    contraction,
    entries_of,
    guarded,
    own_entries,
    scan,
    scatter,
)
from opc.analysis.windows import Split, divisor, split_reduction, split_value
from opc.emit.arrays.boxes import Boxes, extents_of, part_of_sum
from opc.emit.arrays.emitter import ArrayEmitter
from opc.emit.arrays.frames import (
    ATOM,
    Frame,
    FrameScope,
    Position,
    PythonText,
    bare_entries,
    merge,
    missing_entries,
    position,
    size_of,
)
from opc.emit.arrays.lines import LIMIT
from opc.ir.affine import Affine, GroupSize, Index
from opc.ir.dtypes import DType, ValueType, Weak, is_bool, is_floating, is_integer
from opc.ir.expr import (
    EXTREMES,
    Axis,
    BroadcastAxis,
    Call,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    children,
    conjuncts,
    reads,
)
from opc.ir.identity import IDENTITY
from opc.ir.op import Assign, DimSpec, Group, Op, Operand
from opc.ir.ordering import Ordering, ordering_of
from opc.records import replace


class ReducingEmitter(ArrayEmitter):
    """Adds reductions to an `ArrayEmitter`; a dialect says the patterns it has a way to say."""

    SCATTERED: ClassVar[tuple[str, ...]] = ("sum",)
    """The kinds of reductions that the dialect scatters; of others, runtimes differ in what a NaN and a number make."""

    splits_sums = False
    """Whether a sum of two contractions is said as two sums. An overflow in one then shows where the other would undo it."""

    def __init__(self, op: Op, reserved: Sequence[str]) -> None:
        super().__init__(op, reserved)
        self.boxes = Boxes(op)
        self.users: list[Operand] = []
        """The outputs of which one must have elements for the current statement to be evaluated; none where it is an output
        itself."""

    def statement(self, s: Assign) -> PythonText:
        """As `ArrayEmitter.statement` says."""
        self.users = self.users_of(s)
        return super().statement(s)

    @cached_property
    def needs(self) -> dict[str, set[str]]:
        """The outputs that need what each statement computes."""
        found = outputs_that_need(self.segmented.op)
        steps = [s.steps.parts for s in self.segmented.segments if s.steps is not None]
        return found | {part: found[whole] for parts in steps for part, whole in parts}

    def users_of(self, s: Assign) -> list[Operand]:
        """Return the outputs that need a temporary, unless one that is always wanted has elements wherever the temporary has."""
        if not any(t.name == s.target for t in self.op.temporaries):
            return []
        users = [o for o in self.op.outputs if o.name in self.needs[s.target]]
        scope = self.scope_of(s)
        own = set(self.operands[s.target].dims)
        always = [o for o in users if not o.optional]
        some = [all(d in own or not self.is_maybe_nothing(d, scope) for d in o.dims) for o in always]
        return [] if any(some) else users

    def is_maybe_nothing(self, dim: DimSpec, scope: FrameScope) -> bool:
        """Whether a dimension is not proved to be positive where a scope has points."""
        return not self.boxes.is_never_empty(size_of(dim), scope.extents)

    # ---- the dialect -------------------------------------------------------------------------------------------------

    @abstractmethod
    def order(self, found: Ordering, body: PythonText, frame: Frame, scope: FrameScope) -> str:
        """Return the positions of the elements of an array in their order, along the axis of its frame that is ordered."""

    @abstractmethod
    def reduce(
        self, e: Reduce, body: PythonText, axes: Sequence[tuple[Position, str | None]], scope: FrameScope, lazy: bool
    ) -> str:
        """A reduction over axes or whole groups of a box; if `lazy`, an empty reduction has any value, since it is not used."""

    @abstractmethod
    def sum_to(self, body: PythonText, own: Group, scope: FrameScope) -> str:
        """The sum over the axes along which an operand was broadcast, of the shape that the operand's own group has."""

    @abstractmethod
    def check_not_empty(self, e: Reduce, extent: Affine, scope: FrameScope) -> None:
        """Refuse a call where a reduction that has no value for nothing runs over nothing at some point of the scope."""

    def check_some(self, e: Reduce, extent: Affine, scope: FrameScope) -> None:
        """The same of an extent that is one size, where the reduction is evaluated at some points only, as far as known."""

    def pattern(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A reduction that has a name of its own in the dialect, over the scope's frame; None for one that has not."""
        return None

    @abstractmethod
    def computes_floating(self, t: ValueType) -> str:
        """A condition for a plain `if`: whether a type variable is bound to a floating type."""

    @abstractmethod
    def reshape(self, value: PythonText, frame: Frame, scope: FrameScope) -> PythonText:
        """The elements of an array in the shape of a frame."""

    def contract(self, c: Contraction, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A contraction over the frame `c.outer(scope.frame)`; None where the dialect has no way to say it."""
        return None

    def cumulate(self, s: ScanPattern, body: PythonText, axis: Position, scope: FrameScope) -> str | None:
        """The array of the running reductions along an axis: each element the reduction up to itself; None as above."""
        return None

    def scatter(self, s: ScatterPattern, e: Reduce, frame: Frame, scope: FrameScope) -> PythonText | None:
        """The scatter over `frame`; None as above."""
        return None

    # ---- reductions --------------------------------------------------------------------------------------------------

    def reduction(self, e: Reduce, scope: FrameScope) -> PythonText:
        """A reduction: by its pattern where it has one, else over a box."""
        spread = self.spread(e)
        if spread is not None:
            return self.expr(spread, scope)
        forms = (self.ordered, self.pattern, self.scanned, self.scattered, self.contracted)
        named = next((found for form in forms if (found := form(e, scope)) is not None), None)
        return named or self.boxed(e, scope)

    def spread(self, e: Reduce) -> Expr | None:
        """Return a sum in parts: what Python decides outside of it, and each contraction among its terms alone."""
        if e.kind != "sum":
            return None
        back = tuple(a for a in e.axes if isinstance(a, BroadcastAxis))
        if back:
            inner = replace(e, axes=tuple(a for a in e.axes if a not in back))
            return replace(e, axes=back, body=inner) if inner.axes and self.is_worth(inner) else None
        match e.body:
            case Select(cond=cond) as body if self.is_static(cond):
                if not any(self.is_worth(replace(e, body=side)) for side in (body.then, body.other)):
                    return None
                then, other = (part_of_sum(e, side) for side in (body.then, body.other))
                return replace(body, then=then, other=other, type=e.type)
            case Select() as body if any(self.is_static(c) for c in guarded(body)[0]):
                return self.spread(replace(e, body=self.decided_first(body)))
            case Select(cond=cond) as body if any(self.is_static(c) for c in conjuncts(cond)):
                return self.spread(replace(e, body=self.static_first(body)))
            case Call(fn="add" | "sub", args=(left, right)) as body if self.splits_sums and is_floating(e.type):
                if any(self.is_worth(replace(e, body=side)) for side in (left, right)):
                    return replace(body, args=(part_of_sum(e, left), part_of_sum(e, right)), type=e.type)
                return None
            case _:
                return None

    def decided_first(self, body: Select) -> Select:
        """Return a term with what Python decides around it, wherever it stands: it may imply that an operand is present."""
        conditions, value = guarded(body)
        outer = [c for c in conditions if self.is_static(c)]
        zero = Const(0, body.type)
        if rest := [c for c in conditions if not self.is_static(c)]:
            value = Select(conjunction(rest), value, zero, body.type)
        return Select(conjunction(outer), value, zero, body.type)

    def is_worth(self, e: Reduce) -> bool:
        """Whether a sum is a contraction, or has one among its parts."""
        return contraction(e) is not None or self.spread(e) is not None

    def outer(self, e: Expr, scope: FrameScope) -> Frame:
        """Return what of a scope's frame a reduction runs over."""
        used = entries_of(e)
        if any(r.checked for r in reads(e)):
            # A read is refused only where it is evaluated.
            used = used.union(*map(entries_of, scope.guards))
        own = own_entries(e) if isinstance(e, Reduce) else ()
        return tuple(i for i in scope.frame if i in used and i not in own)

    def within(self, e: Reduce, frame: Frame, scope: FrameScope) -> FrameScope:
        """Return the scope of a reduction's body."""
        extents = {**scope.extents, **e.extents}
        across = {a.name for a in e.axes if isinstance(a, BroadcastAxis)}
        own = frozenset(g for g in scope.own if g.name not in across)
        entries = own_entries(e)
        return FrameScope(frame, extents, scope.guards, (*scope.around, *entries), scope.reduced.union(entries), own)

    def put_back(self, value: PythonText, frame: Frame, scope: FrameScope) -> PythonText:
        """Return a value over some entries of a scope's frame as one that broadcasts to it."""
        missing = missing_entries(scope.frame, frame)
        return replace(value, text=self.expand(value.at(ATOM), missing), strength=ATOM) if missing else value

    def is_whole(self, extent: Affine, dim: DimSpec) -> bool:
        """As `ArrayEmitter.is_whole` says, with what is known of sizes."""
        return not (isinstance(dim, Affine) and self.boxes.differs(extent, dim))

    def boxed(self, e: Reduce, scope: FrameScope) -> PythonText:
        """A reduction over a box: the body over a frame with the reduced axes put in, then reduced over these."""
        lazy = e.kind in EXTREMES and self.is_lazy(e, scope)
        given, e = e, self.boxes.boxed(e, scope.extents)
        own = own_entries(e)
        outer = self.outer(e, scope)
        frame = self.body_frame(e, outer, own)
        inner = self.within(e, frame, scope)
        body = self.filled(self.reduced(e, inner), inner)
        support = body.support - frozenset().union(*(self.full(entry) for entry in own))
        if own:
            positions = [(position(frame, frame.index(i)), i.name if isinstance(i, GroupRef) else None) for i in own]
            body = self.composed(
                [body], lambda parts: PythonText(self.reduce(e, parts[0], positions, inner, lazy), ATOM, support)
            )
            body = self.numbered(given, e, body, replace(scope, frame=outer))
        for axis in e.axes:
            if isinstance(axis, BroadcastAxis):
                rest = support - self.full(GroupRef(axis.name))
                body = self.named(body) if len(body.text) > LIMIT // 2 else body
                text = self.sum_to(body, Group(axis.name, axis.operand), replace(inner, frame=outer))
                body = PythonText(text, ATOM, rest | {f"{GroupRef(axis.name)}@{axis.operand}"})
        return self.put_back(body, outer, scope)

    def numbered(self, e: Reduce, boxed: Reduce, found: PythonText, scope: FrameScope) -> PythonText:
        """Return positions in a box as positions in what the ranges at each point span, in row-major order."""
        if not e.kind.startswith("arg") or all(a == b for a, b in zip(e.axes[1:], boxed.axes[1:], strict=True)):
            return found
        place = Affine.of(Index("#place"))
        total, weight, scale = Affine.of(0), Affine.of(1), Affine.of(1)
        for axis, whole in zip(reversed(e.axes), reversed(boxed.axes), strict=True):
            size, span = (a.size for a in (whole, axis))
            total += place // weight % size * scale
            weight, scale = weight * size, scale * span
        index = {i: self.index(i, scope) for i in sorted(total.indices() - {"#place"})}
        return self.affine(total, {**index, "#place": self.named(found)})

    def is_lazy(self, e: Reduce, scope: FrameScope) -> bool:
        """Whether a maximum or minimum may be empty where it is not used, so that it must not be refused there.

        What is to be refused then is checked ahead.
        """
        empty = self.maybe_empty(e, scope, scope.extents)
        others = set(scope.around) - set(self.outer(e, scope))
        partly = self.is_guarded(scope) or bool(self.users) or any(self.may_be_empty(i, scope) for i in others)
        for extent in empty:
            if extent.indices():
                self.check_not_empty(e, extent, scope)
            elif partly and not (self.users and all(extent in o.dims for o in self.users)):
                self.check_some(e, extent, scope)
        return partly or any(x.indices() for x in empty)

    def maybe_empty(self, e: Reduce, scope: FrameScope, ranges: Mapping[str, Affine]) -> list[Affine]:
        """Return the extents of a reduction that are not proved positive at all points where it is evaluated."""
        return [x for x in extents_of(e) if not self.boxes.is_never_empty(x, ranges, scope.guards)]

    def may_refuse(self, e: Expr, ranges: Mapping[str, Affine]) -> bool:
        """Whether a call may be refused for a value at points of these ranges, of which a condition may leave some out."""
        if isinstance(e, Read) and e.checked:
            return True
        if isinstance(e, Reduce):
            if e.kind in EXTREMES and not all(self.boxes.is_never_empty(x, ranges) for x in extents_of(e)):
                return True
            ranges = {**ranges, **e.extents}
        return any(self.may_refuse(part, ranges) for part in children(e))

    def may_be_empty(self, entry: Entry, scope: FrameScope) -> bool:
        """Whether an entry of the points around an expression is one size that is not proved to be positive."""
        extent = Affine.of(GroupSize(entry.name)) if isinstance(entry, GroupRef) else scope.extents[entry]
        return not extent.indices() and not self.boxes.is_never_empty(extent, {})

    def filled(self, value: PythonText, scope: FrameScope) -> PythonText:
        """Return a value with its full size along every axis of the frame."""
        if self.is_full(value, [self.full_in(entry, scope) for entry in scope.frame]):
            return value
        return self.composed([value], lambda parts: self.broadcast(parts[0], scope))

    def body_frame(self, e: Reduce, frame: Frame, own: Sequence[Entry]) -> Frame:
        """Return the frame of a reduction's body: its own axes put where the operands it reads have them.

        Several axes of an argmax, and groups, stay together at the end, in order, where they can be flattened.
        """
        if e.kind.startswith("arg") and (len(own) > 1 or any(isinstance(i, GroupRef) for i in own)):
            return (*frame, *own)
        for read in reads(e.body):
            entries = bare_entries(read)
            if entries is None or not set(own) <= set(entries):
                continue
            entries = tuple(dict.fromkeys(entries))
            kept = [i for i in entries if i in frame]
            if kept != [i for i in frame if i in kept]:
                continue
            return merge(frame, entries, own)
        return (*frame, *own)

    # ---- patterns ----------------------------------------------------------------------------------------------------

    def split(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A sum with an index that counts groups: over the groups and what is in each, which are then one axis again."""
        extents = {**scope.extents, **e.extents}
        for index in sorted(i for i in entries_of(e.body) if isinstance(i, str)):
            size = divisor(e.body, index)
            count = None if size is None or extents[index].indices() else self.boxes.groups_of(extents[index], size)
            if size is None or count is None:
                continue
            split = Split(index, f"{index}'g", f"{index}'r", count, size)
            parts: list[Entry] = [split.group, split.member]
            changed = split_reduction(e, split)
            if contraction(changed) is None:
                continue
            extents |= {split.group: count, split.member: size}
            if index not in scope.frame:
                return self.reduction(changed, replace(scope, extents=extents))
            outer = self.outer(e, scope)
            frame = tuple(j for i in outer for j in (parts if i == index else [i]))
            points = tuple(j for i in scope.around for j in (parts if i == index else [i]))
            guards = tuple(split_value(g, split) for g in scope.guards)
            inner = replace(scope, frame=frame, extents=extents, guards=guards, points=points)
            value = self.filled(self.reduction(changed, inner), inner)
            return self.put_back(self.reshape(value, outer, scope), outer, scope)
        return None

    def contracted(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A contraction, where it is one."""
        c = contraction(e)
        if c is not None and not is_integer(e.type):
            split = self.split(e, scope)
            if split is not None:
                return split
        if c is None or is_integer(e.type) or is_bool(e.body.type) or any(r.checked for r in reads(e.body)):
            return None
        outer = c.outer(scope.frame)
        if is_floating(e.type):
            value = self.contract(c, e, scope)
            return None if value is None else self.put_back(value, outer, scope)
        # A type variable that may be an integer: its products wrap around before they are summed in a wider type.
        products = self.capture(lambda: self.contract(c, e, scope) or PythonText(""))
        if not products[1].text:
            return None
        general = self.capture(lambda: self.boxed(e, replace(scope, frame=outer)))
        return self.put_back(self.either(self.computes_floating(e.body.type), products, general), outer, scope)

    def scattered(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A scatter, where it is one and runs over no condition of its own."""
        s = scatter(e, scope.frame, scope.extents) if e.kind in self.SCATTERED else None
        if s is None or self.may_refuse(e.body, {**scope.extents, **e.extents}):
            return None
        if e.kind != "sum" and any(self.is_static(c) for c in s.conditions):
            return None
        if e.kind in EXTREMES and not self.is_lazy(e, scope):
            for extent in self.maybe_empty(e, scope, scope.extents):
                self.check_some(e, extent, scope)
        if isinstance(e.body, Select) and any(self.is_static(c) for c in s.conditions):
            # The places may be read of an operand that is present only there.
            term = self.decided_first(e.body)
            return self.expr(Select(term.cond, replace(e, body=term.then), Const(0, e.type), e.type), scope)
        outer = self.outer(e, scope)
        value = self.scatter(s, e, outer, scope)
        return None if value is None else self.put_back(value, outer, scope)

    def scanned(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A cumulative reduction: all of its values at once, and then a read of the one that is meant."""
        s = scan(e, scope.extents, lambda extent, size: self.boxes.scan_size(extent, size, scope.extents))
        if s is None or any(r.checked for r in reads(e.body)):
            return None
        index = s.index if s.index in scope.frame and scope.extents[s.index] == s.size else None
        if index is None and e.kind not in ("sum", "prod"):
            return None
        used = entries_of(s.body)
        order = [i for i in scope.frame if i in used or i == index]
        frame = (
            tuple(s.axis if i == index else i for i in order)
            if index
            else self.body_frame(replace(e, body=s.body), tuple(order), [s.axis])
        )
        # Only the cumulated elements before the bound, or behind it, at an evaluated point count.
        counts = Call("ge" if s.reverse else "lt", (IndexValue(Affine.of(Index(s.axis))), IndexValue(s.bound)), DType.BOOL)
        points = (*(i for i in scope.around if i not in frame), s.axis)
        extents = {**scope.extents, s.axis: s.size}
        inner = replace(scope, frame=frame, extents=extents, guards=(*scope.guards, counts), points=points)
        body = self.filled(self.reduced(replace(e, body=s.body), inner), inner)
        where = position(frame, frame.index(s.axis))
        text = self.cumulate(s, body, where, inner)
        if text is None:
            return None
        if index is not None:
            value = PythonText(text, ATOM, frozenset().union(*(self.full(i) for i in order)))
            return self.put_back(value, tuple(order), scope)
        operand = self.intermediate(text, e, frame, inner)
        at: Expr = IndexValue(s.bound if s.reverse else s.bound - 1)
        last = IndexValue(s.size - 1)
        at = Call("maximum", (at, Const(0, Weak.INT)), Weak.INT) if s.reverse else Call("minimum", (at, last), Weak.INT)
        indices = tuple(at if i == s.axis else i if isinstance(i, GroupRef) else Affine.of(Index(i)) for i in frame)
        neutral = Const(IDENTITY[s.kind], Weak.INT)
        return self.expr(Read(operand, indices, e.type, neutral), scope)

    def ordered(self, e: Reduce, scope: FrameScope) -> PythonText | None:
        """A search that asks for a place of an order: the order of the whole axis, and then a read of the place."""
        found = ordering_of(e)
        if found is None:
            return None
        own = found.along
        whole = Reduce("max", (Axis(own, found.extent),), found.key, found.key.type)
        frame = self.body_frame(whole, self.outer(whole, scope), [own])
        inner = self.within(whole, frame, scope)
        body = self.named(self.filled(self.expr(found.key, inner), inner))
        operand = self.intermediate(self.order(found, body, frame, inner), e, frame, inner)
        indices = tuple(found.rank if i == own else i if isinstance(i, GroupRef) else Affine.of(Index(i)) for i in frame)
        return self.expr(Read(operand, indices, e.type), scope)

    def intermediate(self, text: str, e: Reduce, frame: Frame, scope: FrameScope) -> str:
        """Put an array over a frame into a variable that expressions can read as an operand; return the operand's name."""
        local = self.named(PythonText(text)).text
        name = f"{local}'"  # No operand of a spec is called that.
        dims = tuple(scope.dims(frame))
        kind = DType.INT64 if isinstance(e.type, Weak) else e.type
        self.operands[name], self.local[name] = Operand(name, kind, dims), local
        return name
