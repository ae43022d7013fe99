"""The report of a proof as one HTML file that needs nothing else: the table, and the failures in groups of equal ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from opc.testing.origin import origin
from opc.testing.report import about_any, cell_text, columns_of, ratio_text, totals_text, verdict
from opc.testing.results import IDLE, Report, Result, Status

_NUMBER = r"[-+]?(?:\d+(?:\.\d+)?(?:e[-+]?\d+)?|\b(?:nan|NaN|inf)\b)"
_NUMBERS = re.compile(rf"{_NUMBER}(?:,\s*{_NUMBER})*", re.ASCII)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Failures of one op on one backend that say the same, but for numbers."""

    failures: tuple[Result, ...]

    @property
    def first(self) -> Result:
        """The failure that represents the group."""
        return self.failures[0]

    @property
    def ratio(self) -> float:
        """The worst error over its bound."""
        return max(r.ratio for r in self.failures)


def groups(results: Iterable[Result]) -> list[FailureGroup]:
    """Return the failures among results in groups of equal ones, in the order in which each first came."""
    found: dict[tuple[str, str, str, str], list[Result]] = {}
    for r in results:
        if r.status is Status.FAILED:
            found.setdefault((r.op, r.backend, r.kind, _without_numbers(r.message)), []).append(r)
    return [FailureGroup(tuple(same)) for same in found.values()]


def _without_numbers(message: str) -> str:
    """Return what a message says whatever the call: without its numbers, and the inputs that a wrong element comes from."""
    return _NUMBERS.sub("#", message.partition("; from ")[0]).replace("# +- #", "#")


@dataclass(frozen=True, slots=True)
class Idle:
    """What did not run on one backend for one reason: the ops, and how many calls; an op that is refused counts as one."""

    backend: str
    status: Status
    reason: str
    ops: tuple[str, ...]
    count: int


def idle(report: Report) -> list[Idle]:
    """Return what did not run and why: ops that are refused, then what most calls were left out for."""
    found: dict[tuple[Status, str, str], Counter[str]] = {}
    for r in report.results:
        if r.status in (*IDLE, Status.COMPILED):
            told = r.message or r.status.value
            reason = about_any(told, r.op) if r.status is Status.REFUSED else f"{r.kind}: {told}"
            found.setdefault((r.status, r.backend, reason), Counter())[r.op] += r.count
    rows = [
        Idle(backend, status, reason, tuple(sorted(ops)), len(ops) if status is Status.REFUSED else ops.total())
        for (status, backend, reason), ops in found.items()
    ]
    return sorted(rows, key=lambda row: (row.status is not Status.REFUSED, -row.count, row.backend, row.reason))


def write_html(report: Report, path: Path) -> None:
    """Write the report as one HTML file that needs nothing else.

    Raises:
        OSError: when the file can't be written.
    """
    from jinja2 import Environment, PackageLoader

    environment = Environment(loader=PackageLoader("opc.testing"), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    cells = report.cells()
    columns = columns_of(report)
    rows = [(op, [(name, cells.get((op, name))) for name in columns]) for op in report.ops]
    text = environment.get_template("report.html.j2").render(
        columns=columns,
        rows=rows,
        cell_text=cell_text,
        totals=totals_text(report),
        groups=groups(report.results),
        idle=idle(report),
        colours=files("opc.testing").joinpath("templates", "colours.css").read_text(encoding="utf-8"),
        report=report,
        statuses=[s for s in Status if any(r.status is s for r in report.results)],
        verdict=verdict(report),
        ratio_text=ratio_text,
        origin=origin(Path.cwd()),
    )
    path.write_text(text, encoding="utf-8")


__all__ = ["FailureGroup", "Idle", "groups", "idle", "write_html"]
