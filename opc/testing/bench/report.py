"""A benchmark as text: tables on the terminal, or in Markdown for the documentation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from opc.testing.bench.benchmark import OURS, SECTIONS, Benchmark, Measurement

_HEADER = ("op", "contender", "time", "ours / theirs", "GB/s", "of memcpy", "of memory", "GFLOP/s", "of peak", "")
_MEASURED = ("ops", "backward", "large", "fresh", "frameworks", "gpu", "gpu-backward")
"""The sections whose times are those of work, not of calls."""

_CASES = ("ops", "backward")
"""The sections of cases that frameworks compute too."""

_SLOW = 1.2
"""The ratio above which a case asks for a reason."""

_SIDE_BY_SIDE = ("compilers", "schedules")
"""The sections with a line for each op: its kernels, made in several ways."""


def seconds_text(seconds: float | None) -> str:
    """Return a time with three digits and its unit."""
    if seconds is None:
        return "-"
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1.0, 1e3, "ms")):
        if seconds < limit:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds:.3g} s"


def table(section: str, found: Benchmark) -> list[tuple[str, ...]]:
    """Return the cells of a section's table, the header first; columns that hold nothing are left out."""
    rows = [r for r in found.rows if r.section == section]
    peak = found.peak if section in ("ops", "backward") else {}
    lines = [_HEADER, *(_cells(r, _copy_bandwidth(r, found.rows), peak) for r in rows)]
    if section in _SIDE_BY_SIDE:
        lines = _side_by_side(rows)
    kept = [c for c in range(len(lines[0])) if any(line[c] not in ("", "-") for line in lines[1:])]
    return [tuple(line[c] for c in kept) for line in lines]


def _side_by_side(rows: Sequence[Measurement]) -> list[tuple[str, ...]]:
    """Return a line an op: the time of the kernel made the first way, then what the others' take of it."""
    ways = list(dict.fromkeys(r.contender for r in rows))
    found = {(r.op, r.contender): r for r in rows}
    lines = [("op", *ways[:1], *(f"{w} / {ways[0]}" for w in ways[1:]), "")]
    for op in dict.fromkeys(r.op for r in rows):
        first, *others = (found[op, w] for w in ways)
        ratios = ("-" if r.ratio is None else f"{r.ratio:.2f}" for r in others)
        lines.append((op, seconds_text(first.seconds), *ratios, first.note))
    return lines


def _copy_bandwidth(row: Measurement, rows: Sequence[Measurement]) -> float | None:
    """Return the bandwidth of the copy that ran beside a row."""
    same = (r for r in rows if (r.section, r.op, r.contender) == (row.section, row.op, "memcpy"))
    return next((r.bandwidth for r in same), None)


def _share(part: float | None, whole: float | None) -> str:
    return "" if part is None or whole is None else f"{part / whole:.0%}"


def _cells(row: Measurement, copy: float | None, peak: Mapping[str, float]) -> tuple[str, ...]:
    measured = row.section in _MEASURED and row.contender != "memcpy"
    bandwidth = row.bandwidth if row.section in _MEASURED else None
    speed = row.speed if measured else None
    return (
        row.op,
        row.contender,
        seconds_text(row.seconds),
        "" if row.ratio is None else f"{row.ratio:.2f}",
        "" if bandwidth is None else f"{bandwidth / 1e9:.1f}",
        _share(bandwidth, copy),
        _share(bandwidth, peak.get("bytes")),
        "" if speed is None else f"{speed / 1e9:.1f}",
        _share(speed, peak.get("flops")),
        row.note,
    )


def means(section: str, found: Benchmark) -> str:
    """Return the geometric mean of the ratios of a section's cases: the time of the best of ours over the best framework's.

    Empty where the section is not one of cases, or nothing has run on both sides.
    """
    if section not in _CASES:
        return ""
    ours: dict[str, float] = {}
    theirs: dict[str, float] = {}
    for r in found.rows:
        if r.section == section and r.seconds is not None:
            side = ours if r.contender.startswith(OURS) else theirs
            side[r.op] = min(side.get(r.op, math.inf), r.seconds)
    ratios = {op: ours[op] / theirs[op] for op in ours if op in theirs}
    if not ratios:
        return ""
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    above = sum(r > _SLOW for r in ratios.values())
    return (
        f"The geometric mean of the time of the best of ours over the best framework's is {mean:.2f}, over {len(ratios)} cases; "
        f"{above} of them {'is' if above == 1 else 'are'} above {_SLOW}."
    )


def _machine(found: Benchmark) -> str:
    """Return what was measured on, with what the machine can do at most where that is known."""
    parts = [f"{name} {value}" for name, value in found.machine.items()]
    if found.peak:
        parts.append(f"at most {found.peak['flops'] / 1e9:.0f} GFLOP/s in float32 and {found.peak['bytes'] / 1e9:.1f} GB/s")
    return ", ".join(parts)


def as_text(found: Benchmark) -> str:
    """Return the benchmark as aligned tables."""
    lines = [_machine(found)]
    for section, title in SECTIONS.items():
        cells = table(section, found)
        if len(cells) > 1:
            lines += ["", title, *_aligned(cells), *filter(None, [means(section, found)])]
    if found.targets:
        lines += ["", "targets", *_aligned(_targets(found))]
    return "\n".join(lines) + "\n"


def _aligned(cells: Sequence[tuple[str, ...]]) -> Iterator[str]:
    widths = [max(len(line[c]) for line in cells) for c in range(len(cells[0]))]
    # Names stand on the left, figures on the right.
    left = [c < 2 or not cells[0][c] for c in range(len(widths))]
    for line in cells:
        parts = (text.ljust(w) if on_left else text.rjust(w) for text, w, on_left in zip(line, widths, left, strict=True))
        yield "  " + "  ".join(parts).rstrip()


def _targets(found: Benchmark) -> list[tuple[str, ...]]:
    lines: list[tuple[str, ...]] = [("figure", "", "measured", "at most", "")]
    for t in found.targets:
        unit = f" {t.unit}" if t.unit else ""
        lines.append((t.name, "", f"{t.value:.3g}{unit}", f"{t.limit:.3g}{unit}", t.verdict))
    return lines


def as_markdown(found: Benchmark) -> str:
    """Return the benchmark as Markdown tables."""
    lines = [f"{_machine(found)}."]
    for section, title in SECTIONS.items():
        cells = table(section, found)
        if len(cells) > 1:
            lines += ["", f"### {title[0].upper()}{title[1:]}", "", *_markdown(cells)]
            lines += ["", text] if (text := means(section, found)) else []
    if found.targets:
        cells = [(a, c, d, e) for a, _, c, d, e in _targets(found)]
        lines += ["", "### Targets", "", *_markdown(cells)]
    return "\n".join(lines) + "\n"


def _markdown(cells: Sequence[tuple[str, ...]]) -> Iterator[str]:
    for i, line in enumerate(cells):
        yield "| " + " | ".join(text.replace("|", "\\|") for text in line) + " |"
        if i == 0:
            yield "|" + "|".join("---" if c < 2 else "---:" for c in range(len(line))) + "|"
