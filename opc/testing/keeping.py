"""Reports as data to be kept: the parts of a long proof, run apart, are joined into one page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

from opc.testing.report import TRUTHS
from opc.testing.results import Column, Report, Result, Status

FORMAT = 2
"""Changes with what the data hold."""


def to_data(report: Report) -> dict[str, Any]:
    """Return a report as plain data. What passed, or did not run for one reason, is counted; what failed is kept one by one.

    So are comparisons with independent references, whose names the report counts.
    """
    kept: dict[Any, Result] = {}
    for number, r in enumerate(report.results):
        alone = r.status is Status.FAILED or r.kind in TRUTHS
        key = number if alone else (r.op, r.backend, r.kind, r.status, r.message)
        if key in kept:
            old = kept[key]
            ratio, seconds, count = max(old.ratio, r.ratio), old.seconds + r.seconds, old.count + r.count
            kept[key] = replace(old, name=r.kind, ratio=ratio, seconds=seconds, count=count)
        else:
            kept[key] = r
    return {
        "format": FORMAT,
        "backends": {name: asdict(column) for name, column in report.backends.items()},
        "mistakes": report.mistakes,
        "seconds": report.seconds,
        "sources": report.sources,
        "results": [r.as_dict() for r in kept.values()],
    }


def from_data(data: Mapping[str, Any]) -> Report:
    """Return the report that `to_data` made data of.

    Raises:
        ValueError: when the data are of another version of opc.
    """
    if data["format"] != FORMAT:
        raise ValueError("another version of opc wrote them")
    columns = {name: Column(**column) for name, column in data["backends"].items()}
    results = [Result.from_dict(r) for r in data["results"]]
    return Report(columns, results, dict(data["mistakes"]), float(data["seconds"]), sources=dict(data["sources"]))


def joined(reports: Iterable[Report]) -> Report:
    """Return the parts of a proof as one report.

    Raises:
        ValueError: when two parts ran on different versions of a framework, or hold the same op.
    """
    whole = Report()
    for part in reports:
        again = {(r.op, r.backend) for r in whole.results} & {(r.op, r.backend) for r in part.results}
        if again:
            raise ValueError(f"two parts hold {', '.join(sorted({op for op, _ in again}))}")
        for name, column in part.backends.items():
            known = whole.backends.setdefault(name, column)
            if known != column:
                raise ValueError(f"the parts ran on different versions of {column.title}: {known.version}, {column.version}")
        whole.add(part.results)
        whole.mistakes |= part.mistakes
        whole.sources |= part.sources
        whole.seconds += part.seconds
    return whole


__all__ = ["from_data", "joined", "to_data"]
