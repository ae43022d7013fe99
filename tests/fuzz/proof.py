"""What is held of one random op: its code against the oracle, the oracle against brute force, printed text against the op."""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from opc.analysis.elaborate.typing import elaborate
from opc.analysis.shapes.inference import infer
from opc.backends.base import OpError, Unsupported
from opc.backends.onnx.session import OnnxSession
from opc.diagnostics import SpecError
from opc.emit.numpy.reference import function_name, numpy_module
from opc.ir.affine import Affine
from opc.ir.expr import GroupRef, reads
from opc.ir.op import Assign, Family, Op
from opc.ir.printer import format_assign, format_op
from opc.spec.loader import loads
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import family_volume, is_differentiated, is_integer
from opc.testing.cases.fitting import volume
from opc.testing.cases.table import accepted
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.frame import DomainError, UndecidedError
from opc.testing.oracle.tolerance import compare
from opc.testing.references.gradcheck import check_family, check_jvp, check_same, points
from opc.transform.autodiff import vjp
from tests.emit.kernel_library import KernelError, KernelLibrary, odd_parallel_for
from tests.fuzz import judge
from tests.fuzz.calls import draw, parents
from tests.fuzz.guarded import some_guarded
from tests.transform.language import of_each_kind

Run = Callable[[Op, Case, list[str]], dict[str, Array]]


def two_threads(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
    """Run a range in two halves at once: the calls leave Python, so they overlap."""
    half = (count + 1) // 2
    other = threading.Thread(target=body, args=(argument, half, count))
    other.start()
    body(argument, 0, half)
    other.join()


LARGEST = 60_000
"""The most points of the largest loop of a call of the table and of its derivatives: the oracle holds all of them at once."""

POOLS: tuple[Any, ...] = (None, odd_parallel_for, two_threads)
"""How a kernel's work is shared out: one thread, pieces no pool would make, two threads."""


def expected(op: Op, case: Case) -> dict[str, Bounded] | None:
    """Return what the oracle wants of a call; None where the op has no value.

    Raises:
        UndecidedError: when it does not tell whether it has.
    """
    wanted = None if case.wanted is None else [o.name for o in op.outputs if not o.optional or o.name in case.wanted]
    try:
        return evaluate(op, case.arrays(), case.attributes, wanted=wanted)
    except UndecidedError:
        raise
    except DomainError:
        return None


def answers(made: Iterable[tuple[Op, Case]]) -> Iterator[tuple[Op, Case, dict[str, Bounded] | None]]:
    """Yield calls with what the oracle wants of them, but those of which it does not tell."""
    for op, case in made:
        try:
            want = expected(op, case)
        except UndecidedError:
            continue
        yield op, case, want


def calls(family: Family, rng: random.Random, count: int, large: bool = False) -> Iterator[tuple[Op, Case]]:
    """Yield calls of every op of a family, twice as many of the forward one."""
    above = parents(family)
    for op in family.ops:
        forward = op is family.forward
        for case in draw(op, above.get(id(op)), rng, 2 * count if forward else count):
            yield op, case
        if large and (forward or op is family.backward):
            for case in draw(op, above.get(id(op)), rng, 1, large=True):
                yield op, case


def wrong_kernel(kernel: KernelLibrary, op: Op, case: Case, want: dict[str, Bounded] | None) -> Iterator[str]:
    """Yield what is wrong with the kernel's answer to a call, and with that which takes the place of an input."""
    inputs = some_guarded(case.name, case.arrays())
    names = list(want) if want is not None else case.wanted
    taken = {}
    for output, source in op.inplace if want is not None else ():
        given = inputs[source]
        if given is not None and given.shape == want[output].shape:
            taken[output] = inputs[source] = np.array(given, order="C")
    try:
        got = kernel.call(op, inputs, case.attributes, names, taken)
    except KernelError as error:
        if want is not None:
            yield f"refused: {error}"
        return
    if want is None:
        yield "accepted, but the op has no value"
        return
    yield from (c.message for n in got if not (c := compare(n, np.asarray(got[n]), want[n])).ok)


def wrong_answer(run: Run, op: Op, case: Case, want: dict[str, Bounded], signed: bool = True) -> Iterator[str]:
    """Yield what is wrong with an answer; the sign of a zero is held where `signed`."""
    try:
        with np.errstate(all="ignore"):
            got = run(op, case, list(want))
    except Unsupported:
        return
    except Exception as error:
        yield f"{type(error).__name__}: {error}"
        return
    if not signed:
        got = {n: with_signs_of(a, want[n]) for n, a in got.items()}
    yield from (c.message for n, a in got.items() if not (c := compare(n, a, want[n])).ok)


def reference(family: Family) -> Run:
    """Return what runs the NumPy references of a family."""
    module: dict[str, Any] = {}
    exec(numpy_module(family), module)

    def run(op: Op, case: Case, wanted: list[str]) -> dict[str, Array]:
        arrays, attributes = case.arrays(), dict(case.attributes)
        if any(o.optional for o in op.outputs):
            attributes["wanted"] = wanted
        found = module[function_name(op)](*(arrays[o.name] for o in op.inputs), **attributes)
        # Of rank 0 the function returns NumPy's scalars, as NumPy's own do.
        return {o.name: np.asarray(a) for o, a in zip(op.outputs, found, strict=True) if o.name in wanted}

    return run


def functions(session: OnnxSession) -> Run:
    """Return what runs the bodies in ONNX's standard operators, which leave open what sign a sum of zeros has."""

    def run(op: Op, case: Case, wanted: list[str]) -> dict[str, Array]:
        try:
            return session.function_call(op.name, case.arrays(), case.attributes, wanted)
        except OpError as error:
            want = expected(op, case)
            if want is None or not _looks_up(op):
                raise
            # They look an index up for an output without elements too; asked for the others alone they have no reason to refuse.
            empty = {n for n in wanted if not want[n].value.size}
            some = [n for n in wanted if n not in empty]
            if not empty:
                raise
            if not some or not all(o.optional for o in op.outputs if o.name in empty):
                raise Unsupported("standard operators look up an index that no element asks for") from error
            return session.function_call(op.name, case.arrays(), case.attributes, some)

    return run


def _looks_up(op: Op) -> bool:
    """Whether an index in the body is data."""
    return any(not isinstance(i, Affine | GroupRef) for s in op.body for r in reads(s.value) for i in r.indices)


def with_signs_of(got: Array, want: Bounded) -> Array:
    """Return an answer in which every zero has the sign it is to have."""
    if got.shape != want.shape or is_integer(got):
        return got
    return np.where((got == 0) & (want.value == 0), want.value.astype(got.dtype), got)


def wrong_code(
    family: Family, kernel: Callable[[Any], KernelLibrary] | None, session: OnnxSession | None, rng: random.Random, count: int,
    large: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Yield what is wrong with kernels, references and ONNX bodies, at most one of each for each op of the family."""
    refer = reference(family)
    kernels = [kernel(pool) for pool in POOLS] if kernel is not None else []
    seen = set()
    for k, (op, case, want) in enumerate(answers(calls(family, rng, count, large))):
        given = [(n, a.data.shape, a.layout) for n, a in case.inputs.items() if a is not None]
        label = f"{case.name} {given} {dict(case.attributes)}"
        judges: dict[str, Callable[[], Iterator[str]]] = {}
        if kernels:
            judges["kernel"] = partial(wrong_kernel, rng.choice(kernels), op, case, want)
        if want is not None and "-large" not in case.name:
            judges["numpy"] = partial(wrong_answer, refer, op, case, want)
            if session is not None and k % 2 == 0:
                judges["onnx"] = partial(wrong_answer, functions(session), op, case, want, signed=False)
        for name, wrong in judges.items():
            if (name, op.name) not in seen:
                for message in islice(wrong(), 1):
                    seen.add((name, op.name))
                    yield f"{name} of {label}: {message}"


def wrong_by_force(text: str, family: Family, rng: random.Random, count: int) -> Iterator[str]:
    """Yield where brute force contradicts the oracle: values, first and second gradients."""
    for k, case in enumerate(draw(family.forward, None, rng, count, small=True)):
        found = [*judge.wrong_values(text, family, case)]
        if k < (count + 1) // 2 and not found:
            found += judge.wrong_gradients(text, family, case)
        if found:
            shapes = {n: a.data.shape for n, a in case.inputs.items() if a is not None}
            yield f"brute force at {shapes} {dict(case.attributes)}: {found[0]}"
            return


def wrong_twins(text: str, family: Family, rng: random.Random) -> Iterator[str]:
    """Yield where forward mode contradicts the gradient, and a gradient written by hand the derived one."""
    forward, backward = family.forward, family.backward
    if backward is None:
        return
    cases = []
    for case in draw(forward, None, rng, 2, small=True):
        arrays = case.arrays()
        if not is_differentiated(forward, arrays):
            continue
        inputs = {n: a if a is None or is_integer(a) else a.astype(np.float64) for n, a in arrays.items()}
        cases.append((inputs, dict(case.attributes)))
    results = [] if family.jvp is None else [check_jvp("forward mode", forward, family.jvp, backward, cases)]
    if family.explicit_backward:
        automatic = vjp(forward)
        if automatic is not None:
            results.append(check_same("gradient by hand", forward, backward, automatic, cases))
    yield from (f"{r.name}: {r.message}" for r in results if not r.ok and "no point was sharp enough" not in r.message)


def wrong_text(text: str) -> Iterator[str]:
    """Yield where the printed body does not parse back to the op it is printed from."""
    op = elaborate(loads(text, "drawn"))
    if any(o.name not in text for o in (*op.inputs, *op.outputs, *op.attributes)):
        return  # a name that targets spell otherwise, of which the text knows nothing
    # What becomes of an index out of range is part of the printed body.
    head, rest = re.split(r"^kernel: +\|\n", text, maxsplit=1, flags=re.MULTILINE)
    head = head.replace("out_of_range: clamp\n", "").replace("out_of_range: zero\n", "")
    tail = "".join(f"{line}\n" for line in rest.splitlines() if line.startswith("inplace"))
    again = head + "kernel: |\n" + "".join(f"  {_with_ranges(op, s)}\n" for s in op.body) + tail
    try:
        other = elaborate(loads(again, "printed"))
    except SpecError as error:
        yield f"the printed body is refused: {str(error).splitlines()[0]}\n{again}"
        return
    if format_op(other) != format_op(op):
        yield f"the printed body is another op:\n{format_op(op)}\n{format_op(other)}"


def _with_ranges(op: Op, s: Assign) -> str:
    """Return the text of a statement in which a temporary's indices state their ranges: not every body has bare reads of them."""
    target, _, value = format_assign(s).partition(" = ")
    if not any(t.name == s.target for t in op.temporaries) or "[" not in target:
        return f"{target} = {value}"
    dims = op.operand(s.target).dims
    items = [f"{i}:{d}" if isinstance(i, str) else str(i) for i, d in zip(s.indices, dims, strict=True)]
    return f"{s.target}[{', '.join(items)}] = {value}" if items else f"{target} = {value}"


# By the table of calls that `opc test` runs: for specs written for what they hold


def small_cases(op: Op, parent: Op | None, count: int) -> list[Case]:
    """Return a few calls of an op, of as many kinds as there are, none of them large; first those with absent operands."""
    kinds: dict[str, list[Case]] = {}
    for drawn in (0, 8):  # those drawn at random come last, and take longer to draw than others to run
        kinds.clear()
        for case in accepted(op, parent, random=drawn):
            shapes = {n: a.data.shape for n, a in case.inputs.items() if a is not None}
            if volume(op, infer(op, shapes, case.attributes)) <= LARGEST:
                named = "-without-" in case.name or "-wanted-" in case.name
                kinds.setdefault(case.name.split("-", 1)[1] if named else case.name.split("-")[1], []).append(case)
        if len(kinds) >= count:
            break
    ordered = sorted(kinds.values(), key=lambda cases: "-without-" not in cases[0].name)
    return [c for k in range(count) for cases in ordered for c in cases[k : k + 1]][:count]


def table_calls(family: Family, count: int) -> Iterator[tuple[Op, Case]]:
    """Yield a few calls of every op of a family, of the table."""
    above = parents(family)
    for op in family.ops:
        for case in small_cases(op, above.get(id(op)), count):
            yield op, case


def wrong_in_table(family: Family, kernel: KernelLibrary, count: int) -> Iterator[str]:
    """Yield what is wrong with the answers of the kernel and of the NumPy reference, for every op of the family."""
    run = reference(family)
    for op, case, want in answers(table_calls(family, count)):
        yield from (f"kernel of {case.name}: {m}" for m in islice(wrong_kernel(kernel, op, case, want), 1))
        if want is not None:
            yield from (f"numpy of {case.name}: {m}" for m in islice(wrong_answer(run, op, case, want), 1))


def wrong_gradients(family: Family) -> Iterator[str]:
    """Yield the gradients that differences contradict. A proof without a sharp point is none, and no contradiction.

    Without OPC_FUZZ one point of each kind is taken, and all where these decide nothing.
    """
    chosen = [c for c in points(family.forward) if family_volume(family, c) <= LARGEST]
    few = of_each_kind(chosen)
    found = check_family(family, few)
    if len(few) < len(chosen) and not all(result.ok for result in found):
        found = check_family(family, chosen)
    for result in found:
        if not result.ok and "no point was sharp enough" not in result.message:
            yield f"{result.name}: {result.message}"
