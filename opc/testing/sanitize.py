"""`opc test --sanitize`: the kernels compiled with sanitizers and run on the proof's calls in a process of their own.

The address sanitizer sees accesses outside operands and temporaries, each of which has a block of memory of its own; the
undefined-behaviour sanitizer what C++ leaves open; the thread sanitizer threads that meet in memory. A report of one is a failure
of the call it came in.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path

from opc import config
from opc.analysis.shapes.inference import infer
from opc.backends.base import Compile
from opc.backends.kernel.backend import KernelBackend, instruction_sets
from opc.build import toolchain
from opc.build.shared import ELSEWHERE, HERE
from opc.diagnostics import SpecError
from opc.ir.dtypes import DType
from opc.ir.narrow import cells, narrow
from opc.ir.op import Family, Op
from opc.pipeline import load_family
from opc.records import dataclass, replace
from opc.testing.call_file import KernelCall, call_file
from opc.testing.cases.bad_calls import refused
from opc.testing.cases.calls import Case
from opc.testing.cases.fitting import volume
from opc.testing.cases.table import accepted
from opc.testing.plan import expected
from opc.testing.results import Column, Report, Result, Status

SANITIZERS = ("address", "undefined", "thread")
"""What `--sanitize` takes; kernels are compiled once for `thread`, which goes with no other, and once for the others."""

LARGEST = 300_000
"""The most points of the largest loop of a call: a sanitizer makes each of them slower."""
PREFERRED = (DType.FLOAT32, DType.FLOAT16, DType.INT64, DType.INT8, DType.BOOL)
"""The element types whose kernels are run, the first two a type variable has of those that a body makes no difference between."""
MOST = {"forward": 40, "derived": 16, "refused": 12}
"""How many calls of an op are run."""
SECONDS = 600.0
"""How long the calls of one op may take."""

OPTIONS = {
    "ASAN_OPTIONS": "halt_on_error=0:detect_leaks=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    # No thread is waited for at the end, by default for a second: a kernel returns when its threads are done.
    "TSAN_OPTIONS": "halt_on_error=0:atexit_sleep_ms=0",
    "OPC_NUM_THREADS": "4",
}
"""What sanitizers are told in the environment of a process."""
_ONE = threading.Lock()
_MAKING: dict[Path, threading.Lock] = {}
"""A lock for each object that families share, and one for these."""
_SIGNS = re.compile(r"runtime error:|Sanitizer")


def run_sanitized(
    specs: Sequence[Path],
    sanitizers: Sequence[str],
    jobs: int | None = None,
    *,
    memory: Collection[Path] | None = None,
    threaded: Collection[Path] | None = None,
    whole: Collection[Path] = (),
    progress: Callable[[int, int, str], None] | None = None,
) -> Report:
    """Run the kernels of specs under sanitizers and return what they reported, in a column for those that go together.

    The thread sanitizer runs those of `threaded`, where that is given, and the others those of `memory`. With `memory`, they
    look at pointers before these are read through in those of `whole` alone.

    Raises:
        SpecError: when there is no compiler here.
    """
    start = time.monotonic()
    compiler = toolchain.find(config.load())
    version = compiler.command[0].rsplit("/", 1)[-1]
    report = Report({name: Column(name, version) for name in map("+".join, together(sanitizers))})
    done = 0
    # One thread more than there are processors: while they wait for compilers, it makes calls.
    count = jobs or 1 + (os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="opc-sanitize-") as scratch, ThreadPoolExecutor(count) as pool:

        def prove(spec: Path) -> list[Result] | SpecError:
            try:
                family = narrowed(load_family(spec))
                folder = Path(scratch) / family.name
                chosen = [s for s in sanitizers if (some := threaded if s == "thread" else memory) is None or spec in some]
                pointers = memory is None or spec in whole
                return list(check_family(family, folder, compiler.command, chosen, pointers=pointers, shared=Path(scratch)))
            except SpecError as error:
                return error

        for spec, found in zip(specs, pool.map(prove, specs)):
            done += 1
            if isinstance(found, SpecError):
                report.mistaken(spec, found.diagnostics)
            else:
                report.add(found)
            if progress is not None:
                progress(done, len(specs), spec.stem)
    report.seconds = time.monotonic() - start
    return report


def together(sanitizers: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sanitizers in groups, each of which a program is compiled with."""
    groups = [tuple(s for s in sanitizers if (s == "thread") == alone) for alone in (False, True)]
    return [group for group in groups if group]


def narrowed(family: Family, most: int = 2) -> Family:
    """Return the family with so many element types for each type variable: what is read where depends on their sizes alone.

    Where a body asks what a variable stands for, these are so many for each answer.
    """

    def kept(op: Op) -> dict[str, tuple[DType, ...]]:
        asked = dict(cells(op))
        chosen = {}
        for t in op.types:
            alike = asked.get(t.name, (t.dtypes,))
            some = {d for dtypes in alike for d in sorted(dtypes, key=_preference)[:most]}
            chosen[t.name] = tuple(d for d in t.dtypes if d in some)
        return chosen

    def fewer(op: Op | None) -> Op | None:
        return None if op is None else narrow(op, kept(op))

    return replace(
        family,
        forward=narrow(family.forward, kept(family.forward)),
        backward=fewer(family.backward),
        backward_backward=fewer(family.backward_backward),
        jvp=fewer(family.jvp),
        backward_jvp=fewer(family.backward_jvp),
    )


def _preference(dtype: DType) -> int:
    return PREFERRED.index(dtype) if dtype in PREFERRED else len(PREFERRED)


def check_family(
    family: Family,
    folder: Path,
    compiler: Sequence[str],
    sanitizers: Sequence[str],
    calls: Sequence[KernelCall] | None = None,
    *,
    pointers: bool = True,
    shared: Path | None = None,
) -> Iterator[Result]:
    """Compile the kernels of a family in `folder` and yield what became of each call: of these, or of all kinds.

    `pointers` is whether they are looked at before they are read through. In `shared` lies what other families use too.
    """
    _write_sources(family, folder)
    calls = [*calls_of(family)] if calls is None else calls
    (folder / "calls").write_bytes(call_file(family, calls))
    for group in together(sanitizers):
        name = "+".join(group)
        try:
            program = build(family, folder, compiler, group, pointers=pointers, shared=shared)
        except subprocess.CalledProcessError as error:
            yield Result(family.name, name, "build", family.name, Status.FAILED, float("inf"), message=error.stderr.strip())
        else:
            yield from run_program([program, folder / "calls"], name, family, calls)


def run_program(
    command: Sequence[str | Path], name: str, family: Family, calls: Sequence[KernelCall], done: Status = Status.PASSED
) -> Iterator[Result]:
    """Run the driver on the calls of its file and yield what became of each, in the column `name`."""
    start = time.perf_counter()
    try:
        run = subprocess.run(
            command, capture_output=True, text=True, errors="replace", env={**os.environ, **OPTIONS}, timeout=SECONDS
        )
        output, errors, code = run.stdout, run.stderr, run.returncode
    except subprocess.TimeoutExpired:
        output, errors, code = "", "", -1
    seconds = (time.perf_counter() - start) / max(1, len(calls))
    for call, verdict in zip(calls, verdicts(calls, output, errors, code)):
        yield result_of(family, call, name, verdict, done, seconds)


def result_of(family: Family, call: KernelCall, column: str, verdict: Verdict, done: Status, seconds: float) -> Result:
    """Return the result of a call; one that the op refused is of the kind "refused", whatever it is a call of."""
    kind = "refused" if verdict.refused else "forward" if call.op is family.forward else "derived"
    wrong = verdict.message
    return Result(
        family.name,
        column,
        kind,
        call.case.name,
        Status.FAILED if wrong else done,
        float("inf") if wrong else 0.0,
        seconds,
        wrong,
    )


def _write_sources(family: Family, folder: Path) -> None:
    """Write the kernels of a family and the driver that calls them."""
    for path, text in KernelBackend().emit(family).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def build(
    family: Family,
    folder: Path,
    compiler: Sequence[str],
    sanitizers: Sequence[str],
    *,
    pointers: bool = True,
    shared: Path | None = None,
) -> Path:
    """Compile the kernels in `folder`, for this machine's instruction set alone, and the driver with sanitizers that go together.

    Raises:
        CalledProcessError: when the compiler refuses, with what it says.
    """
    backend = KernelBackend()
    variant = instruction_sets()[0]
    made = folder / "+".join(sanitizers)
    made.mkdir(exist_ok=True)
    flags = sanitizer_flags(sanitizers, pointers)
    include = [f"-I{toolchain.runtime_include()}", f"-I{folder}"]
    objects = []
    for step in backend.build(family):
        other = isinstance(step, Compile) and f"-DOPC_VARIANT={variant}" not in step.flags
        if not isinstance(step, Compile) or (other and any(f.startswith("-DOPC_VARIANT") for f in step.flags)):
            continue
        # Without optimisation it compiles in a quarter of the time, and no access is optimised away before it is looked at.
        own = ["-O0" if f.startswith("-O") else f for f in step.flags]
        # Tensors are small, but rows of float32 take the way of large ones, past the caches; those of other types do not.
        own += [f"-DOPC_FORCE_VARIANT={variant}", "-DOPC_CACHE_BYTES=1", "-w", *flags]
        objects.append(made / f"{Path(step.object).name}")
        apart = [ELSEWHERE] if step.functions and shared is not None else []
        call([*compiler, *own, *apart, *include, "-c", folder / step.source, "-o", objects[-1]])
        if apart and shared is not None:
            source = toolchain.runtime_include() / step.functions
            name = f"functions-{hashlib.sha256(repr(own).encode()).hexdigest()[:16]}.o"
            command = [*compiler, "-x", "c++", *own, HERE, include[0], "-c", str(source), "-o"]
            objects.append(_made_once(shared / name, command))
    objects.append(driver(shared or folder, compiler, sanitizers, flags))
    program = made / "driver"
    call([*compiler, *flags, "-rdynamic", "-o", program, *objects, "-pthread", "-ldl", *backend.link_flags(family)])
    return program


def driver(
    folder: Path, compiler: Sequence[str], sanitizers: Sequence[str], flags: Sequence[str], define: str | None = None
) -> Path:
    """Return the object of the driver, which calls the kernels of any family, compiled unless it is there, with a definition."""
    text = resources.files("opc.testing").joinpath("templates/sanitize_driver.c").read_text(encoding="utf-8")
    include = f"-I{toolchain.runtime_include()}"
    own = [f"-D{define}"] if define else []
    command = [*compiler, "-x", "c", "-std=c11", "-O1", *flags, *own, include, "-c", "-", "-o"]
    return _made_once(folder / f"driver-{'+'.join((*sanitizers, *([define] if define else [])))}.o", command, text)


def _made_once(made: Path, command: Sequence[str], text: str = "") -> Path:
    """Return an object that families share, made by a command that ends before its path, unless it is there."""
    with _ONE:
        lock = _MAKING.setdefault(made, threading.Lock())
    with lock:
        if not made.exists():
            subprocess.run([*command, str(made)], input=text, check=True, capture_output=True, text=True)
    return made


def sanitizer_flags(sanitizers: Sequence[str], pointers: bool = True) -> list[str]:
    """Return what code is compiled and linked with under sanitizers that go together; see `check_family` for `pointers`."""
    # Reports name lines. Run-time types, which one check of undefined behaviour would need, kernels do without.
    flags = [f"-fsanitize={','.join(sanitizers)}", "-fno-omit-frame-pointer", "-g1"]
    # Calls check an access as code in its place would, and compile in two thirds of the time.
    outlined = ["-fsanitize-recover=address", "--param", "asan-instrumentation-with-call-threshold=0"]
    flags += outlined if "address" in sanitizers else []
    # What looks at pointers is half of what there is to compile.
    left_out = "vptr" if pointers else "vptr,null,alignment,pointer-overflow"
    return flags + ([f"-fno-sanitize={left_out}"] if "undefined" in sanitizers else [])


def call(command: Sequence[str | Path]) -> None:
    """Run a compiler.

    Raises:
        CalledProcessError: when it refuses, with what it says.
    """
    subprocess.run(command, check=True, capture_output=True, text=True)


def calls_of(family: Family, most: Mapping[str, int] = MOST, largest: int = LARGEST) -> Iterator[KernelCall]:
    """Yield the calls of every op of a family: of all kinds, as many as `most` says."""
    parents = {id(family.backward_backward): family.backward, id(family.backward_jvp): family.backward}
    for op in family.ops:
        parent = None if op is family.forward else parents.get(id(op), family.forward)
        kind = "forward" if op is family.forward else "derived"
        yield from (
            KernelCall(op, case)
            for case in some(op, accepted(op, parent, random=12, written=family.written), most[kind], largest)
        )
        bad = refused(op, parent)
        yield from (KernelCall(op, case) for case in bad[:: max(1, -(-len(bad) // most["refused"]))])


def some(op: Op, cases: Sequence[Case], count: int, largest: int = LARGEST) -> list[Case]:
    """Return so many of an op's calls, none of them too large, every kind in turn."""
    kinds: dict[str, list[Case]] = {}
    for case in cases:
        shapes = {n: a.data.shape for n, a in case.inputs.items() if a is not None}
        if volume(op, infer(op, shapes, case.attributes)) <= largest:
            kind = case.name.split("/")[-1].split("-")
            kinds.setdefault("-".join(kind[1:3]) if kind[1] in ("without", "wanted", "attribute") else kind[1], []).append(case)
    turns = [c for k in range(count) for same in kinds.values() for c in same[k : k + 1]]
    return turns[:count]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a call: what is wrong, empty where nothing is; and whether the op refused it and computed nothing."""

    message: str = ""
    refused: bool = False


def verdicts(calls: Sequence[KernelCall], output: str, errors: str, code: int) -> Iterator[Verdict]:
    """Yield what became of each call, from what the driver wrote.

    A call is wrong when a sanitizer reported something in it, when it never returned, when it should have been refused, and when
    it was although the oracle has a value for it.
    """
    statuses = {int(n): int(s) for n, s in (line.split() for line in output.splitlines() if line.strip())}
    sections = re.split(r"\n@@ (\w+)\n", errors)
    texts = {int(n): text.strip() for n, text in zip(sections[1::2], sections[2::2]) if n.isdigit()}
    ending = "".join(text for n, text in zip(sections[1::2], sections[2::2]) if n == "end").strip()
    for n, call in enumerate(calls):
        text, refused = texts.get(n, ""), statuses.get(n, 0) != 0
        if n not in statuses:
            last = max(texts, default=-1)
            yield Verdict(
                f"the process ended with {code} in this call: {text}" if n == last else "not reached: the process ended before"
            )
        elif _SIGNS.search(text):
            yield Verdict(text, refused)
        elif call.case.refused and not refused:
            yield Verdict(f"was accepted, but must be refused: {call.case.refused}")
        elif refused and not call.case.refused and expected(call.op, "", call.case).expected is not None:
            yield Verdict(f"was refused, but must be accepted: {text}", refused)
        elif n == len(calls) - 1 and (ending or code != 0):
            yield Verdict(f"at the end of the process, which returned {code}: {ending}", refused)
        else:
            yield Verdict("", refused)


__all__ = ["SANITIZERS", "run_sanitized", "verdicts"]
