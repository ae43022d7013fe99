"""The benchmark's sections on frameworks that may need an interpreter of their own: large tensors, fresh output, and tiny ones.

Each framework is measured in a process of its own, by the interpreter that has it: `python -m opc.testing.bench.frameworks
PLACE`, settings on standard input, rows and targets on standard output.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Any

from opc.testing.bench.benchmark import OURS, TINY, Benchmark, Goal, Measurement, Settings, answering, listen
from opc.testing.bench.jax import CALLS
from opc.testing.bench.timing import time_in_turn

SECTION, TINY_SECTION = "frameworks", "frameworks-tiny"


@dataclass(frozen=True, slots=True)
class Framework:
    """One way to run a framework: its backend, the module and function that make the contenders, and what is promised of an op.

    The function takes the problem and returns ours first, then the framework's own. The limits are of our time over its own; with
    `calls`, a contender makes as many calls on tiny tensors, and they are of the nanoseconds that one of ours takes longer.
    """

    backend: str
    module: str
    limits: Mapping[str, float]
    function: str = "contenders"
    calls: int = 0

    @property
    def section(self) -> str:
        """The section that it is of."""
        return TINY_SECTION if self.calls else SECTION


FRAMEWORKS = (
    Framework("mindspore", "opc.testing.bench.mindspore", {"leaky_relu": 1.05, "softmax": 1.05}),
    Framework("mindspore", "opc.testing.bench.mindspore", {"leaky_relu": 0.6}, "graph_contenders"),
    Framework("paddle", "opc.testing.bench.paddle", {"leaky_relu": 1.05, "softmax": 1.05}),
    Framework("jax", "opc.testing.bench.jax", {"leaky_relu": 1.05, "softmax": 1.05}),
    Framework("jax", "opc.testing.bench.jax", {"leaky_relu": 200.0}, "call_contenders", CALLS),
)
"""What is measured, each in a process of its own."""


def measured(sections: Sequence[str]) -> tuple[Framework, ...]:
    """Return what is measured for some sections of the benchmark."""
    return tuple(f for f in FRAMEWORKS if f.section in sections)


def measure(found: Benchmark, settings: Settings, say: Callable[[str], None]) -> None:
    """Measure every framework of the settings' sections that is here; the others get a row that says why not.

    Raises:
        RuntimeError: when a process fails, with the end of what it printed.
    """
    from opc.backends import environments, registry

    for framework in measured(settings.sections):
        probe = registry.load(framework.backend).probe()
        if not probe.available:
            found.rows.append(Measurement(framework.section, "", framework.backend, None, note=f"not here: {probe.reason}"))
            continue
        found.machine[framework.backend] = probe.version or ""
        python = str(environments.interpreter(framework.backend))
        command = [python, "-m", "opc.testing.bench.frameworks", str(FRAMEWORKS.index(framework))]
        listen(command, settings, found, say)


def run(framework: Framework, settings: Settings, emit: Callable[[dict[str, Any]], None]) -> None:
    """Measure one framework, in this process, on the ops that it is promised a speed of; `emit` takes rows and targets."""
    from opc.pipeline import load_family
    from opc.testing.bench.problem import row_problem

    contenders = getattr(importlib.import_module(framework.module), framework.function)
    calls, size = max(1, framework.calls), TINY if framework.calls else settings.size
    # The processor's time, as a call takes too little for the clock's on a machine shared with others.
    clock = process_time if framework.calls else None
    for op, limit in framework.limits.items():
        if op not in settings.specs:
            continue
        family = load_family(Path(settings.specs[op]))
        problem = row_problem(family, Path(settings.out) / family.name, size, settings.threads)
        emit({"doing": f"{op}, {size:,} elements, {framework.backend}"})
        timings = [t.of_each(calls) for t in time_in_turn(contenders(problem), settings.rounds, clock=clock)]
        section, cost = framework.section, problem.cost
        ours = next((t for t in timings if t.contender.name.startswith(OURS)), None)
        for t in timings:
            ratio, low = (ours.ratio(t), ours.low_ratio(t)) if ours is not None and t is not ours else (None, None)
            name = t.contender.name
            emit({"row": asdict(Measurement(section, op, name, t.median, ratio, cost.bytes, cost.flops, t.contender.note, low))})
            more = None if ours is None else ours.excess(t)
            if ratio is None or more is None:
                continue
            goal = Goal(f"{op}, {name}: ours over the framework's own", ratio, limit, low=low)
            if framework.calls:
                goal = Goal(f"{op}, {size} elements, {name}: what a call of ours takes more", more * 1e9, limit, "ns")
            emit({"target": asdict(goal)})


def main() -> None:
    """Measure the entry of `FRAMEWORKS` whose place is on the command line."""
    settings, emit = answering()
    run(FRAMEWORKS[int(sys.argv[1])], settings, emit)


if __name__ == "__main__":
    main()
