"""The benchmark's section on compilers: the kernels of each op as g++ and clang++ make them.

Each compiler builds packages for NumPy in a folder of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from shutil import which

import opc
from opc.build import toolchain, zig
from opc.testing.bench.benchmark import Benchmark, Goal, Measurement, Settings
from opc.testing.bench.side_by_side import compare

SECTION = "compilers"

LIMIT = 1.3
"""What a kernel made by clang++ may take at most, of the time that it takes made by g++."""


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
        found.rows.append(Measurement(SECTION, "", "clang++", None, note="not here: there is only one compiler"))
        return
    compare(found, SECTION, {name: out / name for name in names}, LIMIT, settings, say)
    found.targets += targets(found.rows)


def targets(rows: Sequence[Measurement]) -> list[Goal]:
    """Return what is promised of each compiler: how much slower the slowest of its kernels may be than the first one's."""
    measured = [r for r in rows if r.section == SECTION and r.ratio is not None]
    first = next((r.contender for r in rows if r.section == SECTION), "")
    worst = {r.contender: r for r in sorted(measured, key=lambda r: r.ratio or 0.0)}
    return [
        Goal(f"the slowest kernel of {name} over that of {first}", r.ratio or 0.0, LIMIT, low=r.low) for name, r in worst.items()
    ]


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
