"""`opc bench`: build what is measured, measure, print."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from opc.cli_build import build_packages, tell_failures
from opc.cli_console import FAILED, OK, WrongUse, find_specs, note, say


def bench(
    given: Sequence[Path] | None,
    sections: Sequence[str] | None,
    size: int,
    rounds: int,
    threads: int | None,
    out: Path,
    as_json: bool,
    markdown: bool,
    list_sections: bool,
) -> int:
    """Measure the sections asked for, by default all, on the ops asked for, by default those whose speed is promised."""
    from opc.testing.bench import SECTIONS, SPEED_SPECS, Benchmark, Settings, cores, machine, run_worker
    from opc.testing.bench_commands import measure_builds, measure_commands
    from opc.testing.bench_report import as_markdown, as_text

    if list_sections:
        for name, title in SECTIONS.items():
            say(f"{name:<10}{title}")
        return OK
    for name in sections or ():
        if name not in SECTIONS:
            raise WrongUse(f"there is no section '{name}'; the sections are {', '.join(SECTIONS)}")
    wanted = tuple(s for s in SECTIONS if not sections or s in sections)
    every = find_specs(given)
    measured = every if given else [p for p in every if p.stem in SPEED_SPECS] or every
    found = Benchmark(machine())
    in_process = tuple(s for s in wanted if s in ("large", "fresh", "tiny"))
    if in_process:
        built = build_packages(measured, out, None)
        if tell_failures(built, None):
            return FAILED
        packages = {r.name: str(p.absolute()) for r, p in zip(built, measured, strict=True)}
        settings = Settings(packages, str(out.absolute()), in_process, size, rounds, threads or cores())
        found = run_worker(settings, note)
    if "build" in wanted:
        measure_builds(found, every, note)
    if "commands" in wanted:
        measure_commands(found, every, note)
    if as_json:
        say(json.dumps(found.as_dict(), indent=2))
    else:
        say((as_markdown if markdown else as_text)(found).rstrip("\n"))
    return OK
