"""Charts of times beside those of the frameworks, as SVG that takes its colours from the page, and the tables behind them."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from opc.records import dataclass
from opc.site import texts
from opc.site.texts import words
from opc.testing.bench.benchmark import OURS, SECTIONS, Benchmark, Measurement, peers
from opc.testing.bench.report import seconds_text

SHOWN = ("ops", "backward", "gpu", "gpu-backward")
"""The sections of a benchmark that are shown: an op and its gradient, beside what frameworks have for it."""

_FORMS = {"ops": "forward", "backward": "gradient", "gpu": "forward on a GPU", "gpu-backward": "gradient on a GPU"}
_WIDTH, _LABEL, _ROW = 640, 170, 20
_MOST = 4.0
"""The overview goes from a quarter of a framework's speed to so many times of it; what lies beyond is at the edge."""


@dataclass(frozen=True, slots=True)
class Case:
    """One call: the section it was measured in, its name, and every contender."""

    section: str
    name: str
    rows: tuple[Measurement, ...]

    @property
    def title(self) -> str:
        """The name, and whether the gradient was measured."""
        return f"{self.name}, {_FORMS[self.section]}"

    @property
    def ours(self) -> Measurement | None:
        """The quickest of ours."""
        return min((r for r in self.rows if r.contender.startswith(OURS) and r.seconds), key=_seconds, default=None)

    @property
    def theirs(self) -> Measurement | None:
        """The quickest of the frameworks."""
        return min((r for r in peers(self.rows) if r.contender not in ("memcpy", "copy")), key=_seconds, default=None)

    @property
    def times(self) -> float | None:
        """How many times as fast as the quickest framework the quickest of ours is; None where one of them is missing."""
        ours, theirs = self.ours, self.theirs
        return None if ours is None or theirs is None else _seconds(theirs) / _seconds(ours)


def _seconds(row: Measurement) -> float:
    return row.seconds or math.inf


def cases(bench: Benchmark, op: str | None = None) -> list[Case]:
    """Return the calls of one op that were measured, or of all ops, a section after the other."""
    found: dict[tuple[str, str], list[Measurement]] = {}
    for row in bench.rows:
        if row.section in SHOWN and (op is None or re.split(r"[/ ]", row.op)[0] == op):
            found.setdefault((row.section, row.op), []).append(row)
    ordered = sorted(found.items(), key=lambda item: SHOWN.index(item[0][0]))
    return [Case(section, name, tuple(rows)) for (section, name), rows in ordered]


def bars(op: str, shown: Sequence[Case]) -> str:
    """Return the times of an op's calls as one line of SVG: a bar for each contender, as long as it takes beside the slowest."""
    parts, y = [], 4
    for case in shown:
        parts.append(f'<text class="opc-head" x="0" y="{y + 15}">{words(case.title)}</text>')
        y += _ROW + 2
        ran = [r for r in case.rows if r.seconds]
        longest = max(map(_seconds, ran), default=1.0)
        for r in ran:
            length = max(_seconds(r) / longest * (_WIDTH - _LABEL - 80), 1)
            kind = "opc-ours" if r.contender.startswith(OURS) else "opc-theirs"
            parts.append(f'<text x="{_LABEL - 8}" y="{y + 14}" text-anchor="end">{words(r.contender)}</text>')
            parts.append(f'<rect class="{kind}" x="{_LABEL}" y="{y + 3}" width="{length:.1f}" height="{_ROW - 6}"/>')
            parts.append(f'<text x="{_LABEL + length + 6:.1f}" y="{y + 14}">{seconds_text(r.seconds)}</text>')
            y += _ROW
        y += 10
    return _svg(f"bench-{op}", f"Times of {op} beside the frameworks'", " ".join(map(_told, shown)), y, parts)


def _told(case: Case) -> str:
    ran = ", ".join(f"{r.contender} {seconds_text(r.seconds)}" for r in case.rows if r.seconds)
    return f"{case.title}: {ran}."


def table(shown: Sequence[Case]) -> str:
    """Return the same as a table in Markdown, with what did not run and why."""
    lines = ["| call | contender | time | ours / theirs | |", "|---|---|---:|---:|---|"]
    for case in shown:
        for r in case.rows:
            cells = case.title, r.contender, seconds_text(r.seconds), "" if r.ratio is None else f"{r.ratio:.2f}", r.note
            lines.append(f"| {' | '.join(map(texts.prose, cells))} |")
    return "\n".join(lines)


def overview(bench: Benchmark, pages: Sequence[str]) -> str:
    """Return the page of all calls: how many times as fast as the quickest framework the quickest of ours is.

    `pages` has the names of the ops that have a page in the gallery.
    """
    every = [c for c in cases(bench) if c.times is not None]
    machine = ", ".join(f"{name} {value}" for name, value in bench.machine.items())
    lines = ["# Beside the frameworks", ""]
    lines += [
        f"Each call is measured in turn with its peers in one process, by `opc bench`{f', on {machine}' if machine else ''}.",
        "",
    ]
    for section in SHOWN:
        of_it = [c for c in every if c.section == section]
        if not of_it:
            continue
        title = SECTIONS[section]
        lines += [f"## {title[0].upper()}{title[1:]}", "", texts.prose(_counted(of_it)), ""]
        caption = "<figcaption>How many times as fast as the quickest framework; 1 is as fast.</figcaption>"
        lines += [f'<figure class="opc-figure">{_chart(section, of_it)}{caption}</figure>', ""]
        lines += ["| call | quickest of opc | quickest framework | times as fast |", "|---|---|---|---:|"]
        lines += [_line(c, pages) for c in of_it]
        lines.append("")
    return "\n".join(lines)


def _line(case: Case, pages: Sequence[str]) -> str:
    ours, theirs, op = case.ours, case.theirs, re.split(r"[/ ]", case.name)[0]
    assert ours is not None
    assert theirs is not None
    name = f"[{texts.prose(case.name)}](../gallery/{op}.md)" if op in pages else texts.prose(case.name)
    both = [texts.prose(f"{r.contender}, {seconds_text(r.seconds)}") for r in (ours, theirs)]
    return f"| {name} | {both[0]} | {both[1]} | {case.times:.2f} |"


def _counted(shown: Sequence[Case]) -> str:
    faster = sum((c.times or 0) >= 1 for c in shown)
    least = min(shown, key=lambda c: c.times or 0)
    text = f"Of {len(shown)} calls, {faster} are at least as fast as in the quickest framework."
    return (
        text if (least.times or 0) >= 1 else f"{text} The furthest behind is {least.name}, at {least.times:.2f} times its speed."
    )


def _chart(section: str, shown: Sequence[Case]) -> str:
    """Return a bar for each call on an axis of powers of two: from 1, the quickest framework's speed, to that of ours."""
    left, right = _LABEL + 40, _WIDTH - 60

    def x(times: float) -> float:
        share = (math.log2(min(max(times, 1 / _MOST), _MOST)) / math.log2(_MOST) + 1) / 2
        return left + share * (right - left)

    bottom = 24 + len(shown) * _ROW
    parts = []
    for mark in (1 / 4, 1 / 2, 1, 2, 4):
        parts.append(f'<path class="{"opc-axis" if mark == 1 else "opc-grid"}" d="M{x(mark):.1f} 20V{bottom}"/>')
        parts.append(f'<text x="{x(mark):.1f}" y="14" text-anchor="middle">{mark:g}×</text>')
    for number, case in enumerate(shown):
        y, times = 24 + number * _ROW, case.times or 0
        begin, end = sorted((x(1), x(times)))
        kind = "opc-ours" if times >= 1 else "opc-behind"
        parts.append(f'<text x="{left - 10}" y="{y + 14}" text-anchor="end">{words(case.name)}</text>')
        length = max(end - begin, 1)
        parts.append(f'<rect class="{kind}" x="{begin:.1f}" y="{y + 4}" width="{length:.1f}" height="{_ROW - 8}"/>')
        parts.append(f'<text x="{_WIDTH - 4}" y="{y + 14}" text-anchor="end">{times:.2f}</text>')
    title = f"Speed beside the quickest framework: {SECTIONS[section]}"
    return _svg(f"bench-{section}", title, f"{_counted(shown)} The table below has every figure.", bottom + 8, parts)


def _svg(label: str, title: str, described: str, height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg class="opc-plot opc-bench" viewBox="0 0 {_WIDTH} {height:g}" role="img"'
        f' aria-labelledby="{label}-title {label}-desc" xmlns="http://www.w3.org/2000/svg">'
        f'<title id="{label}-title">{words(title)}</title>'
        f'<desc id="{label}-desc">{words(described)}</desc>{"".join(parts)}</svg>'
    )


__all__ = ["Case", "bars", "cases", "overview", "table"]
