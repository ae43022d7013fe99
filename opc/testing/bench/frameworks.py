"""The benchmark's section on frameworks that may need an interpreter of their own: large tensors, fresh output.

Each framework is measured in a process of its own, by the interpreter that has it: `python -m opc.testing.bench.frameworks
PLACE`, settings on standard input, rows and targets on standard output.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opc.testing.bench.benchmark import OURS, Benchmark, Goal, Measurement, Settings, listen
from opc.testing.bench.timing import time_in_turn

SECTION = "frameworks"


@dataclass(frozen=True, slots=True)
class Framework:
    """One way to run a framework: its backend, the module and function that make the contenders, and what is promised of an op.

    The function takes the problem and returns ours first, then the framework's own.
    """

    backend: str
    module: str
    limits: Mapping[str, float]
    function: str = "contenders"


FRAMEWORKS = (
    Framework("mindspore", "opc.testing.bench.mindspore", {"leaky_relu": 1.05, "softmax": 1.05}),
    Framework("mindspore", "opc.testing.bench.mindspore", {"leaky_relu": 0.6}, "graph_contenders"),
    Framework("paddle", "opc.testing.bench.paddle", {"leaky_relu": 1.05, "softmax": 1.05}),
)
"""What is measured, each in a process of its own."""


def backends() -> tuple[str, ...]:
    """Return the backends that are measured."""
    return tuple(dict.fromkeys(f.backend for f in FRAMEWORKS))


def measure(found: Benchmark, settings: Settings, say: Callable[[str], None]) -> None:
    """Measure every framework that is here; the others get a row that says why not.

    Raises:
        RuntimeError: when a process fails, with the end of what it printed.
    """
    from opc.backends import environments, registry

    for place, framework in enumerate(FRAMEWORKS):
        probe = registry.load(framework.backend).probe()
        if not probe.available:
            found.rows.append(Measurement(SECTION, "", framework.backend, None, note=f"not here: {probe.reason}"))
            continue
        found.machine[framework.backend] = probe.version or ""
        python = str(environments.interpreter(framework.backend))
        command = [python, "-m", "opc.testing.bench.frameworks", str(place)]
        listen(command, settings, found, say)


def _run(framework: Framework, settings: Settings, emit: Callable[[dict[str, Any]], None]) -> None:
    """Measure one framework on the ops that it is promised a speed of."""
    from opc.pipeline import load_family
    from opc.testing.bench.problem import row_problem

    contenders = getattr(importlib.import_module(framework.module), framework.function)
    for op, limit in framework.limits.items():
        if op not in settings.specs:
            continue
        family = load_family(Path(settings.specs[op]))
        problem = row_problem(family, Path(settings.out) / family.name, settings.size, settings.threads)
        emit({"doing": f"{op}, {settings.size:,} elements, {framework.backend}"})
        timings = time_in_turn(contenders(problem), settings.rounds)
        ours = next((t for t in timings if t.contender.name.startswith(OURS)), None)
        for t in timings:
            ratio, low = (ours.ratio(t), ours.low_ratio(t)) if ours is not None and t is not ours else (None, None)
            name, cost = t.contender.name, problem.cost
            emit({"row": asdict(Measurement(SECTION, op, name, t.median, ratio, cost.bytes, cost.flops, t.contender.note, low))})
            if ratio is not None:
                emit({"target": asdict(Goal(f"{op}, {name}: ours over the framework's own", ratio, limit, low=low))})


def main() -> None:
    """Measure the entry of `FRAMEWORKS` whose place is on the command line."""
    settings = Settings.loads(sys.stdin.read())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Frameworks print as they like; the answers go where nothing else does.

    def emit(data: dict[str, Any]) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    _run(FRAMEWORKS[int(sys.argv[1])], settings, emit)


if __name__ == "__main__":
    main()
