"""Independent references from torch: the expression a spec names as its reference, and its gradients by torch's own autograd.

The expression is evaluated in float64 and must lie in the set the oracle gives when it computes in float64 too. Since every
backend is held to the oracle's sets, the oracle agreeing with torch makes them all agree with it.

Two correct formulas may differ in the sign of a zero, and where one of them overflows on the way: these are not compared. They
also round differently. Where the set does not hold torch's answer, the set of all answers for inputs one rounding away is taken:
a stable formula gives the exact answer for such inputs (Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapter 1).
How many times its width torch's rounding reaches is measured in float32, where the error can be seen, and allowed in float64.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from opc.analysis.shapes.inference import infer_types
from opc.ir.dtypes import Binding, DType
from opc.ir.expr import Expr, GroupRef, Read, Reduce, walk
from opc.ir.op import Family, Op
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import gradient, gradient_names, is_integer, second_gradient, seed_names
from opc.testing.oracle.bounds import Array, Bounds, exact
from opc.testing.oracle.evaluation import Bounded, DomainError, evaluate
from opc.testing.oracle.tolerance import Comparison, compare
from opc.testing.references.torch_expression import ReferenceTextError, parse
from opc.testing.references.torch_expression import evaluate as evaluate_text

Arrays = Mapping[str, Array | None]
Inputs = Mapping[str, Array | None] | Mapping[str, Array | Bounds | None]
"""Inputs by name, known or as sets."""

DRAWS = 8
"""How many neighbours of a call's inputs the rounding of a reference is measured at."""


class RefusedByTorchError(Exception):
    """Torch has no answer to a call; the message is torch's."""


@dataclass(frozen=True, slots=True)
class _TorchReference:
    """What torch and the oracle say of inputs, by name of the output; the oracle for a binding, or in float64 throughout."""

    binding: Binding
    theirs: Callable[[Arrays], dict[str, Array]]
    ours: Callable[[Inputs, Binding, bool], dict[str, Bounded]]


def check_reference(family: Family, case: Case) -> Comparison | None:
    """Compare the reference's expression on a case with the oracle; None where the op has no value.

    Raises:
        ReferenceTextError: when the expression uses something references may not use.
        RefusedByTorchError: when torch does not take the call.
    """
    op = family.forward

    def theirs(arrays: Arrays) -> dict[str, Array]:
        names = {n: None if a is None else tensor(a) for n, a in arrays.items()}
        return {n: v.numpy() for n, v in _outputs(family, names, case).items()}

    def ours(arrays: Inputs, binding: Binding, precise: bool) -> dict[str, Bounded]:
        return evaluate(op, arrays, case.attributes, binding=binding, precise=precise)

    try:
        return _agreement(_TorchReference(_binding(op, case), theirs, ours), case.arrays(), case, _extreme(op, case.arrays()))
    except DomainError:
        return None


def check_gradient(family: Family, case: Case, cotangents: Arrays, directions: Arrays) -> Comparison | None:
    """Compare the derived gradient with torch's gradient of the reference; with `directions`, that gradient's own gradient.

    None where the op has no value, or nothing finite is left to compare.

    Raises:
        ReferenceTextError: when the expression uses something references may not use.
        RefusedByTorchError: when torch can't differentiate there.
    """
    import torch

    forward, backward, second = family.forward, family.backward, family.backward_backward
    if backward is None:
        return None
    arrays = case.arrays()
    operands = dict.fromkeys(gradient_names(backward).values())
    active = [of for of in operands if (a := arrays.get(of)) is not None and not is_integer(a)]
    leaves = {n: None if a is None else tensor(wide(a)) for n, a in arrays.items()}
    known = list(_outputs(family, leaves, case))
    active = _differentiable(family, leaves, active, case)
    seeds = [n for n in seed_names(backward) if n in known and cotangents.get(n) is not None]
    moved = [n for n in active if directions.get(n) is not None]
    given = {**arrays, **{f"d_{n}": cotangents[n] for n in seeds}, **{f"v_{n}": directions[n] for n in moved}}

    def theirs(values: Arrays) -> dict[str, Array]:
        leaves = {n: None if (v := values[n]) is None else tensor(v) for n in arrays}
        seed = {n: tensor(np.asarray(values[f"d_{n}"])) for n in seeds}
        inputs = [leaves[n].requires_grad_() for n in active]  # type: ignore[union-attr]  # active inputs are given
        weights = [seed[n].requires_grad_(bool(moved)) for n in seeds]
        outputs = _outputs(family, leaves, case)
        pairs = [(outputs[n], w) for n, w in zip(seeds, weights) if outputs[n].requires_grad]
        first = _grad([o for o, _ in pairs], inputs, [w for _, w in pairs], bool(moved))
        if not moved:
            return {n: g.numpy(force=True) for n, g in zip(active, first)}
        along = [(g, tensor(np.asarray(values[f"v_{n}"]))) for n, g in zip(active, first) if n in moved and g.requires_grad]
        again = _grad([g for g, _ in along], [*inputs, *weights], [v for _, v in along], False)
        names = [*active, *(f"d_{n}" for n in seeds)]
        # Where torch knows a gradient to be 0 it has no memory, which `force` gives it.
        return {n: g.numpy(force=True) for n, g in zip(names, again)}

    def ours(values: Inputs, binding: Binding, precise: bool) -> dict[str, Bounded]:
        inputs = {n: values[n] for n in arrays}
        seed = {n: v for n in seeds if (v := values[f"d_{n}"]) is not None}
        if not moved or second is None:
            return gradient(forward, backward, inputs, case.attributes, seed, binding=binding, precise=precise)
        along = {n: v for n in moved if (v := values[f"v_{n}"]) is not None}
        attributes = case.attributes
        return second_gradient(forward, backward, second, inputs, attributes, seed, along, binding=binding, precise=precise)

    if not seeds or (moved and second is None):
        return None
    try:
        with torch.enable_grad():
            return _agreement(_TorchReference(_binding(forward, case), theirs, ours), given, case, np.asarray(True))
    except DomainError:
        return None


def _differentiable(family: Family, leaves: Mapping[str, Any], active: list[str], case: Case) -> list[str]:
    """Return the inputs that torch differentiates the reference by.

    Raises:
        RefusedByTorchError: when there is none.
    """
    found: list[str] = []
    reason: RefusedByTorchError | None = None
    for name in active:
        try:
            _outputs(family, {n: t.detach().requires_grad_() if n == name else t for n, t in leaves.items()}, case)
            found.append(name)
        except RefusedByTorchError as error:
            reason = error
    if reason is not None and not found:
        raise reason
    return found


def _grad(outputs: list[Any], inputs: list[Any], weights: list[Any], create: bool) -> list[Any]:
    """Return the gradients of the outputs weighted, zero for an input they don't depend on."""
    import torch

    if not outputs:
        return [torch.zeros_like(x) for x in inputs]
    found = _called(lambda: torch.autograd.grad(outputs, inputs, weights, create_graph=create, allow_unused=True))
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def _outputs(family: Family, names: Mapping[str, Any], case: Case) -> dict[str, Any]:
    """Return the reference's tensors by the names of our outputs."""
    from opc.analysis.shapes.inference import infer

    text = parse(family.reference.torch or "")
    shapes = {n: None if t is None else tuple(t.shape) for n, t in names.items()}
    attributes = infer(family.forward, shapes, case.attributes).attributes
    result = _called(lambda: evaluate_text(text, {**names, **attributes}))
    results = result if isinstance(result, tuple) else (result,)
    return dict(zip((o.name for o in family.forward.outputs), results))


def _called(action: Callable[[], Any]) -> Any:
    """Return what `action` gives; torch's own refusals become one error.

    Raises:
        RefusedByTorchError: when torch raises.
        ReferenceTextError: when the text of a reference does.
    """
    try:
        return action()
    except ReferenceTextError:
        raise
    except (RuntimeError, ValueError, IndexError, NotImplementedError) as error:
        raise RefusedByTorchError((str(error).strip() or type(error).__name__).splitlines()[0]) from None


def _agreement(reference: _TorchReference, arrays: Arrays, case: Case, extreme: Array) -> Comparison | None:
    """Compare what torch and the oracle say; where `extreme`, answers that are not finite are left out.

    None when that leaves nothing.
    """
    with np.errstate(all="ignore"):
        return _compared(reference, arrays, case, extreme)


def _compared(reference: _TorchReference, arrays: Arrays, case: Case, extreme: Array) -> Comparison | None:
    values = {n: None if a is None else wide(a) for n, a in arrays.items()}
    sets, answers = reference.ours(values, reference.binding, True), reference.theirs(values)
    worst = Comparison(0.0)
    asked = False
    for name in (n for n in sets if n in answers):
        want, got = sets[name], answers[name]
        if got.shape != want.shape and any(a is not None and not a.size for a in arrays.values()):
            # Several functions of torch take an empty operand for an absent one.
            raise RefusedByTorchError(f"its answer has shape {list(got.shape)}, not {list(want.shape)}, where an input is empty")
        free = np.zeros(got.shape, np.bool_)
        if want.dtype.is_floating and got.dtype == np.float64 and got.shape == want.shape:
            free = _free(got, want.bounds, extreme)
            got, want = np.where(free, want.value, got), Bounded(want.bounds, DType.FLOAT64)
        found = compare(name, got, want)
        if not found.ok and want.dtype.is_floating and got.shape == want.shape:
            around = reference.ours(_neighbourhood(values), reference.binding, True)[name].bounds
            width = Bounded(around, DType.FLOAT64).error
            room = (_rounding(reference, arrays, case, name) - 1) * np.where(np.isfinite(width), width, 0)
            low, high = (
                np.where(free, b, e) for b, e in ((want.bounds.low, around.low - room), (want.bounds.high, around.high + room))
            )
            found = compare(name, got, Bounded(Bounds(low, high, around.nan | want.bounds.nan), DType.FLOAT64))
        asked = asked or not free.all() or not free.size
        worst = max(worst, found, key=lambda c: (not c.ok, c.ratio))
    return worst if asked else None


def _free(got: Array, bounds: Bounds, extreme: Array) -> Array:
    """Where an answer is not compared: zeros of either sign, and what is not finite beside an extreme input."""
    free = (got == 0) & (bounds.low <= 0) & (bounds.high >= 0)
    if extreme.any():
        near = np.broadcast_to(extreme, got.shape) if extreme.ndim <= got.ndim else np.full(got.shape, True)
        free |= near & ~(np.isfinite(got) & np.isfinite(bounds.low) & np.isfinite(bounds.high))
    return np.asarray(free)


def _neighbourhood(values: Arrays) -> dict[str, Array | Bounds | None]:
    """Return the sets of inputs one unit in the last place away; what is not finite, and integers, stay as they are."""
    result: dict[str, Array | Bounds | None] = {}
    for n, v in values.items():
        if v is None or is_integer(v):
            result[n] = v
            continue
        step = np.where(np.isfinite(v), np.spacing(np.abs(v)), 0).astype(np.float64)
        given, largest = exact(v), float(np.finfo(v.dtype).max)
        low = np.where(np.isfinite(v), np.maximum(given.low - step, -largest), given.low)
        high = np.where(np.isfinite(v), np.minimum(given.high + step, largest), given.high)
        result[n] = Bounds(low, high, given.nan)
    return result


def _rounding(reference: _TorchReference, arrays: Arrays, case: Case, name: str) -> float:
    """Return how many times the width of the set for a neighbourhood torch's rounding reaches, at least once.

    Both are measured in float32, against torch in float64, at points up to two roundings from the inputs.
    """
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    binding = {n: DType.FLOAT32 if d.is_floating else d for n, d in reference.binding.items()}
    worst = 1.0
    for _ in range(DRAWS):
        near: dict[str, Array | None] = {}
        for n, a in arrays.items():
            if a is None or is_integer(a):
                near[n] = a
            else:
                near[n] = (a.astype(np.float64) * (1 + rng.integers(-2, 3, a.shape) * 2.0**-23)).astype(np.float32)
        try:
            width = reference.ours(_neighbourhood(near), binding, False)[name].error
            single = reference.theirs(near)[name].astype(np.float64)
            double = reference.theirs({n: None if a is None else wide(a) for n, a in near.items()})[name]
        except (DomainError, RefusedByTorchError):
            continue
        ratio = np.abs(single - double) / width
        worst = max(worst, float(ratio[np.isfinite(ratio)].max(initial=0.0)))
    return worst


def _extreme(op: Op, arrays: Arrays) -> Array:
    """Where an input is so large that its square overflows: at that element in a pointwise op, else anywhere."""
    large = [np.abs(a.astype(np.float64)) > 2.0**511 for a in arrays.values() if a is not None and not is_integer(a)]
    if not large:
        return np.asarray(False)
    moved = any(a.permutes is not None for a in op.attributes) or any(isinstance(i, str) for s in op.body for i in s.indices)
    if not moved and all(_stays_in_place(e) for s in op.body for e in walk(s.value)):
        try:
            return np.asarray(np.any(np.broadcast_arrays(*large), axis=0))
        except ValueError:
            pass
    # A value that another op leaves out, this one may multiply by zero: NaN may reach further.
    return np.asarray(any(bool(v.any()) for v in large) or any(np.isnan(wide(a)).any() for a in arrays.values() if a is not None))


def _stays_in_place(e: Expr) -> bool:
    """Whether an expression combines only elements at the same place: no reduction, no index but the group of all axes."""
    return not isinstance(e, Reduce) and not (isinstance(e, Read) and any(not isinstance(i, GroupRef) for i in e.indices))


def wide(a: Array) -> Array:
    """Return floating values in float64, others as they are."""
    return a if is_integer(a) else a.astype(np.float64)


def tensor(a: Array) -> Any:
    """Return an array's values as a torch tensor of its own."""
    import torch

    return torch.from_numpy(np.array(a))


def _binding(op: Op, case: Case) -> Binding:
    dtypes = {n: None if a is None else DType(str(a.data.dtype)) for n, a in case.inputs.items()}
    return infer_types(op, dtypes, case.attributes)


__all__ = ["ReferenceTextError", "RefusedByTorchError", "check_gradient", "check_reference"]
