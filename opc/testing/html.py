"""The report of a proof as one HTML file that needs nothing else: the table, and the failures in groups of equal ones."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from opc.testing.origin import origin
from opc.testing.report import cell_text, columns_of, ratio_text, totals_text, verdict
from opc.testing.results import Report, Result, Status

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
        report=report,
        statuses=[s for s in Status if any(r.status is s for r in report.results)],
        verdict=verdict(report),
        ratio_text=ratio_text,
        origin=origin(Path.cwd()),
    )
    path.write_text(text, encoding="utf-8")


__all__ = ["FailureGroup", "groups", "write_html"]
