"""The kernel of a sum of products in tiles: functions that tell where the elements of factors lie, and that store points."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from opc.ir.affine import Affine, FloorDiv, Index
from opc.ir.dtypes import TypeVar, Weak
from opc.ir.expr import Expr, IndexValue, Read
from opc.ir.printer import format_assign
from opc.loops.nodes import Body, Comment, Do, How, Kernel, Let, LocalFunction, Loop
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import (
    Address,
    Construct,
    Kind,
    Load,
    Local,
    Member,
    Named,
    Product,
    StoredType,
    Sum,
    call,
    number,
    ref,
    sum_of,
    variable,
)
from opc.lower.build.context import NEST, Nest
from opc.lower.build.points import PointLoops
from opc.lower.cuda.gathered import Gathered, of_points, of_terms
from opc.lower.cuda.library import LIBRARY, library_product_of
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.lower.cuda.products import HALVES, MOST_DIGITS, TILES, Products, lies_along_terms
from opc.lower.guards import replace_node
from opc.records import replace

Params: TypeAlias = tuple[tuple[Kind, str], ...]


def product_kernel(nest: Nest, products: Products) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return _DeviceProducts(nest, products).kernel()


def _rolled(body: Body) -> Body:
    """Return loops that a compiler does not unroll."""
    return tuple(replace(s, how=How.ROLLED, body=_rolled(s.body)) if isinstance(s, Loop) else s for s in body)


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
        functions, arguments = list[LocalFunction](), list[Expr]((NEST,))
        for side, value, word, own in (("left", p.factors[0], "down", p.down), ("right", p.factors[1], "across", p.across)):
            if (gathered := p.gathered.get(side)) is not None:
                points, terms = self._places_of(side, gathered, word, own)
                sizes = (IndexValue(size) for _, size in gathered.tests)
                kinds = str(len(gathered.tests)), str(len(gathered.steps))
                first = Address(gathered.read.operand, None)
                found = call("gathered_places", first, ref(points.name), ref(terms.name), *sizes, types=kinds)
                functions += points, terms
                arguments += ref(points.name), found
                continue
            factor, at = self._factor(side, value, word, own), self._at(side, value, own)
            functions += factor, *at
            place = ref(at[0].name) if len(at) == 1 else call("computed_places", *(ref(f.name) for f in at))
            arguments += ref(factor.name), place
        stores = self._finish()
        functions += stores
        arguments += (ref(f.name) for f in stores)
        if p.guarded:
            functions.append(again := self._again())
            arguments.append(ref(again.name))
        along = (Named(f"opc::along_{'terms' if lies_along_terms(side, p) else 'points'}") for side in ("left", "right"))
        stored = "void" if p.stored is None else StoredType(p.stored, self._stored_operand())
        tiles = Do(call("multiply_tiles", *arguments, types=(of, stored, "Tiles", *along)))
        return self.function((Comment(format_assign(self.stage.assign)), *functions, tiles), self._tiled())

    def _stored_operand(self) -> str:
        """Return an operand whose elements are what both factors are stored as."""
        return next(f.operand for f in self.products.factors if isinstance(f, Read))

    def _finish(self) -> tuple[LocalFunction, LocalFunction, LocalFunction]:
        """Return the functions that find the places of a point across, what is stored of its sum, and where."""
        p, of = self.products, self.products.sum.type
        across = self.nest.fresh("across")
        sizes = [self._size(n, "group_points") for n in p.across]
        found = [variable(across)]
        if self._are_digits:
            found = [place_of(variable(across), sizes[k + 1 :], size) for k, size in enumerate(sizes)]
        digits: Expr = call("digits", *found)
        if self._are_digits and (p.split is None or p.split.entry not in p.across):
            digits = call("digits_of", NEST, variable(across), types=tuple(map(str, p.across)))
        ends = LocalFunction(self.nest.fresh("ends"), ((Weak.INT, across),), (), digits)
        total = self.nest.fresh("total")
        params, places = self._point()
        value = self.value(replace_node(self.stage.assign.value, p.sum, Local(total, of)))
        stored = Construct(self.nest.declared.type, value)
        finished = used_places(places, (*self.lines, Do(call("store", stored))))[:-1]
        self.lines = []
        finish = LocalFunction(self.nest.fresh("finish"), (*params, (of, total)), finished, stored, self.nest.declared.type)
        params, places = self._point()
        whole = sorted((n, name) for n, name in self.whole.items())
        at = Address(
            self.nest.declared.name, sum_of([Product((variable(name), Member("@nest", "after", n))) for n, name in whole])
        )
        used = used_places(places, (Do(call("store", at)),))[:-1]
        return ends, finish, LocalFunction(self.nest.fresh("to"), params, used, at)

    @property
    def _are_digits(self) -> bool:
        """Whether the places across are found ahead of storing points."""
        return 1 < len(self.products.across) <= MOST_DIGITS

    def _point(self) -> tuple[Params, tuple[Let, ...]]:
        """Return the parameters of a function of a point, and its places along entries of the target."""
        p = self.products
        batch, down, ends, across = (self.nest.fresh(k) for k in ("batch", "down", "places", "across"))
        places = (*self._entries(batch, p.batch), *self._entries(down, p.down))
        if self._are_digits:
            places = (*places, *self._places_at({n: Member(ends, "at", k) for k, n in enumerate(p.across)}))
        else:
            number_of = Let(across, Weak.INT, Member(ends, "at", 0))
            places = (*places, number_of, *self._entries(across, p.across))
        return ((Weak.INT, batch), (Weak.INT, down), (Named("opc::digits"), ends)), places

    def _again(self) -> LocalFunction:
        """Return the function that adds up the terms of a point that count, and no others."""
        params, places = self._point()
        # It seldom runs, and is to be short: conditions are tested, and no ranges are found.
        loops, result = PointLoops.loops_of(self, self.products.sum)
        total = Local(result, self.products.sum.type)
        used = used_places(places, (*_rolled(loops), Do(call("store", total))))[:-1]
        return LocalFunction(self.nest.fresh("again"), params, used, total, self.products.sum.type)

    def _tiled(self) -> Schedule:
        """Return the schedule: which tiles there may be, which types tensor cores multiply, and which library may do it all."""
        p = self.products
        halves = [d for d in (p.stored.dtypes if isinstance(p.stored, TypeVar) else (p.stored,)) if d in HALVES]
        steps = [Transformation("bind", ("tiles to blocks",))]
        steps.append(Transformation("tile", TILES if halves and p.may_be_packed else TILES[:2]))
        if halves:
            steps.append(Transformation("tensor", tuple(map(str, halves))))
        if p.gathered:
            steps.append(Transformation("gather", tuple(p.gathered)))
        if p.computed:
            steps.append(Transformation("compute", p.computed))
        if (found := library_product_of(self.op, self.stage, p)) is not None:
            steps.append(Transformation("library", (LIBRARY, *(("bias",) if found.bias is not None else ()))))
        return Schedule(tuple(steps))

    def _places_of(self, side: str, found: Gathered, word: str, own: tuple[int, ...]) -> tuple[LocalFunction, LocalFunction]:
        """Return the functions that tell what a point, and what a term, adds to the place of an element."""
        batch, point, term = map(self.nest.fresh, ("batch", word, "term"))
        points = (*self._entries(batch, self.products.batch), *self._entries(point, own))
        at_point = self._placed(f"{side}_points", (batch, point), points, found, of_points)
        return at_point, self._placed(f"{side}_terms", (term,), self._terms(term), found, of_terms)

    def _placed(
        self,
        name: str,
        params: tuple[str, ...],
        places: tuple[Let, ...],
        found: Gathered,
        part: Callable[[Affine, tuple[str, ...]], Affine],
    ) -> LocalFunction:
        """Return the function that tells what a point or a term, the `part` of each index, adds to the place of an element."""
        terms = self.products.terms
        divided: dict[FloorDiv, Affine] = {}
        lets, numbers = list(places), [IndexValue(part(t, terms)) for t, _ in found.tests]
        rests: list[Expr] = []
        for numerator, divisor in found.steps:
            # Of a point what a term completes is left, so that it is rounded up.
            sign = -1 if part is of_points else 1
            own, quotient = part(numerator, terms) * sign, self.nest.fresh("quotient")
            lets.append(Let(quotient, Weak.INT, call("quotient_down", IndexValue(own), IndexValue(divisor))))
            rests.append(IndexValue(own - divisor * Index(quotient)))
            divided[FloorDiv(numerator, divisor)] = Affine.of(Index(quotient)) * sign
        indices = []
        for index in found.read.indices:
            assert isinstance(index, Affine), "it is found by its places"
            single = index.single
            indices.append(divided[single] if isinstance(single, FloorDiv) and single in divided else part(index, terms))
        before, self.lines = self.lines, []
        element = self.value(replace(found.read, indices=tuple(indices)))
        self.lines = before
        assert isinstance(element, Load), "what it reads is there"
        result = call("placed", element.offset, *numbers, *rests, types=(str(found.numbers),))
        used = used_places(tuple(lets), (Do(call("store", result)),))[:-1]
        return LocalFunction(self.nest.fresh(name), tuple(("[[maybe_unused]] int64_t", n) for n in params), used, result)

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
        if 1 < len(entries) <= MOST_DIGITS and (split is None or split.entry not in entries):
            all_of = tuple(map(str, entries))
            at = (call("digit_of", NEST, variable(param), types=(str(k), *all_of)) for k in range(len(entries)))
            return self._places_at(dict(zip(entries, at, strict=True)))
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
            place = Let(split.place, Weak.INT, found[split.entry])
            found = {n: Sum((first, variable(split.place))) if n == split.entry else at for n, at in found.items()}
            lets = self.places(found)
            self.whole |= {n: let.name for n, let in zip(found, lets, strict=True)}
            return place, *lets
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
