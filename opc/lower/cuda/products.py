"""Sums of products on a device: tiles of two factors in shared memory, whose products warps or threads add up in registers.

What the target has of an index in one factor alone goes down or across a tile, what it has in both or in none is a batch. The
later indices of the target go across: neighbours are stored together. Where both factors are elements of 16 bits, and nothing is
computed of them before, tensor cores multiply them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from opc.ir.affine import Affine, FloorDiv, Index, Minimum, Mod
from opc.ir.dtypes import DType, TypeVar, Weak, is_floating
from opc.ir.expr import (
    Axis,
    Call,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Read,
    Reduce,
    Select,
    affines,
    children,
    free_indices,
    free_names,
    map_affine,
    reductions,
    walk,
)
from opc.ir.op import Op
from opc.loops.values import computed_as
from opc.lower.build.context import Nest
from opc.lower.cuda.gathered import Gathered, gathered_of, known_of, multiples
from opc.lower.guards import Guard, guard_indices, peel
from opc.lower.loop_ir import NestStage
from opc.records import dataclass, replace
from opc.transform.indices import substitute

TILES = ("64 x 64", "128 x 128", "128 x 256")
"""Points down and across of the tiles that kernels may have, as the runtime's `shape_of_tiles` numbers them. Of the greatest both
factors are brought 16 bytes at a time, for tensor cores."""

MOST_DIGITS = 4
"""Of how many places along indices a factor is computed at most."""

HALVES = (DType.FLOAT16, DType.BFLOAT16)
"""The types that tensor cores multiply."""


@dataclass(frozen=True, slots=True)
class Split:
    """An entry of the target that is groups of so many points, of which one factor has the points and the other the groups: the
    number of the group, by the name `group`, is a batch, and the place in it goes down or across, by the name `place` where a
    factor has that alone."""

    entry: int
    group: str
    place: str
    points: Affine
    groups: Affine


@dataclass(frozen=True, slots=True)
class Products:
    """A sum of products in a statement's value: `down` and `across` are entries of the target that one of the factors has."""

    sum: Reduce
    factors: tuple[Expr, Expr]
    batch: tuple[int, ...]
    down: tuple[int, ...]
    across: tuple[int, ...]
    split: Split | None
    stored: TypeVar | DType | None
    """The type of the elements of an input or an output that both factors are, or else 0, where they are."""
    computed: tuple[str, ...]
    """Which of the factors, "left" and "right", are no elements in steps along points and terms, nor gathered."""
    gathered: Mapping[str, Gathered]
    """Which of the factors are elements that are found by their places."""
    guarded: bool
    """Whether terms do not count that are added as products with 0."""

    def kinds(self, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
        """Return which tiles of `TILES` stand for each, where type variables are these: others would be the same function."""
        stored = dtypes.get(self.stored) if isinstance(self.stored, TypeVar) else self.stored
        if stored in HALVES:
            return (0, 1, 2) if self.may_be_packed else (0, 1, 1)
        of = computed_as(self.sum.type)
        computed = dtypes.get(of) if isinstance(of, TypeVar) else of
        return (0, 1, 1) if isinstance(computed, DType) and computed.compute is DType.FLOAT32 else (0, 0, 0)

    @property
    def may_be_packed(self) -> bool:
        """Whether both factors may be brought 16 bytes at a time."""
        return not self.computed and all(g.along is not None for g in self.gathered.values())

    @property
    def terms(self) -> tuple[str, ...]:
        """The indices and groups of the sum."""
        return tuple(a.index if isinstance(a, Axis) else a.name for a in self.sum.axes)


def products_of(op: Op, stage: NestStage) -> Products | None:
    """Return the products that a statement adds up, None where it does anything else."""
    value = stage.assign.value
    sums = reductions(value)
    if len(sums) != 1 or not _is_computed(value, sums[0]):
        return None
    (e,) = sums
    plain = not any(isinstance(a, Axis) and a.extent.indices() for a in e.axes)
    if e.kind != "sum" or not e.axes or not plain or not is_floating(e.type):
        return None
    guards, body = _guarded(op, stage, e)
    match body:
        case Call(fn="mul", args=(a, b)) if is_floating(a.type) and is_floating(b.type):
            left, right = _names(a), _names(b)
        case _:
            return None
    own = [i.name if isinstance(i, GroupRef) else str(i) for i in stage.assign.indices]
    split = None
    if left.isdisjoint(own) or right.isdisjoint(own) or not (left & set(own) - right and right & set(own) - left):
        split, (a, b) = _split(op, stage, a, b)
        left, right = (_names(f, {split.place: own[split.entry]} if split is not None else {}) for f in (a, b))
        guards = guards if split is None else tuple(_guard_in_groups(g, own[split.entry], split) for g in guards)
    down = tuple(n for n, name in enumerate(own) if name in left and name not in right)
    across = tuple(n for n, name in enumerate(own) if name in right and name not in left)
    if not down or not across:
        return None
    batch = tuple(n for n in range(len(own)) if n not in down and n not in across)
    batch = (split.entry, *batch) if split is not None else batch
    if down[-1] > across[-1]:
        a, b, down, across = b, a, across, down
    sides = {"left": (a, down), "right": (b, across)}
    computed, gathered = list[str](), dict[str, Gathered]()
    for side, (f, points) in sides.items():
        along = _names_along(e, stage, points, split)
        names = {own[n] for n in (*points, *batch)}.union(along, (split.group,) if split else ())
        held = guards if all(guard_indices(g) <= names for g in guards) else ()
        if not held and steps_of(op, f, along) is not None:
            continue
        found = _gathered(op, stage, e, f, held, points, split)
        if found is None and held:
            found, held = _gathered(op, stage, e, f, (), points, split), ()
        if found is not None:
            gathered[side] = found
            guards = () if held else guards
        else:
            computed.append(side)
    if guards or (computed and max(len(down), len(across), len(e.axes)) > MOST_DIGITS):
        return None
    guarded = body is not e.body
    down, across = (_behind(points, gathered.get(side), own, split) for side, points in (("left", down), ("right", across)))
    return Products(e, (a, b), batch, down, across, split, stored_alike(op, a, b), tuple(computed), gathered, guarded)


def _guarded(op: Op, stage: NestStage, e: Reduce) -> tuple[tuple[Guard, ...], Expr]:
    """Return the conditions under which the terms of a sum count, and the terms."""
    if not isinstance(e.body, Select):
        return (), e.body
    nest = Nest(op, stage)
    return peel("sum", e.body, nest.sizes, {}, nest.positive)


def _gathered(
    op: Op, stage: NestStage, e: Reduce, f: Expr, guards: tuple[Guard, ...], own: tuple[int, ...], split: Split | None
) -> Gathered | None:
    """Return a factor as one that is found by its places, None where it is none."""
    dims = op.operand(stage.assign.target).dims
    extents = e.extents
    terms = frozenset(extents)
    if len(terms) < len(e.axes):
        return None
    for n, (entry, dim) in enumerate(zip(stage.assign.indices, dims, strict=True)):
        if isinstance(entry, str) and isinstance(dim, Affine):
            extents[entry] = dim
            if split is not None and split.entry == n and n in own:
                extents[split.place] = split.points
    groups = {} if split is None else {split.group: split.groups}
    found = gathered_of(op, f, guards, terms, extents, groups, Nest(op, stage).positive)
    if found is None or found.along is None:
        return found
    # Of terms the last ones lie together, and of points those of this factor.
    names = _names_along(Reduce(e.kind, (), e.body, e.type), stage, own, split)
    last = e.axes[-1]
    together = found.along in names or (isinstance(last, Axis) and found.along == last.index)
    return found if together else replace(found, along=None)


def _behind(points: tuple[int, ...], found: Gathered | None, own: list[str], split: Split | None) -> tuple[int, ...]:
    """Return entries of the target with the one behind the others along which the elements of a factor lie together."""
    place = {} if split is None else {split.place: own[split.entry]}
    along = None if found is None else place.get(found.along or "", found.along)
    last = tuple(n for n in points if own[n] == along)
    return (*(n for n in points if n not in last), *last)


def _split(op: Op, stage: NestStage, a: Expr, b: Expr) -> tuple[Split | None, tuple[Expr, Expr]]:
    """Return an entry of the target whose groups one of two factors has and the other its points, and the factors with groups."""
    required = known_of(op)
    for n, (entry, extent) in enumerate(zip(stage.assign.indices, op.operand(stage.assign.target).dims, strict=True)):
        name = str(entry)
        if isinstance(entry, GroupRef) or not isinstance(extent, Affine) or name not in _names(a) & _names(b):
            continue
        for m, factor in enumerate((a, b)):
            sizes = {d for i in affines(factor) for d in _divisors(i, name)}
            points = next(iter(sizes)) if len(sizes) == 1 else None
            groups = None if points is None else multiples(extent, points, required)
            if points is None or groups is None:
                continue
            split = Split(n, f"group_of_{name}#", f"{name}_in_group#", points, groups)
            whole = substitute(factor, {name: Affine.of(Index(split.group)) * points})
            other = _in_groups((a, b)[1 - m], name, split)
            return split, (whole, other) if m == 0 else (other, whole)
    return None, (a, b)


def _in_groups(e: Expr, name: str, split: Split) -> Expr:
    """Return a factor whose index, where it is divided by the points of a group, is that of a group and of a point in it."""
    if not any(d is None or d == split.points for i in affines(e) for d in _divisors(i, name) if name in i.indices()):
        return e
    if all(i.index == name or name not in i.indices() for i in affines(e)):
        return e
    return _by_groups(e, name, split)


def _guard_in_groups(g: Guard, name: str, split: Split) -> Guard:
    """Return a condition whose index is that of a group and of a point in it."""
    if not isinstance(g, Affine):
        return _by_groups(g, name, split)
    found = _by_groups(IndexValue(g), name, split)
    assert isinstance(found, IndexValue), "it stays an integer"
    return found.value


def _by_groups(e: Expr, name: str, split: Split) -> Expr:
    """Return an expression with the number of a group and a place in it for an index, and for what that is divided and left."""
    place = Affine.of(Index(split.place))
    whole = substitute(e, {name: split.points * Index(split.group) + place})
    known = {Affine.of(FloorDiv(place, split.points)): Affine.of(0), Affine.of(Mod(place, split.points)): place}

    return map_affine(whole, lambda a: a.map_atoms(lambda atom: known.get(Affine.of(atom), Affine.of(atom))))


def _divisors(e: Affine, name: str) -> Iterator[Affine | None]:
    """Yield what an index is divided by wherever it stands, None where it is not divided alone, or by what is not one number."""
    for monomial, _ in e.terms:
        for atom in monomial:
            match atom:
                case FloorDiv(numerator=numerator, denominator=denominator):
                    if numerator == Affine.of(Index(name)):
                        yield None if denominator.indices() else denominator
                        continue
                    yield from (*_divisors(numerator, name), *_divisors(denominator, name))
                case Index():
                    yield from (None,) if atom.name == name else ()
                case Mod() | Minimum():
                    yield from (None,) if name in Affine.of(atom).indices() else ()


def stored_alike(op: Op, a: Expr, b: Expr) -> TypeVar | DType | None:
    """Return the type that both of two values are stored as; None where one is computed, or stored as it is computed."""
    if not (isinstance(a, Read) and isinstance(b, Read)) or any(r.pad not in (None, Const(0, Weak.INT)) for r in (a, b)):
        return None
    known = {o.name: o.type for o in (*op.inputs, *op.outputs, *(t for t in op.temporaries if t.copied))}
    found = known.get(a.operand)
    return found if isinstance(found, TypeVar | DType) and found == known.get(b.operand) else None


def steps_of(op: Op, e: Expr, names: Collection[str]) -> Mapping[str, int] | None:
    """Return which entry of a read each of some indices and groups is alone, None where elements are not in steps along them."""
    if not isinstance(e, Read) or e.pad is not None or e.checked or op.operand(e.operand) in (i for i in op.inputs if i.optional):
        return None
    found: dict[str, int] = {}
    for n, index in enumerate(e.indices):
        if isinstance(index, GroupRef):
            own, name = {index.name}, index.name
        elif isinstance(index, Affine):
            own, name = set(index.indices()), index.index or ""
        else:
            return None
        if own.isdisjoint(names):
            continue
        if name not in names or name in found:
            return None
        found[name] = n
    return found


def lies_along_terms(side: str, products: Products) -> bool:
    """Whether the last index of the first element that a factor reads is one of the sum's."""
    terms = set(products.terms)
    gathered = products.gathered.get(side)
    if gathered is not None and gathered.along is not None:
        return gathered.along in terms
    e = products.factors[0 if side == "left" else 1]
    last = next((r.indices[-1:] for r in walk(e) if isinstance(r, Read)), ())
    return any(terms >= found and found for found in ({i.name} if isinstance(i, GroupRef) else _indices(i) for i in last))


def _indices(e: Affine | Expr) -> frozenset[str]:
    return frozenset(e.indices()) if isinstance(e, Affine) else free_indices(e)


def _names_along(e: Reduce, stage: NestStage, own: tuple[int, ...], split: Split | None) -> tuple[str, ...]:
    entries = [stage.assign.indices[n] for n in own]
    points = [i.name if isinstance(i, GroupRef) else str(i) for i in entries]
    if split is not None and split.entry in own:
        points.append(split.place)
    return (*points, *(a.index if isinstance(a, Axis) else a.name for a in e.axes))


def places_of(products: Products, op: Op, stage: NestStage, side: str) -> Mapping[str, int]:
    """Return which entry of a factor that is in steps each index and group is that it has of its points and of the terms; places
    in groups go by the name of the entry of the target."""
    left = side == "left"
    own, split = products.down if left else products.across, products.split
    names = _names_along(products.sum, stage, own, split)
    found = steps_of(op, products.factors[0 if left else 1], names)
    assert found is not None, "the factor is elements in steps"
    if split is None or split.place not in found:
        return found
    return {str(stage.assign.indices[split.entry]) if name == split.place else name: n for name, n in found.items()}


def _names(e: Expr, places: Mapping[str, str] = {}) -> frozenset[str]:  # it is read alone
    """Return the indices and groups of a value; those of places in groups are those of the target's entry."""
    return frozenset(places.get(name, name) for name in free_names(e))


def _is_computed(value: Expr, e: Reduce) -> bool:
    """Whether a value asks for a reduction whatever it chooses."""
    if value is e or value == e:
        return True
    parts = children(value)
    if isinstance(value, Select) or (isinstance(value, Call) and value.fn in ("and", "or")):
        parts = parts[:1]
    return any(_is_computed(c, e) for c in parts)
