"""The benchmark's section on compilers: the kernels of each op as g++ and clang++ make them, called in turn in one process.

Each compiler builds packages for NumPy in a folder of its own; `python -m opc.testing.bench.compilers FOLDER...` measures them,
settings on standard input. What counts is the processor's time, to which others on the machine add little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from shutil import which
from time import process_time
from typing import Any

import opc
from opc.build import toolchain, zig
from opc.testing.bench import gradients, peers
from opc.testing.bench.benchmark import Benchmark, Row, Settings, Target, listen
from opc.testing.bench.cases import CASES
from opc.testing.bench.onnxruntime import Call
from opc.testing.bench.problem import Problem, case_problem
from opc.testing.bench.timing import Contender, Timing, time_in_turn

SECTION = "compilers"

LIMIT = 1.3
"""What a kernel made by clang++ may take at most, of the time that it takes made by g++."""

OTHER_DTYPES = ("float16", "bfloat16", "float64")

IN_OTHER_DTYPES = ("gelu", "softmax", "layer_norm", "cross_entropy", "max_pool2d", "linear", "conv2d")
"""The cases that are measured in these too: points, rows, losses, windows, products."""


def commands() -> dict[str, tuple[str, ...]]:
    """Return the compilers that are here by the folders of what they make: g++ and clang++ of the search path, and ziglang's."""
    found: dict[str, tuple[str, ...]] = {}
    for kind in ("g++", "clang++"):
        named = (path for name in toolchain.NAMES if name.partition("++")[0] + "++" == kind and (path := which(name)))
        if first := next(named, None):
            found[kind] = (first,)
    return found | ({"zig c++": zig.COMMAND} if zig.installed() else {})


def measure(found: Benchmark, specs: Sequence[Path], settings: Settings, say: Callable[[str], None]) -> None:
    """Build the specs with every compiler and measure what they made.

    Raises:
        RuntimeError: when a build or the process fails, with the end of what it printed.
    """
    out = Path(settings.out).absolute() / SECTION
    names: dict[str, str] = {}
    for folder, command in commands().items():
        names[folder] = version(command)
        say(f"building with {names[folder]}")
        build(specs, out / folder, command)
        found.machine[folder] = names[folder]
    if len(names) < 2:
        found.rows.append(Row(SECTION, "", "clang++", None, note="not here: there is only one compiler"))
        return
    listen([sys.executable, "-m", "opc.testing.bench.compilers", *names], replace(settings, out=str(out)), found, say)


def version(command: Sequence[str]) -> str:
    """Return what a compiler says its version is."""
    said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
    return said.splitlines()[0]


def build(specs: Sequence[Path], out: Path, command: Sequence[str]) -> None:
    """Build the packages of specs for NumPy and for this machine's instruction set alone.

    Raises:
        RuntimeError: when that fails, with the end of what was printed.
    """
    root = str(Path(opc.__file__).parent.parent)
    path = os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p)
    environment = {**os.environ, "PYTHONPATH": path, "CXX": " ".join(command), "OPC_VARIANT": "native", "NO_COLOR": "1"}
    call = [sys.executable, "-m", "opc", "build", *map(str, specs), "--backend", "numpy", "-o", str(out)]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")


def problems(settings: Settings) -> Iterator[tuple[str, Problem]]:
    """Yield the calls of the table on the ops asked for, some of them in other dtypes too."""
    from opc.pipeline import load_family

    for case in CASES:
        if case.op not in settings.specs:
            continue
        family = load_family(Path(settings.specs[case.op]))
        problem = case_problem(case, family, Path(), settings.threads)
        yield case.name, problem
        for dtype in OTHER_DTYPES if case.name in IN_OTHER_DTYPES else ():
            yield f"{case.name}, {dtype}", replace(problem, dtype=dtype)


def contenders(problem: Problem, packages: Mapping[str, Path], make: Callable[[Problem], Call]) -> list[Contender]:
    """Return a contender for each compiler: what `make` makes of the problem and the package that the compiler built."""
    return [peers.attempt(name, partial(make, replace(problem, package=package))) for name, package in packages.items()]


def run(settings: Settings, compilers: Sequence[str], emit: Callable[[dict[str, Any]], None]) -> None:
    """Measure every case, then its gradient; the first compiler is what the others are compared with."""
    worst: dict[str, Target] = {}
    for name, problem in problems(settings):
        packages = {compiler: Path(settings.out) / compiler / problem.family.name for compiler in compilers}
        turns: list[tuple[str, Callable[[Problem], Call]]] = [(name, peers.opc_numpy)]
        if problem.family.backward is not None:
            turns.append((f"{name}, gradient", gradients.given_numpy))
        for title, make in turns:
            emit({"doing": title})
            made = contenders(problem, packages, make)
            first, *others = time_in_turn(made, settings.rounds, enough=decided, clock=process_time)
            emit({"row": asdict(Row(SECTION, title, first.contender.name, first.median, note=first.contender.note))})
            for t in others:
                compiler, ratio, low = t.contender.name, t.ratio(first), t.low_ratio(first)
                emit({"row": asdict(Row(SECTION, title, compiler, t.median, ratio, note=t.contender.note, low=low))})
                if ratio is not None and (compiler not in worst or ratio > worst[compiler].value):
                    what = f"the slowest kernel of {compiler} over that of {first.contender.name}"
                    worst[compiler] = Target(what, ratio, LIMIT, low=low)
    for target in worst.values():
        emit({"target": asdict(target)})


def decided(timings: Sequence[Timing]) -> bool:
    """Whether the times tell on which side of the limit each compiler is."""
    intervals = [found for t in timings[1:] if (found := t.interval(timings[0]))]
    return all(low > LIMIT or high <= LIMIT for low, high in intervals)


def main() -> None:
    """Measure what standard input asks for."""
    settings = Settings.loads(sys.stdin.read())

    def emit(data: dict[str, Any]) -> None:
        print(json.dumps(data), flush=True)

    run(settings, sys.argv[1:], emit)


if __name__ == "__main__":
    main()
