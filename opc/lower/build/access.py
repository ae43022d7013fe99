"""Accesses: reads of operands become loads at offsets, with the tests that they need.

A read that may fall outside becomes a block that decides; one that has the same value at all lanes may be carried out ahead of
the loop over them, where that is known to be inside (`Speculative`). Rows that are looked up at computed places are found and
fetched ahead of the loop.
"""

from __future__ import annotations

from abc import abstractmethod

from opc.analysis.patterns import conjunction
from opc.analysis.value_types import presence
from opc.ir.affine import Affine
from opc.ir.dtypes import DType, Weak
from opc.ir.expr import (
    Call,
    Const,
    Expr,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Select,
    children,
    free_indices,
    reads,
    with_children,
)
from opc.loops.nodes import Body, Buffer, Do, How, If, Let, Loop, Refuse, Return, Statement, Store, Yield
from opc.loops.values import (
    Block,
    Construct,
    IntegerChoice,
    Kind,
    Load,
    Local,
    Pointer,
    Speculative,
    Word,
    call,
    compare,
    number,
    product_of,
    sum_of,
    variable,
)
from opc.lower.build.context import NEST, NO_RANGE, GatherKey, LoopContext, VectorRange
from opc.lower.dense import position_of
from opc.lower.guards import inside, is_known_inside
from opc.lower.nests.gather_indices import gathered_entries, is_looked_up, is_tested
from opc.records import replace

NOWHERE = Word("opc::nowhere")


class Loads:
    """Turns the reads in expressions into loads.

    `given` are the optional operands known to be present where an expression stands; nothing of a `lazy` one may be computed
    ahead of it.
    """

    def __init__(self, given: frozenset[str], lazy: bool) -> None:
        self.given, self.lazy = given, lazy

    @abstractmethod
    def read(self, e: Read) -> Expr:
        """Return what a read becomes."""

    def value(self, e: Expr) -> Expr:
        """Return an expression with loads for its reads."""
        match e:
            case Read():
                return self.read(e)
            case Select():
                cond, before = self.value(e.cond), self.given
                self.given = before | presence(e.cond, False)
                other = self.branch(e.other)
                self.given = before | presence(e.cond, True)
                then = self.branch(e.then)
                self.given = before
                return replace(e, cond=cond, then=then, other=other)
            case Call(fn="and" | "or", args=(first, *rest)):
                return replace(e, args=(self.value(first), *map(self.branch, rest)))
            case _:
                return with_children(e, tuple(self.value(c) for c in children(e)))

    def branch(self, e: Expr) -> Expr:
        """Return one side of a conditional, of which nothing may be computed early."""
        before, self.lazy = self.lazy, True
        found = self.value(e)
        self.lazy = before
        return found


class Accesses(Loads):
    """Turns the reads in expressions over one range into loads. What must be computed ahead of the loop goes into `before`."""

    def __init__(self, known: LoopContext, over: VectorRange, lazy: bool = False) -> None:
        super().__init__(known.given, lazy)
        self.known, self.nest, self.over = known, known.nest, over
        self.before: list[Statement] = []
        self.inner: set[str] = set()
        self._rows: dict[Read, str] = {}

    def value(self, e: Expr) -> Expr:
        """As `Loads.value` says; a choice that every lane makes and that is the same at all of them may be made ahead of them."""
        if not isinstance(e, Select) or self.lazy or not self._is_alike(e):
            return super().value(e)
        return Speculative(Accesses(self.known, NO_RANGE, lazy=True).value(e))

    def _is_alike(self, e: Expr) -> bool:
        """Whether a value is made of what is read, at the same places for all lanes."""
        names, found = free_indices(e), reads(e)
        stays = bool(self.over.vector_axis) and self.over.vector_axis not in names and not names & self.inner
        return stays and bool(found) and all(r.operand not in self.known.locals for r in found)

    def index(self, index: Affine | Expr) -> Expr:
        """Return an index of a read as an integer."""
        return IndexValue(index) if isinstance(index, Affine) else self.value(index)

    def read(self, e: Read) -> Expr:
        """As `Loads.read` says."""
        local = self.known.locals.get(e.operand)
        if local is not None:
            return Local(local.name, local.type, variable(self.over.vector_axis) if local.row else None, local.member)
        varies = self._varies(e)
        rows = varies and not self.lazy and self.over.vector_axis == self.known.row_axis
        if rows and e.operand in self.nest.gathered and self.is_row(e):
            return Local(self._row(e), e.type, variable(self.over.vector_axis))
        if rows and is_looked_up(self.nest.op, e, self.over.vector_axis):
            return Local(self._fetched(e), e.type, variable(self.over.vector_axis))
        safe = is_known_inside(e, self.nest.sizes(e.operand), self.known.bounded)
        if varies or (self.lazy and not (safe and self.over.vector_axis)):
            return self._element(e)
        given, self.given = self.given, self.known.given  # it is computed where the operand may be absent
        found = self._element(e)
        self.given = given
        return Speculative(found)

    def _varies(self, e: Read) -> bool:
        """Whether a read changes from lane to lane: with the vector axis itself, or with a variable that is set in the loop over
        it."""
        names = free_indices(e)
        return bool(self.over.vector_axis) and (self.over.vector_axis in names or bool(names & self.inner))

    def _element(self, e: Read) -> Expr:
        """Return an element, with the tests that it needs where it stands."""
        optional = self.nest.is_optional(e.operand) and e.operand not in self.given
        if e.pad is not None and all(isinstance(i, Affine) for i in e.indices):
            found = inside(e, self.nest.sizes(e.operand), self.known.bounded)
            tests = [compare("ge", IndexValue(g), number(0)) for g in found]
            load, other = self.load(e, {}), self.branch(e.pad)
            return _under([*([Present(e.operand)] if optional else []), *tests], load, other)
        if e.pad is None and not self._checks(e):
            return _under([Present(e.operand)] if optional else [], self.load(e, {}), Const(0, e.type))
        return self._tested(e, optional)

    def _checks(self, e: Read) -> list[int]:
        """Return the entries of a read whose indices must be tested when the kernel runs."""
        return [n for n, i in enumerate(e.indices) if not isinstance(i, Affine) or n in e.checked]

    def _tested(self, e: Read, optional: bool) -> Block:
        """Return a read at computed indices, which decides where it stands."""
        body: list[Statement] = []
        if optional:
            absent = Call("not", (Present(e.operand),), DType.BOOL)
            body.append(If(absent, (Yield(Const(0, e.type)),)))
        indices: dict[int, Expr] = {}
        lazy, self.lazy = self.lazy, True
        for n in range(len(e.indices)) if e.pad is not None else self._checks(e):
            indices[n] = self._named(e, n, body)
            outside = self._outside(e, n, indices[n])
            if e.pad is not None:
                body.append(If(outside, (Yield(self.branch(e.pad)),)))
            else:
                body.append(Refuse(outside, self.nest.outside(e.operand, n, indices[n])))
        load = self.load(e, indices)
        self.lazy = lazy
        return Block(tuple(body), load, e.type)

    def _named(self, e: Read, entry: int, body: list[Statement]) -> Expr:
        """Append the computing of an index, and return the variable that holds it."""
        index = e.indices[entry]
        assert not isinstance(index, GroupRef), "a flat statement has no groups"
        at = self.nest.fresh(f"{e.operand}_at")
        body.append(Let(at, Weak.INT, self.index(index)))
        self.inner.add(at)
        return variable(at)

    def _outside(self, e: Read, entry: int, at: Expr) -> Expr:
        return call("outside", at, self.nest.size(e.operand, entry), type=DType.BOOL)

    def load(self, e: Read, indices: dict[int, Expr]) -> Load:
        """Return the load of an element, whose computed indices are in `indices`."""
        offset = self.offset(e, indices)
        position = position_of(self.nest.op, self.nest.stage.assign, e) if self._varies(e) and not self.lazy else None
        if position is not None:
            dense = self._dense(e)
            offset = IntegerChoice(conjunction(dense), IndexValue(position), offset) if dense else IndexValue(position)
        return Load(e.operand, offset, e.type, e.operand in self.nest.gathered)

    def _dense(self, e: Read) -> list[Expr]:
        """Return what says that the elements of an operand lie one behind the other; nothing where they do in every call."""
        unit, behind = self.known.units[e.operand], number(1)
        tests: list[Expr] = []
        for n in reversed(range(len(e.indices))):
            if n != unit:
                tests.append(compare("eq", self.nest.stride(e.operand, n), behind))
            behind = product_of(behind, self.nest.size(e.operand, n))
        return tests

    def offset(self, e: Read, indices: dict[int, Expr]) -> Expr:
        """Return the offset of an element: the sum of its indices times strides."""
        unit = self.known.units[e.operand] if e.indices else 0
        terms = []
        for n, index in enumerate(e.indices):
            assert not isinstance(index, GroupRef), "a flat statement has no groups"
            at = indices[n] if n in indices else self.index(index)
            if not (isinstance(index, Affine) and not index.terms and n not in indices):
                terms.append(product_of(at, None if n == unit else self.nest.stride(e.operand, n)))
        return sum_of(terms)

    def is_row(self, e: Read) -> bool:
        """Whether a read at computed places runs along a row of its operand."""
        if e.operand in self.known.locals or not e.indices:
            return False
        unit = self.known.units[e.operand]
        last = e.indices[unit]
        if e.pad is not None or unit in e.checked or not isinstance(last, Affine) or self.nest.is_optional(e.operand):
            return False
        step = last.coefficient(self.over.vector_axis)
        others = replace(e, indices=(*e.indices[:unit], *e.indices[unit + 1 :]))
        return step is not None and step.constant == 1 and self.over.vector_axis not in free_indices(others)

    def indices(self, e: Read) -> tuple[Body, dict[int, Expr]]:
        """Return the statements that compute and test the computed indices of a read, and the variables they are in."""
        body: list[Statement] = []
        found: dict[int, Expr] = {}
        for n in self._checks(e):
            found[n] = self._named(e, n, body)
            body.append(Refuse(self._outside(e, n, found[n]), self.nest.outside(e.operand, n, found[n])))
        return tuple(body), found

    def _row(self, e: Read) -> str:
        """Have the row that a read runs along looked up, and return the pointer to it."""
        if e not in self._rows:
            body, indices = self.indices(e)
            name = self._rows[e] = self.nest.fresh(f"{e.operand}_row")
            vector_axis = self.over.vector_axis
            start = at_first_lane(e, vector_axis)
            buffer = self.nest.fresh(f"{e.operand}_row_buffer")
            args = (NEST, self.nest.number_of(e.operand), self.offset(start, indices), self.over.low, self.over.high)
            pointer = call("row_at", *args, Local(buffer, e.type), type=e.type)
            self.before += [*body, Buffer(buffer, e.type, "opc::nest_columns"), Let(name, pointer_to(e), pointer)]
        return self._rows[e]

    def gather_key(self, e: Read) -> GatherKey:
        """Return what finds the place of a read that is looked up."""
        entries = gathered_entries(self.nest.op, e, self.over.vector_axis, self.known.bounded)
        return e.operand, tuple((n, e.indices[n]) for n in entries)

    def gather_index_loop(self, e: Read, row: str) -> Loop:
        """Return the loop that finds the places of a looked-up read and puts them into a row."""
        body: list[Statement] = []
        names = self._index_names(e, body)
        unit = self.known.units[e.operand]
        position = sum_of(product_of(at, None if n == unit else self.nest.stride(e.operand, n)) for n, at in names.items())
        for n, at in reversed(names.items()):
            if self._is_tested(e, n):
                position = IntegerChoice(self._outside(e, n, at), NOWHERE, position)
        body.append(Store(Local(row, Weak.INT, variable(self.over.vector_axis)), position))
        return Loop(How.VECTOR, self.over.vector_axis, self.over.low, self.over.high, tuple(body))

    def _is_tested(self, e: Read, entry: int) -> bool:
        return is_tested(e, entry, self.nest.sizes(e.operand), self.known.bounded)

    def _index_names(self, e: Read, body: list[Statement]) -> dict[int, Expr]:
        """Append the indices of the entries that vary or are tested, and return the variables that hold them by entry."""
        lazy, self.lazy = self.lazy, True
        names = {n: self._named(e, n, body) for n, _ in self.gather_key(e)[1]}
        self.lazy = lazy
        return names

    def _fetched(self, e: Read) -> str:
        """Have a row of elements fetched from places of their own, and return the array that holds them."""
        if e in self._rows:
            return self._rows[e]
        key = self.gather_key(e)
        indices = self.known.indices.get(key)
        if indices is None:
            indices = self.nest.fresh(f"{e.operand}_indices")
            self.before += [Buffer(indices, Weak.INT, self.known.row_size), self.gather_index_loop(e, indices)]
        moving = dict(key[1])
        start = replace(e, indices=tuple(Affine.of(0) if n in moving else i for n, i in enumerate(e.indices)))
        other = Const(0, e.type) if e.pad is None else self.branch(e.pad)
        name = self._rows[e] = self.nest.fresh(f"{e.operand}_row")
        args = (NEST, self.nest.number_of(e.operand), self.offset(start, {}), Local(indices, Weak.INT))
        row = Local(name, e.type)
        fetch = call("fetch_row", *args, self.over.low, self.over.high, Construct(e.type, other), row, type=DType.BOOL)
        self.before.append(Buffer(name, e.type, self.known.row_size))
        if e.pad is not None:
            self.before.append(Do(fetch))
        else:
            self.before.append(If(Call("not", (fetch,), DType.BOOL), self._refusal(e)))
        return name

    def _refusal(self, e: Read) -> Body:
        """Return the statements that report the first of a row's places that lies outside."""
        body: list[Statement] = []
        for n, at in self._index_names(e, body).items():
            if self._is_tested(e, n):
                body.append(If(self._outside(e, n, at), (Do(self.nest.outside(e.operand, n, at)),)))
        return Loop(How.SERIAL, self.over.vector_axis, self.over.low, self.over.high, tuple(body)), Return()


def at_first_lane(e: Read, vector_axis: str) -> Read:
    """Return a read at lane 0."""
    zero = Affine.of(0)
    return replace(
        e,
        indices=tuple(i.at(vector_axis, zero) if isinstance(i, Affine) else i for i in e.indices),
    )


def pointer_to(e: Read) -> Kind:
    """Return the type of a pointer to the elements of a read operand."""
    return Pointer(e.type, True)


def _under(conditions: list[Expr], then: Expr, other: Expr) -> Expr:
    """Return a value where all conditions hold, and another elsewhere."""
    return Select(conjunction(conditions), then, other, then.type) if conditions else then
