"""Copies of inputs in which one axis is the last one, so that windows of sums of products are brought 16 bytes at a time.

Images of a convolution lie along their rows, where a window begins anywhere: what it reads is not aligned. Along channels each of
its places reads whole pieces. So the factors of such a sum are read from copies in which channels lie together, and the sum goes
over them last. Copies are made by a kernel of their own, and are as many bytes as what they are copies of.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from opc.ir.affine import Affine, Index
from opc.ir.expr import Axis, Expr, Read, Reduce, rewrite
from opc.ir.op import Assign, Op, Operand
from opc.ir.printer import format_assign
from opc.loops.nodes import Comment, Do, Kernel, LocalFunction
from opc.loops.schedule import Schedule, Transformation
from opc.loops.values import Address, Load, Member, call, number, ref, variable
from opc.lower.build.context import NEST, Nest
from opc.lower.cuda.gathered import Gathered
from opc.lower.cuda.points import DevicePoints, place_of, used_places
from opc.lower.cuda.products import Products, products_of
from opc.lower.guards import replace_node
from opc.lower.loop_ir import NestStage
from opc.records import replace
from opc.transform.indices import INDEX_NAMES, Namer, bare, index_names, op_names

T = TypeVar("T")


def with_moved_axes(op: Op, alone: frozenset[str]) -> Op:
    """Return an op whose sums of products over windows, of the statements `alone`, read copies whose neighbours lie together."""
    moves = _Moves(op)
    body = [moves.statement(s) if s.target in alone else s for s in op.body]
    if not moves.temporaries:
        return op
    return replace(op, body=(*moves.copies, *body), temporaries=(*op.temporaries, *moves.temporaries))


class _Moves:
    def __init__(self, op: Op) -> None:
        self.op = op
        self.namer = Namer(op_names(op) | index_names(op))
        self.copies: list[Assign] = []
        self.temporaries: list[Operand] = []
        self.known: dict[tuple[str, int], Operand] = {}

    def statement(self, s: Assign) -> Assign:
        """Return a statement with the copies that it reads in place of inputs."""
        products = products_of(self.op, NestStage(s.target, s, ()))
        if products is None or not products.gathered or products.computed:
            return s
        windows = [side for side, g in products.gathered.items() if g.tests or g.steps]
        if len(windows) != 1:
            return s
        (window,) = windows
        gathered = products.gathered[window]
        found = self._innermost(gathered, products, s, window)
        if found is None:
            return s
        axis, name = found
        other = products.factors[1 if window == "left" else 0]
        if not isinstance(other, Read) or not self._may_move(other.operand):
            return s
        to_last = name in products.terms
        other_axis = self._axis_of_other(other, products, s, window, name if to_last else None)
        if other_axis is None:
            return s
        e = products.sum
        axes = tuple(a for a in e.axes if not (isinstance(a, Axis) and a.index == name and to_last))
        axes = (*axes, *(a for a in e.axes if a not in axes))
        body = self._moved(e.body, gathered.read.operand, axis)
        body = self._moved(body, other.operand, other_axis)
        return s.with_value(replace_node(s.value, e, Reduce(e.kind, axes, body, e.type, e.span)))

    def _may_move(self, operand: str) -> bool:
        declared = next((i for i in self.op.inputs if i.name == operand), None)
        return declared is not None and not declared.optional and all(isinstance(d, Affine) for d in declared.dims)

    def _innermost(self, g: Gathered, products: Products, s: Assign, side: str) -> tuple[int, str] | None:
        """Return the last axis of a window along which a point or a term goes from one place to the next, and its name."""
        if not self._may_move(g.read.operand):
            return None
        own = products.down if side == "left" else products.across
        points = [str(s.indices[n]) for n in own]
        indices = [i for i in g.read.indices if isinstance(i, Affine)]
        for axis in reversed(range(len(indices))):
            for name in (*products.terms, *points):
                # What goes along the first axis and is no term counts images: their elements are not to be between one another.
                alone = all(name not in i.indices() for n, i in enumerate(indices) if n != axis)
                if alone and (axis > 0 or name in products.terms) and self._is_along(indices[axis], name, products):
                    return axis, name
        return None

    @staticmethod
    def _is_along(a: Affine, name: str, products: Products) -> bool:
        if a.coefficient(name) != Affine.of(1):
            return False
        groups = set() if products.split is None else {products.split.group}
        return a.indices() - {name} <= groups

    def _axis_of_other(self, other: Read, products: Products, s: Assign, window: str, term: str | None) -> int | None:
        """Return the axis of the other factor that is to be the last: a term's, or one that a point of its own goes along."""
        indices = list(other.indices)
        if term is not None:
            found = [n for n, i in enumerate(indices) if isinstance(i, Affine) and term in i.indices()]
            return found[0] if len(found) == 1 and self._is_along(self._index(indices[found[0]]), term, products) else None
        at = [n for t in products.terms for n, i in enumerate(indices) if isinstance(i, Affine) and i.index == t]
        if len(at) == len(products.terms) and at == list(range(at[0], at[0] + len(at))):
            return len(indices) - 1
        own = products.across if window == "left" else products.down
        names = [str(s.indices[n]) for n in own]
        split = products.split
        names += [split.place] if split is not None and split.entry in own else []
        for axis in reversed(range(len(indices))):
            index = indices[axis]
            if isinstance(index, Affine) and any(self._is_along(index, name, products) for name in names):
                return axis
        return None

    @staticmethod
    def _index(e: object) -> Affine:
        assert isinstance(e, Affine), "it is one"
        return e

    def _moved(self, e: Expr, operand: str, axis: int) -> Expr:
        """Return a value that reads a copy of an operand."""
        dims = self.op.operand(operand).dims
        if axis == len(dims) - 1:
            return e
        copy = self._copy(operand, axis)

        def rule(node: Expr) -> Expr:
            if not isinstance(node, Read) or node.operand != operand:
                return node
            return Read(copy.name, _behind(node.indices, axis), node.type, node.pad, (), node.span)

        return rewrite(e, rule)

    def _copy(self, operand: str, axis: int) -> Operand:
        """Return the temporary that is a copy of an input, with an axis behind the others."""
        if (operand, axis) not in self.known:
            declared = self.op.operand(operand)
            own = Namer(op_names(self.op))
            indices = tuple(own.fresh(*INDEX_NAMES) for _ in declared.dims)
            name = self.namer.fresh(f"{operand}_moved")
            copy = Operand(name, declared.type, _behind(declared.dims, axis), copied=True)
            value = Read(operand, bare(indices), declared.type)
            self.copies.append(Assign(name, _behind(indices, axis), value))
            self.temporaries.append(copy)
            self.known[operand, axis] = copy
        return self.known[operand, axis]


def _behind(entries: Iterable[T], axis: int) -> tuple[T, ...]:
    rest = list(entries)
    last = rest.pop(axis)
    return (*rest, last)


def moved_axis(op: Op, stage: NestStage) -> int | None:
    """Return the axis of what a statement copies that is the last one of the copy, None where it is no such copy."""
    s = stage.assign
    if not op.operand(s.target).copied or not isinstance(s.value, Read):
        return None
    last = Affine.of(Index(str(s.indices[-1])))
    return s.value.indices.index(last)


def move_kernel(nest: Nest, axis: int) -> Kernel:
    """Return the function of a statement that copies an input, whose variables have no names of their own yet."""
    return _DeviceMove(nest, axis).kernel()


class _DeviceMove(DevicePoints):
    """Makes the function that tells where what is copied begins; `axis` is the last axis of the copy."""

    def __init__(self, nest: Nest, axis: int) -> None:
        super().__init__(nest)
        self.axis = axis

    def kernel(self) -> Kernel:
        """Return the function."""
        s, axis = self.stage.assign, self.axis
        assert isinstance(s.value, Read), "it copies an input"
        batch, across = self.nest.fresh("batch"), self.nest.fresh("across")
        count = len(s.indices) - 1
        found = {count: number(0)}
        for param, entries in ((batch, range(axis)), (across, range(axis, count))):
            for n in entries:
                behind = [Member("@nest", "size", m) for m in entries if m > n]
                found[n] = place_of(variable(param), behind, Member("@nest", "size", n))
        places = self.places({n: found[n] for n in sorted(found)})
        element = self.value(s.value)
        assert isinstance(element, Load), "an input is there"
        at = Address(element.view, element.offset)
        used = used_places(places, (Do(call("store", at)),))[:-1]
        start = LocalFunction(
            self.nest.fresh("from"), (("[[maybe_unused]] int64_t", batch), ("[[maybe_unused]] int64_t", across)), used, at
        )
        step = Member(s.value.operand, "stride", axis)
        move = Do(call("move_axis", NEST, ref(start.name), step, Address(s.target, None)))
        schedule = Schedule((Transformation("bind", ("tiles to blocks",)), Transformation("move", (str(s.indices[-1]),))))
        return self.function((Comment(format_assign(s)), start, move), schedule)
