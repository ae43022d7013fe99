"""Threads and forked workers that call one loaded op for long: every result is the same to the bit, and nothing leaks.

Each thread has inputs of its own, of sizes that differ, and knows their results from a call that nothing else ran beside. Every
`FORKS` seconds a worker is forked in the midst of it, which calls the op in threads of its own and ends. Memory and descriptors
are counted from when all threads have begun.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import opc
from tests.faults.tally import Fault, Tally

ROOT = Path(__file__).parents[2]
FORKS = 0.5
GROWTH = 64 << 20
"""How many bytes the process may grow by; what one call holds is far below."""
DESCRIPTORS = 8
SIZES = (1, 7, 64, 1000, 4096, 33333)


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def _inputs(number: int) -> np.ndarray[Any, Any]:
    size = SIZES[number % len(SIZES)]
    return np.random.default_rng(number).standard_normal((3, size)).astype((np.float32, np.float64)[number % 2])


def calls(op: Callable[..., Any], number: int, wanted: bytes, until: Callable[[], bool]) -> tuple[int, int]:
    """Call the op until it is time; return how many calls were made and how many were wrong."""
    x, made, wrong = _inputs(number), 0, 0
    while not made or not until():
        wrong += op(x).tobytes() != wanted
        made += 1
    return made, wrong


def _forked(op: Callable[..., Any], wanted: list[bytes]) -> int:
    """Call the op in a forked process, in four threads; return its pid. Its exit code is the number of wrong calls."""
    pid = os.fork()
    if pid:
        return pid
    found: list[int] = []
    end = time.monotonic() + FORKS / 2
    own = [
        threading.Thread(target=lambda n=n: found.append(calls(op, n, wanted[n], lambda: time.monotonic() > end)[1]))
        for n in range(4)
    ]
    for thread in own:
        thread.start()
    for thread in own:
        thread.join()
    os._exit(min(100, sum(found)) if len(found) == 4 else 101)


def run(seconds: float, threads: int = 64, spec: Path = ROOT / "specs" / "softmax.yaml") -> Tally:
    """Call one op in so many threads for so long, beside forked workers."""
    tally = Tally("threads")
    op = opc.load(spec)
    wanted = [op(_inputs(number)).tobytes() for number in range(threads)]
    answers: list[tuple[int, int]] = []
    stop = threading.Event()
    workers = [threading.Thread(target=lambda n=n: answers.append(calls(op, n, wanted[n], stop.is_set))) for n in range(threads)]
    for worker in workers:
        worker.start()
    begin, codes, memory, descriptors = time.monotonic(), [], 0, 0
    most, open_files = 0, 0
    while time.monotonic() - begin < seconds or not codes:
        pid = _forked(op, wanted)
        time.sleep(FORKS)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        if not memory:
            memory, descriptors = _resident(), _descriptors()
        most, open_files = max(most, _resident()), max(open_files, _descriptors())
    stop.set()
    for worker in workers:
        worker.join()
    tally.counts["threads"] = len(answers)
    tally.counts["calls"] = sum(made for made, _ in answers)
    tally.counts["wrong results"] = sum(bad for _, bad in answers)
    tally.counts["forked workers"] = len(codes)
    tally.counts["forked workers that ended wrongly"] = sum(code != 0 for code in codes)
    tally.measured["seconds"] = f"{time.monotonic() - begin:.0f}"
    tally.measured["memory grown by at most, MiB"] = f"{max(0, most - memory) / (1 << 20):.1f}"
    tally.measured["file descriptors grown by at most"] = str(max(0, open_files - descriptors))
    command = f"python -m tests.faults threads --seconds {seconds:g}"
    found = {
        "results differ": tally.counts["wrong results"] or len(answers) != threads,
        "forked workers end wrongly": tally.counts["forked workers that ended wrongly"],
        "memory leaks": most - memory > GROWTH,
        "descriptors leak": open_files - descriptors > DESCRIPTORS,
    }
    for kind, is_so in found.items():
        if is_so:
            tally.add(Fault(kind, f"{kind}: {dict(tally.counts)}, {tally.measured}", command))
    return tally
