"""Values that are read before they are assigned: those of recurrences, whose types and shapes must be known ahead.

An output's are declared. A temporary's shape is what the indices on its left say, and its type is the one that its own statement
gives it once it has it: types are tried until one does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from opc.analysis.elaborate.ranges import as_stated, infer_ranges
from opc.analysis.elaborate.scope import Scope
from opc.analysis.value_types import element_type
from opc.diagnostics import Diagnostics
from opc.ir.access import accesses
from opc.ir.access import place as affine_place
from opc.ir.affine import Affine, AttrInt, Index
from opc.ir.dtypes import DType, ElementType
from opc.ir.expr import Call, Const, Expr, GroupRef, IndexValue, Read, reads, rewrite
from opc.ir.op import Assign, DimSpec, Group, Op, Operand
from opc.ir.recurrence import NoRecurrence, circles, components, stepping
from opc.lang.tree import Apply, AxisRange, Dots, Item, Name, Star, Statement, parts
from opc.records import replace

if TYPE_CHECKING:
    from opc.analysis.elaborate.body import BodyTyper

Guess = dict[str, ElementType]
"""Types of temporaries that step together."""

_ROUNDS = 4
"""How often types are tried that follow from one another."""


def circles_of(statements: Sequence[Statement]) -> Mapping[str, tuple[Statement, ...]]:
    """Return for each name that is assigned the statements of the circle it is in: those that read one another, or themselves.

    Only those are told whose indices are all written: `y = y + x` steps along none.
    """
    position: dict[str, int] = {}
    for n, s in enumerate(statements):
        position.setdefault(s.target.id, n)
    edges = [sorted({position[name] for name in _read(s, position)}) for s in statements]
    if all(m < n for n, below in enumerate(edges) for m in below):
        return {}
    found: dict[str, tuple[Statement, ...]] = {}
    for c in components(edges):
        circle = tuple(statements[n] for n in sorted(c))
        if (len(c) > 1 or c[0] in edges[c[0]]) and all(s.items and s.value is not None for s in circle):
            found |= {s.target.id: circle for s in circle}
    return found


def _read(s: Statement, names: Container[str]) -> Iterator[str]:
    return (node.id for node in _walk(s) if isinstance(node, Name) and node.id in names)


def _calls(s: Statement) -> Iterator[Apply]:
    return (node for node in _walk(s) if isinstance(node, Apply))


def _walk(s: Statement) -> Iterator[Item]:
    waiting: list[Item] = [] if s.value is None else [s.value]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += parts(node)


class Recurring:
    """What the recurrences of one body read before it is assigned."""

    def __init__(self, typer: BodyTyper) -> None:
        self.typer = typer
        self.circles: Mapping[str, tuple[Statement, ...]] = {}
        self.known: dict[str, Operand] = {}

    def find(self, statements: Sequence[Statement]) -> None:
        """Look for circles among the statements of the body."""
        self.circles = circles_of(statements)

    def ahead(self, name: str) -> dict[str, Operand]:
        """Return what the statement that assigns `name` may read before it is assigned: the values of its recurrence."""
        circle, scope = self.circles.get(name, ()), self.typer.scope
        if circle and circle[0].target.id == name and name not in self.known:
            self.known |= self._declared(circle)
        names = (s.target.id for s in circle if s.target.id not in scope.operands)
        return {n: self.known[n] for n in names if n in self.known}

    def untold(self, s: Statement) -> set[str]:
        """Return the values of a statement's recurrence of which nothing is known for a mistake above: it is told there alone."""
        circle, scope = self.circles.get(s.target.id, ()), self.typer.scope
        spoilt = any(True for c in circle for _ in _read(c, scope.poisoned))
        return {c.target.id for c in circle} - scope.operands.keys() if spoilt else set()

    def _declared(self, circle: Sequence[Statement]) -> dict[str, Operand]:
        """Return what the targets of a circle are, as far as it can be told before they are typed."""
        outputs = self.typer.outputs
        known = {s.target.id: outputs[s.target.id] for s in circle if s.target.id in outputs}
        shapes = self._shapes(circle, known)
        untold = [s for s in circle if s.target.id not in known and s.target.id not in shapes]
        if untold:
            self._tell(untold, known, shapes)
        if not shapes:
            return known
        kinds = tuple(_candidates(self.typer.scope, circle))
        spans = {s.target.id: s.target.span for s in circle}
        tried: dict[tuple[ElementType, ...], tuple[Mapping[str, ElementType], int]] = {}

        def typed(guess: Guess) -> tuple[Mapping[str, ElementType], int]:
            """Return the types that come of a guess at once: most guesses lead to one that was tried."""
            key = tuple(guess[n] for n in shapes)
            if key not in tried:
                tried[key] = self._types_of(circle, operands(guess))
            return tried[key]

        def followed(guess: Guess) -> tuple[int, Guess]:
            """Return what types come of a guess, and how many statements are mistaken with them."""
            for _ in range(_ROUNDS):
                given, mistaken = typed(guess)
                # What can't be typed by this guess may be by the types of the others.
                new = {n: given.get(n, guess[n]) for n in shapes}
                if new == guess:
                    return mistaken, guess
                guess = new
            return len(circle), guess

        def operands(guess: Guess) -> dict[str, Operand]:
            return {**known, **{n: Operand(n, guess[n], dims, span=spans[n]) for n, dims in shapes.items()}}

        least, nearest = len(circle) + 1, dict.fromkeys(shapes, kinds[0])
        guesses: Iterable[Guess] = (dict.fromkeys(shapes, kind) for kind in kinds)
        while True:
            before = least
            for guess in guesses:
                mistaken, found = followed(guess)
                if not mistaken:
                    return operands(found)
                if mistaken < least:
                    least, nearest = mistaken, found
            if least == before:
                return operands(nearest)
            guesses = [{**nearest, n: kind} for n in shapes for kind in kinds]

    def _shapes(self, circle: Sequence[Statement], known: Mapping[str, Operand]) -> dict[str, tuple[DimSpec, ...]]:
        """Return the shapes of a circle's temporaries, of those that can be told."""
        scope, outer = self.typer.scope, self.typer.scope.operands
        shapes: dict[str, tuple[DimSpec, ...]] = {}
        left = [s for s in circle if s.target.id not in known]
        scope.operands = {**outer, **known}
        try:
            while left:
                told = {s.target.id: dims for s in left if (dims := _shape(s, scope, self._size)) is not None}
                if not told:
                    break
                shapes |= told
                # Their types do not matter to ranges.
                scope.operands |= {name: Operand(name, scope.floating(), dims) for name, dims in told.items()}
                left = [s for s in left if s.target.id not in told]
        finally:
            scope.operands = outer
        return shapes

    def _tell(self, untold: Sequence[Statement], known: Mapping[str, Operand], shapes: Mapping[str, tuple[DimSpec, ...]]) -> None:
        """Record why the shapes of some temporaries can't be told, once for those that read one another."""
        scope, outer, found = self.typer.scope, self.typer.scope.operands, self.typer.found
        names = {s.target.id for s in untold}
        before = len(found.items)
        told = {name: Operand(name, scope.floating(), dims) for name, dims in shapes.items()}
        scope.operands, scope.poisoned = {**outer, **known, **told}, scope.poisoned | names
        try:
            for s in untold:
                _shape(s, scope, self._stated, found)
            if len(found.items) == before:  # each reads another
                scope.poisoned -= names
                _shape(untold[0], scope, self._stated, found)
        finally:
            scope.operands = outer
        if len(found.items) > before:
            scope.poisoned |= names

    def _trial(self) -> BodyTyper:
        """Return what types statements without recording anything."""
        scope, typer = self.typer.scope, self.typer
        own = replace(
            scope,
            operands=dict(scope.operands),
            later=dict(scope.later),
            bound=dict(scope.bound),
            poisoned=set(scope.poisoned),
            used=set(scope.used),
        )
        return type(typer)(own, list(typer.outputs.values()), Diagnostics(), typer.derived)

    def _size(self, item: AxisRange) -> Affine | None:
        """Return the range that an index states, None where that is a mistake."""
        return self._trial().typer.index(item.extent, "an index's range")

    def _stated(self, item: AxisRange) -> Affine | None:
        """Return the range that an index states, where a mistake is recorded."""
        return self.typer.typer.index(item.extent, "an index's range")

    def _types_of(self, circle: Sequence[Statement], given: Mapping[str, Operand]) -> tuple[Mapping[str, ElementType], int]:
        """Return the types of what statements assign where targets are given, and the number of those that have none."""
        trial = self._trial()
        trial.recurring.circles, trial.recurring.known = dict.fromkeys(given, tuple(circle)), dict(given)
        types: dict[str, ElementType] = {}
        for s in circle:
            trial.found.items.clear()
            trial.statement(s)
            if not trial.found.has_errors and s.target.id in trial.scope.operands:
                types[s.target.id] = trial.scope.operands[s.target.id].type
        # A statement without a mistake of its own may read what another mistake hides.
        return types, len(circle) - len(types)


def _shape(
    s: Statement, scope: Scope, size: Callable[[AxisRange], Affine | None], found: Diagnostics | None = None
) -> tuple[DimSpec, ...] | None:
    """Return what the left side of a statement and its reads say; None where they don't, which is recorded in `found`."""
    found = Diagnostics() if found is None else found
    dims: list[DimSpec] = []
    for item in s.items or ():
        dim: DimSpec | None
        match item:
            case Dots():
                dim = Group("...")
            case Star():
                dim = Group(item.name)
            case Name() if s.value is not None:
                dim = infer_ranges(item, [s.value], scope, found, as_stated(s, item))
            case AxisRange():
                dim = size(item)
            case _:
                dim = None
        if dim is None:
            return None
        dims.append(dim)
    return tuple(dims)


def _candidates(scope: Scope, circle: Sequence[Statement]) -> Iterable[ElementType]:
    """Return the types that a temporary of a circle may have, those of operands first, and those last that it casts to."""
    casts = [call.args[0] for s in circle for call in _calls(s) if call.fn.id == "cast" and call.args]
    named = [kind for name in casts if (kind := element_type(name, scope, Diagnostics())) is not None]
    return dict.fromkeys((*(o.type for o in scope.operands.values()), *scope.types.values(), DType.INT64, DType.BOOL, *named))


def check_recurrences(op: Op, found: Diagnostics) -> None:
    """Record each circle of statements that is no recurrence."""
    for targets in circles(op):
        result = stepping(op, targets)
        if isinstance(result, NoRecurrence):
            found.error(result.reason, result.span, _below(op, targets, result.read) or _hint(op, result.read))


def _below(op: Op, targets: tuple[str, ...], read: Read) -> str | None:
    """Return that a statement goes below the one it reads, where values then step together; else None."""
    reader = next((s for s in op.body if s.target in targets and any(r is read for r in reads(s.value))), None)
    if reader is None or targets.index(reader.target) >= targets.index(read.operand):
        return None
    rest = [s for s in op.body if s is not reader]
    place = rest.index(op.assignments[read.operand]) + 1
    moved = op.with_body((*rest[:place], reader, *rest[place:]))
    if any(isinstance(stepping(moved, t), NoRecurrence) for t in circles(moved) if reader.target in t):
        return None
    return f"at the same step a value reads what stands above it: write '{reader.target}' below '{read.operand}'"


def with_known_places(op: Op) -> Op:
    """Return the op with the places of recurrences that are data and clamped as they are, where conditions tell that these are
    inside: nothing is clamped there, and so they are known to lie behind."""
    steps = {name for targets in circles(op) for name in targets}
    if not steps:
        return op
    return op.with_body(tuple(_with_known_places(op, s, steps) if s.target in steps else s for s in op.body))


def _with_known_places(op: Op, s: Assign, steps: Collection[str]) -> Assign:
    extents = zip(s.indices, op.operand(s.target).dims, strict=True)
    points = tuple(d - 1 - Index(i) for i, d in extents if isinstance(i, str) and isinstance(d, Affine))
    inside: dict[Read, Read] = {}
    outside: set[Read] = set()
    for access in accesses(op, s.value):
        read, found = access.read, access.read
        for n, (index, dim) in enumerate(zip(read.indices, op.operand(read.operand).dims, strict=True)):
            if read.operand not in steps or not isinstance(dim, Affine) or (place := _clamped(index, dim)) is None:
                continue
            at, known = affine_place(place), replace(access, known=(*access.known, *points))
            if at is None or not known.is_most(-at, 0) or not known.is_most(at - dim, -1):
                outside.add(read)
                break
            indices = (*found.indices[:n], place, *found.indices[n + 1 :])
            found = replace(found, indices=indices, checked=(*found.checked, n))
        if found is not read:
            inside[read] = found
    changed = {old: new for old, new in inside.items() if old not in outside}
    return s.with_value(rewrite(s.value, lambda e: changed.get(e, e) if isinstance(e, Read) else e)) if changed else s


def _clamped(index: Affine | GroupRef | Expr, dim: Affine) -> Expr | None:
    """Return what is clamped to the places of an axis; None for any other index."""
    match index:
        case Call(fn="minimum", args=(Call(fn="maximum", args=(place, Const(value=0))), IndexValue(value=last))) if (
            last == dim - 1
        ):
            return place
        case _:
            return None


def _hint(op: Op, read: Read) -> str:
    """Return what to write where a read of a recurrence is not known to lie behind."""
    places = [place for place in read.indices if isinstance(place, Affine)]
    for place in places:
        for lag in place.atoms():
            if isinstance(lag, AttrInt) and (place + lag).single is not None and not lag.flag and lag.element < 0:
                return f"say that it lies behind: {lag.name}: {{type: int, check: {lag.name} > 0}}"
    if any(not isinstance(i, Affine | GroupRef) for i in read.indices):
        name = read.operand
        return f"a place that is data is compared as it is read: {name}[p[t]] if 0 <= p[t] and p[t] < t else 0"
    own = op.assignments[read.operand].indices
    if len(places) == len(own) == 2 and sum(place.single is None for place in places) == 1:
        return f"along two indices values step by diagonals, which read those before: z[t, i] for {read.operand}[i, t - i]"
    return (
        "a recurrence reads what is behind it along one index, and goes one way: h[t - 1, d] or sum[k:t](h[k, d]) in all "
        "that h[t, d] is made of, or h[t + 1, d]"
    )


__all__ = ["Recurring", "check_recurrences", "with_known_places"]
