"""`opc bench`: build what is measured, measure, print."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from opc.cli.build import tell_failures
from opc.cli.console import FAILED, OK, WrongUse, find_specs, note, progress_line, say, say_json
from opc.cli.options import GENERATED, Json, Out, Specs

BACKENDS = ("numpy", "onnxruntime", "torch")
"""The backends that are measured."""

_IN_PROCESS = ("ops", "backward", "large", "fresh", "tiny")


def bench(
    specs: Specs = None,
    section: Annotated[
        list[str] | None, typer.Option("--section", metavar="NAME", help="Only this section; may be repeated. All: see `--list`.")
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="The gradients of the ops; as --section backward.")] = False,
    size: Annotated[int, typer.Option("--size", min=1, help="Elements of the large tensors.")] = 1 << 24,
    rounds: Annotated[int, typer.Option("--rounds", min=3, help="Rounds the medians are taken over.")] = 15,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads of each contender; one a processor.")] = None,
    out: Out = GENERATED,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    list_sections: Annotated[bool, typer.Option("--list", help="List the sections and exit.")] = False,
) -> int:
    """Measure ops beside their peers in the frameworks.

    An op may be given by its name alone, which means its spec in the folder specs. Ops that are given are measured forward, or
    their gradients with --backward, unless sections are named; by default, all that a speed is promised of is measured.
    """
    from opc.build.builder import build_specs
    from opc.testing.bench import compiler, compilers, frameworks
    from opc.testing.bench.benchmark import BUILD_SPECS, SECTIONS, SPEED_SPECS, Benchmark, Settings, cores, machine, run_worker
    from opc.testing.bench.cases import CASES
    from opc.testing.bench.commands import measure_builds, measure_commands
    from opc.testing.bench.report import as_markdown, as_text

    if list_sections:
        width = max(map(len, SECTIONS)) + 2
        for name, title in SECTIONS.items():
            say(f"{name:<{width}}{title}")
        return OK
    for name in section or ():
        if name not in SECTIONS:
            raise WrongUse(f"there is no section '{name}'; the sections are {', '.join(SECTIONS)}")
    every = {p.stem: p for p in find_specs([_spec(path) for path in specs] if specs else None)}
    cases = {c.op for c in CASES} & every.keys()
    wanted = _sections(section, backward, bool(specs), every.keys() <= cases)
    plain = tuple(every) if specs else tuple(n for n in every if n in SPEED_SPECS)
    needed = (cases if {"ops", "backward"} & set(wanted) else set()) | (
        set(plain) if {"large", "fresh", "tiny", "frameworks"} & set(wanted) else set()
    )
    found = Benchmark(machine())
    count = threads or cores()
    if needed:
        chosen_specs = [p for n, p in every.items() if n in needed]
        with progress_line() as progress:
            needs = (*BACKENDS, *(frameworks.backends() if "frameworks" in wanted else ()))
            built = build_specs(chosen_specs, out, needs, strict=False, progress=progress, say=note)
        if tell_failures(built, None):
            return FAILED
        packages = {r.name: str(p.absolute()) for r, p in zip(built, chosen_specs, strict=True)}
        chosen = tuple(s for s in wanted if s in _IN_PROCESS)
        plain = tuple(n for n in plain if n in packages)
        settings = Settings(packages, plain, str(out.absolute()), chosen, size, rounds, count)
        if chosen:
            found = run_worker(settings, note)
        if "frameworks" in wanted:
            frameworks.measure(found, settings, note)
    if compilers.SECTION in wanted:
        with_case = [p for n, p in every.items() if n in cases]
        packages = {p.stem: str(p.absolute()) for p in with_case}
        compilers.measure(found, with_case, Settings(packages, (), str(out.absolute()), (), size, rounds, count), note)
    if "build" in wanted:
        measure_builds(found, [p for n, p in every.items() if specs or n in BUILD_SPECS] or list(every.values()), note)
    if "commands" in wanted:
        measure_commands(found, list(every.values()), note)
    if compiler.SECTION in wanted:
        compiler.measure(found, list(every.values()), note)
    if compiler.GROWTH in wanted:
        compiler.measure_growth(found, note)
    if as_json:
        say_json(found.as_dict())
    else:
        say((as_markdown if markdown else as_text)(found).rstrip("\n"))
    return OK


def _sections(sections: Sequence[str] | None, backward: bool, given: bool, known: bool) -> tuple[str, ...]:
    """Return the sections to measure, in order; `known` says that all ops given have a case of their own."""
    from opc.testing.bench.benchmark import SECTIONS

    chosen = set(sections or ())
    if backward:
        chosen.add("backward")
    if not chosen:
        chosen = set(SECTIONS) if not given else {"ops"} if known else {"large", "fresh", "tiny"}
    return tuple(s for s in SECTIONS if s in chosen)


def _spec(path: Path) -> Path:
    """Return the spec that a path or the name of an op means."""
    named = Path("specs") / f"{path}.yaml"
    return named if not path.exists() and path.suffix == "" and named.is_file() else path
