"""Running reductions on a device: one is carried along an index of the target, at each position of the others.

Where each point takes in one term more than the one before, and as many at each position of the others, lines of points are read
in one pass: the functions of a term and of a point are passed to the runtime, which has lanes of a warp, a block or several go
along a line. Else a thread carries a reduction along.
"""

from __future__ import annotations

from opc.ir.affine import Affine, Index
from opc.ir.dtypes import ValueType, Weak
from opc.ir.expr import Axis, Call, Cast, Expr, GroupRef, IndexValue, Read, Select, children, reads
from opc.ir.printer import format_assign
from opc.loops.nodes import Accumulate, Body, Comment, Do, How, If, Kernel, Let, LocalFunction, Loop, Statement, Var
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Address, Construct, Load, Local, Member, Product, call, compare, number, ref, sum_of, variable
from opc.lower.build.context import NEST, Nest
from opc.lower.build.reduction import start_of
from opc.lower.build.scan import first_number, take_terms
from opc.lower.cuda.points import FlatPoints, place_of, used_places
from opc.lower.guards import replace_node
from opc.lower.nest_plans import ScanPlan

_ROW = "@row"

_Params = tuple[tuple[ValueType, str], ...]


def scanned_entry(plan: ScanPlan) -> int:
    """Return the entry of the target's indices along which a reduction is carried."""
    return plan.statement.indices.index(plan.index)


def first_terms(plan: ScanPlan) -> Affine | None:
    """Return how many terms are taken in at the first point that a scan passes, or fewer than 0 where as many points pass before
    there is one; None where that differs from line to line, or not one term more is taken in at each further point."""
    flat = plan.statement
    size = dict(zip(flat.indices, flat.extents, strict=True))[plan.index]
    step = 0 if plan.from_here else -1 if plan.descending else 1
    at_0 = plan.axis.extent - Affine.of(Index(plan.index)) * step
    if at_0.indices() & set(flat.indices) or any(r.checked for r in reads(flat.value)):
        return None
    return at_0 - size + 1 if plan.from_here else at_0 - (size - 1) if plan.descending else at_0


def ahead_of(nest: Nest, plan: ScanPlan) -> Read | None:
    """Return what each term reads whatever it chooses, in steps along its number; None where there is nothing of the kind."""
    return _ahead(nest, plan.reduction.body, plan.axis.index)


def scan_kernel(nest: Nest, plan: ScanPlan) -> Kernel:
    """Return the function of a statement, whose variables have no names of their own yet."""
    return (_DeviceScan if first_terms(plan) is None else _LineScan)(nest, plan).kernel()


class _DeviceScan(FlatPoints):
    """Makes the loop of one statement, in which a thread has a line."""

    def __init__(self, nest: Nest, plan: ScanPlan) -> None:
        super().__init__(nest)
        self.plan, self.along = plan, scanned_entry(plan)

    def kernel(self) -> Kernel:
        """Return the function."""
        plan, assign, e, axis = self.plan, self.stage.assign, self.plan.reduction, self.plan.axis
        index, carried = plan.index, self.nest.fresh_result(e.kind)
        places = self._rows()
        lines, value = self.inside(e.body)
        take: Body = (*lines, Accumulate(Local(carried, e.type), e.kind, value))
        more = take_terms(plan, take, lambda empty: If(empty, (Do(self.nothing(e.kind, axis.index)),)))
        lines, value = self.inside(replace_node(plan.statement.value, e, Local(carried, e.type)))
        body = (*more, *lines, self.stored(self._place(), value))
        size = Member("@nest", "size", self.along)
        row: Body = (
            Var(carried, e.type, start_of(e.kind, e.type)),
            Var(axis.index, Weak.INT, first_number(plan, number(0), size)),
            Loop(How.SERIAL, index, number(0), size, body, down=plan.descending),
        )
        loop = Loop(How.GRID, _ROW, number(0), Member("@nest", "work"), used_places(places, row))
        schedule = Schedule((Transformation("bind", ("rows to all threads",)), Transformation("scan", (index,))))
        return self.function((Comment(format_assign(assign)), loop), schedule)

    def _rows(self) -> tuple[Let, ...]:
        """Return the places of a row along the indices of the target that it does not go along."""
        indices = self.plan.statement.indices
        others = [n for n in range(len(indices)) if n != self.along]
        lets = []
        for k, n in enumerate(others):
            behind: list[Expr] = [Member("@nest", "size", m) for m in others[k + 1 :]]
            lets.append(Let(indices[n], Weak.INT, place_of(variable(_ROW), behind, Member("@nest", "size", n))))
        return tuple(lets)

    def _place(self) -> Expr:
        """Return where the element of a point is."""
        indices = enumerate(self.plan.statement.indices)
        return sum_of([Product((variable(name), Member("@nest", "after", n))) for n, name in indices])


class _LineScan(FlatPoints):
    """Makes the functions of a term and of a point of one statement."""

    def __init__(self, nest: Nest, plan: ScanPlan) -> None:
        super().__init__(nest)
        self.plan, self.along = plan, scanned_entry(plan)

    def kernel(self) -> Kernel:
        """Return the function."""
        plan, e, axis, target = self.plan, self.plan.reduction, self.plan.axis, self.nest.declared
        read = ahead_of(self.nest, plan)
        functions: list[LocalFunction] = []
        body, more, given = e.body, tuple[tuple[ValueType, str], ...](), list[Expr]()
        if read is not None:
            functions.append(self._first(axis, read))
            element = self.nest.fresh("element")
            body, more = replace_node(e.body, read, Local(element, read.type)), ((read.type, element),)
            given = [Address(read.operand, None), ref(functions[0].name), self._step(axis, read)]
        functions.append(self._function("term", ((Weak.INT, "t"), *more), axis, body, e.type))
        total = self.nest.fresh_result(e.kind)
        value = replace_node(plan.statement.value, e, Local(total, e.type))
        functions.append(self._function("value", ((Weak.INT, plan.index), (e.type, total)), axis, value, target.type))
        names = [ref(f.name) for f in functions[-2:]]
        start = Construct(e.type, start_of(e.kind, e.type))
        # A zero in place of an element that there is none of changes no sum.
        plain = e.kind == "sum" and _is_element(e.body) and read is not None and len(reads(plan.statement.value)) == 1
        flags = ("true" if flag else "false" for flag in (plan.descending, plain))
        types = (f"opc::joins_{e.kind}", e.type, *flags)
        scan = Do(call("scan_lines", NEST, start, Address(target.name, None), *given, *names, types=types))
        schedule = Schedule((Transformation("bind", ("lines to teams",)), Transformation("scan", (plan.index, "one pass"))))
        return self.function((Comment(format_assign(self.stage.assign)), *functions, scan), schedule)

    def _function(self, name: str, own: _Params, axis: Axis, value: Expr, of: ValueType) -> LocalFunction:
        """Return a function of a line's place ahead of the index that it goes along and behind it, and of `own`: the number of a
        term, in the order in which they are taken in, or the index, and another value."""
        params, places = self._place()
        (kind, word), *more = own
        lines = list[Statement]()
        if word == "t":
            word = self.nest.fresh(word)
            places.append(self._numbered(axis, Affine.of(Index(word))))
        elif not self.plan.nonempty:
            terms = IndexValue(axis.extent)
            test = compare("le", terms, variable(word) if self.plan.from_here else number(0))
            lines.append(If(test, (Do(self.nothing(self.plan.reduction.kind, axis.index)),)))
        found, result = self.inside(value)
        return self._returning(name, (*params, (kind, word), *more), places, (*lines, *found), Construct(of, result))

    def _first(self, axis: Axis, read: Read) -> LocalFunction:
        """Return the function of where the element of a line's first term lies."""
        params, places = self._place()
        load = self.inside(read)[1]
        assert isinstance(load, Load), "what is read ahead is read everywhere"
        return self._returning("first", params, [*places, self._numbered(axis, Affine.of(0))], (), load.offset)

    def _step(self, axis: Axis, read: Read) -> Expr:
        """Return how far the element of each term lies behind that of the one before."""
        declared, steps = self.op.operand(read.operand), list[Expr]()
        for n, index in enumerate(read.indices):
            found = index.coefficient(axis.index) if isinstance(index, Affine) else None
            if found is not None and found != Affine.of(0):
                one = IndexValue(-found if self.plan.from_here else found)
                steps.append(Product((one, Member(read.operand, "stride", self.nest.axis_of(declared, n)))))
        return sum_of(steps)

    def _numbered(self, axis: Axis, t: Affine) -> Let:
        """Return the index of a term by its number in the order in which they are taken in."""
        return Let(axis.index, Weak.INT, IndexValue(axis.extent - 1 - t if self.plan.from_here else t))

    def _place(self) -> tuple[_Params, list[Let]]:
        """Return the parameters that every function has, a line's places ahead of its index and behind, and their indices."""
        front, behind = self.nest.fresh("front"), self.nest.fresh("behind")
        places = [*self._places(front, range(self.along)), *self._places(behind, range(self.along + 1, len(self._indices)))]
        return ((Weak.INT, front), (Weak.INT, behind)), places

    def _returning(self, name: str, params: _Params, places: list[Let], body: Body, result: Expr) -> LocalFunction:
        """Return a function with the places that are used in it."""
        used = used_places(tuple(places), (*body, Do(call("store", result))))[:-1]
        return LocalFunction(self.nest.fresh(name), params, used, result, result.type)

    @property
    def _indices(self) -> tuple[str, ...]:
        return self.plan.statement.indices

    def _places(self, of: str, entries: range) -> tuple[Let, ...]:
        """Return the places along entries of the target, of a number that counts their points."""
        lets = []
        for k, n in enumerate(entries):
            behind: list[Expr] = [Member("@nest", "size", m) for m in entries[k + 1 :]]
            place = variable(of) if len(entries) == 1 else place_of(variable(of), behind, Member("@nest", "size", n))
            lets.append(Let(self._indices[n], Weak.INT, place))
        return tuple(lets)


def _ahead(nest: Nest, body: Expr, index: str) -> Read | None:
    if isinstance(body, Read):
        plain = body.pad is None and not body.checked and not nest.is_optional(body.operand)
        found = [i for i in body.indices if not isinstance(i, GroupRef)]
        linear = all(isinstance(i, Affine) and not i.minima() and _is_plain(i.coefficient(index)) for i in found)
        moves = any(isinstance(i, Affine) and index in i.indices() for i in found)
        return body if plain and linear and moves else None
    parts = children(body)
    if isinstance(body, Select) or (isinstance(body, Call) and body.fn in ("and", "or")):
        parts = parts[:1]
    return next((r for c in parts if (r := _ahead(nest, c, index)) is not None), None)


def _is_element(e: Expr) -> bool:
    """Whether a value is an element that is read, converted perhaps."""
    return isinstance(e, Read) or (isinstance(e, Cast) and _is_element(children(e)[0]))


def _is_plain(step: Affine | None) -> bool:
    """Whether an index goes in steps that are the same everywhere."""
    return step is not None and not step.indices()
