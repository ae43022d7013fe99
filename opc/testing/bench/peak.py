"""What the machine can do at most, measured by a small program: multiply-adds in registers, a copy and a triad in memory."""

from __future__ import annotations

import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from opc import config
from opc.build import toolchain
from opc.diagnostics import Diagnostic, SpecError

_SOURCE = Path(__file__).parent / "templates" / "peak.cpp"
_FLAGS = ("-std=c++17", "-O3", "-march=native", "-ffp-contract=fast", "-pthread")


@dataclass(frozen=True, slots=True)
class Peak:
    """Floating-point operations a second in float32, and bytes a second to and from memory, on the requested threads."""

    flops: float
    bytes: float


def measure(threads: int) -> Peak:
    """Return the machine's peaks, each the best of several runs on `threads` threads.

    Raises:
        SpecError: when there is no compiler, or the program fails.
    """
    compiler = toolchain.find(config.load())
    with tempfile.TemporaryDirectory(prefix="opc-peak-") as folder:
        program = Path(folder) / "peak"
        for command in ((*compiler.command, *_FLAGS, str(_SOURCE), "-o", str(program)), (str(program), str(threads))):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                message = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[0]
                raise SpecError([Diagnostic(f"the machine's peak can't be measured: {message}")])
        found = json.loads(done.stdout)
    return Peak(found["flops"], found["bytes"])
