"""What is held of one random op: its code against the oracle, gradients against differences, printed text against the op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from opc.analysis.elaborate.typing import elaborate
from opc.analysis.shapes.inference import infer
from opc.backends.base import Unsupported
from opc.backends.onnx.session import OnnxSession
from opc.diagnostics import SpecError
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.op import Family, Op
from opc.ir.printer import format_assign, format_op
from opc.spec.loader import loads
from opc.testing.cases.calls import Case, accepted
from opc.testing.cases.derived import derived_inputs
from opc.testing.cases.fitting import volume
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.frame import DomainError
from opc.testing.oracle.tolerance import compare
from opc.testing.truths.gradcheck import check_family, points
from tests.emit.kernel_library import KernelError, KernelLibrary

Shapes = dict[str, tuple[int, ...]]

LARGEST = 60_000
"""The most points of the largest loop of a call and of its derivatives: the oracle holds all of them at once."""


def small_cases(op: Op, parent: Op | None, count: int) -> list[Case]:
    """Return a few calls of an op, of as many kinds as there are, none of them large; first those with absent operands."""
    kinds: dict[str, list[Case]] = {}
    for case in accepted(op, parent, random=8):
        shapes = {n: a.data.shape for n, a in case.inputs.items() if a is not None}
        if volume(op, infer(op, shapes, case.attributes)) <= LARGEST:
            kind = case.name.split("-", 1)[1] if "-without-" in case.name or "-wanted-" in case.name else case.name.split("-")[1]
            kinds.setdefault(kind, []).append(case)
    ordered = sorted(kinds.values(), key=lambda cases: "-without-" not in cases[0].name)
    return [c for k in range(count) for cases in ordered for c in cases[k : k + 1]][:count]


def calls(family: Family, count: int) -> Iterator[tuple[Op, Case]]:
    """Yield a few calls of every op of a family."""
    parents = {id(family.backward_backward): family.backward, id(family.backward_jvp): family.backward}
    for op in family.ops:
        parent = None if op is family.forward else parents.get(id(op), family.forward)
        for case in small_cases(op, parent, count):
            yield op, case


def wrong_kernels(family: Family, kernel: KernelLibrary, count: int) -> Iterator[str]:
    """Yield what is wrong with the kernel's answers, for every op of the family."""
    for op, case in calls(family, count):
        yield from islice(_wrong_call(kernel, op, case), 1)


def _wrong_call(kernel: KernelLibrary, op: Op, case: Case) -> Iterator[str]:
    inputs = case.arrays()
    try:
        got = kernel.call(op, inputs, case.attributes, case.wanted)
    except KernelError as error:
        try:
            evaluate(op, inputs, case.attributes)
        except DomainError:
            return
        yield f"{case.name}: refused: {error}"
        return
    try:
        want = evaluate(op, inputs, case.attributes, wanted=list(got))
    except DomainError as error:
        yield f"{case.name}: accepted, but the op has no value: {error}"
        return
    yield from (f"{case.name}: {c.message}" for n in got if not (c := compare(n, np.asarray(got[n]), want[n])).ok)


def wrong_references(family: Family, count: int) -> Iterator[str]:
    """Yield what is wrong with the answers of the NumPy reference, for every op of the family."""
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)

    def run(op: Op, case: Case, wanted: list[str]) -> dict[str, Array]:
        arrays, attributes = case.arrays(), dict(case.attributes)
        if any(o.optional for o in op.outputs):
            attributes["wanted"] = wanted
        found = module[function_name(op)](*(arrays[o.name] for o in op.inputs), **attributes)
        return {o.name: a for o, a in zip(op.outputs, found, strict=True) if o.name in wanted}

    yield from _wrong_answers(family, count, run)


def wrong_functions(family: Family, session: OnnxSession, count: int) -> Iterator[str]:
    """Yield what is wrong with the answers of the body in standard operators, for every op of the family.

    The sign of a zero is not held: ONNX leaves open what a sum starts with.
    """

    def run(op: Op, case: Case, wanted: list[str]) -> dict[str, Array]:
        return session.function_call(op.name, case.arrays(), case.attributes, wanted)

    yield from _wrong_answers(family, count, run, signed_zeros=False)


def _wrong_answers(
    family: Family, count: int, run: Callable[[Op, Case, list[str]], dict[str, Array]], signed_zeros: bool = True
) -> Iterator[str]:
    for op, case in calls(family, count):
        try:
            chosen = None if case.wanted is None else [o.name for o in op.outputs if not o.optional or o.name in case.wanted]
            want = evaluate(op, case.arrays(), case.attributes, wanted=chosen)
        except DomainError:
            continue
        try:
            with np.errstate(all="ignore"):
                got = run(op, case, list(want))
        except Unsupported:
            continue
        except Exception as error:
            yield f"{case.name}: {type(error).__name__}: {error}"
            continue
        if not signed_zeros:
            got = {n: _with_signs_of(a, want[n]) for n, a in got.items()}
        compared = (compare(n, a, want[n]) for n, a in got.items())
        yield from islice((f"{case.name}: {c.message}" for c in compared if not c.ok), 1)


def _with_signs_of(got: Array, want: Bounded) -> Array:
    """Return an answer in which every zero has the sign it is to have."""
    if got.shape != want.shape or got.dtype.kind in "iub":
        return got
    return np.where((got == 0) & (want.value == 0), want.value.astype(got.dtype), got)


def family_volume(family: Family, case: Case) -> int:
    """Return the number of points of the largest loop in a call of the forward op and in the calls of its derivatives."""

    def visit(op: Op, shapes: Shapes, derived: tuple[Op | None, ...]) -> int:
        env = infer(op, shapes, case.attributes)
        found = [volume(op, env)]
        for other in (d for d in derived if d is not None):
            given = derived_inputs(other, shapes, env.outputs, {**shapes, **env.outputs})
            further = (family.backward_backward, family.backward_jvp) if other is family.backward else ()
            found.append(visit(other, {n: s for n, s in given.items() if s is not None}, further))
        return max(found)

    shapes = {n: a.data.shape for n, a in case.inputs.items() if a is not None}
    return visit(family.forward, shapes, (family.backward, family.jvp))


def wrong_gradients(family: Family) -> Iterator[str]:
    """Yield the gradients that differences contradict. A proof without a sharp point is none, and no contradiction."""
    chosen = [c for c in points(family.forward) if family_volume(family, c) <= LARGEST]
    for result in check_family(family, chosen):
        if not result.ok and "no point was sharp enough" not in result.message:
            yield f"{result.name}: {result.message}"


def wrong_text(text: str) -> Iterator[str]:
    """Yield where the printed body does not parse back to the op it is printed from."""
    op = elaborate(loads(text, "drawn"))
    # What becomes of an index out of range is part of the printed body.
    head = text.partition("kernel: |\n")[0].replace("out_of_range: clamp\n", "").replace("out_of_range: zero\n", "")
    again = head + "kernel: |\n" + "".join(f"  {format_assign(s)}\n" for s in op.body)
    try:
        other = elaborate(loads(again, "printed"))
    except SpecError as error:
        yield f"the printed body is refused: {str(error).splitlines()[0]}\n{again}"
        return
    if format_op(other) != format_op(op):
        yield f"the printed body is another op:\n{format_op(op)}\n{format_op(other)}"
