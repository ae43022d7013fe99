"""The sections of a benchmark that time whole processes: builds and commands."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import opc
from opc.backends import environments
from opc.testing.bench.benchmark import BUILD_SPECS, Benchmark, Goal, Measurement

REPEATS = 5

WITHOUT_HEADERS = ("numpy", "onnx", "onnxruntime", "torch")
"""The backends whose adapters include no framework's headers nor are built for one that has an environment of its own."""


def _seconds(arguments: Sequence[str], folder: Path) -> float:
    """Return the time of one `opc` process.

    Raises:
        RuntimeError: when it fails, with the end of what it printed.
    """
    command = [sys.executable, "-m", "opc", *arguments]
    start = perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=environment(folder))
    seconds = perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"opc {' '.join(arguments)} failed:\n{(done.stderr or done.stdout).strip()[-2000:]}")
    return seconds


def environment(folder: Path) -> dict[str, str]:
    """Return an environment in which byte code is kept, as an installed opc's is, but apart from the sources."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    # This very opc, also where it is not the installed one: the process runs in another folder than this one.
    root = str(Path(opc.__file__).parent.parent)
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join(p for p in (root, os.environ.get("PYTHONPATH")) if p),
        "PYTHONPYCACHEPREFIX": str(folder / "bytecode"),
        "NO_COLOR": "1",
        environments.VARIABLE: str(environments.root()),
    }


def measure_builds(found: Benchmark, specs: Sequence[Path], say: Callable[[str], None]) -> None:
    """Time the build of one op and of all of them from nothing, and of all with nothing to do."""
    paths = [str(p.absolute()) for p in specs]
    one = next((p for p in paths if Path(p).stem == "leaky_relu"), paths[0])
    name = Path(one).stem
    with tempfile.TemporaryDirectory(prefix="opc-bench-") as scratch:
        folder = Path(scratch)
        # The first run makes the byte code.
        _seconds(["generate", one, "-o", "warm"], folder)

        def record(what: str, arguments: Sequence[str], limit: float, repeats: int = 1) -> None:
            say(what)
            seconds = median(_seconds(arguments, folder) for _ in range(repeats))
            found.rows.append(Measurement("build", what, "opc build", seconds))
            found.targets.append(Goal(what, seconds, limit, "s"))

        few = [text for backend in WITHOUT_HEADERS for text in ("--backend", backend)]
        record(f"build of {name}, {len(WITHOUT_HEADERS)} backends", ["build", one, "-o", "few", *few], 2.0)
        record(f"build of {name}, all backends", ["build", one, "-o", "one"], 8.0)
        count = name
        if len(paths) > 1:
            count = (
                f"{len(paths)} elementwise and row ops" if {p.stem for p in specs} == set(BUILD_SPECS) else f"{len(paths)} ops"
            )
            # Everything anew: into a folder of its own.
            record(f"build of {count}, {len(WITHOUT_HEADERS)} backends", ["build", *paths, "-o", "every", *few], 40.0)
        out = "every" if len(paths) > 1 else "one"
        again = few if len(paths) > 1 else []
        record(f"build of {count}, nothing changed", ["build", *paths, "-o", out, *again], 0.3, REPEATS)


def measure_commands(found: Benchmark, specs: Sequence[Path], say: Callable[[str], None]) -> None:
    """Time the commands one waits for."""
    one = next((p for p in specs if p.stem == "leaky_relu"), specs[0]).absolute()
    with tempfile.TemporaryDirectory(prefix="opc-bench-") as scratch:
        for arguments, limit in ((["--help"], 0.2), (["generate", str(one)], 0.5)):
            what = " ".join(["opc", *(Path(a).name for a in arguments)])
            say(what)
            _seconds(arguments, Path(scratch))
            seconds = median(_seconds(arguments, Path(scratch)) for _ in range(REPEATS))
            found.rows.append(Measurement("commands", what, "opc", seconds))
            found.targets.append(Goal(what, seconds, limit, "s"))
