"""Mutated specs through what `opc check` does: each is accepted or refused in words with a place, soon, in little memory.

Workers check one mutant after the other in one process, as an editor's server does, so what a mutant leaves behind is seen too.
The limits: `SECONDS` of processor time for each, `PATIENCE` seconds for a worker that does not come back, `MEMORY` bytes of
address space and `RESIDENT` bytes in memory of a worker that has checked all of its mutants.
"""

from __future__ import annotations

import multiprocessing
import re
import resource
import signal
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from math import inf
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import FrameType

from opc.backends import registry
from opc.compiler import compile_spec
from opc.diagnostics import Diagnostic, Diagnostics, Severity, SpecError
from opc.editor import checks
from opc.spec.loader import load
from tests.faults.mutations import mutant
from tests.faults.tally import Fault, Tally

SECONDS = 10.0
PATIENCE = 120.0
MEMORY = 6 << 30
RESIDENT = 1 << 30
NAME = "mutant.yaml"


class Hang(BaseException):
    """A mutant has used up its processor time. What catches all exceptions does not catch it."""


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant: in a word, and what is wrong, if anything is. `seconds` are of processor time."""

    kind: str
    outcome: str
    wrong: str = ""
    seconds: float = 0.0


@dataclass
class Report:
    """What a worker has found so far: the number it is at, verdicts, and by how many bytes its resident memory has grown."""

    number: int
    verdicts: list[tuple[int, Verdict]] = field(default_factory=list)
    resident: int = 0


COMMANDS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What a terminal takes for a command, or for an order to turn what it shows; no message of opc's has it."""


def misplaced(diagnostic: Diagnostic, text: str) -> str:
    """Return why a diagnostic does not stand in the text of its file, or nothing."""
    span, lines = diagnostic.span, text.split("\n")
    if not diagnostic.message or not diagnostic.render():
        return "says nothing"
    if COMMANDS.search(diagnostic.render()):
        return "moves a terminal's cursor, or turns its text"
    if span.source is None:
        return "stands in no file"
    inside = 1 <= span.line <= len(lines) and 1 <= span.column <= len(lines[span.line - 1]) + 1
    ordered = (span.end_line, span.end_column) >= (span.line, span.column) and span.end_line <= len(lines)
    return "" if inside and ordered else f"stands at {span!r}, outside of the file"


def judge(path: Path, generate: bool = False) -> tuple[str, str]:
    """Check the spec in a file; return the outcome in a word and what is wrong. What is good can be generated too."""
    data = path.read_bytes()
    try:
        found = Diagnostics()
        checked = checks.check(partial(load, path, whole=False), found)
        if checked.is_good and checked.family is not None and generate:
            with suppress(SpecError):  # a backend's reason, in words
                compile_spec(path, registry.select())
            return "accepted and generated", ""
    except (Exception, Hang):
        lines = traceback.format_exc().splitlines()
        return "a traceback", "\n".join((lines[-1], *lines[-9:]))
    text = data.decode("utf-8-sig", "replace")
    for diagnostic in checked.diagnostics:
        if why := misplaced(diagnostic, text):
            return "a diagnostic without a place", f"a diagnostic {why}: {diagnostic.message}"
    if not checked.is_good:
        return "refused", ""
    if checked.family is None:
        return "neither", "neither an op nor an error"
    model, op = load(path, whole=False).model, checked.family.forward
    declared = {key.removesuffix("?") for key in (*model.inputs, *model.outputs, *model.attributes)}
    if lost := declared - {part.name for part in (*op.inputs, *op.outputs, *op.attributes)}:
        return "accepted in part", f"accepted without {', '.join(sorted(lost))}"
    return "accepted with warnings" if any(d.severity is Severity.WARNING for d in checked.diagnostics) else "accepted", ""


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise Hang in what runs under it when it has used so much processor time."""

    def stop(signum: int, frame: FrameType | None) -> None:
        raise Hang(f"not done after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def verdict(seed: str, number: int, folder: Path) -> Verdict:
    """Check one mutant, in a file of the folder."""
    kind, data = mutant(seed, number)
    path = folder / NAME
    path.write_bytes(data)
    begin = time.process_time()
    try:
        with limited(SECONDS):
            outcome, wrong = judge(path, generate=number // 8 % 40 == 7)
    except Hang as error:
        outcome, wrong = "a hang", str(error)
    if "Hang" in wrong:
        outcome = "a hang"
    return Verdict(kind, outcome, wrong, time.process_time() - begin)


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _work(seed: str, numbers: range, answers: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # What the process that it was forked from holds is there from the start.
    before = _resident()
    with tempfile.TemporaryDirectory() as name:
        report, sent = Report(numbers.start), time.monotonic()
        for number in numbers:
            report.verdicts.append((number, verdict(seed, number, Path(name))))
            if time.monotonic() > sent + 1 or number == numbers[-1]:
                report.number, report.resident = number + numbers.step, _resident() - before
                answers.send(report)
                report, sent = Report(number), time.monotonic()
    answers.close()


@dataclass
class _Worker:
    process: multiprocessing.Process
    answers: Connection
    rest: range
    heard: float


def _start(seed: str, numbers: range) -> _Worker:
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(seed, numbers, theirs))
    process.start()
    theirs.close()
    return _Worker(process, mine, numbers, time.monotonic())


def run(count: int, seed: str, jobs: int = 1, first: int = 0, limit: float = inf) -> Tally:
    """Check `count` mutants of a seed from the number `first` on in `jobs` processes, or those done in `limit` seconds."""
    end = time.monotonic() + limit
    tally, slowest, most, outcomes = Tally("mutants"), 0.0, 0, Counter[str]()
    waiting = [_start(seed, range(first + job, first + count, jobs)) for job in range(min(jobs, count))]
    while waiting:
        if time.monotonic() > end:
            for worker in waiting:
                worker.rest = range(0)
                worker.process.kill()
        ready = wait([worker.answers for worker in waiting], timeout=1)
        for worker in [*waiting]:
            if worker.answers in ready:
                try:
                    report = worker.answers.recv()
                    worker.heard = time.monotonic()
                except (EOFError, OSError):
                    waiting.remove(worker)
                    worker.process.join()
                    if worker.rest:  # it ended before its time
                        what = f"the worker ended with {worker.process.exitcode}; it was at this mutant or soon after"
                        tally.add(_fault(seed, worker.rest[0], "a crash", what))
                        waiting.append(_start(seed, worker.rest[1:]))
                    continue
                most = max(most, report.resident)
                worker.rest = worker.rest[len(report.verdicts) :]
                for number, one in report.verdicts:
                    outcomes[one.outcome] += 1
                    tally.counts[f"{one.kind}: {one.outcome}"] += 1
                    slowest = max(slowest, one.seconds)
                    if one.wrong:
                        tally.add(_fault(seed, number, one.outcome, one.wrong))
            elif time.monotonic() - worker.heard > PATIENCE:
                worker.process.kill()
    tally.counts = Counter(dict(sorted(tally.counts.items())))
    tally.counts["all"] = sum(outcomes.values())
    tally.measured["slowest, seconds of processor time"] = f"{slowest:.1f}"
    tally.measured["memory of a worker at most, MiB"] = f"{most >> 20}"
    if most > RESIDENT:
        tally.add(_fault(seed, first, "memory", f"a worker grew to {most >> 20} MiB over its mutants"))
    return tally


def _fault(seed: str, number: int, kind: str, seen: str) -> Fault:
    command = f"python -m tests.faults mutants --seed {seed} --from {number} --mutants 1"
    return Fault(f"{kind}: {seen.splitlines()[0][:100]}", seen, command, {NAME: mutant(seed, number)[1]})
