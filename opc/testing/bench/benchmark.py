"""`opc bench`: the model of a benchmark and the process that runs it.

Contenders run in turn in one process: every round calls each of them once, in a new order, so that a machine that slows
down slows all of them. What is reported are medians, and the median over rounds of the ratio of our time to a peer's in the same
round. The process is started anew with `OMP_WAIT_POLICY=passive`, which must be set before a framework loads its OpenMP: with
libgomp's default, threads that wait take the processor from those that work.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import opc

OURS = "opc"
"""What our contenders' names start with; the first of them in a group is the one the others are compared with."""

SECTIONS: Mapping[str, str] = {
    "ops": "ops at the sizes of models, output given",
    "backward": "their gradients, fresh output",
    "large": "large tensors, output given",
    "fresh": "large tensors, fresh output",
    "frameworks": "large tensors in other frameworks, output as each makes it",
    "tiny": "tiny tensors: the cost of a call",
    "frameworks-tiny": "tiny tensors in programs of other frameworks: the cost of a call",
    "compilers": "kernels made by other compilers than g++",
    "schedules": "kernels to another schedule",
    "build": "building packages, as processes",
    "commands": "commands, as processes",
    "compiler": "opc itself, as processes: the processor's time",
    "gpu": "on this machine's GPU, output as each makes it",
    "gpu-backward": "gradients on this machine's GPU",
    "gpu-tiny": "tiny tensors on this machine's GPU: the cost of a call",
    "growth": "opc itself on chains of statements: the processor's time from a spec to the text of its package",
}
"""The sections of a benchmark in order, and their titles."""

GPU_SECTIONS = ("gpu", "gpu-backward", "gpu-tiny")
"""Those that run on a GPU."""

TINY = 4
"""The elements of a tiny tensor."""

SPEED_SPECS = ("leaky_relu", "gelu", "silu", "softmax", "layer_norm")
"""The ops of the sections on large and tiny tensors when none are named."""

BUILD_SPECS = (
    "add", "addcmul", "clamp", "dual_residual", "elu", "gelu", "hard_sigmoid", "layer_norm", "leaky_relu", "log_softmax",
    "logsumexp", "prelu", "relu", "rms_norm", "selu", "sigmoid", "silu", "softmax", "softplus", "swiglu",
)  # fmt: skip
"""The twenty elementwise and row ops whose build together is promised a time."""


VECTORS = {"avx512f": "AVX-512", "avx2": "AVX2", "sse2": "SSE2"}
"""Instruction sets by Linux's names for them, the widest first."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One contender on one op. `seconds` is the median of a call, None when it did not run, and `note` then says why.

    `ratio` is our time over this contender's, below 1 where we are faster, and `low` its lower bound, given the noise of the
    rounds; both are None for ours. Of compilers and schedules, it is the time of what this one made over that of what the first
    one made. `nbytes` and `flops` are what the call must move and compute at least.
    """

    section: str
    op: str
    contender: str
    seconds: float | None
    ratio: float | None = None
    nbytes: int = 0
    flops: int = 0
    note: str = ""
    low: float | None = None

    @property
    def speed(self) -> float | None:
        """Operations a second, by the least there can be."""
        return self.flops / self.seconds if self.seconds and self.flops else None

    @property
    def bandwidth(self) -> float | None:
        """Bytes a second, by the least traffic there can be."""
        return self.nbytes / self.seconds if self.seconds and self.nbytes else None


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure the project promises: `value` may be at most `limit`.

    `low` is the lower bound of the figure, given the noise of the rounds, where it is a ratio measured round by round.
    """

    name: str
    value: float
    limit: float
    unit: str = ""
    low: float | None = None

    @property
    def verdict(self) -> str:
        """Whether the figure is kept; "within noise" when it is above the limit by less than the noise of the rounds."""
        if self.value <= self.limit:
            return "held"
        return "held within noise" if self.low is not None and self.low <= self.limit else "missed"


@dataclass(slots=True)
class Benchmark:
    """All rows and targets of a run, and the machine it ran on.

    `peak` holds the machine's "flops" and "bytes" a second, where they were measured.
    """

    machine: dict[str, str] = field(default_factory=dict)
    peak: dict[str, float] = field(default_factory=dict)
    rows: list[Measurement] = field(default_factory=list)
    targets: list[Goal] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data for `--json`."""
        targets = [{**asdict(t), "verdict": t.verdict} for t in self.targets]
        return {"machine": self.machine, "peak": self.peak, "rows": [asdict(r) for r in self.rows], "targets": targets}

    @staticmethod
    def from_dict(data: Mapping[str, Any]) -> Benchmark:
        """Return the benchmark that `as_dict` made plain data of.

        Raises:
            ValueError: when the data are something else.
        """
        try:
            rows = [Measurement(**row) for row in data["rows"]]
            targets = [Goal(**{k: v for k, v in t.items() if k != "verdict"}) for t in data["targets"]]
            return Benchmark(dict(data["machine"]), dict(data["peak"]), rows, targets)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no result of opc bench --json: {error}") from None


@dataclass(frozen=True, slots=True)
class Settings:
    """What to measure: specs by op name, sections, elements of a large tensor, rounds and threads.

    `plain` are the ops of the sections on large and tiny tensors, which know only elementwise and row ops. Without `compiled`,
    torch.compile is left out of those on a GPU. `dtype` is that of the float operands of cases on the CPU.
    """

    specs: Mapping[str, str]
    plain: tuple[str, ...]
    out: str
    sections: tuple[str, ...]
    size: int
    rounds: int
    threads: int
    compiled: bool = True
    dtype: str = "float32"

    def dumps(self) -> str:
        """Return the settings as the worker reads them."""
        return json.dumps(asdict(self))

    @staticmethod
    def loads(text: str) -> Settings:
        """Return the settings that `dumps` wrote."""
        data = json.loads(text)
        return Settings(**{**data, "plain": tuple(data["plain"]), "sections": tuple(data["sections"])})


def machine() -> dict[str, str]:
    """Return the processor and its widest vectors, the number of cores this process may use, and versions."""
    found = {"processor": platform.processor() or platform.machine()}
    with contextlib.suppress(OSError):  # Not Linux: the platform's own name has to do.
        found |= _told(Path("/proc/cpuinfo").read_text())
    return found | {"cores": str(cores()), "system": platform.system(), "python": platform.python_version()}


def _told(text: str) -> dict[str, str]:
    """Return what Linux reports of the first processor: its model, and the vector extensions that kernels have variants for."""
    lines = (line.partition(":") for line in reversed(text.splitlines()))
    first = {name.strip(): value.strip() for name, _, value in lines}
    found = {"processor": first["model name"]} if "model name" in first else {}
    flags = first.get("flags", "").split()
    wide = next((title for flag, title in VECTORS.items() if flag in flags), None)
    return found | ({"vectors": wide} if wide else {})


def cores() -> int:
    """Return how many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_worker(settings: Settings, say: Callable[[str], None]) -> Benchmark:
    """Measure the sections that run in one process; `say` gets what is being measured.

    Raises:
        RuntimeError: when the process fails, with the end of what it printed.
    """
    found = Benchmark()
    listen([sys.executable, "-m", "opc.testing.bench.worker"], settings, found, say)
    return found


def answering() -> tuple[Settings, Callable[[dict[str, Any]], None]]:
    """Return what a process that `listen` started measures, and what takes its answers.

    Frameworks print to standard output as they like: it becomes standard error, and the answers go where nothing else does.
    """
    settings = Settings.loads(sys.stdin.read())
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def emit(data: dict[str, Any]) -> None:
        answers.write(json.dumps(data) + "\n")
        answers.flush()

    return settings, emit


def listen(command: Sequence[str], settings: Settings, found: Benchmark, say: Callable[[str], None]) -> None:
    """Run a process that measures, and add what it finds; `say` gets what is being measured.

    Raises:
        RuntimeError: when the process fails, with the end of what it printed.
    """
    root = str(Path(opc.__file__).parent.parent)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(p for p in (os.environ.get("PYTHONPATH"), root) if p),
        "OMP_WAIT_POLICY": "passive",
        "OMP_NUM_THREADS": str(settings.threads),
    }
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(settings.dumps())
        process.stdin.close()
        for line in process.stdout:
            data = json.loads(line)
            if "row" in data:
                found.rows.append(Measurement(**data["row"]))
            elif "target" in data:
                found.targets.append(Goal(**data["target"]))
            elif "machine" in data:
                found.machine.update(data["machine"])
            elif "peak" in data:
                found.peak = data["peak"]
            else:
                say(data["doing"])
        errors = process.stderr.read()
    if process.returncode != 0:
        raise RuntimeError(f"the benchmark's process ended with code {process.returncode}:\n{errors.strip()[-2000:]}")


def peers(rows: Sequence[Measurement]) -> list[Measurement]:
    """Return the rows of a group that are not ours and ran."""
    return [r for r in rows if not r.contender.startswith(OURS) and r.seconds is not None]
