"""Which elements of its inputs one element of an op's output is computed from.

The body is walked backwards from that element: at one point every index is a number, so each read names one element, of an input
or of a temporary, whose own statement is walked then. Conditions and indices that are data are computed as far as that takes, in
Python's numbers; where a condition can't be, both its sides count. This is for messages only and decides nothing.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opc.analysis.patterns import equalities
from opc.analysis.shapes.inference import ShapeEnv, infer, infer_types
from opc.analysis.shapes.scalar import Scalar, function
from opc.ir.affine import Affine, Index, Symbol
from opc.ir.dtypes import DType
from opc.ir.expr import (
    AttrRef,
    Axis,
    BroadcastAxis,
    Call,
    Cast,
    Const,
    Expr,
    GroupIndex,
    GroupRef,
    IndexValue,
    Present,
    Read,
    Reduce,
    Select,
    StrConst,
    children,
    conjuncts,
)
from opc.ir.narrow import settled
from opc.ir.op import Op
from opc.testing.arranged import declared, declared_point, seen_point
from opc.testing.oracle.bounds import Array

MOST_STEPS = 4000
"""How many nodes are visited for one element; beyond, the trace is too long to be shown."""

Point = tuple[int, ...]


Element = tuple[str, Point]
"""An element of an operand: its name, and where."""


class UntoldError(Exception):
    """What an element is computed from is unknown: it is too much, or it depends on data that are not known."""


@dataclass(frozen=True, slots=True)
class Reads:
    """What one element of an output is computed from.

    `elements` has the elements of each input, in the order they are read, and `outside` the places that padded reads name beside
    it. `links` are pairs of an element of an input and what its value, an index, chooses: an element of another input, or that
    of the output.
    """

    elements: Mapping[str, list[Point]]
    outside: Mapping[str, list[Point]]
    links: tuple[tuple[Element, Element], ...]


@dataclass(frozen=True, slots=True)
class _Scope:
    """One point: the value of each index variable, and the point of each axis group; `at` is the element that is defined."""

    at: Element
    indices: Mapping[str, int] = field(default_factory=dict)
    groups: Mapping[str, Point] = field(default_factory=dict)


def lineage(
    op: Op, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], output: str, at: Point
) -> dict[str, list[Point]]:
    """Return for each input the elements that `output` at `at` is computed from, in the order they are read.

    Raises:
        UntoldError: when that is unknown.
        ShapeError: when the op refuses the call.
    """
    return dict(_walked(op, inputs, attributes, output, at, False).elements)


def reads(op: Op, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], output: str, at: Point) -> Reads:
    """Return what `output` at `at` is computed from, with what lies outside and what indices choose.

    Raises:
        UntoldError: when that is unknown.
        ShapeError: when the op refuses the call.
    """
    return _walked(op, inputs, attributes, output, at, True)


def _walked(
    op: Op, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], output: str, at: Point, linking: bool
) -> Reads:
    given = {name: array for name, array in inputs.items() if array is not None}
    env = infer(op, {name: array.shape for name, array in given.items()}, attributes)
    told = infer_types(op, {name: DType(str(array.dtype)) for name, array in given.items()}, attributes)
    op = settled(op, {t.name: told.get(t.name, t.dtypes[0]) for t in op.types})
    if op.opaque:
        raise UntoldError("the op has no body")
    walk = _Walk(op, env, {name: declared(env, op.input(name), array) for name, array in given.items()}, linking)
    try:
        walk.element(output, declared_point(env, op.output(output), at))
    except (ArithmeticError, LookupError, ValueError, RecursionError) as error:
        raise UntoldError(str(error)) from None

    def seen(element: Element) -> Element:
        name, place = element
        return name, seen_point(env, op.operand(name), place)

    elements, outside = (
        {n: [seen((n, place))[1] for place in found[n]] for n in given if n in found} for found in (walk.found, walk.outside)
    )
    return Reads(elements, outside, tuple((seen(source), seen(target)) for source, target in walk.links))


class _Walk:
    """One walk: the elements met, of inputs in `found`, and the values of temporaries that were read."""

    def __init__(self, op: Op, env: ShapeEnv, inputs: Mapping[str, Array], linking: bool = False) -> None:
        self.op, self.env, self.inputs, self.linking, self.steps = op, env, inputs, linking, 0
        self.found: dict[str, dict[Point, None]] = {}
        self.outside: dict[str, dict[Point, None]] = {}
        self.links: dict[tuple[Element, Element], None] = {}
        self.met: set[tuple[str, Point]] = set()
        self.values: dict[tuple[str, Point], Scalar | None] = {}

    def step(self) -> None:
        """Count a step."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise UntoldError("there are too many")

    def element(self, operand: str, at: Point) -> None:
        """Note an element, and those that it is computed from."""
        self.step()
        if operand in self.inputs:
            self.found.setdefault(operand, {})[at] = None
        elif operand in self.op.assignments and (operand, at) not in self.met:
            self.met.add((operand, at))
            self.visit(self.op.assignments[operand].value, self.scope(operand, at))

    def scope(self, target: str, at: Point) -> _Scope:
        """Return the point that the statement of a target is at."""
        indices: dict[str, int] = {}
        groups: dict[str, Point] = {}
        specs = [d for d in self.op.operand(target).dims if not isinstance(d, Affine)]
        rest = at
        for index in self.op.assignments[target].indices:
            if isinstance(index, GroupRef):
                spec = specs.pop(0)
                rank = len(self.env.groups.get((spec.name, spec.of), ()))
                groups[index.name], rest = rest[:rank], rest[rank:]
            else:
                indices[index], rest = rest[0], rest[1:]
        return _Scope((target, at), indices, groups)

    def visit(self, e: Expr, scope: _Scope) -> None:
        """Note what an expression reads at a point."""
        self.step()
        match e:
            case Read():
                for index in e.indices:
                    if not isinstance(index, Affine | GroupRef):
                        self.visit(index, scope)
                named = self.named(e, scope)
                if self.inside(e, named):
                    self.element(e.operand, named)
                    self.link([i for i in e.indices if not isinstance(i, Affine | GroupRef)], scope, [(e.operand, named)])
                elif e.pad is not None:
                    self.outside.setdefault(e.operand, {})[named] = None
                    self.visit(e.pad, scope)
            case Select():
                self.visit(e.cond, scope)
                chosen = self.value(e.cond, scope)
                for side, truth in ((e.then, True), (e.other, False)):
                    if chosen is None or bool(chosen) is truth:
                        self.visit(side, scope)
                if self.linking and chosen:
                    self.choose(e, scope)
            case Reduce():
                for point in self.points(e, scope):
                    self.visit(e.body, point)
            case _:
                for child in children(e):
                    self.visit(child, scope)

    def link(self, indices: Sequence[Expr], scope: _Scope, chosen: Sequence[Element]) -> None:
        """Note that the values of indices choose these elements, where they are read from inputs."""
        if self.linking and indices:
            sources = [(name, at) for name, found in self.read_by(indices, scope).items() for at in found]
            shown = [e for e in chosen if e[0] in self.inputs or e[0] not in self.temporaries]
            self.links |= dict.fromkeys(itertools.product(sources, shown))

    def choose(self, e: Select, scope: _Scope) -> None:
        """Note what a condition `index == value` that holds chooses: this element by its own index, else what is read there."""
        own = self.op.assignments[scope.at[0]].indices
        for condition in conjuncts(e.cond):
            for index, value in equalities(condition):
                read = [(name, at) for name, found in self.read_by([e.then], scope).items() for at in found]
                self.link([value], scope, [scope.at] if index in own else read)

    def read_by(self, parts: Sequence[Expr], scope: _Scope) -> Mapping[str, Mapping[Point, None]]:
        """Return the elements of inputs that expressions read at a point."""
        apart = _Walk(self.op, self.env, self.inputs)
        for e in parts:
            apart.visit(e, scope)
        return apart.found

    @property
    def temporaries(self) -> set[str]:
        """The names of the operands that no caller sees."""
        return {o.name for o in self.op.temporaries}

    def place(self, e: Read, scope: _Scope) -> Point | None:
        """Return the element a read names, None where that is outside."""
        named = self.named(e, scope)
        return named if self.inside(e, named) else None

    def shape(self, e: Read) -> Point:
        """Return the shape of what is read."""
        return self.inputs[e.operand].shape if e.operand in self.inputs else self.env.shape_of(self.op.operand(e.operand))

    def inside(self, e: Read, at: Point) -> bool:
        """Whether a place is one of what is read."""
        return all(0 <= i < size for i, size in zip(at, self.shape(e), strict=True))

    def named(self, e: Read, scope: _Scope) -> Point:
        """Return the place a read names, inside of its operand or not."""
        operand, shape = self.op.operand(e.operand), self.shape(e)
        specs = [d for d in operand.dims if not isinstance(d, Affine)]
        at: list[int] = []
        for index in e.indices:
            if isinstance(index, GroupRef):
                spec = specs.pop(0)
                rank = len(self.env.groups.get((spec.name, spec.of), ()))
                point = scope.groups[index.name]
                # Groups that broadcast are aligned at the right; an axis of size 1 has one element for all.
                at += [0 if shape[len(at) + k] == 1 else i for k, i in enumerate(point[len(point) - rank :])]
            elif isinstance(index, Affine):
                at.append(index.evaluate(self.symbol(scope)))
            else:
                value = self.value(index, scope)
                if value is None:
                    raise UntoldError(f"the index of {e.operand} is not known")
                at.append(int(value))
        return tuple(at)

    def symbol(self, scope: _Scope) -> Callable[[Symbol], int]:
        """Return what gives the value of each symbol at a point."""
        return lambda s: scope.indices[s.name] if isinstance(s, Index) else self.env.symbol(s)

    def points(self, e: Reduce, scope: _Scope) -> Iterator[_Scope]:
        """Yield every point of a reduction."""
        yield from self._points(e.axes, scope)

    def _points(self, axes: Sequence[Any], scope: _Scope) -> Iterator[_Scope]:
        if not axes:
            yield scope
            return
        axis = axes[0]
        if isinstance(axis, Axis):
            for i in range(axis.extent.evaluate(self.symbol(scope))):
                yield from self._points(axes[1:], replace(scope, indices={**scope.indices, axis.index: i}))
            return
        full = self.env.groups.get((axis.name, None), ())
        kept: list[int | None] = [None] * len(full)
        if isinstance(axis, BroadcastAxis):
            # The axes that the operand has whole are not reduced: there the point stays where it is.
            own = self.env.groups.get((axis.name, axis.operand), ())
            here = scope.groups.get(axis.name, (0,) * len(own))
            for k in range(len(own)):
                axis_of_full = len(full) - len(own) + k
                kept[axis_of_full] = here[k] if own[k] == full[axis_of_full] else None
        ranges = [range(size) if i is None else (i,) for i, size in zip(kept, full)]
        for point in itertools.product(*ranges):
            yield from self._points(axes[1:], replace(scope, groups={**scope.groups, axis.name: point}))

    def value(self, e: Expr, scope: _Scope) -> Scalar | None:
        """Return the value of an expression at a point, about as a kernel computes it; None where that is not known."""
        self.step()
        match e:
            case Const() | StrConst():
                return e.value
            case AttrRef():
                return self.env.attribute(e.name, e.element)
            case IndexValue():
                return e.value.evaluate(self.symbol(scope))
            case GroupIndex():
                return self.position(scope.groups[e.group], self.env.groups.get((e.group, None), ()))
            case Present():
                return e.operand in self.env.present
            case Read():
                at = self.place(e, scope)
                return self.stored(e.operand, at) if at is not None else None if e.pad is None else self.value(e.pad, scope)
            case Cast():
                return _cast(self.value(e.arg, scope), e.type)
            case Select():
                chosen = self.value(e.cond, scope)
                return None if chosen is None else self.value(e.then if chosen else e.other, scope)
            case Reduce():
                values = [self.value(e.body, point) for point in self.points(e, scope)]
                return None if None in values else _FOLDS[e.kind](values)
            case Call(fn="and" | "or"):
                left = self.value(e.args[0], scope)
                return left if left is None or bool(left) is (e.fn == "or") else self.value(e.args[1], scope)
            case Call():
                args = [self.value(a, scope) for a in e.args]
                return None if None in args else function(e.fn)(*args)
            case _:
                raise TypeError(f"{type(e).__name__} is no expression of an op")

    @staticmethod
    def position(point: Point, sizes: Point) -> int:
        """Return the row-major position of a point."""
        total = 0
        for i, size in zip(point, sizes, strict=True):
            total = total * size + i
        return total

    def stored(self, operand: str, at: Point) -> Scalar | None:
        """Return an element of an operand."""
        if operand in self.inputs:
            found: Scalar = self.inputs[operand][at].item()
            return found
        if (operand, at) not in self.values:
            self.values[operand, at] = self.value(self.op.assignments[operand].value, self.scope(operand, at))
        return self.values[operand, at]


def _cast(value: Scalar | None, to: object) -> Scalar | None:
    """Return a value as an element of another type: a fraction is cut off where that is a whole number."""
    if value is None or isinstance(value, str) or not isinstance(to, DType):
        return value
    return bool(value) if to is DType.BOOL else int(value) if to.is_integer else float(value)


_FOLDS: Mapping[str, Callable[[list[Any]], Scalar]] = {
    "sum": sum,
    "prod": math.prod,
    "max": max,
    "min": min,
    "any": any,
    "all": all,
    "argmax": lambda values: values.index(max(values)),
    "argmin": lambda values: values.index(min(values)),
}
"""Every reduction, of the values at its points in order."""

__all__ = ["Element", "Point", "Reads", "UntoldError", "lineage", "reads"]
