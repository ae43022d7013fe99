"""`opc test`: every op on every backend, each in processes of its own, side by side.

Stages: build what is out of date; make each family's plan (calls and the oracle's answers) in a worker; run the plans on the
backends' workers. A worker is used for one backend only and for as many families as come. When one crashes, the call it was in is
a failure and another worker goes on behind it.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opc import config
from opc.backends import environments
from opc.backends.base import Backend
from opc.testing.extent import Extent
from opc.testing.memory import Memory
from opc.testing.process import PATIENCE, CrashedError, Worker
from opc.testing.results import BUILD, IDLE, ORACLE, Column, Report, Result, Status
from opc.testing.tiers import SAMPLED, THINNED, Tiers, unoptimised

Progress = Callable[[int, int, str], None]
"""Called with the number of finished tasks, their total, and what was finished."""

MOST_CRASHES = 25
"""After so many crashes of one op on one backend the rest of its calls is given up."""


@dataclass(frozen=True, slots=True)
class Task:
    """Something for a worker: make a plan, or run one on a backend. `skip` steps are behind it already."""

    backend: str
    python: str
    op: str
    message: dict[str, Any] = field(compare=False)
    skip: int = 0
    crashes: int = 0


def run_tests(
    specs: Sequence[Path],
    backends: Sequence[str] | None = None,
    out: Path | None = None,
    jobs: int | None = None,
    *,
    chosen_specs: Collection[Path] | None = None,
    interface_specs: Collection[Path] | None = None,
    whole_specs: Collection[Path] | None = None,
    again: bool = False,
    progress: Progress | None = None,
    say: Callable[[str], None] | None = None,
    patience: float = PATIENCE,
) -> Report:
    """Prove the ops of `specs` on `backends` (names, None for all) and return what was found.

    Packages are generated and built below `out`, by default `generated`. `jobs` is the number of workers at once, by default one
    for each processor. A backend whose framework is not installed is reported with the line that installs it.
    What passed before on the same bytes is not run, unless `again` is given; `opc.testing.memory` tells what counts.
    With `chosen_specs`, the backends that are not in `cover.EVERY_OP` run these only, or of these, where they wrap the kernel,
    those in `interface_specs`. EVERY_OP runs a sample of the calls of the other ops, of kernels compiled without optimisation
    where they are for this machine alone. Of the chosen ones all calls are run, or only of those in `whole_specs`.

    Raises:
        SpecError: when nothing can be run at all: an unknown backend, no compiler, an output folder that can't be written.
    """
    from opc.backends import registry
    from opc.build import imports

    start = time.monotonic()
    report = Report()
    every, broken = registry.load_all() if backends is None else (registry.select(backends), ())
    chosen = _usable(report, every)
    report.backends |= {b.name: Column(b.name, reason=b.diagnostic.message) for b in broken}
    report.cpu = dict.fromkeys((BUILD, ORACLE, *(b.name for b in chosen)), 0.0)
    before = _cpu()
    tiers = None if chosen_specs is None else Tiers(chosen_specs, interface_specs, whole_specs)
    tasks = _build_in_tiers(report, specs, chosen, tiers, out or Path("generated"), say, jobs)
    report.spend(BUILD, _cpu() - before)
    memory = Memory(out or Path("generated"))
    keys = _keys(memory, tasks, chosen)
    if not again:
        tasks = _unknown(report, memory, tasks, keys)
    if tasks:
        with tempfile.TemporaryDirectory(prefix="opc-test-") as scratch, imports.links(chosen) as path:
            _Schedule(report, tasks, Path(scratch), chosen, progress, patience, path).run(jobs or os.cpu_count() or 1)
    _keep(report, memory, tasks, keys)
    report.seconds = time.monotonic() - start
    return report


def _cpu() -> float:
    """Return the seconds of processor time of this process and of those it has waited for."""
    return sum(os.times()[:4])


def _keys(memory: Memory, packages: Sequence[_Package], backends: Sequence[Backend]) -> dict[tuple[str, str], str | None]:
    """Return what the outcomes of each op on each backend, and on the oracle, are kept under."""
    entries = {b.name: f"{type(b).__module__}:{type(b).__qualname__}" for b in backends}
    found = {
        (p.op, name): memory.key(p.package, name, python, entries[name], p.extent)
        for p in packages
        for name, python in p.backends.items()
    }
    return found | {(p.op, ORACLE): memory.key(p.package, ORACLE, sys.executable, "", p.extent) for p in packages}


def _unknown(
    report: Report, memory: Memory, packages: Sequence[_Package], keys: Mapping[tuple[str, str], str | None]
) -> list[_Package]:
    """Return what is to be run: the packages with the backends that have not passed on the same bytes. Report the others."""
    left: list[_Package] = []
    for package in packages:
        known = {name: memory.recall(package.op, name, keys[package.op, name]) for name in (*package.backends, ORACLE)}
        missing = {name: python for name, python in package.backends.items() if known[name] is None}
        if missing or known[ORACLE] is None:
            # The plan is made again, and with it what the oracle proves.
            left.append(replace(package, backends=missing))
            known[ORACLE] = None
        for name, found in known.items():
            if found is not None:
                version, results = found
                report.add(results)
                report.remembered += sum(r.count for r in results if r.status not in IDLE)
                if name in report.backends:
                    report.backends[name] = replace(report.backends[name], version=version)
    return left


def _keep(report: Report, memory: Memory, packages: Sequence[_Package], keys: Mapping[tuple[str, str], str | None]) -> None:
    """Keep what passed."""
    found: dict[tuple[str, str], list[Result]] = {}
    for r in report.results:
        if r.message not in (SAMPLED, THINNED):
            found.setdefault((r.op, r.backend), []).append(r)
    for package in packages:
        for name in (*package.backends, ORACLE):
            column = report.backends.get(name)
            pair = package.op, name
            memory.keep(*pair, keys[pair], column.version if column else "", found.get(pair, ()))


def _usable(report: Report, backends: Sequence[Backend]) -> list[Backend]:
    """Return the backends whose frameworks are here, and give each its column: first those that run beside opc."""
    chosen: list[Backend] = []
    settings = config.load()
    for backend in sorted(backends, key=lambda b: (getattr(b, "environment", None) is not None, b.title.casefold())):
        found = backend.probe()
        # A backend that looks for its framework only here may well find it where the user says.
        if found.available or backend.name in settings.python:
            chosen.append(backend)
            report.backends[backend.name] = Column(backend.title, found.version or "")
        else:
            reason = "; ".join(t for t in (found.reason, f"install with: {found.install}" if found.install else None) if t)
            report.backends[backend.name] = Column(backend.title, reason=reason or "its framework is not installed")
    return chosen


@dataclass(frozen=True, slots=True)
class _Package:
    """A built op and the backends to run it on, with the interpreter of each; `extent` is how much of its proof is run."""

    op: str
    spec: Path
    package: Path
    backends: dict[str, str]
    extent: Extent = Extent.WHOLE


def _build_in_tiers(
    report: Report,
    specs: Sequence[Path],
    backends: Sequence[Backend],
    tiers: Tiers | None,
    out: Path,
    say: Callable[[str], None] | None,
    jobs: int | None,
) -> list[_Package]:
    """Bring the packages up to date, each for the backends that run it; say of each what is not run."""
    if tiers is None:
        return _build(report, specs, backends, out, say, jobs)
    groups: dict[tuple[bool, ...], list[Path]] = {}
    for spec in specs:
        groups.setdefault((spec in tiers.chosen, *(tiers.runs(spec, b) for b in backends)), []).append(spec)
    found: list[_Package] = []
    for (chosen, *runs), group in sorted(groups.items(), reverse=True):
        wanted = [b for b, own in zip(backends, runs, strict=True) if own]
        with nullcontext() if chosen else unoptimised():
            built = _build(report, group, wanted, out, say, jobs) if wanted else []
        found += [replace(package, extent=tiers.extent(package.spec)) for package in built]
    for package in found:
        report.add(
            Result(package.op, name, "op", package.op, Status.NOT_RUN, message=why)
            for name, why in tiers.left_out(package.spec, backends, package.backends)
        )
    return found


def _build(
    report: Report,
    specs: Sequence[Path],
    backends: Sequence[Backend],
    out: Path,
    say: Callable[[str], None] | None,
    jobs: int | None,
) -> list[_Package]:
    """Bring the packages up to date, and record the specs and backends that fall out."""
    if not specs:
        return []
    from opc.build.builder import build_specs

    names = [b.name for b in backends]
    packages: list[_Package] = []
    for spec, built in zip(specs, build_specs(specs, out, names, strict=False, say=say, jobs=jobs)):
        if built.package is None or not built.ok:
            report.mistakes[str(spec)] = "\n".join(d.render() for d in built.diagnostics)
            continue
        run_on: dict[str, str] = {}
        for backend in backends:
            reasons = built.skipped.get(backend.name)
            execution = getattr(backend, "execution", "native")
            if reasons:
                refused = built.generated is not None and backend.name in built.generated.skipped
                status = Status.REFUSED if refused else Status.NOT_RUN
                why = "; ".join(d.message for d in reasons)
                report.add([Result(built.name, backend.name, "build", built.name, status, message=why)])
            elif execution == "compiled":
                report.add([Result(built.name, backend.name, "build", built.name, Status.COMPILED)])
            else:
                run_on[backend.name] = str(environments.interpreter(backend.name))
        packages.append(_Package(built.name, spec, built.package, run_on))
    return packages


class _Schedule:
    """Hands tasks to threads, each of which keeps one worker; a plan's runs become tasks when the plan is there."""

    def __init__(
        self,
        report: Report,
        packages: Sequence[_Package],
        scratch: Path,
        backends: Sequence[Backend],
        progress: Progress | None,
        patience: float,
        path: Path,
    ) -> None:
        self.report, self.scratch, self.progress, self.patience, self.path = report, scratch, progress, patience, path
        self.packages = {p.op: p for p in packages}
        self.entries = {b.name: f"{type(b).__module__}:{type(b).__qualname__}" for b in backends}
        self.execution = {b.name: getattr(b, "execution", "native") for b in backends}
        self.ready = [self.plan_task(p) for p in packages]
        self.total = len(packages) + sum(len(p.backends) for p in packages)
        self.finished = 0
        self.running = 0
        self.changed = threading.Condition()

    def plan_task(self, package: _Package) -> Task:
        """Return the task that makes a package's plan."""
        message = {
            "task": "plan",
            "spec": str(package.spec),
            "file": str(self.plan_file(package.op)),
            "extent": package.extent.value,
        }
        return Task(ORACLE, sys.executable, package.op, message)

    def run_tasks(self, package: _Package) -> list[Task]:
        """Return the tasks that run a package's plan."""
        tasks = []
        for name, python in package.backends.items():
            message = {
                "task": "run",
                "plan": str(self.plan_file(package.op)),
                "backend": name,
                "entry": self.entries[name],
                "package": str(package.package.absolute()),
                "execution": self.execution[name],
            }
            tasks.append(Task(name, python, package.op, message))
        return tasks

    def plan_file(self, op: str) -> Path:
        """Return where the plan of an op lies."""
        return self.scratch / f"{op}.plan"

    def run(self, jobs: int) -> None:
        """Run all tasks on `jobs` threads."""
        threads = [threading.Thread(target=self.serve, daemon=True) for _ in range(max(1, min(jobs, self.total)))]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def take(self, last: str | None) -> Task | None:
        """Return the next task, one for the worker at hand where there is one; None when no more will come."""
        with self.changed:
            while not self.ready:
                if not self.running:
                    self.changed.notify_all()
                    return None
                self.changed.wait()
            # Plans first, since everything waits for them; then what the thread's own worker can do.
            same = [t for t in self.ready if t.backend == last]
            plans = [t for t in self.ready if t.backend == ORACLE]
            task = (same or plans or self.ready)[0]
            self.ready.remove(task)
            self.running += 1
            return task

    def finish(self, task: Task, more: list[Task]) -> None:
        """Record that a task is over and what it makes possible."""
        with self.changed:
            self.running -= 1
            self.ready += more
            again = bool(more) and more[0].backend == task.backend and more[0].op == task.op
            if not again:
                self.finished += 1
                if self.progress is not None:
                    self.progress(self.finished, self.total, f"{task.op} on {task.backend}")
            self.changed.notify_all()

    def serve(self) -> None:
        """Take tasks until there are no more, with one worker at a time."""
        worker: Worker | None = None
        key: tuple[str, str] | None = None
        while (task := self.take(key[1] if key else None)) is not None:
            more: list[Task] = []
            try:
                if worker is None or key != (task.python, task.backend):
                    if worker is not None:
                        worker.close()
                    worker, key = Worker(task.python, self.path, self.patience), (task.python, task.backend)
                more, alive = self.carry_out(worker, task)
                if not alive:
                    worker.close()
                    worker, key = None, None
            except OSError as error:
                # An interpreter that does not exist, or no memory for another process.
                self.fail(task, task.backend, f"can't start {task.python}: {error}")
            finally:
                self.finish(task, more)
        if worker is not None:
            worker.close()

    def carry_out(self, worker: Worker, task: Task) -> tuple[list[Task], bool]:
        """Run a task and return the tasks that follow from it, and whether the worker is still usable."""
        begun, current = 0, ("start", task.op)
        results: list[Result] = []
        try:
            for answer in worker.run({**task.message, "skip": task.skip}):
                if "begin" in answer:
                    current = (answer["begin"][0], answer["begin"][1])
                    begun += current[0] not in ("load", "plan")
                elif "result" in answer:
                    results.append(Result.from_dict(answer["result"]))
                elif "version" in answer:
                    with self.changed:
                        column = self.report.backends[task.backend]
                        self.report.backends[task.backend] = replace(column, version=answer["version"])
                elif "cpu" in answer:
                    with self.changed:
                        self.report.spend(task.backend, answer["cpu"])
                elif "missing" in answer:
                    results.append(Result(task.op, task.backend, "load", task.op, Status.NOT_RUN, message=answer["missing"]))
                elif "error" in answer:
                    self.fail(task, current[1], answer["error"], current[0])
                    return [], True
        except CrashedError as crash:
            self.fail(task, current[1], str(crash), current[0])
            again = begun and task.crashes + 1 < MOST_CRASHES
            if begun and not again:
                self.fail(task, task.op, f"given up after {MOST_CRASHES} crashes", "load")
            return ([replace(task, skip=task.skip + begun, crashes=task.crashes + 1)] if again else []), False
        finally:
            with self.changed:
                self.report.add(results)
        return (self.run_tasks(self.packages[task.op]) if task.message["task"] == "plan" else []), True

    def fail(self, task: Task, name: str, message: str, kind: str = "load") -> None:
        """Record a failure that no worker could report."""
        with self.changed:
            failure = Result(task.op, task.backend, kind, name, Status.FAILED, float("inf"), message=message)
            self.report.add([failure])


__all__ = ["Progress", "run_tests"]
