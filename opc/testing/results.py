"""What a proof says: one result a call or check, and the report that holds them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from opc.diagnostics import Diagnostic, Told

ORACLE = "oracle"
"""The name under which what needs no backend stands in a report: gradients against differences, examples, ONNX's own outputs."""


BUILD = "build"
"""The name under which the time of generating and compiling stands in a report."""


class Status(Enum):
    """What became of a call or check. Only `PASSED` and `EMULATED` say that something ran and was right.

    `REFUSED` is an op that a backend can't carry, which it says before anything is built; `NOT_RUN` is what couldn't be run here.
    """

    PASSED = "passed"
    FAILED = "failed"
    REFUSED = "refused"
    NOT_RUN = "not run"
    COMPILED = "compiled, not executed"
    EMULATED = "emulated"


UNCALLED = "no calls"
"""The kind of result that says that no call was found of an op of a family, or none to differentiate."""


IDLE = (Status.REFUSED, Status.NOT_RUN)
"""The states of what did not run."""


@dataclass(frozen=True, slots=True)
class Result:
    """One outcome: `kind` groups results (forward, gradient, refused, ONNX node case, check, ...).

    `ratio` is the worst error over its bound, at most 1 for an answer that is right. `message` says what is wrong, or why it was
    not run. `count` is the number of outcomes it represents: of one reason not to run, or of points of one proof.
    """

    op: str
    backend: str
    kind: str
    name: str
    status: Status
    ratio: float = 0.0
    seconds: float = 0.0
    message: str = ""
    count: int = 1

    @property
    def label(self) -> str:
        """Kind and name for people, neither said twice: `forward relu/001-sizes-7`, `example 1`."""
        return self.name if f"{self.name} ".startswith(f"{self.kind} ") else f"{self.kind} {self.name}"

    def as_dict(self) -> dict[str, Any]:
        """Return plain data; infinite ratios become None, which JSON can hold."""
        data = asdict(self)
        data["status"] = self.status.value
        data["ratio"] = self.ratio if self.ratio < float("inf") else None
        return data

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Result:
        """Return the result `as_dict` made."""
        ratio = float("inf") if data["ratio"] is None else float(data["ratio"])
        return Result(**{**data, "status": Status(data["status"]), "ratio": ratio})


@dataclass(frozen=True, slots=True)
class Cell:
    """All results of one op on one backend together."""

    op: str
    backend: str
    results: tuple[Result, ...]

    def count(self, *statuses: Status) -> int:
        """Return how many outcomes have one of these statuses."""
        return sum(r.count for r in self.results if r.status in statuses)

    @property
    def status(self) -> Status:
        """The status of the whole: failed if anything failed, refused or not run if nothing ran."""
        for status in (Status.FAILED, Status.COMPILED, Status.PASSED, Status.EMULATED, Status.REFUSED):
            if any(r.status is status for r in self.results):
                return status
        return Status.NOT_RUN

    @property
    def ratio(self) -> float:
        """The worst error over its bound among answers that are right or wrong."""
        return max((r.ratio for r in self.results if r.status not in IDLE), default=0.0)

    @property
    def seconds(self) -> float:
        """The time of all calls."""
        return sum(r.seconds for r in self.results)

    @property
    def kinds(self) -> dict[str, int]:
        """How many outcomes of each kind ran."""
        ran = Counter[str]()
        for r in self.results:
            if r.status not in IDLE:
                ran[r.kind] += r.count
        return dict(ran)

    @property
    def reasons(self) -> dict[str, int]:
        """Why outcomes were not run, and how many for each reason."""
        found = Counter[str]()
        for r in self.results:
            if r.status is Status.NOT_RUN:
                found[f"{r.kind}: {r.message}"] += r.count
        return dict(found)

    @property
    def refusals(self) -> tuple[str, ...]:
        """Why the backend can't carry the op."""
        return tuple(dict.fromkeys(r.message for r in self.results if r.status is Status.REFUSED))

    @property
    def failures(self) -> tuple[Result, ...]:
        """The results that failed."""
        return tuple(r for r in self.results if r.status is Status.FAILED)


@dataclass(frozen=True, slots=True)
class Column:
    """A backend of a report: its name for people, its framework's version, or the reason why nothing was run on it."""

    title: str
    version: str = ""
    reason: str = ""


@dataclass(slots=True)
class Report:
    """Everything a run of the proof found.

    `backends` holds each backend by its name, in the order of the table. `mistakes` are the messages of specs that could not be
    proved at all. `seconds` is the wall time of the whole run, `cpu` the processors' time that its parts took: `build` and each
    backend by name. `remembered` is how many of the outcomes are those of an earlier run on the same bytes. `sources` holds the
    SHA-256 of each op's spec.
    """

    backends: dict[str, Column] = field(default_factory=dict)
    results: list[Result] = field(default_factory=list)
    mistakes: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cpu: dict[str, float] = field(default_factory=dict)
    remembered: int = 0
    sources: dict[str, str] = field(default_factory=dict)
    _told: Told = field(default_factory=Told, init=False, repr=False, compare=False)

    def spend(self, part: str, seconds: float) -> None:
        """Add to the processors' time of a part of the run."""
        self.cpu[part] = self.cpu.get(part, 0.0) + seconds

    def mistaken(self, spec: Path | str, diagnostics: Iterable[Diagnostic]) -> None:
        """Record that a spec could not be proved: why, or that it could not where another op of its file has told that."""
        new = self._told.new(diagnostics)
        self.mistakes[str(spec)] = "\n".join(d.render() for d in new) or f"{spec} could not be built"

    def add(self, results: Iterable[Result]) -> None:
        """Record results."""
        self.results.extend(results)

    @property
    def ok(self) -> bool:
        """Whether nothing failed and something ran."""
        return not self.mistakes and not any(r.status is Status.FAILED for r in self.results) and bool(self.results)

    @property
    def uncalled(self) -> tuple[str, ...]:
        """The ops, derived ones too, of which there was no call: nothing is proved of them."""
        return tuple(dict.fromkeys(r.name for r in self.results if r.kind == UNCALLED))

    @property
    def not_run(self) -> int:
        """How many calls and checks did not run."""
        return sum(r.count for r in self.results if r.status in (*IDLE, Status.COMPILED))

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops, in the order they came."""
        return tuple(sorted({r.op for r in self.results}))

    def cell(self, op: str, backend: str) -> Cell:
        """Return what one op did on one backend."""
        return Cell(op, backend, tuple(r for r in self.results if r.op == op and r.backend == backend))

    def cells(self) -> dict[tuple[str, str], Cell]:
        """Return every op on every backend that has results, ops first."""
        grouped: dict[tuple[str, str], list[Result]] = {}
        for r in self.results:
            grouped.setdefault((r.op, r.backend), []).append(r)
        return {key: Cell(*key, tuple(grouped[key])) for key in sorted(grouped, key=lambda k: (k[0], k[1] != ORACLE, k[1]))}

    def totals(self) -> dict[str, int]:
        """Return how many outcomes of each kind ran, over all ops and backends."""
        total = Counter[str]()
        for r in self.results:
            if r.status not in IDLE:
                total[r.kind] += r.count
        return dict(total)


def as_json(report: Report) -> dict[str, Any]:
    """Return the report as plain data for `--json`: the table, every failure, what was not run and why."""
    cells = []
    for (op, backend), cell in report.cells().items():
        ratio = cell.ratio
        cells.append(
            {
                "op": op,
                "backend": backend,
                "status": cell.status.value,
                "passed": cell.count(Status.PASSED, Status.EMULATED),
                "failed": cell.count(Status.FAILED),
                "not_run": cell.count(Status.NOT_RUN),
                "worst_error_over_bound": ratio if ratio < float("inf") else None,
                "seconds": round(cell.seconds, 6),
                "kinds": cell.kinds,
                "refused": list(cell.refusals),
                "reasons": cell.reasons,
                "failures": [r.as_dict() for r in cell.failures],
            }
        )
    return {
        "ok": report.ok,
        "seconds": round(report.seconds, 3),
        "cpu_seconds": {part: round(seconds, 3) for part, seconds in report.cpu.items()},
        "not_run": report.not_run,
        "remembered": report.remembered,
        "backends": {name: asdict(column) for name, column in report.backends.items()},
        "mistakes": report.mistakes,
        "totals": report.totals(),
        "cells": cells,
    }
