"""`opc test`, `opc report` and `opc cover`: the proof, its table and its reports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli.console import FAILED, OK, WrongUse, fail, find_specs, need, note, progress_line, say, say_json, shown
from opc.cli.options import GENERATED, Backends, Json, Markdown, Out, Specs

if TYPE_CHECKING:
    from opc.testing.cover import Chosen
    from opc.testing.tiers import Tiers


def prove(
    specs: Specs = None,
    out: Out = GENERATED,
    backend: Backends = None,
    jobs: Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Processes run at once; one a processor.")] = None,
    html: Annotated[Path | None, typer.Option("--report", metavar="FILE.html", help="Write a report for people.")] = None,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE.xml", help="Write a JUnit report.")] = None,
    markdown: Markdown = None,
    sanitize: Annotated[
        str | None,
        typer.Option(
            "--sanitize", metavar="KIND", help="Run kernels and codelets under sanitizers: address,undefined,thread or some."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail also when a backend could not be run, or no call of an op was found.")
    ] = False,
    cover: Annotated[
        bool, typer.Option("--cover", help="Run what changed whole, other ops in part: slow backends on the covering set alone.")
    ] = False,
    turn: Annotated[
        int | None,
        typer.Option("--turn", metavar="N", help="With --cover: this part of what runs by turns. [default: all]"),
    ] = None,
    part: Annotated[
        str | None, typer.Option("--part", metavar="K/N", help="Only the K-th of N parts of the specs, as 2/5.")
    ] = None,
    results: Annotated[Path | None, typer.Option("--results", metavar="FILE.json", help="Write what `opc report` joins.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Run also what passed before on the same bytes.")] = False,
    as_json: Json = False,
) -> int:
    """Build, prove each op on each backend, print the table."""
    chosen = _part(find_specs(specs), part)
    need("opc test", "prove", "hypothesis", "onnx")
    for path in (html, junit, markdown, results):
        if path is not None and not path.parent.is_dir():
            raise WrongUse(f"there is no folder {shown(path.parent)} to write {path.name} to")
    import json

    from opc.testing import keeping as kept
    from opc.testing import report as reports
    from opc.testing.results import UNCALLED, Report
    from opc.testing.results import as_json as data
    from opc.testing.runner import run_tests

    kinds = _sanitizers(sanitize, backend)
    if turn is not None and not cover:
        raise WrongUse("--turn says what of --cover has its turn: give both")
    tiers = _tiers(chosen, out, turn) if cover else None
    with progress_line() as progress:
        if kinds:
            from opc.testing.codelets import sanitize_codelets
            from opc.testing.sanitize import run_sanitized
            from opc.testing.sanitize_device import sanitize_device

            awake = [s for s in chosen if tiers is None or s not in tiers.resting]
            memory, threaded = (None, None) if tiers is None else (tiers.memory, tiers.loops)
            sanitized = [s for s in awake if memory is None or threaded is None or s in memory or s in threaded]
            whole = () if tiers is None else tiers.whole or ()
            report = Report()
            if not backend:
                report = run_sanitized(sanitized, kinds, jobs, memory=memory, threaded=threaded, whole=whole, progress=progress)
                # Codelets are made from bodies, and their libraries are there for the ops that the proof of these runs.
                bodies = None if tiers is None else tiers.bodies
                sanitize_codelets(report, [s for s in awake if bodies is None or s in bodies], kinds, out, jobs)
            on_gpu = None if tiers is None else tiers.on_gpu
            sanitize_device(report, [s for s in chosen if on_gpu is None or s in on_gpu], kinds, jobs, progress)
        else:
            report = run_tests(
                chosen,
                backend,
                out,
                jobs,
                tiers=tiers,
                again=again,
                progress=progress,
                say=note,
            )
    if as_json:
        say_json(data(report))
    else:
        from rich.console import Console

        reports.print_report(report, Console())
    if html is not None:
        from opc.testing.html import write_html

        write_html(report, html)
        note(f"wrote {shown(html)}")
    if junit is not None:
        reports.write_junit(report, junit)
        note(f"wrote {shown(junit)}")
    if results is not None:
        results.write_text(json.dumps(kept.to_data(report)), encoding="utf-8")
        note(f"wrote {shown(results)}")
    if markdown is not None:
        from opc.testing.markdown import markdown as page

        named = "".join(f" --backend {b}" for b in backend or ())
        command = " ".join(("opc test", *(shown(path) for path in specs or ()))) + named
        markdown.write_text(page(report, command), encoding="utf-8")
        note(f"wrote {shown(markdown)}")
    # A backend that was named is wanted.
    wanted = report.backends if strict else backend or ()
    missing = {c.title: c.reason for name, c in report.backends.items() if c.reason and name in wanted}
    for title, reason in missing.items():
        fail(f"{title} could not be run: {reason}", hint="opc backends tells how to install what is missing")
    unproved = sorted({r.op for r in report.results if r.kind == UNCALLED and r.name == r.op}) if strict else []
    for op in unproved:
        fail(f"no call of {op} was found that it accepts", hint="write examples, or require less of its sizes")
    return OK if report.ok and not missing and not unproved else FAILED


def _part(specs: list[Path], text: str | None) -> list[Path]:
    """Return the specs of a part such as `2/5`: every fifth, from the second on."""
    if text is None:
        return specs
    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count)):
        raise WrongUse(f"--part {text}: write a part and how many there are, as in --part 2/5")
    return specs[int(number) - 1 :: int(count)]


def report(
    results: Annotated[
        list[Path], typer.Argument(metavar="FILE.json...", help="Results of parts of a proof.", show_default=False)
    ],
    markdown: Markdown = None,
    command: Annotated[str, typer.Option("--made-by", metavar="TEXT", help="What the page says it was made by.")] = "opc test",
) -> int:
    """Join the results of `opc test --results`, print the table."""
    import json

    from rich.console import Console

    from opc.testing import keeping as kept
    from opc.testing import report as reports
    from opc.testing.markdown import markdown as page

    read = []
    for path in results:
        try:
            read.append(kept.from_data(json.loads(path.read_text(encoding="utf-8"))))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise WrongUse(f"{shown(path)}: these are no results of opc test: {error}") from error
    try:
        joined = kept.joined(read)
    except ValueError as error:
        raise WrongUse(f"these are no results of opc test: {error}") from error
    reports.print_report(joined, Console())
    if markdown is not None:
        markdown.write_text(page(joined, command), encoding="utf-8")
        note(f"wrote {shown(markdown)}")
    return OK if joined.ok else FAILED


def _tiers(specs: Sequence[Path], out: Path, turn: int | None) -> Tiers:
    """Return the covering set and its parts, each with the specs that a change touched, and what has its turn later."""
    from opc.testing.cover import covering_set
    from opc.testing.extent import alternating, waiting
    from opc.testing.tiers import Tiers
    from opc.testing.touched import changed, joining

    found = covering_set(specs, out)
    chosen = found.chosen
    touched = changed(specs)
    joined = joining(specs, [c.spec for c in chosen], out)
    note(f"covering set, {len(chosen)} of {len(specs)} ops: {', '.join(sorted(c.name for c in chosen))}")
    for part, some in _parts(chosen).items():
        note(f"{part}, {len(some)} of these: {', '.join(sorted(c.name for c in some))}")
    note(f"kernels on a device, {len(found.device)} of {len(specs)} ops: {', '.join(sorted(found.device))}")
    note(f"sizes as expressions, {len(found.expressions)} of {len(specs)} ops: {', '.join(sorted(found.expressions))}")
    note(f"frameworks on a GPU, {len(found.on_gpu)} of {len(specs)} ops: {', '.join(sorted(found.on_gpu))}")
    if touched:
        note(f"changed: {', '.join(s.stem for s in touched)}")
    if joined:
        note(f"written otherwise by opc: {', '.join(s.stem for s in joined)}")

    def with_touched(some: Iterable[Path]) -> list[Path]:
        kept = {*some, *touched, *joined}
        return [s for s in specs if s in kept]

    interface, signature, loops, bodies, memory = (with_touched(c.spec for c in part) for part in _parts(chosen).values())
    device, expressions = with_touched(found.device.values()), with_touched(found.expressions.values())
    every = with_touched(c.spec for c in chosen)
    # Each of these is compiled by four frameworks: what opc writes otherwise is seen on the device itself.
    on_gpu = [s for s in specs if s in {*found.on_gpu.values(), *touched}]
    later = {spec: op for op, spec in waiting([*found.others.items()], turn) if spec not in every}
    # Each sanitizer has some ops in each turn, in whatever order these are found.
    seen = waiting([s for s in specs if s in {*memory, *loops, *bodies}], turn)
    resting = [s for s in seen if s not in touched and s not in joined]
    still = [s for s in specs if s in {*every, *device, *expressions} and s not in touched and s not in joined]
    # Neighbours, which have different turns, are those that run on the same backends: each has half of its ops in a turn.
    tiers = (bodies, loops, memory, interface, signature, device, expressions, on_gpu)
    next_turn = alternating(sorted(still, key=lambda s: [s not in some for some in tiers]), turn)
    if turn is not None:
        note(f"in another turn: {', '.join(sorted(later.values())) or 'none'}")
        note(f"of the covering set in the next turn: {', '.join(sorted(s.stem for s in next_turn)) or 'none'}")
    return Tiers(
        every,
        interface,
        signature,
        loops,
        bodies,
        memory,
        device,
        expressions,
        on_gpu,
        touched,
        later,
        resting,
        next_turn,
    )


def _parts(chosen: Sequence[Chosen]) -> dict[str, list[Chosen]]:
    """Return the ops of a covering set that have all features of a kind, by the name of the kind."""
    return {
        "interfaces": [c for c in chosen if c.interface],
        "signatures": [c for c in chosen if c.signature],
        "loops": [c for c in chosen if c.loops],
        "bodies": [c for c in chosen if c.body],
        "accesses to memory": [c for c in chosen if c.memory],
    }


def cover(
    specs: Specs = None,
    out: Out = GENERATED,
    every: Annotated[bool, typer.Option("--all", help="All features of each op.")] = False,
) -> int:
    """Print the covering set: few ops that have everything the ops have."""
    from opc.testing.cover import covering_set
    from opc.testing.touched import changed, joining

    files = find_specs(specs)
    found = covering_set(files, out)
    chosen = found.chosen
    total = sum(len(c.adds) for c in chosen)
    say(f"{len(chosen)} of {len(files)} ops have all {total} features that any of them has.")
    for c in chosen:
        named = c.adds if every else c.adds[-3:]
        more = "" if len(named) == len(c.adds) else f"; and {len(c.adds) - len(named)} more"
        say(f"{c.name}: {'; '.join(named)}{more}")
    for part, some in _parts(chosen).items():
        say(f"{len(some)} of these have all features of {part}: {', '.join(sorted(c.name for c in some))}.")
    say(f"{len(found.device)} ops have all features of kernels on a device: {', '.join(sorted(found.device))}.")
    plugins = ", ".join(sorted(found.expressions))
    say(f"{len(found.expressions)} ops have all features of plugins with sizes as expressions: {plugins}.")
    called = ", ".join(sorted(found.on_gpu))
    say(f"{len(found.on_gpu)} of those on a device have all features of calls from a framework: {called}.")
    touched = changed(files)
    say(f"Changed: {', '.join(s.stem for s in touched) or 'none'}.")
    joined = joining(files, [c.spec for c in chosen], out)
    say(f"Written otherwise by opc: {', '.join(s.stem for s in joined) or 'none'}.")
    return OK


def _sanitizers(text: str | None, backends: Sequence[str] | None) -> tuple[str, ...]:
    """Return the requested sanitizers."""
    if text is None:
        return ()
    from opc.testing.sanitize import SANITIZERS

    kinds = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    unknown = [kind for kind in kinds if kind not in SANITIZERS]
    if unknown:
        raise WrongUse(f"'{unknown[0]}' is no sanitizer: there are {', '.join(SANITIZERS)}")
    if backends and {*backends} != {"cuda"}:
        raise WrongUse("--sanitize runs kernels without a framework: give no --backend with it, or cuda for those of a GPU alone")
    if backends and kinds == ("thread",):
        raise WrongUse("the kernels of a GPU run on one thread: there is nothing for the thread sanitizer")
    return kinds
