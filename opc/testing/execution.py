"""Runs the calls and checks of one family on one backend, inside a worker process."""

from __future__ import annotations

import pickle
import re
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from opc.backends.base import Backend, OpError, Session, Unsupported
from opc.ir.op import Family
from opc.names import in_words, spelled
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import is_integer
from opc.testing.explanation import inputs_of
from opc.testing.extent import Extent
from opc.testing.functions import function_items
from opc.testing.oracle.bounds import Array, Bounds
from opc.testing.oracle.evaluation import Bounded
from opc.testing.oracle.rounding import flushed, rounded
from opc.testing.oracle.tolerance import Comparison, compare
from opc.testing.plan import Item, ProofPlan
from opc.testing.results import Result, Status

SAMPLED_OPINFO = 12
"""How many of torch's own samples are run of an op of which a sample of calls is run."""

HALVED = ("forward", "derived", "gradient", "second gradient")
"""The kinds of calls of which a backend that wraps the kernel runs half of those that are alike."""

EMULATED = ("forward", "example", "ONNX node case")
"""The kinds of calls that are run on emulations too."""

Outcome = tuple[Status, float, str]
"""Status, worst error over bound, message."""


@dataclass(frozen=True, slots=True)
class ProofStep:
    """One thing to run: its kind and name, what to do, and where the spec has the call, if it has it."""

    kind: str
    name: str
    run: Callable[[], Outcome]
    place: str = ""


def load_plan(path: Path) -> ProofPlan:
    """Return the plan that the run's own oracle worker wrote."""
    plan: ProofPlan = pickle.loads(path.read_bytes())
    return plan


def steps(backend: Backend, plan: ProofPlan, package: Path) -> Iterator[ProofStep]:
    """Yield everything to run of a family on a backend, in a fixed order; the first step loads the package.

    After a crash the run goes on behind the step that crashed, so the order must not depend on what happened.
    """
    session = backend.session(plan.family, package)
    items = some(backend, plan)
    session.prepare((i.case.op, i.case.arrays(), passed(session, i.case)) for i in items if i.expected is not None)
    for item in items:
        yield ProofStep(item.kind, item.case.name, partial(run_item, session, plan.family, item), item.case.place)
    for check in backend.checks(session) if plan.extent.checks(backend.wraps) else ():
        yield ProofStep("check", f"{plan.family.name}/{check.name}", partial(_check, check.run))
    for way, other in session.variants().items():
        for item in items:
            if item.expected is not None and item.case.op in other.ops and item.kind not in ("gradient", "second gradient"):
                action = partial(run_item, other, plan.family, item)
                yield ProofStep(item.kind, f"{item.case.name}-{way}", action, item.case.place)
    if session.has_functions:
        for item in function_items(plan):
            action = partial(_run_function, session, plan.family, item)
            yield ProofStep("function", f"{item.case.name}-function", action, item.case.place)
    for kind, call in session.emulations().items():
        for item in items:
            if item.kind in EMULATED and item.expected is not None:
                action = partial(_run_emulated, call, plan.family, item)
                yield ProofStep(kind, f"{item.case.name}-{kind}", action, item.case.place)
    if backend.name == "torch":
        yield from _torch_steps(session, plan)


def some(backend: Backend, plan: ProofPlan) -> list[Item]:
    """Return the calls of a plan that a backend runs: all, or of those that are alike the first, the third and so on.

    Alike are calls of one op, of a kind such as `sizes` or `special`, without the same operands; those about element types are so
    with the same ones. A call with an element type that none before it had is kept. Of an emulation whose code calls what another
    backend runs, large calls are left out: there is nothing in them but more of the same tiles, each of which takes it long.

    Calls with several blocks of fused rows are about the CPU's kernels, and would take an emulated device minutes.
    """
    items = [i for i in plan.items if i.case.kind != "blocks" or backend.execution != "emulated" or backend.on_cpu]
    if not plan.extent.halves(backend.name, backend.wraps or backend.on_device):
        return items
    large = not (backend.wraps and backend.execution == "emulated")
    alike: Counter[tuple[object, ...]] = Counter()
    types: set[tuple[str, str, str]] = set()
    found = []
    for item in items:
        case = item.case
        if item.kind in HALVED and item.expected is not None:
            if case.kind == "large" and not large:
                continue
            own = {(item.kind, case.op, str(a.data.dtype)) for a in case.inputs.values() if a is not None}
            absent = (n for n, a in case.inputs.items() if a is None)
            about = case.name.partition("-")[2] if case.kind in ("attribute", "wanted") else case.kind
            key = (item.kind, case.op, about, *sorted(own if case.kind == "dtype" else ()), *absent)
            alike[key] += 1
            if alike[key] % 2 == 0 and own <= types:
                continue
            types |= own
        found.append(item)
    return found


def run(step: ProofStep, op: str, backend: str, done: Status = Status.PASSED) -> Result:
    """Carry out a step. Whatever it raises is its result: a failed call must not end the proof of the others."""
    start = time.perf_counter()
    try:
        with np.errstate(all="ignore"):
            status, ratio, message = step.run()
    except Unsupported as reason:
        status, ratio, message = Status.NOT_RUN, 0.0, str(reason)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f" ({Path(place.filename).name}:{place.lineno})"
        status, ratio, message = Status.FAILED, float("inf"), f"{type(error).__name__}: {error}{where}"
    if status is Status.FAILED and step.place:
        message = f"{step.place}: {message}"
    seconds = time.perf_counter() - start
    return Result(op, backend, step.kind, step.name, done if status is Status.PASSED else status, ratio, seconds, message)


def run_item(session: Session, family: Family, item: Item) -> Outcome:
    """Carry out one call and hold its answer to the oracle's sets.

    Raises:
        Unsupported: when the framework has no such call.
    """
    case = item.case
    if item.undecided:
        raise Unsupported(item.undecided)
    arrays = case.arrays()
    before = {n: None if a is None else np.ascontiguousarray(a).tobytes() for n, a in arrays.items()}
    if item.expected is None:
        return _refusal(session, family, item, arrays)
    if item.kind == "gradient":
        got = session.gradient(arrays, _differentiated(session, case), item.cotangents)
    elif item.kind == "second gradient":
        got = session.second_gradient(arrays, _differentiated(session, case), item.cotangents, item.directions)
    else:
        got = call(session, item, arrays)
    outcome = judge(got, _of_framework(session, item.kind, item.expected), partial(_sources, family, item), _quantity(item.kind))
    for name, array in arrays.items():
        if array is not None and np.ascontiguousarray(array).tobytes() != before[name]:
            return Status.FAILED, float("inf"), f"the call changed its input {name}"
    return outcome


def call(session: Session, item: Item, arrays: dict[str, Array | None]) -> dict[str, Array]:
    """Call the op, asking only for the outputs the case wants."""
    case = item.case
    return session.call(case.op, arrays, passed(session, case), only=case.wanted)


def passed(session: Session, case: Case) -> Mapping[str, Any]:
    """Return the attributes that a session is given: without the sizes that it tells from data."""
    return {n: v for n, v in case.attributes.items() if n not in case.told} if session.tells_sizes else case.attributes


def _differentiated(session: Session, case: Case) -> Mapping[str, Any]:
    """Return the attributes of a call whose gradient is taken."""
    return case.attributes if session.traces_gradients else passed(session, case)


def _refusal(session: Session, family: Family, item: Item, arrays: dict[str, Array | None]) -> Outcome:
    try:
        session.call(item.case.op, arrays, item.case.attributes)
    except OpError as error:
        # A refusal must say what it is about: an accident inside the framework is none.
        own = {*item.case.inputs, *item.case.attributes}
        types = {op.class_name for op in family.ops if op.name == item.case.op}
        named = {item.case.op, in_words(item.case.op), *types, *own, *map(spelled, own)}
        if named & set(re.findall(r"\w+", str(error))):
            return Status.PASSED, 0.0, ""
        return Status.FAILED, float("inf"), f"refused without naming the op or an operand: {error}"
    return Status.FAILED, float("inf"), f"was accepted, but must be refused: {item.case.refused}"


def judge(got: dict[str, Array], expected: dict[str, Bounded], sources: Callable[[Comparison], str], what: str = "") -> Outcome:
    """Compare every expected output with what came.

    `sources` says what a wrong element was computed from; `what` precedes the names of the outputs in messages.
    """
    worst, messages = 0.0, []
    for name, want in expected.items():
        if name not in got:
            return Status.FAILED, float("inf"), f"there is no {name} among the results: {', '.join(got) or 'none'}"
        found = compare(name, got[name], want)
        worst = max(worst, found.ratio)
        messages += [] if found.ok else [f"{what}{found.message}{sources(found)}"]
    if messages:
        return Status.FAILED, worst, "; ".join(messages)
    return Status.PASSED, worst, ""


def _quantity(kind: str) -> str:
    """Return what stands before the name of an input where its gradient is meant."""
    return f"{kind} of " if kind in ("gradient", "second gradient") else ""


def _sources(family: Family, item: Item, found: Comparison) -> str:
    """Return what the wrong element of a comparison was computed from, for the end of its message."""
    told = inputs_of(family, item.case, found, item.cotangents, item.directions)
    return f"; from {told}" if told else ""


def _of_framework(session: Session, kind: str, expected: dict[str, Bounded]) -> dict[str, Bounded]:
    """Return the sets of answers after what the framework itself does to floating outputs; as a rule that is nothing."""
    storage = session.storage
    parts = session.flushed_parts if kind == "second gradient" else 0

    def of(b: Bounded) -> Bounds:
        added = flushed(b.bounds, b.dtype, parts) if parts else b.bounds
        return rounded(added, storage) if storage is not None else added

    return {n: replace(b, bounds=of(b)) if b.dtype.is_floating else b for n, b in expected.items()}


def _run_emulated(call: Callable[..., dict[str, Array]], family: Family, item: Item) -> Outcome:
    """Carry out one call on an emulation of the framework and hold its answer to the oracle's sets."""
    got = call(item.case.op, item.case.arrays(), item.case.attributes)
    status, ratio, message = judge(got, item.expected or {}, partial(_sources, family, item))
    return (Status.EMULATED if status is Status.PASSED else status), ratio, message


def _run_function(session: Session, family: Family, item: Item) -> Outcome:
    """Carry out one call by the op's body in standard operators and hold its answer to the oracle's sets."""
    case = item.case
    got = session.function_call(case.op, case.arrays(), passed(session, case), only=case.wanted)
    return judge(got, item.expected or {}, partial(_sources, family, item))


def _check(action: Callable[[], Any]) -> Outcome:
    action()
    return Status.PASSED, 0.0, ""


def _torch_steps(session: Session, plan: ProofPlan) -> Iterator[ProofStep]:
    """Yield the comparisons with the reference in torch: its expression on our calls, its gradients, and its OpInfo samples."""
    from opc.testing.oracle.evaluation import DomainError, evaluate
    from opc.testing.oracle.frame import UndecidedError
    from opc.testing.references.torch import RefusedByTorchError, check_gradient, check_reference

    family = plan.family
    if family.reference.torch is None:
        return
    tried = decided = 0

    def told(check: Callable[[], Comparison | None], item: Item) -> Outcome:
        nonlocal tried, decided
        tried += 1
        try:
            found = check()
        except RefusedByTorchError as error:
            raise Unsupported(f"torch refuses: {error}") from None
        if found is None:
            raise Unsupported("the op has no finite value there")
        decided += 1
        if found.ok:
            return Status.PASSED, found.ratio, ""
        return Status.FAILED, found.ratio, f"torch's {_quantity(item.kind)}{found.message}{_sources(family, item, found)}"

    def reference(case: Case) -> Outcome:
        return told(lambda: check_reference(family, case), Item("torch reference", case, None))

    def gradient(item: Item) -> Outcome:
        return told(lambda: check_gradient(family, item.case, item.cotangents, item.directions), item)

    def sample(case: Case) -> Outcome:
        try:
            expected = evaluate(family.forward, case.arrays(), case.attributes)
        except UndecidedError:
            raise  # not applicable: the op may refuse it or not
        except DomainError as error:
            return run_item(session, family, Item("OpInfo sample", replace(case, refused=str(error)), None))
        ours = run_item(session, family, Item("OpInfo sample", case, expected))
        return ours if ours[0] is Status.FAILED else max(ours, reference(case), key=lambda o: (o[0] is Status.FAILED, o[1]))

    # Long rows take ways of their own through a kernel, not through the oracle.
    whole = plan.extent is Extent.WHOLE
    # A reference makes as many as data tells.
    for item in (i for i in plan.items if set(i.case.told) == set(family.forward.told) or i.case.op != family.name):
        if item.kind in ("forward", "example") and item.expected is not None and (whole or item.case.kind != "large"):
            yield ProofStep("torch reference", f"{item.case.name}-reference", partial(reference, item.case), item.case.place)
        elif item.kind in ("gradient", "second gradient") and _ordinary(item.case):
            yield ProofStep(f"torch's own {item.kind}", f"{item.case.name}-torch", partial(gradient, item))
    for name, found in islice(_opinfo(family), plan.extent.limit(SAMPLED_OPINFO)):
        action = partial(sample, found) if isinstance(found, Case) else partial(_not_applicable, found)
        yield ProofStep("OpInfo sample", name, action)

    def any_decided() -> Outcome:
        # A reference that torch refuses everywhere would prove nothing.
        return (Status.FAILED, float("inf"), "torch refuses every call") if tried and not decided else (Status.PASSED, 0.0, "")

    yield ProofStep("torch reference", f"{family.name}/reference-decides", any_decided)


def _opinfo(family: Family) -> list[tuple[str, Case | str]]:
    """Return the OpInfo samples by name: each a call, or the reason why it is none."""
    from opc.testing.references.opinfo import opinfo_cases

    try:
        cases, others = opinfo_cases(family)
    except ImportError as error:
        return [("OpInfo", f"torch's OpInfos can't be imported: {error}")]
    return [*((c.name, c) for c in cases), *others]


def _ordinary(case: Case) -> bool:
    """Whether the floating inputs are float32 or float64 values that tie only by rare chance, none of them special."""
    floats = [a.data.dtype for a in case.inputs.values() if a is not None and not is_integer(a.data)]
    return "special" not in case.name and all(str(d) in ("float32", "float64") for d in floats)


def _not_applicable(reason: str) -> Outcome:
    raise Unsupported(reason)
