"""The benchmark's section on opc itself: how long it takes to generate and check specs, and how that grows with a spec.

Commands are timed as processes that find their byte code, as an installed opc does. What counts is the processor's time, to which
others on the machine add little. Growth is timed in this process, from the text of a spec to the text of its package.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import process_time

from opc.testing.bench.benchmark import Benchmark, Goal, Measurement
from opc.testing.bench.commands import environment

SECTION = "compiler"
GROWTH = "growth"

REPEATS = 3

LINEAR = 1.5
"""How much more each line may take that the last doubling of a chain adds than one that the doubling before adds."""


@dataclass(frozen=True, slots=True)
class Chain:
    """Specs of statements each of which is made of the one before, of so many `lengths`.

    `first` and `step` are the value of the first statement and of a further one.
    """

    inputs: str
    output: str
    indices: str
    first: str
    step: str
    lengths: tuple[int, ...]

    def text(self, count: int) -> str:
        """Return the spec of so many statements."""
        names = [*(f"t{n}" for n in range(count - 1)), "y"]
        values = [self.first, *(self.step.format(name) for name in names[:-1])]
        lines = "".join(f"  {name}{self.indices} = {value}\n" for name, value in zip(names, values, strict=True))
        head = "op: grown\ndomain: opc.bench\nversion: 1\ndoc: A chain of statements.\ntypes: {T: [float32]}\n"
        return f"{head}inputs: {{{self.inputs}}}\noutputs: {{y: '{self.output}'}}\nkernel: |\n{lines}"


CHAINS = {
    "points": Chain(
        "x: 'T[...]', c: 'T[...]'", "T[...]", "[...]", "x[...] * c[...]", "tanh({0}[...]) + c[...] * {0}[...]",
        (1, 2, 5, 10, 25, 50, 100, 200),
    ),
    "rows": Chain(
        "x: 'T[..., N]'", "T[..., N]", "[..., n]", "x[..., n] * 2", "exp({0}[..., n] - max[m]({0}[..., m]))",
        (1, 2, 5, 12, 25, 50),
    ),
}  # fmt: skip
"""The chains: of points, whose statements become one, and of rows, each of whose statements needs two passes over all rows."""


def measure(found: Benchmark, specs: Sequence[Path], say: Callable[[str], None]) -> None:
    """Time the commands on all of these specs and on one of them, and a cached `opc.load`.

    Raises:
        RuntimeError: when a process fails, with the end of what it printed.
    """
    paths = [str(p.absolute()) for p in specs]
    one = next((p for p in paths if Path(p).stem == "leaky_relu"), paths[0])
    name, count = Path(one).stem, f"{len(paths)} specs"
    load = f"import numpy, opc; opc.load({one!r})"
    opc = [sys.executable, "-m", "opc"]
    with tempfile.TemporaryDirectory(prefix="opc-bench-") as scratch:
        folder = Path(scratch)

        def record(what: str, command: Sequence[str], limit: float, repeats: int = REPEATS, fresh: str = "") -> None:
            say(what)
            times = []
            for n in range(repeats):
                arguments = [a.replace(fresh, f"{fresh}{n}") if fresh else a for a in command]
                times.append(processor_seconds(arguments, folder))
            found.rows.append(Measurement(SECTION, what, "opc", median(times)))
            found.targets.append(Goal(what, median(times), limit, "s"))

        # The first runs make the byte code, and the package that `opc.load` finds.
        for command in ([*opc, "generate", one, "-o", "warm"], [*opc, "check", one], [sys.executable, "-c", load]):
            processor_seconds(command, folder)
        record(f"generate of {count}", [*opc, "generate", *paths, "-o", "every"], 8.0, 1)
        record(f"generate of {count}, nothing changed", [*opc, "generate", *paths, "-o", "every"], 0.5)
        record(f"check of {count}", [*opc, "check", *paths], 2.0, 1)
        record(f"generate of {name}", [*opc, "generate", one, "-o", "one"], 0.4, fresh="one")
        record(f"check of {name}", [*opc, "check", one], 0.4)
        record(f"opc.load of {name}, built before", [sys.executable, "-c", load], 0.25)


def measure_growth(found: Benchmark, say: Callable[[str], None]) -> None:
    """Time how long it takes from specs of some statements to their packages, in all and for each line that is written."""
    from opc.backends import registry
    from opc.compiler import compile_spec
    from opc.spec.loader import loads

    backends = registry.select()
    compile_spec(loads(CHAINS["points"].text(3), "warm.yaml", whole=False), backends)
    for kind, made in CHAINS.items():
        cost: list[float] = []
        seconds, lines = 0.0, 0
        for count in made.lengths:
            say(f"a chain of {count} {kind}")
            start = process_time()
            package = compile_spec(loads(made.text(count), f"{kind}{count}.yaml", whole=False), backends).package
            before, seconds = (seconds, lines), process_time() - start
            lines = sum(text.count("\n") for text in package.files.values())
            cost.append((seconds - before[0]) / (lines - before[1]) if lines > before[1] else 0.0)
            note = f"{lines:,} lines, {1e6 * cost[-1]:.0f} us for each that was added"
            found.rows.append(Measurement(GROWTH, f"{count} {kind}", "opc", seconds, note=note))
        what = f"a line added from {made.lengths[-2]} to {made.lengths[-1]} {kind}, of one added before"
        found.targets.append(Goal(what, cost[-1] / cost[-2], LINEAR))


def processor_seconds(command: Sequence[str], folder: Path) -> float:
    """Return the processor's time of a process and those it starts.

    Raises:
        RuntimeError: when it fails, with the end of what it printed.
    """
    own = {**environment(folder), "OPC_CACHE_DIR": str(folder / "cache"), "OPC_OPTIMIZE": "0", "OPC_VARIANT": "native"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=own)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)[:200]} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
