"""The process that measures: settings on standard input, rows and targets on standard output, one line of JSON each."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from opc.analysis.cost import Cost
from opc.ir.dtypes import DType, candidates
from opc.ir.op import Op
from opc.testing.bench import gradients, memory, peak, peers
from opc.testing.bench.benchmark import OURS, SPEED_SPECS, TINY, Goal, Measurement, Settings, answering, machine
from opc.testing.bench.case import BACKWARD, BenchCase
from opc.testing.bench.cases import CASES, is_of
from opc.testing.bench.onnxruntime import Call
from opc.testing.bench.problem import Problem, case_problem, row_problem
from opc.testing.bench.timing import Contender, Timing, time_in_turn

LEAK_CALLS = 1000
TINY_CALLS = 1000


class BenchWorker:
    """Runs the sections; `emit` takes what they find."""

    def __init__(self, settings: Settings, emit: Callable[[dict[str, Any]], None]) -> None:
        self.settings, self.emit = settings, emit

    def run(self) -> None:
        """Run every requested section."""
        self.emit({"machine": self.machine()})
        sections = (
            ("ops", self.ops), ("backward", self.backward), ("large", self.large), ("fresh", self.fresh), ("tiny", self.tiny)
        )  # fmt: skip
        wanted = [(name, section) for name, section in sections if name in self.settings.sections]
        if {"ops", "backward"} & {name for name, _ in wanted}:
            self.emit({"doing": "what the machine can do at most"})
            self.emit({"peak": asdict(peak.measure(self.settings.threads))})
        for _, section in wanted:
            section()

    def machine(self) -> dict[str, str]:
        """Say what is measured on and with; limits each framework to the requested threads."""
        found = machine() | {"threads": str(self.settings.threads)}
        try:
            import torch

            torch.set_num_threads(self.settings.threads)
            found["torch"] = torch.__version__
        except ImportError:
            found["torch"] = "not installed"
        for name in ("numpy", "onnxruntime"):
            try:
                found[name] = __import__(name).__version__
            except ImportError:
                found[name] = "not installed"
        return found

    def problem(self, op: str, size: int) -> Problem:
        """Return the problem of an op at a size."""
        from opc.pipeline import load_family

        family = load_family(Path(self.settings.specs[op]))
        return row_problem(family, Path(self.settings.out) / family.name, size, self.settings.threads)

    def cases(self) -> Iterator[tuple[BenchCase, Problem]]:
        """Yield the calls of the table on the requested ops, with their problems."""
        from opc.pipeline import load_family

        for case in CASES:
            if case.op in self.settings.specs:
                family = load_family(Path(self.settings.specs[case.op]))
                if not is_of(case, family.forward):
                    continue
                problem = case_problem(case, family, Path(self.settings.out) / family.name, self.settings.threads)
                if self.settings.dtype == problem.dtype:
                    yield case, problem
                elif _takes(family.forward, DType(self.settings.dtype)):
                    name = f"{case.name}, {self.settings.dtype}"
                    yield replace(case, name=name), replace(problem, dtype=self.settings.dtype)

    def ops(self) -> None:
        """Ops at the sizes of models."""
        for case, problem in self.cases():
            self.emit({"doing": case.name})
            # Where torch.compile calls a library, writing to given memory would be a copy more.
            into = case.group not in ("contractions", "depthwise")
            contenders = agreeing(peers.frameworks(problem, compiled_into=into), problem)
            self.compare("ops", case.name, contenders, problem.cost, case.limit, "the best of ours over the best framework's")

    def backward(self) -> None:
        """Gradients of ops at the sizes of models."""
        for case, problem in self.cases():
            if problem.family.backward is None:
                continue
            self.emit({"doing": f"{case.name}, gradient"})
            limit = BACKWARD if case.limit is not None else None
            found = gradients.contenders(problem)
            self.compare("backward", case.name, found, problem.gradient_cost, limit, "gradient, the best of ours over theirs")

    def compare(
        self, section: str, name: str, contenders: Sequence[Contender], cost: Cost, limit: float | None, what: str
    ) -> None:
        """Time contenders; hold the best of ours against the best of theirs where something is promised."""
        timings = time_in_turn(contenders, self.settings.rounds, enough=partial(decided, limit=limit), before=memory.evict)
        self.rows(section, name, cost, timings)
        ours, theirs = best(timings)
        ratio = ours.ratio(theirs) if ours and theirs else None
        if ours and theirs and ratio is not None and limit is not None:
            self.target(f"{name}: {what}", ratio, limit, low=ours.low_ratio(theirs))
        gc.collect()

    def large(self) -> None:
        """Large tensors with outputs given: memory bandwidth and arithmetic."""
        for op in self.settings.plain:
            problem = self.problem(op, self.settings.size)
            self.emit({"doing": f"{op}, {self.settings.size:,} elements, output given"})
            contenders = peers.given_output(problem)
            timings = time_in_turn(contenders, self.settings.rounds, enough=partial(decided, limit=1.0), before=memory.evict)
            rows = self.rows("large", op, problem.cost, timings)
            if op not in SPEED_SPECS:
                continue
            # The best of ours against the best of theirs: to hold one of ours against the luckiest of several would not be fair.
            ours, theirs = best(timings)
            ratio = ours.ratio(theirs) if ours and theirs else None
            if ours and theirs and ratio is not None:
                name = f"{op}, output given: the best of ours over the best framework's"
                self.target(name, ratio, 1.0, low=ours.low_ratio(theirs))
            copies = [(r.ratio, r.low) for r in rows if r.contender == "memcpy" and r.ratio is not None]
            if op == "leaky_relu" and copies:
                over_copy, low = copies[0]
                self.target("leaky_relu, output given: time over memcpy's", over_copy, 1.0, low=low)
            del problem
            gc.collect()

    def fresh(self) -> None:
        """Large tensors with outputs made by the call, whose pages the system must bring first."""
        for op in self.settings.plain:
            problem = self.problem(op, self.settings.size)
            self.emit({"doing": f"{op}, {self.settings.size:,} elements, fresh output"})
            contenders = peers.fresh_output(problem)
            rows = self.rows("fresh", op, problem.cost, time_in_turn(contenders, self.settings.rounds, before=memory.evict))
            if op != "leaky_relu":
                continue
            eager = [r.ratio for r in rows if r.contender == "torch" and r.ratio is not None]
            if eager:
                self.target("leaky_relu, fresh output: time over torch's", eager[0], 0.5)
            for contender in contenders:
                if contender.name.startswith(OURS) and contender.run is not None:
                    self.emit({"doing": f"{contender.name}: memory over {LEAK_CALLS:,} calls"})
                    self.leak(contender, problem)

    def leak(self, contender: Contender, problem: Problem) -> None:
        """Hold the growth of this process's memory over many calls against one output's size."""
        assert contender.run is not None
        for _ in range(10):
            contender.run()
        before = resident()
        for _ in range(LEAK_CALLS):
            contender.run()
        grown = max(0, resident() - before)
        name = f"leaky_relu, {contender.name}: memory grown over {LEAK_CALLS:,} calls"
        self.target(name, grown / 2**20, problem.cost.written / 2**20, "MiB")

    def tiny(self) -> None:
        """Four elements: what a call costs before it computes anything."""
        for op in self.settings.plain:
            problem = self.problem(op, TINY)
            self.emit({"doing": f"{op}, {TINY} elements"})
            given = [c for c in peers.given_output(problem) if c.name in ("opc numpy", "opc onnxruntime", "onnxruntime")]
            contenders = [
                *peers.fresh_output(problem),
                *(replace(c, name=f"{c.name}, output given") if "numpy" in c.name else c for c in given),
            ]
            functional = functional_torch(problem) if op == "leaky_relu" else None
            if functional is not None:
                contenders = [c for c in contenders if c.name != "torch"] + [functional]
            rounds = max(15, self.settings.rounds)
            rows = self.rows("tiny", op, problem.cost, time_in_turn(contenders, rounds, TINY_CALLS, TINY_CALLS // 2))
            if op != "leaky_relu":
                continue
            times = {r.contender: r for r in rows}
            eager, ours = times.get("F.leaky_relu"), times["opc numpy"]
            if eager is not None and eager.ratio is not None and times["opc torch"].seconds is not None:
                self.target("leaky_relu, 4 elements: torch call over F.leaky_relu", eager.ratio, 1.3)
            if ours.seconds is not None:
                self.target("leaky_relu, 4 elements: call on NumPy arrays", ours.seconds * 1e9, 1000, "ns")

    def rows(self, section: str, op: str, cost: Cost, timings: Sequence[Timing]) -> list[Measurement]:
        """Emit a row a contender; ratios are against the first of ours that ran."""
        ours = next((t for t in timings if t.contender.name.startswith(OURS) and t.seconds), None)
        rows = []
        for t in timings:
            ratio, low = (ours.ratio(t), ours.low_ratio(t)) if ours is not None and t is not ours else (None, None)
            name, note = t.contender.name, t.contender.note
            row = Measurement(section, op, name, t.median, ratio, cost.bytes, cost.flops, note, low)
            rows.append(row)
            self.emit({"row": asdict(row)})
        return rows

    def target(self, name: str, value: float, limit: float, unit: str = "", low: float | None = None) -> None:
        """Emit a figure the project promises."""
        self.emit({"target": asdict(Goal(name, value, limit, unit, low))})


def _takes(op: Op, dtype: DType) -> bool:
    """Whether an op has float operands, and these can be of a type."""
    kinds = [set(candidates(o.type)) for o in op.inputs]
    floating = [k for k in kinds if any(d.is_floating for d in k)]
    return bool(floating) and all(dtype in k for k in floating)


ALIKE = 1e-2
"""The relative error, in the norm, by which a contender's answer may differ: what differs more computes something else."""


def agreeing(contenders: Sequence[Contender], problem: Problem) -> list[Contender]:
    """Return the contenders, those whose first output is not like the first one's without a call and with a note."""
    found: list[Contender] = []
    truth: Any = None
    for contender in contenders:
        if contender.run is None:
            found.append(contender)
            continue
        try:
            returned = contender.run()
        # As in a warm-up, whatever a peer raises is its row.
        except Exception as error:
            found.append(
                replace(contender, run=None, note=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]}")
            )
            continue
        values = contender.outputs or returned
        first = peers.array(values[0] if isinstance(values, tuple | list) else values).astype(np.float64)
        truth = first if truth is None else truth
        alike = first.shape == truth.shape and np.linalg.norm(first - truth) <= ALIKE * np.linalg.norm(truth)
        found.append(contender if alike else replace(contender, run=None, note="computes something else"))
    return found


def best(timings: Sequence[Timing]) -> tuple[Timing | None, Timing | None]:
    """Return the quickest of ours and of the frameworks'."""
    ours = quickest(t for t in timings if t.contender.name.startswith(OURS))
    return ours, quickest(t for t in timings if not t.contender.name.startswith((OURS, "memcpy")))


def decided(timings: Sequence[Timing], limit: float | None) -> bool:
    """Whether the times show on which side of the limit the ratio of the quickest is, or it has no limit."""
    ours, theirs = best(timings)
    found = ours.interval(theirs) if ours and theirs else None
    return limit is None or found is None or found[0] > limit or found[1] <= limit


def quickest(timings: Iterable[Timing]) -> Timing | None:
    """Return the one with the least median of those that ran, None when none did."""
    return min((t for t in timings if t.median is not None), key=lambda t: t.median or 0.0, default=None)


def functional_torch(problem: Problem) -> Contender:
    """Return `torch.nn.functional.leaky_relu` itself, called as a user calls it."""

    def make() -> Call:
        import torch

        function = torch.nn.functional.leaky_relu
        return partial(function, peers.tensor(problem.inputs["x"]), problem.attributes["alpha"]), ()

    return peers.attempt("F.leaky_relu", make)


def resident() -> int:
    """Return the bytes of memory this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main() -> None:
    """Measure what standard input requests."""
    BenchWorker(*answering()).run()


if __name__ == "__main__":
    main()
