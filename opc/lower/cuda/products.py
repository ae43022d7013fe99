"""Sums of products on a device: tiles of two factors in shared memory, whose products each thread adds up in registers.

What the target has of an index in one factor alone goes down or across a tile, what it has in both or in none is a batch.
"""

from __future__ import annotations

from opc.ir.dtypes import ValueType, Weak, is_floating
from opc.ir.expr import Axis, Call, Expr, GroupRef, Reduce, Select, children, free_groups, free_indices, walk
from opc.ir.op import Op
from opc.ir.printer import format_assign
from opc.loops.nodes import Body, Comment, Do, Kernel, Let, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Construct, Local, Member, Product, call, ref, sum_of, variable
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.lower.guards import replace_node
from opc.lower.loop_ir import NestStage
from opc.records import dataclass

TILE = ("64", "64", "16")
"""How many points a tile has down and across, and how many terms are in shared memory at once."""


@dataclass(frozen=True, slots=True)
class Products:
    """A sum of products in a statement's value: `down` and `across` are entries of the target that one of the factors has."""

    sum: Reduce
    factors: tuple[Expr, Expr]
    batch: tuple[int, ...]
    down: tuple[int, ...]
    across: tuple[int, ...]


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
    return Products(e, (a, b), batch, down, across)


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
        right = self._factor("right", p.factors[1], (("batch", p.batch), ("across", p.across)), of)
        names = {k: self.nest.fresh(k) for k in ("batch", "down", "across", "total")}
        places = (*self._entries(names["batch"], p.batch), *self._entries(names["down"], p.down))
        places = (*places, *self._entries(names["across"], p.across))
        value = self.value(replace_node(self.stage.assign.value, p.sum, Local(names["total"], of)))
        terms = [Product((variable(let.name), Member("@nest", "after", n))) for n, let in self._by_entry(places)]
        finished = used_places(places, (*self.lines, self.stored(sum_of(terms), value)))
        params = ((Weak.INT, names["batch"]), (Weak.INT, names["down"]), (Weak.INT, names["across"]), (of, names["total"]))
        finish = LocalFunction(self.nest.fresh("finish"), params, finished)
        tiles = Do(call("multiply_tiles", NEST, ref(left.name), ref(right.name), ref(finish.name), types=(of,)))
        schedule = Schedule((Transformation("bind", ("tiles to blocks",)), Transformation("tile", TILE)))
        return self.function((Comment(format_assign(self.stage.assign)), left, right, finish, tiles), schedule)

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
