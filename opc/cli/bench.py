"""`opc bench`: build what is measured, measure, print."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli import completion
from opc.cli.build import tell_failures
from opc.cli.console import FAILED, OK, WrongUse, find_specs, note, progress_line, say, say_json
from opc.cli.options import GENERATED, Json, Out, Specs
from opc.cli.schedule import Schedules, check_stages, rescheduled, stage_names

if TYPE_CHECKING:
    from opc.testing.bench.benchmark import Benchmark, Settings


class Device(StrEnum):
    """What ops are measured on."""

    CPU = "cpu"
    CUDA = "cuda"


class Dtype(StrEnum):
    """The types that cases are measured in."""

    FLOAT32 = "float32"
    BFLOAT16 = "bfloat16"
    FLOAT16 = "float16"


BACKENDS = ("numpy", "onnxruntime", "torch")
"""The backends that are measured."""

SCHEDULES = "schedules"
"""The section that --schedule measures."""

_IN_PROCESS = ("ops", "backward", "large", "fresh", "tiny")


def bench(
    specs: Specs = None,
    section: Annotated[
        list[str] | None,
        typer.Option(
            "--section",
            metavar="NAME",
            help="Only this section; may be repeated. All: see `--list`.",
            autocompletion=completion.sections,
        ),
    ] = None,
    backward: Annotated[bool, typer.Option("--backward", help="The gradients of the ops; as --section backward.")] = False,
    size: Annotated[int, typer.Option("--size", min=1, help="Elements of the large tensors.")] = 1 << 24,
    rounds: Annotated[int, typer.Option("--rounds", min=3, help="Rounds the medians are taken over.")] = 15,
    device: Annotated[
        Device, typer.Option("--device", help="Where ops run: what cuda measures are sections of their own.")
    ] = Device.CPU,
    eager: Annotated[
        bool, typer.Option("--eager", help="On a GPU, leave out torch.compile, which compiles for minutes.")
    ] = False,
    dtype: Annotated[
        Dtype, typer.Option("--dtype", help="The type of float operands in the sections ops and backward.")
    ] = Dtype.FLOAT32,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="Threads of each contender; one a processor.")] = None,
    out: Out = GENERATED,
    as_json: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    schedule: Schedules = None,
    list_sections: Annotated[bool, typer.Option("--list", help="List the sections and exit.")] = False,
) -> int:
    """Measure ops beside their peers in the frameworks.

    An op may be given by its name alone, which means its spec in the folder specs. Ops that are given are measured forward, or
    their gradients with --backward, unless sections are named; by default, all that a speed is promised of is measured.
    With --schedule, kernels to that schedule are built in a folder of their own, and called in turn with opc's.
    """
    from opc.testing.bench.benchmark import GPU_SECTIONS, SECTIONS, Settings, cores
    from opc.testing.bench.report import as_markdown, as_text

    if list_sections:
        width = max(map(len, SECTIONS)) + 2
        for name, title in SECTIONS.items():
            say(f"{name:<{width}}{title}")
        return OK
    for name in section or ():
        if name not in SECTIONS:
            raise WrongUse(f"there is no section '{name}'; the sections are {', '.join(SECTIONS)}")
    if schedule and (backward or set(section or ()) - {SCHEDULES}):
        raise WrongUse(f"--schedule measures the section '{SCHEDULES}' alone")
    if SCHEDULES in (section or ()) and not schedule:
        raise WrongUse(f"the section '{SCHEDULES}' measures what --schedule asks for: give it")
    if device is Device.CUDA and (schedule or set(section or ()) - set(GPU_SECTIONS)):
        raise WrongUse(f"--device cuda measures the sections {', '.join(GPU_SECTIONS)}")
    if device is Device.CPU and set(section or ()) & set(GPU_SECTIONS):
        raise WrongUse("what is measured on a GPU needs --device cuda")
    every = {p.stem: p for p in find_specs([_spec(path) for path in specs] if specs else None)}
    settings = Settings({}, (), str(out.absolute()), (), size, rounds, threads or cores(), not eager, dtype.value)
    if device is Device.CUDA:
        found = _on_gpu(every, tuple(section or GPU_SECTIONS[1:2] if backward else section or GPU_SECTIONS), settings)
    elif schedule:
        found = _experiment(schedule, every, settings)
    else:
        found = _measured(every, bool(specs), section, backward, settings)
    if found is None:
        return FAILED
    if as_json:
        say_json(found.as_dict())
    else:
        say((as_markdown if markdown else as_text)(found).rstrip("\n"))
    return OK


def _measured(
    every: Mapping[str, Path], given: bool, section: Sequence[str] | None, backward: bool, settings: Settings
) -> Benchmark | None:
    """Measure the sections of ops; None where a package could not be built, of which the user was told."""
    from opc.testing.bench import compiler, compilers, frameworks
    from opc.testing.bench.benchmark import BUILD_SPECS, SPEED_SPECS, Benchmark, machine, run_worker
    from opc.testing.bench.cases import CASES
    from opc.testing.bench.commands import measure_builds, measure_commands

    cases = {c.op for c in CASES} & every.keys()
    wanted = _sections(section, backward, given, every.keys() <= cases)
    plain = tuple(every) if given else tuple(n for n in every if n in SPEED_SPECS)
    other = frameworks.measured(wanted)
    needed = (cases if {"ops", "backward"} & set(wanted) else set()) | (
        set(plain) if other or {"large", "fresh", "tiny"} & set(wanted) else set()
    )
    found = Benchmark(machine())
    if needed:
        ours = BACKENDS if set(_IN_PROCESS) & set(wanted) else ()
        needs = (*ours, *dict.fromkeys(f.backend for f in other))
        packages = _built({n: p for n, p in every.items() if n in needed}, Path(settings.out), needs)
        if packages is None:
            return None
        chosen = tuple(s for s in wanted if s in _IN_PROCESS)
        plain = tuple(n for n in plain if n in packages)
        measured = replace(settings, specs=packages, plain=plain, sections=chosen)
        if chosen:
            found = run_worker(measured, note)
        frameworks.measure(found, replace(measured, sections=wanted), note)
    if compilers.SECTION in wanted:
        with_case = [p for n, p in every.items() if n in cases]
        specs = {p.stem: str(p.absolute()) for p in with_case}
        compilers.measure(found, with_case, replace(settings, specs=specs), note)
    if "build" in wanted:
        measure_builds(found, [p for n, p in every.items() if given or n in BUILD_SPECS] or list(every.values()), note)
    if "commands" in wanted:
        measure_commands(found, list(every.values()), note)
    if compiler.SECTION in wanted:
        compiler.measure(found, list(every.values()), note)
    if compiler.GROWTH in wanted:
        compiler.measure_growth(found, note)
    return found


def _on_gpu(every: Mapping[str, Path], sections: tuple[str, ...], settings: Settings) -> Benchmark | None:
    """Measure ops on the GPU; None where one could not be built, of which the user was told."""
    from opc.testing.bench import gpu, gpu_cases
    from opc.testing.bench.benchmark import Benchmark

    specs = {n: p for n, p in every.items() if n in {c.op for c in gpu_cases.CASES}}
    if not specs:
        raise WrongUse(f"there is no benchmark of {', '.join(every)} on a GPU")
    if (missing := gpu.missing()) is not None:
        raise WrongUse(f"--device cuda needs {missing}")
    packages = _built(specs, Path(settings.out), gpu.BACKENDS)
    if packages is None:
        return None
    found = Benchmark()
    gpu.measure(found, replace(settings, specs=packages, sections=sections), note)
    return found


def _experiment(texts: Sequence[str], every: Mapping[str, Path], settings: Settings) -> Benchmark | None:
    """Measure kernels to another schedule beside opc's; None where one could not be built, of which the user was told."""
    from opc.compiler import Stage, compile_spec
    from opc.testing.bench.benchmark import Benchmark, machine
    from opc.testing.bench.cases import CASES
    from opc.testing.bench.side_by_side import compare

    cases = {c.op for c in CASES}
    specs = {n: p for n, p in every.items() if n in cases}
    if not specs:
        raise WrongUse(f"there is no benchmark of {', '.join(every)}; there are some of {', '.join(sorted(cases))}")
    own = Path(settings.out)
    # Apart from the packages in use: an experiment changes nothing there.
    apart = own / SCHEDULES / hashlib.sha256("\n".join(texts).encode()).hexdigest()[:12]
    packages = _built(specs, own, BACKENDS[:1])
    with rescheduled(texts) as changes:
        check_stages(changes, (n for p in specs.values() for n in stage_names(compile_spec(p, to=Stage.PROGRAMS))))
        experiment = _built(specs, apart, BACKENDS[:1])
    if packages is None or experiment is None:
        return None
    found = Benchmark(machine())
    compare(found, SCHEDULES, {"opc's own": own, "as asked": apart}, 1.0, replace(settings, specs=packages), note)
    return found


def _built(specs: Mapping[str, Path], out: Path, backends: Sequence[str]) -> dict[str, str] | None:
    """Build packages and return the paths of their specs by op; None where one failed, of which the user was told."""
    from opc.build.builder import build_specs

    with progress_line() as progress:
        built = build_specs(list(specs.values()), out, backends, strict=False, progress=progress, say=note)
    if tell_failures(built, None):
        return None
    return {r.name: str(p.absolute()) for r, p in zip(built, specs.values(), strict=True)}


def _sections(sections: Sequence[str] | None, backward: bool, given: bool, known: bool) -> tuple[str, ...]:
    """Return the sections to measure, in order; `known` says that all ops given have a case of their own."""
    from opc.testing.bench.benchmark import GPU_SECTIONS, SECTIONS

    chosen = set(sections or ())
    if backward:
        chosen.add("backward")
    if not chosen:
        chosen = set(SECTIONS) - {SCHEDULES, *GPU_SECTIONS} if not given else {"ops"} if known else {"large", "fresh", "tiny"}
    return tuple(s for s in SECTIONS if s in chosen)


def _spec(path: Path) -> Path:
    """Return the spec that a path or the name of an op means."""
    from opc.spec.files import file_of

    named = Path("specs") / f"{path}.yaml"
    return named if not path.exists() and path.suffix == "" and file_of(named).is_file() else path
