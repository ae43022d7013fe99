"""The report of a proof as a page of Markdown, to be kept in a repository: what was proved where, and what was not and why."""

from __future__ import annotations

from collections.abc import Iterator

from opc.testing.report import refusals, short_text
from opc.testing.results import IDLE, ORACLE, Column, Report, Status

MOST_REASONS = 40
"""How many reasons not to run a call the page lists."""


def markdown(report: Report, command: str) -> str:
    """Return the page; `command` is what made it.

    Times and errors, which differ from run to run, are left out.
    """
    return "\n".join([*_head(report, command), *_backends(report), *_refused(report), *_not_run(report), *_ops(report)]) + "\n"


def summary(report: Report, name: str, column: Column) -> str:
    """Return one backend in few words: `63 ops, ONNX 1.23.2, 2 refused`."""
    states = [cell.status for (_, backend), cell in report.cells().items() if backend == name]
    if column.reason:
        return f"not run: {column.reason}"
    framework = f"{column.title} {_version(column)}".strip()
    parts = [
        f"{states.count(status)} {words}"
        for status, words in (
            (Status.REFUSED, "refused"),
            (Status.COMPILED, "compiled, not executed"),
            (Status.NOT_RUN, "not run"),
            (Status.FAILED, "failed"),
        )
        if status in states
    ]
    proved, emulated = states.count(Status.PASSED), states.count(Status.EMULATED)
    first = [_count(proved)] if proved or not emulated else []
    first += [f"{_count(emulated)} emulated"] if emulated else []
    return ", ".join([*first, framework, *parts])


def _count(ops: int) -> str:
    return f"{ops} op{'s' if ops != 1 else ''}"


def _version(column: Column) -> str:
    """Return a version without how it was built, and without what the number of ops says: that it was emulated."""
    return column.version.partition("+")[0].removesuffix(", emulated")


def _head(report: Report, command: str) -> Iterator[str]:
    yield "# What is proved where"
    yield ""
    yield f"Made by `{command}`: {sum(report.totals().values()):,} outcomes of {_count(len(report.ops))}."
    yield "Beside the backends stands the oracle: gradients against differences, examples, outputs of ONNX's own test cases."
    yield ""


def _backends(report: Report) -> Iterator[str]:
    yield "| backend | proved |"
    yield "|---|---|"
    for name, column in report.backends.items():
        yield f"| {column.title} | {summary(report, name, column)} |"
    yield ""


def _refused(report: Report) -> Iterator[str]:
    found = refusals(report)
    if found:
        yield "## Refused"
        yield ""
        yield "An op that a framework can't carry is refused when it is generated."
        yield ""
        yield "| backend | ops | why |"
        yield "|---|---|---|"
        for (name, reason), ops in sorted(found.items(), key=lambda item: (list(report.backends).index(item[0][0]), item[1])):
            yield f"| {report.backends[name].title} | {', '.join(ops)} | {_cell(reason)} |"
        yield ""


def _not_run(report: Report) -> Iterator[str]:
    found: dict[tuple[str, str], int] = {}
    for r in report.results:
        if r.status in (Status.NOT_RUN, Status.COMPILED) and r.backend in report.backends:
            key = (r.backend, f"{r.kind}: {r.message or r.status.value}")
            found[key] = found.get(key, 0) + r.count
    if found:
        yield "## Not run"
        yield ""
        yield "Single calls that a framework has no form for, or that prove nothing there."
        yield ""
        yield "| backend | calls | why |"
        yield "|---|---|---|"
        order = list(report.backends)
        most = sorted(found, key=lambda key: (-found[key], key))[:MOST_REASONS]
        for name, reason in sorted(most, key=lambda key: (order.index(key[0]), -found[key], key[1])):
            yield f"| {report.backends[name].title} | {found[name, reason]:,} | {_cell(reason)} |"
        if len(most) < len(found):
            rest = sum(found.values()) - sum(found[key] for key in most)
            yield f"| | {rest:,} | {len(found) - len(most)} other reasons, which `--report` lists |"
        yield ""


def _ops(report: Report) -> Iterator[str]:
    names = [ORACLE, *report.backends]
    titles = [report.backends[n].title if n in report.backends else n for n in names]
    cells = report.cells()
    yield "## Ops"
    yield ""
    yield "Calls and checks that were right."
    yield ""
    yield f"| op | {' | '.join(titles)} |"
    yield "|" + "---|" * (len(names) + 1)
    for op in report.ops:
        row = []
        for name in names:
            cell = cells.get((op, name))
            if cell is None:
                row.append("not run")
            elif cell.status in (*IDLE, Status.COMPILED, Status.FAILED):
                row.append(short_text(cell).replace("\n", ", "))
            else:
                emulated = ", emulated" if cell.status is Status.EMULATED else ""
                row.append(f"{cell.count(Status.PASSED, Status.EMULATED):,}{emulated}")
        yield f"| {op} | {' | '.join(row)} |"


def proved(page: str) -> dict[tuple[str, str], str]:
    """Return what a page that `markdown` made says of each op, by its name and the backend's title.

    Raises:
        ValueError: when it is no such page.
    """
    lines = [line.strip("| ").split(" | ") for line in page.partition("\n## Ops\n")[2].splitlines() if line.startswith("|")]
    if len(lines) < 2 or lines[0][0] != "op" or any(len(line) != len(lines[0]) for line in lines[2:]):
        raise ValueError("this page has no table of ops that opc test wrote")
    titles = lines[0][1:]
    return {(op, title): text for op, *cells in lines[2:] for title, text in zip(titles, cells, strict=True)}


def _cell(text: str) -> str:
    """Return text that can stand in a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())
