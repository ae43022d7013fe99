"""The calls a family is proved by, with the oracle's answers, made once and run by every backend; and the proofs without backend.

A plan is pickled into a file that the workers read: a worker then needs neither the spec nor the compiler's front end.
"""

from __future__ import annotations

import contextlib
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

import numpy as np

from opc.analysis.shapes.inference import ShapeError
from opc.ir.dtypes import DType, resolve
from opc.ir.op import Family, Op
from opc.testing.cases.arguments import random_values
from opc.testing.cases.bad_calls import refused
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import (
    derivation,
    family_volume,
    gradient,
    gradient_names,
    is_differentiated,
    is_integer,
    second_gradient,
    seed_names,
)
from opc.testing.cases.table import accepted
from opc.testing.cases.told import left_to_data
from opc.testing.explanation import inputs_of
from opc.testing.extent import Extent
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded, DomainError, evaluate
from opc.testing.oracle.frame import UndecidedError
from opc.testing.oracle.tolerance import compare
from opc.testing.references.examples import check_examples, example_cases
from opc.testing.references.gradcheck import FEW, Begin, check_family, check_sample, unheard, unproved
from opc.testing.references.onnx import OnnxCase, collect, onnx_cases, op_types
from opc.testing.results import ORACLE, UNCALLED, Result, Status

REFUSED_OF_DERIVED = 16
"""How many bad calls of a derived op are run: its forward op has been through all kinds."""

GRADIENT_CALLS = 36
"""How many of the forward calls are run through a framework's autograd."""

LARGEST_GRADIENT = 3000
"""The number of elements up to which a call is also differentiated."""

LARGEST_DERIVED = 3_000_000
"""The number of points of the largest loop of its derivatives up to which it is; see `family_volume`."""


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One call to carry out. `expected` holds the outputs; a call without is one to be refused.

    `cotangents` make it a gradient through autograd, `directions` too a second one. Of an `undecided` call, it is not known what
    is right, for that reason.
    """

    kind: str
    case: Case
    expected: dict[str, Bounded] | None
    cotangents: dict[str, Array] = field(default_factory=dict)
    directions: dict[str, Array] = field(default_factory=dict)
    undecided: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class ProofPlan:
    """A family and every call of it, in a fixed order; `extent` says whether these are all or few of each kind."""

    family: Family
    items: tuple[Item, ...]
    extent: Extent = Extent.WHOLE


def make_plan(family: Family, extent: Extent = Extent.WHOLE, begin: Begin = unheard) -> tuple[ProofPlan, list[Result]]:
    """Return the plan of a family and the results that need no backend; less than the whole has few calls of each kind.

    `begin` is told the name of each call and proof before the oracle works on it.
    """
    items: list[Item] = []
    uncalled: dict[str, str] = {}

    def item(op: Op, kind: str, case: Case) -> Item:
        begin(case.name)
        return expected(op, kind, case)

    forward = family.forward
    parents = {id(family.backward_backward): family.backward, id(family.backward_jvp): family.backward}
    for op in family.ops:
        parent = None if op is forward else parents.get(id(op), forward)
        kind = "forward" if op is forward else "derived"
        calls = [item(op, kind, left_to_data(op, case)) for case in accepted(op, parent, extent=extent, written=family.written)]
        if not any(call.expected is not None for call in calls):
            uncalled[op.name] = "no call was found that it accepts"
        items += calls
        bad = refused(op, parent)
        most = extent.most(len(bad) if op is forward else REFUSED_OF_DERIVED, 4)
        step = max(1, -(-len(bad) // max(1, most)))
        items += [Item("refused", case, None) for case in bad[::step]]
    items += [item(forward, "example", case) for case in example_cases(family)]
    if extent.differentiates:
        forward_calls = [i for i in items if i.kind == "forward" and i.expected is not None]
        gradients = list(_gradients(family, forward_calls, begin))
        if family.backward is not None and forward_calls and not gradients:
            limits = f"{LARGEST_GRADIENT:,} elements and {LARGEST_DERIVED:,} points of a loop"
            uncalled.setdefault(family.backward.name, f"no call was found to differentiate, of at most {limits}")
        items += gradients
    results = [*_examples(family), *_differences(family, extent, begin)]
    if family.reference.onnx:
        cases, others = onnx_cases(family, collect(op_types(family)))
        for found in cases:
            items.append(item(forward, "ONNX node case", found.case))
            results.append(hold_standard(family, items[-1], found))
        results += [Result(family.name, ORACLE, "ONNX node case", n, Status.NOT_RUN, message=why) for n, why in others]
    if any(i.kind in ("example", "ONNX node case") and i.expected is not None for i in items):
        uncalled.pop(forward.name, None)
    if forward.name in uncalled:  # so that those derived from it have none either
        uncalled = {forward.name: uncalled[forward.name]}
    results += [Result(family.name, ORACLE, UNCALLED, name, Status.NOT_RUN, message=why) for name, why in uncalled.items()]
    return ProofPlan(family, tuple(items), extent), results


def expected(op: Op, kind: str, case: Case) -> Item:
    """Return a call with its expectation: refused where the op has no value on the inputs."""
    arrays = case.arrays()
    try:
        values = evaluate(op, arrays, case.attributes, wanted=_wanted(op, case))
    except UndecidedError as reason:
        return Item(kind, case, None, undecided=str(reason))
    except DomainError as error:
        return Item("refused", replace(case, refused=str(error)), None)
    return Item(kind, case, values)


def _wanted(op: Op, case: Case) -> list[str] | None:
    if case.wanted is None:
        return None
    return [o.name for o in op.outputs if not o.optional or o.name in case.wanted]


def _gradients(family: Family, items: list[Item], begin: Begin) -> Iterator[Item]:
    """Yield calls through autograd: every kind of forward call with floating types, small enough in all derived ops."""
    forward, backward = family.forward, family.backward
    if backward is None:
        return
    seeds = seed_names(backward)
    chosen: dict[tuple[str, str], Item] = {}
    for item in items:
        floats = [a for a in item.case.inputs.values() if a is not None and not is_integer(a.data)]
        if not floats or not gradient_names(backward) or sum(a.data.size for a in floats) > LARGEST_GRADIENT:
            continue
        # Positions and counts beside them have no cotangent; what may be floating, and is none in this call, has none either.
        if not all(resolve(o.type, _binding(forward, item.case)).is_floating for o in forward.outputs if o.name in seeds):
            continue
        if not is_differentiated(forward, item.case.arrays()):
            continue
        key = (item.case.kind, str(floats[0].data.dtype))
        if key not in chosen and family_volume(family, item.case) <= LARGEST_DERIVED:
            chosen[key] = item
    for item in islice(chosen.values(), GRADIENT_CALLS):
        begin(f"gradients of {item.case.name}")
        yield from _gradient_items(family, item)


def _binding(op: Op, case: Case) -> dict[str, DType]:
    from opc.analysis.shapes.inference import infer_types

    return infer_types(op, {n: None if a is None else DType(str(a.data.dtype)) for n, a in case.inputs.items()}, case.attributes)


def _gradient_items(family: Family, item: Item) -> Iterator[Item]:
    forward, backward = family.forward, family.backward
    if backward is None or item.expected is None:
        return
    rng = np.random.default_rng(zlib.crc32(item.case.name.encode()))
    arrays, attributes = item.case.arrays(), item.case.attributes
    seeds = seed_names(backward)
    cotangents = {n: random_values(rng, v.shape, v.dtype) for n, v in item.expected.items() if n in seeds}
    first = replace(item.case, name=f"{item.case.name}-gradient")
    second = replace(item.case, name=f"{item.case.name}-second-gradient")
    # Where the call asked for all outputs, the oracle has computed what the forward op saves.
    saved = item.expected if item.case.wanted is None else None
    fixed = {name for name, a in arrays.items() if a is not None and is_integer(a)}

    def moved(expected: dict[str, Bounded]) -> dict[str, Bounded]:
        return {name: value for name, value in expected.items() if name not in fixed}

    try:
        expected = gradient(forward, backward, arrays, attributes, cotangents, saved=saved)
        yield Item("gradient", first, moved(expected), dict(cotangents))
        if family.backward_backward is None:
            return
        active = [of for of in derivation(backward).outputs if arrays.get(of) is not None and of not in fixed]
        directions = {n: random_values(rng, a.shape, DType(str(a.dtype))) for n in active if (a := arrays[n]) is not None}
        expected = second_gradient(
            forward, backward, family.backward_backward, arrays, attributes, cotangents, directions, saved=saved
        )
        yield Item("second gradient", second, moved(expected), dict(cotangents), directions)
    except (DomainError, ShapeError):
        # The forward call has a value but its gradient needs a reduction over nothing; such calls are refused one by one.
        return


def _examples(family: Family) -> Iterator[Result]:
    for name, wrong in check_examples(family):
        status = Status.FAILED if wrong else Status.PASSED
        yield Result(family.name, ORACLE, "example", name, status, float("inf") if wrong else 0.0, message=wrong)


def _differences(family: Family, extent: Extent, begin: Begin) -> Iterator[Result]:
    for name in unproved(family):
        message = "the spec says that it is a surrogate of the derivative"
        yield Result(family.name, ORACLE, name, name, Status.NOT_RUN, message=message)
    start = time.perf_counter()
    few = extent.limit(FEW)
    for found in check_family(family, begin=begin) if few is None else check_sample(family, few, begin):
        now = time.perf_counter()
        status, message = (Status.PASSED if found.ok else Status.FAILED), found.message
        if found.ok and not found.decided:
            status, message = Status.NOT_RUN, "none of the small calls that were drawn has a value to differentiate"
        yield Result(
            family.name, ORACLE, found.name, found.name, status, found.ratio, now - start, message, max(found.decided, 1)
        )
        start = now


def hold_standard(family: Family, item: Item, found: OnnxCase) -> Result:
    """Hold the outputs ONNX gives for its own test case to the oracle's sets.

    The standard's formula may round otherwise than ours. An output outside its set is right when the same formula computed in
    float64 lies inside: the difference is the rounding of the test case itself.
    """
    worst, message = 0.0, ""
    for name, value in found.expected.items():
        want = (item.expected or {})[name]
        outcome = compare(name, np.asarray(value), want)
        if not outcome.ok and want.dtype.is_floating:
            with contextlib.suppress(Exception), np.errstate(all="ignore"):
                again = compare(name, found.precise()[name].astype(value.dtype), want)
                outcome = again if again.ok else outcome
        if not outcome.ok and not message:
            told = inputs_of(family, item.case, outcome)
            message = f"ONNX's {outcome.message}{f'; from {told}' if told else ''}"
        worst = max(worst, outcome.ratio)
    status = Status.FAILED if message else Status.PASSED
    return Result(family.name, ORACLE, "ONNX node case", item.case.name, status, worst, message=message)


__all__ = ["Item", "ProofPlan", "hold_standard", "make_plan"]
