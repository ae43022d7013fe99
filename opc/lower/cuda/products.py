"""Sums of products on a device: tiles of two factors in shared memory, whose products warps or threads add up in registers.

What the target has of an index in one factor alone goes down or across a tile, what it has in both or in none is a batch. The last
index of the target goes across, if it is not one of a batch: neighbours are stored together. Where both factors are elements of 16
bits, and nothing is computed of them before, tensor cores multiply them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from opc.ir.affine import Affine
from opc.ir.dtypes import DType, TypeVar, ValueType, Weak, is_floating
from opc.ir.expr import Axis, Call, Expr, GroupRef, Read, Reduce, Select, children, free_groups, free_indices, walk
from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.loops.nodes import Body, Comment, Do, Kernel, Let, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Address, Construct, Load, Local, Member, Named, Product, call, computed_as, number, ref, sum_of, variable
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.lower.guards import replace_node
from opc.lower.loop_ir import NestStage
from opc.records import dataclass

TILES = ("64 x 64", "128 x 128", "128 x 256")
"""Points down and across of the tiles that a kernel may have, as `shape_of_tiles` of the runtime numbers them. Of the greatest each
factor is brought 16 bytes at a time, for tensor cores."""

HALVES = (DType.FLOAT16, DType.BFLOAT16)
"""The types that tensor cores multiply."""


@dataclass(frozen=True, slots=True)
class Products:
    """A sum of products in a statement's value: `down` and `across` are entries of the target that one of the factors has."""

    sum: Reduce
    factors: tuple[Expr, Expr]
    batch: tuple[int, ...]
    down: tuple[int, ...]
    across: tuple[int, ...]
    stored: TypeVar | DType | None
    """The type of the elements of an input or an output that both factors are, where they are."""

    def kinds(self, dtypes: Mapping[TypeVar, DType]) -> tuple[int, ...]:
        """Return which tiles of `TILES` stand for each, where type variables are these: others would be the same function."""
        stored = dtypes.get(self.stored) if isinstance(self.stored, TypeVar) else self.stored
        if stored in HALVES:
            return (0, 1, 2)
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
    down = tuple(n for n, name in enumerate(own) if name in left and name not in right)
    across = tuple(n for n, name in enumerate(own) if name in right and name not in left)
    if not down or not across:
        return None
    batch = tuple(n for n in range(len(own)) if n not in down and n not in across)
    if down[-1] > across[-1]:
        a, b, down, across = b, a, across, down
    return Products(e, (a, b), batch, down, across, _stored(op, a, b))


def _stored(op: Op, a: Expr, b: Expr) -> TypeVar | DType | None:
    """Return the type that both of two values are stored as; None where one is computed, or stored as it is computed."""
    if not (isinstance(a, Read) and isinstance(b, Read)):
        return None
    known = {o.name: o.type for o in (*op.inputs, *op.outputs)}
    found = known.get(a.operand)
    return found if isinstance(found, TypeVar | DType) and found == known.get(b.operand) else None


def steps_of(op: Op, e: Expr, names: Collection[str]) -> Mapping[str, int] | None:
    """Return which entry of a read each of some indices and groups is alone, None where the elements are not in steps along them."""
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
    return any(not terms.isdisjoint({i.name} if isinstance(i, GroupRef) else _indices(i)) for i in last)


def _indices(e: Affine | Expr) -> frozenset[str]:
    return frozenset(e.indices()) if isinstance(e, Affine) else free_indices(e)


def names_of(products: Products, op: Op, stage: NestStage, own: tuple[int, ...]) -> tuple[str, ...]:
    """Return the indices and groups that a factor's elements lie along: those of entries of the target, and the terms."""
    entries = [stage.assign.indices[n] for n in own]
    points = (i.name if isinstance(i, GroupRef) else str(i) for i in entries)
    return (*points, *(a.index if isinstance(a, Axis) else a.name for a in products.sum.axes))


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

    def kernel(self) -> Kernel:
        """Return the function."""
        p, of = self.products, self.products.sum.type
        left = self._factor("left", p.factors[0], (("batch", p.batch), ("down", p.down)), of)
        left_at = self._place("left_at", p.factors[0], p.down)
        right = self._factor("right", p.factors[1], (("batch", p.batch), ("across", p.across)), of)
        right_at = self._place("right_at", p.factors[1], p.across)
        names = {k: self.nest.fresh(k) for k in ("batch", "down", "across", "total")}
        places = (*self._entries(names["batch"], p.batch), *self._entries(names["down"], p.down))
        places = (*places, *self._entries(names["across"], p.across))
        value = self.value(replace_node(self.stage.assign.value, p.sum, Local(names["total"], of)))
        terms = [Product((variable(let.name), Member("@nest", "after", n))) for n, let in self._by_entry(places)]
        finished = used_places(places, (*self.lines, self.stored(sum_of(terms), value)))
        params = ((Weak.INT, names["batch"]), (Weak.INT, names["down"]), (Weak.INT, names["across"]), (of, names["total"]))
        finish = LocalFunction(self.nest.fresh("finish"), params, finished)
        along = (Named(f"opc::along_{'terms' if lies_along_terms(f, p) else 'points'}") for f in p.factors)
        places = (call("nowhere") if at is None else ref(at.name) for at in (left_at, right_at))
        left_place, right_place = places
        arguments = (NEST, ref(left.name), left_place, ref(right.name), right_place, ref(finish.name))
        tiles = Do(call("multiply_tiles", *arguments, types=(of, "Tiles", *along)))
        functions = [f for f in (left, left_at, right, right_at, finish) if f is not None]
        return self.function((Comment(format_assign(self.stage.assign)), *functions, tiles), self._tiled())

    def _tiled(self) -> Schedule:
        """Return the schedule: which tiles there may be, and which types tensor cores multiply."""
        p = self.products
        halves = [d for d in (p.stored.dtypes if isinstance(p.stored, TypeVar) else (p.stored,)) if d in HALVES]
        steps = [Transformation("bind", ("tiles to blocks",)), Transformation("tile", TILES if halves else TILES[:2])]
        return Schedule((*steps, Transformation("tensor", tuple(map(str, halves)))) if halves else tuple(steps))

    def _by_entry(self, places: tuple[Let, ...]) -> list[tuple[int, Let]]:
        p = self.products
        return sorted(zip((*p.batch, *p.down, *p.across), places, strict=True), key=lambda found: found[0])

    def _factor(self, name: str, value: Expr, entries: tuple[tuple[str, tuple[int, ...]], ...], of: ValueType) -> LocalFunction:
        """Return the function of a factor: of its batch, its place down or across, and the number of a term."""
        params, places = [], list[Let]()
        for word, own in entries:
            param = self.nest.fresh(word)
            params.append((Weak.INT, param))
            places += self._entries(param, own)
        term = self.nest.fresh("term")
        params.append((Weak.INT, term))
        before, self.lines = self.lines, []
        places += self._terms(term)
        result = Construct(of, self.value(value))
        body: Body = tuple(self.lines)
        self.lines = before
        # What only the result uses is used too.
        used = used_places(tuple(places), (*body, Do(call("store", result))))[:-1]
        return LocalFunction(self.nest.fresh(name), tuple(params), used, result, of)

    def _place(self, name: str, value: Expr, own: tuple[int, ...]) -> LocalFunction | None:
        """Return the function that tells where a factor's element of the first point and term of a batch lies; None where it is none."""
        p = self.products
        if steps_of(self.op, value, names_of(p, self.op, self.stage, own)) is None:
            return None
        batch = self.nest.fresh("batch")
        before, self.lines = self.lines, []
        places = [*self._entries(batch, p.batch), *self.places({n: number(0) for n in own})]
        places += [Let(loop.index, Weak.INT, number(0)) for loop in map(self.loop_over, p.sum.axes)]
        element = self.value(value)
        body: Body = tuple(self.lines)
        self.lines = before
        if not isinstance(element, Load):
            return None
        result = Address(element.view, element.offset)
        used = used_places(tuple(places), (*body, Do(call("store", result))))[:-1]
        return LocalFunction(self.nest.fresh(name), ((Weak.INT, batch),), used, result)

    def _entries(self, param: str, entries: tuple[int, ...]) -> tuple[Let, ...]:
        """Return the places along entries of the target, of a number that counts their points."""
        found: dict[int, Expr] = {}
        for k, n in enumerate(entries):
            behind: list[Expr] = [Member("@nest", "size", m) for m in entries[k + 1 :]]
            found[n] = variable(param) if len(entries) == 1 else place_of(variable(param), behind, Member("@nest", "size", n))
        return self.places(found)

    def _terms(self, param: str) -> tuple[Let, ...]:
        """Return the places along the axes of the sum, of the number of a term."""
        loops = [self.loop_over(axis) for axis in self.products.sum.axes]
        sizes = [loop.high for loop in loops]
        places = (place_of(variable(param), sizes[k + 1 :], size) for k, size in enumerate(sizes))
        found = [variable(param)] if len(loops) == 1 else places
        return tuple(Let(loop.index, Weak.INT, place) for loop, place in zip(loops, found, strict=True))
