"""The report of a proof for people and machines: a table on the terminal, JUnit XML."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from opc.testing.results import IDLE, ORACLE, UNCALLED, Cell, Column, Report, Result, Status, as_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

MOST_FAILURES = 20
"""How many groups of failures the terminal shows; HTML, JUnit and JSON have all failures."""

MOST_REASONS = 20
"""How many reasons not to run the terminal shows."""

TRUTHS = ("ONNX node case", "OpInfo sample", "torch reference", "torch's own gradient", "torch's own second gradient")
"""The kinds of results that compare with something opc did not make."""

_COLOUR = {
    Status.PASSED: "green",
    Status.FAILED: "bold red",
    Status.REFUSED: "magenta",
    Status.NOT_RUN: "yellow",
    Status.COMPILED: "yellow",
    Status.EMULATED: "cyan",
}


def print_report(report: Report, console: Console) -> None:
    """Print the table of ops by backends, what ran, what did not and why, and the failures."""
    from rich.text import Text

    if report.ops:
        table = _table(report, cell_text)
        # With many backends there is only room for the shorter cells.
        if table.__rich_measure__(console, console.options.update(max_width=10_000)).maximum > console.width:
            table = _table(report, short_text)
        console.print(table)
    for column in report.backends.values():
        if column.reason:
            console.print(Text.assemble((column.title, "bold"), f" was not run: {column.reason}"))
    console.print(f"Ran {totals_text(report)} in {report.seconds:.1f} s.")
    if report.cpu:
        spent = ", ".join(f"{part_title(report, part)} {seconds:.1f} s" for part, seconds in report.cpu.items())
        console.print(f"Processor time: {spent}.", soft_wrap=True)
    if report.remembered:
        console.print(f"Unchanged since it passed: {report.remembered:,} of these; --again runs them.")
    for kind in TRUTHS:
        console.print(f"{kind}s: {reference_text(report, kind)}.")
    _print_refusals(report, console)
    _print_reasons(report, console)
    for message in report.mistakes.values():
        console.print(Text(message, "red"))
    failures = [r for r in report.results if r.status is Status.FAILED]
    _print_failures(failures, console)
    for r in report.results:
        if r.kind == UNCALLED:
            console.print(Text.assemble(("warning: ", "bold yellow"), (f"{r.name}: ", "bold"), r.message))
    good = "bold yellow" if report.uncalled else "bold green"
    console.print(Text(verdict(report), good if report.ok else "bold red"))


def part_title(report: Report, part: str) -> str:
    """Return what a part of a run is called: a backend by its framework's name."""
    return report.backends[part].title if part in report.backends else part


def verdict(report: Report) -> str:
    """Return what a run found, in a line: whether all is right, and how much did not run."""
    failures = sum(r.status is Status.FAILED for r in report.results)
    if not report.ok:
        return f"{failures:,} failed" if failures else "nothing was proved"
    absent = [column.title for column in report.backends.values() if column.reason]
    parts = [f"{report.not_run:,} {'call' if report.not_run == 1 else 'calls and checks'} did not run"] if report.not_run else []
    parts += [f"nothing ran on {', '.join(absent)}"] if absent else []
    if report.uncalled:
        parts.insert(0, f"no call was found of {', '.join(report.uncalled)}, of which nothing is proved")
    return "; ".join(["all that ran is right", *parts])


def _table(report: Report, text_of: Callable[[Cell], str]) -> Table:
    """Return the table of ops by backends."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    cells = report.cells()
    short = text_of is short_text
    title = "calls right, worst error over bound" if short else "calls right / run, worst error over bound, time"
    table = Table(title=title, title_justify="left")
    if short:
        table.box, table.padding, table.show_edge = box.SIMPLE_HEAD, 0, False
    table.add_column("op", no_wrap=True)
    columns = columns_of(report)
    for column in columns.values():
        # Of 2.13.0+cpu the part behind the plus says how it was built, for which there is no room.
        version = column.version.partition("+")[0] if short else column.version
        table.add_column(f"{column.title}\n{version}" if version else column.title)
    for op in report.ops:
        row = [Text(op)]
        for name in columns:
            cell = cells.get((op, name))
            row.append(Text("not run", "yellow") if cell is None else Text(text_of(cell), _COLOUR[cell.status]))
        table.add_row(*row)
    if short:
        seconds = {name: sum(c.seconds for (_, b), c in cells.items() if b == name) for name in columns}
        table.add_section()
        table.add_row("time", *(f"{s:.1f}s" if s else "" for s in seconds.values()))
    return table


def _print_failures(failures: list[Result], console: Console) -> None:
    """Print the first failure of each op, backend and kind, and how many more of its like there are."""
    from rich.text import Text

    groups: dict[tuple[str, str, str], list[Result]] = {}
    for r in failures:
        groups.setdefault((r.backend, r.op, r.kind), []).append(r)
    for (backend, op, _), found in list(groups.items())[:MOST_FAILURES]:
        more = f" (and {len(found) - 1} more like it)" if len(found) > 1 else ""
        first = found[0]
        where = (f"{op} on {backend}: ", "bold")
        console.print(Text.assemble(("FAILED ", "bold red"), where, f"{first.label}: {first.message}{more}"))
    if len(groups) > MOST_FAILURES:
        console.print(f"and {len(groups) - MOST_FAILURES} more kinds of failure; --report writes them all")


def columns_of(report: Report) -> dict[str, Column]:
    """Return the columns of the table: the oracle, the backends in their order, and whatever else has results."""
    found = {ORACLE: Column(ORACLE)} if any(r.backend == ORACLE for r in report.results) else {}
    found |= report.backends
    return found | {r.backend: Column(r.backend) for r in report.results if r.backend not in found}


def cell_text(cell: Cell) -> str:
    """Return one cell of the table: `812/812  0.43  1.2s`."""
    if cell.status in (*IDLE, Status.COMPILED):
        return str(cell.status.value)
    right = cell.count(Status.PASSED, Status.EMULATED)
    text = f"{right}/{right + cell.count(Status.FAILED)}  {ratio_text(cell.ratio)}  {cell.seconds:.1f}s"
    return f"{text}  emulated" if cell.status is Status.EMULATED else text


def short_text(cell: Cell) -> str:
    """Return one cell of a table with many columns, nine characters wide: `812 0.43`."""
    if cell.status in (*IDLE, Status.COMPILED):
        return str(cell.status.value).replace(", ", "\n").replace("not executed", "not run")
    if cell.status is Status.FAILED:
        return f"{cell.count(Status.FAILED)} failed"
    text = f"{cell.count(Status.PASSED, Status.EMULATED)} {ratio_text(cell.ratio)}"
    return f"{text}\nemulated" if cell.status is Status.EMULATED else text


def ratio_text(ratio: float) -> str:
    """Return a worst error over its bound, with two digits; `-` where all is wrong by no measure."""
    return "-" if not math.isfinite(ratio) else f"{ratio:.2f}"


def totals_text(report: Report) -> str:
    """Return how many outcomes of each kind ran, for the log."""
    totals = report.totals()
    return ", ".join(f"{n:,} {kind}" for kind, n in totals.items()) or "nothing"


def reference_text(report: Report, kind: str) -> str:
    """Return how many calls of an independent references ran on each backend, and how many there are that no backend ran."""
    ran = Counter[str]()
    names: dict[bool, set[tuple[str, str]]] = {True: set(), False: set()}
    for r in report.results:
        if r.kind == kind:
            names[r.status not in IDLE].add((r.op, r.name))
            ran[r.backend] += r.status not in IDLE
    left = len(names[False] - names[True])
    found = ", ".join(f"{count:,} on {backend}" for backend, count in sorted(ran.items()) if count) or "none ran"
    return f"{found}; {left:,} not run, for the reasons given" if left else found


def refusals(report: Report) -> dict[tuple[str, str], list[str]]:
    """Return the ops that each backend refuses, by backend and reason."""
    found: dict[tuple[str, str], list[str]] = {}
    for r in report.results:
        if r.status is Status.REFUSED:
            found.setdefault((r.backend, about_any(r.message, r.op)), []).append(r.op)
    return {key: sorted(ops) for key, ops in found.items()}


def _print_refusals(report: Report, console: Console) -> None:
    """Print which ops each backend can't carry, and why."""
    found = refusals(report)
    if found:
        console.print("Refused:")
    for (backend, reason), ops in found.items():
        console.print(f"  {backend}: {', '.join(ops)}: {reason}", markup=False, highlight=False)


def about_any(reason: str, op: str) -> str:
    """Return a reason without the op's name in front, so that ops refused for one reason stand together."""
    return reason.removeprefix(f"{op} ").removeprefix(f"{op}: ")


def _print_reasons(report: Report, console: Console) -> None:
    found = Counter[str]()
    for r in report.results:
        if r.status in (Status.NOT_RUN, Status.COMPILED):
            found[f"{r.backend}: {r.kind}: {r.message or r.status.value}"] += r.count
    if found:
        console.print("Not run:")
        reasons = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        for reason, count in reasons[:MOST_REASONS]:
            console.print(f"  {count:>5}  {reason}", markup=False, highlight=False)
        if len(found) > MOST_REASONS:
            rest = sum(count for _, count in reasons[MOST_REASONS:])
            console.print(f"  {rest:>5}  for {len(found) - MOST_REASONS} other reasons, which --report lists")


def write_junit(report: Report, path: Path) -> None:
    """Write the report as JUnit XML: a suite for each op on each backend, a test case for each result.

    Raises:
        OSError: when the file can't be written.
    """
    from xml.etree import ElementTree as Xml

    root = Xml.Element("testsuites", name="opc test", time=f"{report.seconds:.3f}")
    for (op, backend), cell in report.cells().items():
        suite = Xml.SubElement(root, "testsuite", name=f"{op}.{backend}", time=f"{cell.seconds:.3f}")
        suite.set("tests", str(len(cell.results)))
        suite.set("failures", str(cell.count(Status.FAILED)))
        suite.set("skipped", str(sum(r.status in (*IDLE, Status.COMPILED) for r in cell.results)))
        for r in cell.results:
            case = Xml.SubElement(suite, "testcase", classname=f"{op}.{backend}", name=r.label, time=f"{r.seconds:.6f}")
            if r.status is Status.FAILED:
                Xml.SubElement(case, "failure", message=_printable(r.message))
            elif r.status in (*IDLE, Status.COMPILED):
                why = ": ".join(t for t in (r.status.value, r.message) if t)
                Xml.SubElement(case, "skipped", message=_printable(why))
    for spec, message in report.mistakes.items():
        suite = Xml.SubElement(root, "testsuite", name=spec, tests="1", errors="1")
        case = Xml.SubElement(suite, "testcase", classname=spec, name="build")
        Xml.SubElement(case, "error", message=_printable(message))
    Xml.indent(root)
    Xml.ElementTree(root).write(path, encoding="utf-8", xml_declaration=True)


def _printable(text: str) -> str:
    """Return text without the control characters that XML can't hold."""
    return "".join(c if c in "\t\n" or ord(c) >= 32 else "?" for c in text)


__all__ = ["as_json", "print_report", "verdict", "write_junit"]
