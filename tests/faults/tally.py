"""What a part of the faults session counted and found wrong, on its way to a table, a file and a page."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Fault:
    """Something wrong: what kind it is, what was seen, the command that shows it again, and files that belong to it."""

    kind: str
    seen: str
    command: str
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass
class Tally:
    """What became of a part: `counts` of each outcome in the order they came, `measured` values in words, and faults."""

    part: str
    counts: Counter[str] = field(default_factory=Counter)
    measured: dict[str, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def add(self, fault: Fault) -> None:
        """Keep a fault, and say at once what was seen."""
        self.faults.append(fault)
        print(f"fault: {self.part}: {fault.kind}\n  {fault.command}", flush=True)

    def rows(self) -> list[tuple[str, str, str]]:
        """Return the rows of the part: its name, an outcome, a count or measure."""
        counted = [(self.part, name, f"{count:,}") for name, count in self.counts.items()]
        return [*counted, *((self.part, *one) for one in self.measured.items()), (self.part, "faults", f"{len(self.faults):,}")]

    def keep(self, folder: Path) -> None:
        """Write the rows, and below the part's name what shows each fault again."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.part}.json").write_text(json.dumps(self.rows(), indent=1) + "\n")
        for number, fault in enumerate(self.faults):
            place = folder / self.part / f"{number:03}"
            place.mkdir(parents=True, exist_ok=True)
            (place / "README").write_text(f"{fault.kind}\n{fault.seen}\n\n{fault.command}\n")
            for name, content in fault.files.items():
                (place / name).write_bytes(content)


def show(tallies: Iterable[Tally]) -> None:
    """Print what was counted, and of each kind of fault the first."""
    table = Table("part", "what", "count", title="faults and load")
    first: dict[str, Fault] = {}
    for tally in tallies:
        for row in tally.rows():
            table.add_row(*row)
        table.add_section()
        for fault in tally.faults:
            first.setdefault(fault.kind, fault)
    console = Console()
    console.print(table)
    for fault in first.values():
        console.print(f"{fault.kind}\n{fault.seen}\n  {fault.command}", markup=False, highlight=False)


BEGIN, END = "<!-- counts: nox -s faults -->", "<!-- end -->"


def write_page(page: Path, folder: Path, parts: Iterable[str]) -> None:
    """Put the rows that the last runs kept into a page, between its marks."""
    rows = [row for part in parts if (kept := folder / f"{part}.json").exists() for row in json.loads(kept.read_text())]
    lines = ["| part | what | count |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text("\n".join((before + BEGIN, *lines, END)) + rest.partition(END)[2])
