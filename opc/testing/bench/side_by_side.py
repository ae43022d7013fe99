"""Packages of the same ops made in several ways, called in turn in one process: by other compilers, to other schedules.

`python -m opc.testing.bench.side_by_side LIMIT NAME=FOLDER...` measures the packages in these folders; settings are on standard
input. What counts is the processor's time, to which others on the machine add little.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

from opc.testing.bench import gradients, peers
from opc.testing.bench.benchmark import Benchmark, Measurement, Settings, answering, listen
from opc.testing.bench.cases import CASES, is_of
from opc.testing.bench.onnxruntime import Call
from opc.testing.bench.problem import Problem, case_problem
from opc.testing.bench.timing import Contender, Timing, time_in_turn

OTHER_DTYPES = ("float16", "bfloat16", "float64")

IN_OTHER_DTYPES = ("gelu", "softmax", "layer_norm", "cross_entropy", "max_pool2d", "linear", "conv2d")
"""The cases that are measured in these too: points, rows, losses, windows, products."""


def compare(
    found: Benchmark, section: str, folders: Mapping[str, Path], limit: float, settings: Settings, say: Callable[[str], None]
) -> None:
    """Measure the packages for NumPy in each folder beside those in the first, as rows of a section.

    Rounds go on until they tell on which side of the limit each ratio is, or there are enough of them.

    Raises:
        RuntimeError: when the process fails, with the end of what it printed.
    """
    named = [f"{name}={folder.absolute()}" for name, folder in folders.items()]
    command = [sys.executable, "-m", "opc.testing.bench.side_by_side", str(limit), *named]
    listen(command, replace(settings, sections=(section,)), found, say)


def problems(settings: Settings) -> Iterator[tuple[str, Problem]]:
    """Yield the calls of the table on the ops asked for, some of them in other dtypes too."""
    from opc.pipeline import load_family

    for case in CASES:
        if case.op not in settings.specs:
            continue
        family = load_family(Path(settings.specs[case.op]))
        if not is_of(case, family.forward):
            continue
        problem = case_problem(case, family, Path(), settings.threads)
        yield case.name, problem
        for dtype in OTHER_DTYPES if case.name in IN_OTHER_DTYPES else ():
            yield f"{case.name}, {dtype}", replace(problem, dtype=dtype)


def contenders(problem: Problem, packages: Mapping[str, Path], make: Callable[[Problem], Call]) -> list[Contender]:
    """Return a contender for each package: what `make` makes of the problem and the package."""
    return [peers.attempt(name, partial(make, replace(problem, package=package))) for name, package in packages.items()]


def run(settings: Settings, folders: Mapping[str, Path], limit: float, emit: Callable[[dict[str, Any]], None]) -> None:
    """Measure every case, then its gradient; the first package is what the others are compared with."""
    (section,) = settings.sections
    for name, problem in problems(settings):
        packages = {way: folder / problem.family.name for way, folder in folders.items()}
        turns: list[tuple[str, Callable[[Problem], Call]]] = [(name, peers.opc_numpy)]
        if problem.family.backward is not None:
            turns.append((f"{name}, gradient", gradients.given_numpy))
        for title, make in turns:
            emit({"doing": title})
            made = contenders(problem, packages, make)
            first, *others = time_in_turn(made, settings.rounds, enough=partial(decided, limit=limit), clock=process_time)
            emit({"row": asdict(Measurement(section, title, first.contender.name, first.median, note=first.contender.note))})
            for t in others:
                row = Measurement(
                    section, title, t.contender.name, t.median, t.ratio(first), note=t.contender.note, low=t.low_ratio(first)
                )
                emit({"row": asdict(row)})


def decided(timings: Sequence[Timing], limit: float) -> bool:
    """Whether the times tell on which side of the limit each package is."""
    intervals = [found for t in timings[1:] if (found := t.interval(timings[0]))]
    return all(low > limit or high <= limit for low, high in intervals)


def main() -> None:
    """Measure what standard input asks for."""
    settings, emit = answering()
    limit, *named = sys.argv[1:]
    folders = {name: Path(folder) for name, _, folder in (text.partition("=") for text in named)}
    run(settings, folders, float(limit), emit)


if __name__ == "__main__":
    main()
