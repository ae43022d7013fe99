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
    children,
    free_groups,
    free_indices,
    walk,
)
from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.loops.nodes import Body, Comment, Do, Kernel, Let, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import (
    Address,
    Construct,
    Load,
    Local,
    Member,
    Named,
    Product,
    StoredType,
    Sum,
    call,
    computed_as,
    number,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.lower.guards import replace_node
from opc.lower.loop_ir import NestStage
from opc.records import dataclass
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
    number of the group, by the name `group`, is a batch, and the place in it goes down or across."""

    entry: int
    group: str
    points: Affine


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
    """Which of the factors, "left" and "right", are no elements in steps along points and terms."""

    def kinds(self, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
        """Return which tiles of `TILES` stand for each, where type variables are these: others would be the same function."""
        stored = dtypes.get(self.stored) if isinstance(self.stored, TypeVar) else self.stored
        if stored in HALVES:
            return (0, 1, 1) if self.computed else (0, 1, 2)
        of = computed_as(self.sum.type)
        computed = dtypes.get(of) if isinstance(of, TypeVar) else of
        return (0, 1, 1) if isinstance(computed, DType) and computed.compute is DType.FLOAT32 else (0, 0, 0)


def products_of(op: Op, stage: NestStage) -> Products | None:
    """Return the products that a statement adds up, None where it does anything else."""
    value = stage.assign.value
    sums = [e for e in walk(value) if isinstance(e, Reduce)]
    if len(sums) != 1 or not _is_computed(value, sums[0]):
        return None
    (e,) = sums
    plain = not any(isinstance(a, Axis) and a.extent.indices() for a in e.axes)
    if e.kind != "sum" or not e.axes or not plain or not is_floating(e.type):
        return None
    match e.body:
        case Call(fn="mul", args=(a, b)) if is_floating(a.type) and is_floating(b.type):
            left, right = _names(a), _names(b)
        case _:
            return None
    own = [i.name if isinstance(i, GroupRef) else str(i) for i in stage.assign.indices]
    split = None
    if left.isdisjoint(own) or right.isdisjoint(own) or not (left & set(own) - right and right & set(own) - left):
        split, (a, b) = _split(op, stage, a, b)
        left, right = _names(a), _names(b)
    down = tuple(n for n, name in enumerate(own) if name in left and name not in right)
    across = tuple(n for n, name in enumerate(own) if name in right and name not in left)
    if not down or not across:
        return None
    batch = tuple(n for n in range(len(own)) if n not in down and n not in across)
    batch = (split.entry, *batch) if split is not None else batch
    if down[-1] > across[-1]:
        a, b, down, across = b, a, across, down
    sides = {"left": (a, down), "right": (b, across)}
    computed = tuple(side for side, (f, points) in sides.items() if steps_of(op, f, _names_along(e, stage, points)) is None)
    if computed and max(len(down), len(across), len(e.axes)) > MOST_DIGITS:
        return None
    return Products(e, (a, b), batch, down, across, split, _stored(op, a, b), computed)


def _split(op: Op, stage: NestStage, a: Expr, b: Expr) -> tuple[Split | None, tuple[Expr, Expr]]:
    """Return an entry of the target whose groups one of two factors has and the other its points, and the factors with groups."""
    required = {r.condition for r in op.require}
    for n, (entry, extent) in enumerate(zip(stage.assign.indices, op.operand(stage.assign.target).dims, strict=True)):
        name = str(entry)
        if isinstance(entry, GroupRef) or not isinstance(extent, Affine) or name not in _names(a) & _names(b):
            continue
        for m, factor in enumerate((a, b)):
            sizes = {d for i in _affine(factor) for d in _divisors(i, name)}
            points = next(iter(sizes)) if len(sizes) == 1 else None
            if points is None or not _divides(points, extent, required):
                continue
            group = f"group_of_{name}#"
            whole = substitute(factor, {name: Affine.of(Index(group)) * points})
            return Split(n, group, points), (whole, b) if m == 0 else (a, whole)
    return None, (a, b)


def _affine(e: Expr) -> Iterator[Affine]:
    """Yield the integers that an expression is made of."""
    for node in walk(e):
        if isinstance(node, IndexValue):
            yield node.value
        elif isinstance(node, Read):
            yield from (i for i in node.indices if isinstance(i, Affine))


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


def _divides(points: Affine, extent: Affine, required: Collection[Expr]) -> bool:
    """Whether groups of so many points fill an extent: there are as many as a call is required to have it divided by."""
    match points.terms:
        case (((FloorDiv(numerator=numerator, denominator=groups),), 1),) if numerator == extent:
            condition = Call("eq", (IndexValue(extent % groups), Const(0, Weak.INT)), DType.BOOL)
            return condition in required
    return False


def _stored(op: Op, a: Expr, b: Expr) -> TypeVar | DType | None:
    """Return the type that both of two values are stored as; None where one is computed, or stored as it is computed."""
    if not (isinstance(a, Read) and isinstance(b, Read)) or any(r.pad not in (None, Const(0, Weak.INT)) for r in (a, b)):
        return None
    known = {o.name: o.type for o in (*op.inputs, *op.outputs)}
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


def lies_along_terms(e: Expr, products: Products) -> bool:
    """Whether the last index of the first element that a factor reads is one of the sum's."""
    terms = {a.index if isinstance(a, Axis) else a.name for a in products.sum.axes}
    last = next((r.indices[-1:] for r in walk(e) if isinstance(r, Read)), ())
    return any(terms >= found and found for found in ({i.name} if isinstance(i, GroupRef) else _indices(i) for i in last))


def _indices(e: Affine | Expr) -> frozenset[str]:
    return frozenset(e.indices()) if isinstance(e, Affine) else free_indices(e)


def _names_along(e: Reduce, stage: NestStage, own: tuple[int, ...]) -> tuple[str, ...]:
    entries = [stage.assign.indices[n] for n in own]
    points = (i.name if isinstance(i, GroupRef) else str(i) for i in entries)
    return (*points, *(a.index if isinstance(a, Axis) else a.name for a in e.axes))


def places_of(products: Products, op: Op, stage: NestStage, side: str) -> Mapping[str, int]:
    """Return which entry of a factor that is not computed each index and group is that it has of its points and of the terms."""
    left = side == "left"
    own = products.down if left else products.across
    found = steps_of(op, products.factors[0 if left else 1], _names_along(products.sum, stage, own))
    assert found is not None, "the factor is elements in steps"
    return found


def _names(e: Expr) -> frozenset[str]:
    return frozenset(free_indices(e) | free_groups(e))


def _is_computed(value: Expr, e: Reduce) -> bool:
    """Whether a value asks for a reduction whatever it chooses."""
    if value is e or value == e:
        return True
    parts = children(value)
    if isinstance(value, Select) or (isinstance(value, Call) and value.fn in ("and", "or")):
        parts = parts[:1]
    return any(_is_computed(c, e) for c in parts)


def product_kernel(nest: Nest, products: Products) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceProducts(nest, products).kernel()


class _DeviceProducts(DevicePoints):
    """Makes the functions that read the factors and store the points of a tile."""

    def __init__(self, nest: Nest, products: Products) -> None:
        super().__init__(nest)
        self.products = products
        self.whole: dict[int, str] = {}
        """The variables that hold places along entries of the target, as they were last declared."""

    def kernel(self) -> Kernel:
        """Return the function."""
        p, of = self.products, self.products.sum.type
        left = self._factor("left", p.factors[0], "down", p.down)
        left_at = self._at("left", p.factors[0], p.down)
        right = self._factor("right", p.factors[1], "across", p.across)
        right_at = self._at("right", p.factors[1], p.across)
        names = {k: self.nest.fresh(k) for k in ("batch", "down", "across", "total")}
        places = (*self._entries(names["batch"], p.batch), *self._entries(names["down"], p.down))
        places = (*places, *self._entries(names["across"], p.across))
        value = self.value(replace_node(self.stage.assign.value, p.sum, Local(names["total"], of)))
        whole = sorted((n, name) for n, name in self.whole.items())
        terms = [Product((variable(name), Member("@nest", "after", n))) for n, name in whole]
        finished = used_places(places, (*self.lines, self.stored(sum_of(terms), value)))
        params = ((Weak.INT, names["batch"]), (Weak.INT, names["down"]), (Weak.INT, names["across"]), (of, names["total"]))
        finish = LocalFunction(self.nest.fresh("finish"), params, finished)
        along = (Named(f"opc::along_{'terms' if lies_along_terms(f, p) else 'points'}") for f in p.factors)
        left_place, right_place = (
            ref(at[0].name) if len(at) == 1 else call("computed_places", *(ref(f.name) for f in at)) for at in (left_at, right_at)
        )
        arguments = (NEST, ref(left.name), left_place, ref(right.name), right_place, ref(finish.name))
        stored = "void" if p.stored is None else StoredType(p.stored, self.nest.operands[0])
        tiles = Do(call("multiply_tiles", *arguments, types=(of, stored, "Tiles", *along)))
        functions = (left, *left_at, right, *right_at, finish)
        return self.function((Comment(format_assign(self.stage.assign)), *functions, tiles), self._tiled())

    def _tiled(self) -> Schedule:
        """Return the schedule: which tiles there may be, and which types tensor cores multiply."""
        p = self.products
        halves = [d for d in (p.stored.dtypes if isinstance(p.stored, TypeVar) else (p.stored,)) if d in HALVES]
        steps = [Transformation("bind", ("tiles to blocks",))]
        steps.append(Transformation("tile", TILES if halves and not p.computed else TILES[:2]))
        if halves:
            steps.append(Transformation("tensor", tuple(map(str, halves))))
        if p.computed:
            steps.append(Transformation("compute", p.computed))
        return Schedule(tuple(steps))

    def _factor(self, name: str, value: Expr, word: str, own: tuple[int, ...]) -> LocalFunction:
        """Return the function of a factor: of its batch, its place down or across, and the number of a term, or of digits."""
        of, batch, point, term = self.products.sum.type, *map(self.nest.fresh, ("batch", word, "term"))
        digits = name in self.products.computed
        places = list(self._entries(batch, self.products.batch))
        places += self._places_at({n: Member(point, "at", k) for k, n in enumerate(own)}) if digits else self._entries(point, own)
        before, self.lines = self.lines, []
        places += self._terms(term, digits)
        self._take_places(places)
        result = Construct(of, self.value(value))
        body: Body = tuple(self.lines)
        self.lines = before
        # What only the result uses is used too.
        used = used_places(tuple(places), (*body, Do(call("store", result))))[:-1]
        kind = Named("opc::digits") if digits else Weak.INT
        return LocalFunction(self.nest.fresh(name), ((Weak.INT, batch), (kind, point), (kind, term)), used, result, of)

    def _at(self, side: str, value: Expr, own: tuple[int, ...]) -> tuple[LocalFunction, ...]:
        """Return the function that tells where a factor's first element lies, or those of the digits that it is computed from."""
        if side not in self.products.computed:
            return (self._place(f"{side}_at", value, own),)
        point, term = self.nest.fresh("point"), self.nest.fresh("term")
        before, self.lines = self.lines, []
        sizes = [self._size(n, "group_points") for n in own]
        points = call("digits", *(place_of(variable(point), sizes[k + 1 :], size) for k, size in enumerate(sizes)))
        terms = call("digits", *(let.value for let in self._terms(term)))
        self.lines = before
        return (
            LocalFunction(self.nest.fresh(f"{side}_points"), ((Weak.INT, point),), (), points),
            LocalFunction(self.nest.fresh(f"{side}_terms"), ((Weak.INT, term),), (), terms),
        )

    def _place(self, name: str, value: Expr, own: tuple[int, ...]) -> LocalFunction:
        """Return the function that tells where a factor's element of the first point and term of a batch lies."""
        p = self.products
        batch = self.nest.fresh("batch")
        before, self.lines = self.lines, []
        places = [*self._entries(batch, p.batch), *self._places_at({n: number(0) for n in own})]
        places += [Let(loop.index, Weak.INT, number(0)) for loop in map(self.loop_over, p.sum.axes)]
        self._take_places(places)
        element = self.value(value)
        body: Body = tuple(self.lines)
        self.lines = before
        assert isinstance(element, Load), "the factor is elements in steps"
        result = Address(element.view, element.offset)
        used = used_places(tuple(places), (*body, Do(call("store", result))))[:-1]
        return LocalFunction(self.nest.fresh(name), ((Weak.INT, batch),), used, result)

    def _take_places(self, places: list[Let]) -> None:
        """Move the places of what is broadcast to the others: a factor without that group uses none of them."""
        places += (s for s in self.lines if isinstance(s, Let))
        self.lines = [s for s in self.lines if not isinstance(s, Let)]

    def _entries(self, param: str, entries: tuple[int, ...]) -> tuple[Let, ...]:
        """Return the places along entries of the target, of a number that counts their points."""
        split, found = self.products.split, dict[int, Expr]()
        part = "groups" if entries is self.products.batch else "group_points"
        for k, n in enumerate(entries):
            behind = [self._size(m, part) for m in entries[k + 1 :]]
            found[n] = variable(param) if len(entries) == 1 else place_of(variable(param), behind, self._size(n, part))
        if split is None or split.entry not in entries or entries is not self.products.batch:
            return self._places_at(found)
        return Let(split.group, Weak.INT, found.pop(split.entry)), *self._places_at(found)

    def _size(self, entry: int, part: str) -> Expr:
        """Return how many points there are along an entry of the target, or of one that is split, of this part of it."""
        split = self.products.split
        return Member("@nest", part) if split is not None and split.entry == entry else Member("@nest", "size", entry)

    def _places_at(self, found: dict[int, Expr]) -> tuple[Let, ...]:
        """Return the variables that hold places along entries of the target; of one that is split, places in groups are given."""
        split = self.products.split
        if split is not None and split.entry in found:
            first = Product((variable(split.group), Member("@nest", "group_points")))
            found = {n: Sum((first, place)) if n == split.entry else place for n, place in found.items()}
        lets = self.places(found)
        self.whole |= {n: let.name for n, let in zip(found, lets, strict=True)}
        return lets

    def _terms(self, param: str, digits: bool = False) -> tuple[Let, ...]:
        """Return the places along the axes of the sum, of the number of a term, or of its digits."""
        loops = [self.loop_over(axis) for axis in self.products.sum.axes]
        sizes = [loop.high for loop in loops]
        if digits:
            return tuple(Let(loop.index, Weak.INT, Member(param, "at", k)) for k, loop in enumerate(loops))
        places = (place_of(variable(param), sizes[k + 1 :], size) for k, size in enumerate(sizes))
        found = [variable(param)] if len(loops) == 1 else places
        return tuple(Let(loop.index, Weak.INT, place) for loop, place in zip(loops, found, strict=True))
