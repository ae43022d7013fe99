"""Which worker does what: plans first, then their runs, on as many processes as there are processors.

A worker is used for one backend only and for as many families as come. When one crashes, the call it was in is a failure and
another worker goes on behind it.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from opc.backends import environments
from opc.backends.base import Backend
from opc.testing.extent import Extent
from opc.testing.process import CrashedError, Worker, Workers
from opc.testing.results import ORACLE, Report, Result, Status

Progress = Callable[[int, int, str], None]
"""Called with the number of finished tasks, their total, and what was finished."""

FEWEST = 4
"""How many tasks of a backend that another thread works on are worth a second worker, which imports the framework again."""

MOST_CRASHES = 25
"""After so many crashes of one op on one backend the rest of its calls is given up."""


@dataclass(frozen=True, slots=True)
class BuiltPackage:
    """A built op and the backends to run it on, with the interpreter of each; `extent` is how much of its proof is run."""

    op: str
    spec: Path
    package: Path
    backends: dict[str, str]
    extent: Extent = Extent.WHOLE


@dataclass(frozen=True, slots=True)
class Task:
    """Something for a worker: make a plan, or run one on a backend. `skip` steps are behind it already."""

    backend: str
    python: str
    op: str
    message: dict[str, Any] = field(compare=False)
    skip: int = 0
    crashes: int = 0


def entry(backend: Backend) -> str:
    """Return a backend's class as `module:name`."""
    return f"{type(backend).__module__}:{type(backend).__qualname__}"


def start_ahead(workers: Workers, backends: Sequence[Backend], jobs: int) -> None:
    """Start the workers that will be needed first and import what takes long, at most `jobs`; those that run already count.

    So the frameworks are imported while compilers run and plans are made.
    """
    workers.start(sys.executable, ORACLE, ("opc.pipeline", "opc.testing.plan"), jobs)
    for backend in backends:
        modules = backend.imports
        if modules and backend.execution != "compiled":
            python = str(environments.interpreter(backend.runs_as))
            workers.start(python, backend.name, ("opc.testing.execution", type(backend).__module__, *modules), jobs)


class Scheduler:
    """Hands tasks to threads, each of which keeps one worker; a plan's runs become tasks when the plan is there."""

    def __init__(
        self,
        report: Report,
        packages: Sequence[BuiltPackage],
        scratch: Path,
        backends: Sequence[Backend],
        progress: Progress | None,
        workers: Workers,
    ) -> None:
        self.report, self.scratch, self.progress, self.workers = report, scratch, progress, workers
        self.packages = {p.op: p for p in packages}
        self.entries = {b.name: entry(b) for b in backends}
        self.execution = {b.name: b.execution for b in backends}
        self.ready = [self.plan_task(p) for p in packages]
        self.total = len(packages) + sum(len(p.backends) for p in packages)
        self.finished = 0
        self.running = 0
        self.serving: dict[int, str] = {}
        self.changed = threading.Condition()

    def plan_task(self, package: BuiltPackage) -> Task:
        """Return the task that makes a package's plan."""
        message = {
            "task": "plan",
            "spec": str(package.spec),
            "file": str(self.plan_file(package.op)),
            "extent": package.extent.value,
        }
        return Task(ORACLE, sys.executable, package.op, message)

    def run_tasks(self, package: BuiltPackage) -> list[Task]:
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
        this = threading.get_ident()
        with self.changed:
            while (task := self.choose(last, this)) is None:
                if not self.running:
                    self.serving.pop(this, None)
                    self.changed.notify_all()
                    return None
                self.changed.wait()
            self.ready.remove(task)
            self.running += 1
            self.serving[this] = task.backend
            return task

    def choose(self, last: str | None, this: int) -> Task | None:
        """Return what is to be done next; None where only another thread should do what there is.

        Plans first, since everything waits for them; then what the thread's own worker can do, what one can that waits, and the
        backend with most to do. What another thread is at is left to it, unless much is left.
        """
        same = [t for t in self.ready if t.backend == last]
        plans = [t for t in self.ready if t.backend == ORACLE]
        if same or plans:
            return (same or plans)[0]
        others = {backend for thread, backend in self.serving.items() if thread != this}
        left = Counter(t.backend for t in self.ready)
        open_ = [t for t in self.ready if t.backend not in others]
        begun = [t for t in open_ if self.workers.waits(t.python, t.backend)]
        much = [t for t in self.ready if left[t.backend] >= FEWEST]
        return max(begun or open_ or much, key=lambda t: left[t.backend], default=None)

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
                    key = task.python, task.backend
                    worker = self.workers.take(*key)
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


__all__ = ["BuiltPackage", "Progress", "Scheduler", "Task", "entry", "start_ahead"]
