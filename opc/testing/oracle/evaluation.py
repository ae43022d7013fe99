"""The oracle: what a correct kernel may answer, computed from the typed IR alone.

It evaluates an `Op` on concrete arrays and gives for every element of every output the set of values (`Bounds`) that kernels
keeping to the language's semantics and the function table's error bounds can produce. It shares no code with transform, lower or
emit.

Semantics it fixes (the table "Semantics" of the language reference): every operation on floating values rounds once in the
compute type; attributes, literals and other weak values are taken exactly or rounded to the type they are combined with; sums and
products may be rearranged, also across statements, and what overflows or loses its digits on the way in one order may do so (see
`opc.testing.oracle.orders`); sums that are added may be one sum; an output that a later statement reads counts rounded or
unrounded; one rounding at each store.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import ShapeEnv, infer, infer_types
from opc.ir.affine import Affine
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import Binding, DType, resolve
from opc.ir.expr import (
    Expr,
    GroupRef,
)
from opc.ir.op import Assign, Op, Operand, size_name
from opc.ir.recurrence import Recurrence, segments
from opc.records import replace
from opc.testing.arranged import declared, seen
from opc.testing.oracle.ahead import Ahead
from opc.testing.oracle.bounds import (
    UNKNOWN,
    Array,
    Bounded,
    Bounds,
    exact,
    held,
    union,
)
from opc.testing.oracle.conversions import cast
from opc.testing.oracle.expressions import Expressions
from opc.testing.oracle.frame import EMPTY, DomainError, EmptyReductionError, Frame, UndecidedError
from opc.testing.oracle.needed import needed
from opc.testing.oracle.numbering import ValueNumbers
from opc.testing.oracle.opaque import evaluate_opaque
from opc.testing.oracle.rounding import rounded

__all__ = ["Bounded", "DomainError", "EmptyReductionError", "askable", "evaluate", "told_sizes"]


def evaluate(
    op: Op,
    inputs: Mapping[str, Array | Bounds | Bounded | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    binding: Binding | None = None,
    wanted: Collection[str] | None = None,
    precise: bool = False,
    numbers: ValueNumbers | None = None,
) -> dict[str, Bounded]:
    """Return what every output of `op` may be on these inputs.

    An input is an array, or a set of possible arrays (an earlier result); None or missing is an absent optional operand. The type
    variables are bound by the arrays' dtypes unless `binding` says. `wanted` names the outputs to compute, by default all but the
    gradients of absent inputs.
    With `precise` all floating values are computed in float64 and nothing is rounded to the stored type. With `numbers` the sets
    are those of real numbers with all rounding errors, and hold what exact arithmetic gives: an element is equal to itself.

    Sizes that data tells and `attributes` do not have are computed first.

    What an op without a body may answer is given by its reference; see `opc.testing.oracle.opaque`.

    Raises:
        ShapeError: when the op refuses the call.
        DomainError: when the op has no value on these inputs.
        UndecidedError: when the reference of an op without a body does not decide, when a comparison that rounding may turn
        decides whether an op has a value, and when a temporary has none that is read on sides alone that the call rules out.
    """
    given = {name: value for name, value in inputs.items() if value is not None}
    if binding is None:
        told = infer_types(op, {n: _dtype_of(v) for n, v in given.items()}, attributes)
        # A type that no operand determines is the type of zeros only.
        binding = {t.name: told.get(t.name, t.dtypes[0]) for t in op.types}
    sets = {name: _as_bounds(value) for name, value in given.items()}
    if numbers is not None:
        sets = {name: numbers.of(value) for name, value in sets.items()}
    attributes = {**(attributes or {}), **told_sizes(op, inputs, attributes or {}, binding)}
    env = infer(op, {name: tuple(value.low.shape) for name, value in sets.items()}, attributes)
    names = [n for n in (askable(op, given) if wanted is None else wanted) if n in env.outputs]
    with np.errstate(all="ignore"):
        if op.opaque:
            return evaluate_opaque(op, env, sets, binding, names, precise)
        return _seen(op, env, _Evaluation(op, env, binding, _declared(op, env, sets), precise, numbers).run(names))


def told_sizes(
    op: Op,
    inputs: Mapping[str, Array | Bounds | Bounded | None],
    attributes: Mapping[str, Any],
    binding: Binding | None = None,
) -> dict[str, int]:
    """Return the sizes that data tells, of those that attributes do not have; errors as `evaluate`.

    Raises:
        UndecidedError: when a rounding may decide how many there are.
    """
    missing = [name for name in op.told if name not in attributes]
    if op.sizes is None or not missing:
        return {}
    own = {name: value for name, value in attributes.items() if name not in op.told}
    results = evaluate(op.sizes, inputs, own, binding=binding)
    found: dict[str, int] = {}
    for name in missing:
        bounds = results[size_name(name)].bounds
        if int(bounds.low) != int(bounds.high):
            raise UndecidedError(f"{name} is from {int(bounds.low)} to {int(bounds.high)}, as roundings turn out")
        found[name] = int(bounds.low)
    return found


def _declared(op: Op, env: ShapeEnv, sets: Mapping[str, Bounds]) -> dict[str, Bounds]:
    """Return inputs with the axes of their declarations."""
    if arrangement(op) is None:
        return dict(sets)
    return {name: value.map(partial(declared, env, op.input(name))) for name, value in sets.items()}


def _seen(op: Op, env: ShapeEnv, results: Mapping[str, Bounded]) -> dict[str, Bounded]:
    """Return outputs with the axes that callers see."""
    if arrangement(op) is None:
        return dict(results)
    return {name: Bounded(r.bounds.map(partial(seen, env, op.output(name))), r.dtype) for name, r in results.items()}


def askable(op: Op, given: Collection[str]) -> list[str]:
    """Return the outputs a caller who gives these inputs may ask for: the gradient of an absent input is not among them."""
    belongs = dict(zip((o.name for o in op.outputs), op.derivation.outputs, strict=True)) if op.derivation else {}
    absent = {o.name for o in op.inputs if o.name not in given}
    return [o.name for o in op.outputs if not (o.optional and belongs.get(o.name) in absent)]


def _with(whole: Bounds, part: Bounds, axis: int, at: int) -> Bounds:
    """Return sets with those at one index of an axis replaced."""
    place: tuple[Any, ...] = (*(slice(None),) * axis, at)

    def put(a: Array, b: Array) -> Array:
        own = np.array(a, dtype=np.result_type(a, b))
        own[place] = b
        return own

    number = None
    if whole.number is not None or part.number is not None:
        known = np.full(whole.low.shape, UNKNOWN) if whole.number is None else whole.number
        number = put(known, np.asarray(UNKNOWN) if part.number is None else part.number)
    return Bounds(put(whole.low, part.low), put(whole.high, part.high), put(whole.nan, part.nan), number)


def _dtype_of(value: Array | Bounds | Bounded) -> DType:
    if isinstance(value, Bounded):
        return value.dtype
    if isinstance(value, Bounds):
        raise TypeError("a set of arrays has no dtype: give the binding")
    return DType(str(value.dtype))


def _as_bounds(value: Array | Bounds | Bounded) -> Bounds:
    return value if isinstance(value, Bounds) else value.bounds if isinstance(value, Bounded) else exact(value)


class _Evaluation(Expressions):
    """One evaluation of an op, statement by statement."""

    def run(self, names: list[str]) -> dict[str, Bounded]:
        """Evaluate the statements that the non-empty ones among the wanted outputs need."""
        shapes = {name: self.env.shape_of(name) for name in names}
        given = [name for name, shape in shapes.items() if 0 not in shape]
        read = needed(self.op, given)
        outputs = {o.name for o in self.op.outputs}
        result: dict[str, Bounded] = {}
        for recurrence, statements in segments(self.op):
            together = [s for s in statements if s.target in read]
            for few in [[s] for s in together] if recurrence is None else [together] if together else []:
                try:
                    found = self.computed(few, recurrence, outputs)
                except DomainError as error:
                    name = few[0].target
                    if isinstance(error, UndecidedError) or name in needed(self.op, given, self.decided):
                        raise
                    raise UndecidedError(f"{name} is read on sides alone that the call rules out: {error}") from error
                for name, stored in found.items():
                    if name in shapes:
                        result[name] = Bounded(stored, resolve(self.op.operand(name).type, self.binding))
        for name in names:
            if name not in result:
                operand = self.op.output(name)
                dtype = resolve(operand.type, self.binding)
                result[name] = Bounded(exact(np.zeros(shapes[name], held(dtype))), dtype)
        return {name: result[name] for name in names}

    def computed(
        self, statements: Sequence[Assign], recurrence: Recurrence | None, outputs: Collection[str]
    ) -> dict[str, Bounds]:
        """Compute a statement, or those of a recurrence; return the values as stored, by target."""
        if recurrence is not None:
            return {name: stored for name, (stored, _) in self.step(recurrence, statements, outputs).items()}
        (s,) = statements
        stored, self.values[s.target] = self.assign(self.op.operand(s.target), s.indices, s.value, s.target in outputs)
        return {s.target: stored}

    def step(
        self, recurrence: Recurrence, statements: Sequence[Assign], outputs: Collection[str]
    ) -> dict[str, tuple[Bounds, Bounds]]:
        """Return the values of a recurrence, as `assign` does, computed at one index after the other."""
        size = max(0, self.env.value(recurrence.extent))
        found: dict[str, tuple[Bounds, Bounds]] = {}
        peaks: dict[str, float] = {}
        for s in statements:
            shape = tuple(max(0, n) for n in self.env.shape_of(self.op.operand(s.target)))
            dtype = resolve(self.op.operand(s.target).type, self.binding)
            nothing = exact(np.zeros(shape, held(dtype)))
            found[s.target] = nothing, nothing
            self.values[s.target] = nothing
        steps = {s.target: Ahead(s, recurrence, size) for s in statements}
        for at in reversed(range(size)) if recurrence.falls else range(size):
            for s in statements:
                target, axis = self.op.operand(s.target), recurrence.axis_of(s.target)
                rest = replace(target, dims=target.dims[:axis] + target.dims[axis + 1 :])
                start = Frame((), {}, {}, {recurrence.index_of(s): at})
                self.ahead = steps[s.target]
                parts = self.assign(rest, s.indices[:axis] + s.indices[axis + 1 :], s.value, s.target in outputs, start)
                self.ahead = None
                place = self._place(target, axis)
                (stored, kept), (new, new_kept) = found[s.target], parts
                found[s.target] = _with(stored, new, place, at), _with(kept, new_kept, place, at)
                self.values[s.target] = found[s.target][1]
                # One bound for all steps so far is no less than that of each.
                if (most := self.most.get(s.target)) is not None:
                    peaks[s.target] = max(peaks.get(s.target, 0.0), float(most.max(initial=0)))
                    self.most[s.target] = np.asarray(peaks[s.target])
        return found

    def _place(self, target: Operand, entry: int) -> int:
        """Return the axis of an operand's array at which an entry of its shape stands."""
        sizes = (self.env.groups.get((d.name, d.of), ()) for d in target.dims[:entry] if not isinstance(d, Affine))
        groups = [len(s) for s in sizes]
        return entry - len(groups) + sum(groups)

    def decided(self, condition: Expr) -> bool | None:
        """Return what a condition is that is the same at every point, None where rounding may decide it."""
        held = self.eval(condition, EMPTY, None, DType.FLOAT64)
        return bool(held.low) if held.low == held.high else None

    def assign(
        self, target: Operand, indices: tuple[str | GroupRef, ...], value: Expr, is_output: bool, frame: Frame = EMPTY
    ) -> tuple[Bounds, Bounds]:
        """Return the value of a statement as stored, and as later statements may see it; `frame` has what is fixed."""
        # A temporary of a derived op may have the range of a reduction as an axis, and that be less than nothing.
        shape = tuple(max(0, size) for size in self.env.shape_of(target))
        groups = [d for d in target.dims if not isinstance(d, Affine)]
        at = 0
        for index in indices:
            if isinstance(index, GroupRef):
                spec = groups.pop(0)
                sizes = self.env.groups.get((spec.name, spec.of), ())
                frame = frame.with_group(index.name, sizes)
                at += len(sizes)
            else:
                frame = frame.with_index(index, shape[at])
                at += 1
        ctx = self.compute(target.type)
        ways = self.operand_ways(value, frame, None, ctx)
        settled = ways.settled
        result = settled.spanning(shape)
        kept = result if settled is ways.bounds else ways.bounds.spanning(shape)
        if not result.is_float:
            dtype = resolve(target.type, self.binding)
            wrapped = is_output and dtype.is_small and not self.precise
            return cast(result, dtype.compute, dtype) if wrapped else result, result
        if ways.precision is not None:
            most = ways.most
            self.most[target.name] = most if most is None or not most.ndim else np.broadcast_to(most, shape)
        if not is_output or self.precise:
            return result, kept
        stored = rounded(result, resolve(target.type, self.binding))
        return stored, union(stored, kept)
