"""`python -m tests.fuzz 2000 7`: draws 2,000 ops with the seed 7 and holds each to its proof; says what is wrong with how many.

A finding is shrunk, printed with its spec, and the run goes on. `--only N` runs a single op of the seed again. With `--device`
the ops' kernels for a GPU are held to the oracle, on the emulation of one, and nothing else. With `--mutants` the ops are the
project's own, with mistakes that the front end accepts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.queues import SimpleQueue
from pathlib import Path

from tests.fuzz import device
from tests.fuzz.check import check, compiled, drawn
from tests.fuzz.mutants import mutant
from tests.fuzz.shrink import shrunk

Answer = tuple[int, list[str], str]
Answers = SimpleQueue[Answer]
Draw = Callable[[str, int], str]

TOGETHER = 8
"""The kernels of so many ops are compiled as one library."""


def _kind(messages: list[str]) -> str:
    """Return what kind of finding it is, without numbers and names."""
    return re.sub(r"\s+", " ", re.sub(r"[\d.]+|\[.*?\]|'.*?'", "#", messages[0]))[:60]


def _work_on_device(draw: Draw, numbers: list[int], seed: str, shrinking: bool, answers: Answers) -> None:
    for begin in range(0, len(numbers), TOGETHER):
        texts = {number: draw(seed, number) for number in numbers[begin : begin + TOGETHER]}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name) if device.compiled([*texts.values()], Path(name)) else None
            for number, text in texts.items():
                found = device.check(text, f"{seed}/{number}", folder=folder)
                if found and shrinking:
                    text, found = shrunk(text, found, lambda other, n=number: device.check(other, f"{seed}/{n}"))
                answers.put((number, found, text))


def _work(draw: Draw, numbers: list[int], seed: str, shrinking: bool, answers: Answers) -> None:
    for begin in range(0, len(numbers), TOGETHER):
        texts = {number: draw(seed, number) for number in numbers[begin : begin + TOGETHER]}
        optimise = "-O1" if begin // TOGETHER % 4 == 3 else "-O0"
        with tempfile.TemporaryDirectory() as folder:
            library = compiled([*texts.values()], Path(folder), optimise) if len(texts) > 1 else None
            for number, text in texts.items():
                found = check(text, f"{seed}/{number}", library=library)
                if found and shrinking:
                    text, found = shrunk(text, found, lambda other, n=number: check(other, f"{seed}/{n}", seconds=20))
                answers.put((number, found, text))


def main() -> int:
    """Run the fuzz and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("seed")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first op")
    parser.add_argument("--only", type=int, help="run this op alone, and do not shrink it")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--no-shrink", action="store_true")
    parser.add_argument("--device", action="store_true", help="hold kernels for a GPU, and nothing else")
    parser.add_argument("--mutants", action="store_true", help="draw mistakes in the project's specs, not ops")
    given = parser.parse_args()
    numbers = [given.only] if given.only is not None else list(range(given.first, given.first + given.count))
    context = multiprocessing.get_context("fork")
    answers: Answers = context.SimpleQueue()
    shrinking = not given.no_shrink and given.only is None
    work, draw = _work_on_device if given.device else _work, mutant if given.mutants else drawn
    jobs = [
        context.Process(target=work, args=(draw, numbers[k :: given.jobs], given.seed, shrinking, answers))
        for k in range(given.jobs)
    ]
    start, kinds = time.monotonic(), Counter[str]()
    for job in jobs:
        job.start()
    for done in range(1, len(numbers) + 1):
        number, found, text = answers.get()
        if found:
            kinds[_kind(found)] += 1
            print(f"--- op {number} of seed {given.seed}", *found, text, sep="\n", flush=True)
        if done % 50 == 0:
            print(f"... {done} of {len(numbers)} in {time.monotonic() - start:.0f} s, {kinds.total()} wrong", flush=True)
    print(f"{kinds.total()} of {len(numbers)} ops are wrong; {time.monotonic() - start:.0f} s")
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}")
    return 1 if kinds else 0


if __name__ == "__main__":
    sys.exit(main())
