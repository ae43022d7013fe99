"""The benchmark on this machine's GPU: ops from torch beside torch's own and what torch.compile makes, outputs made by each.

A process of its own: `python -m opc.testing.bench.gpu`, settings on standard input, rows and targets on standard output. Times
are those of the device, between two events around a call. Before each call the device writes more memory than its caches hold,
which also gives the host time to start the call: what a start costs is measured on tiny tensors instead.
"""

from __future__ import annotations

import gc
import random
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from time import perf_counter
from typing import Any

from opc.analysis.cost import Cost
from opc.analysis.shapes.inference import infer_types
from opc.ir.dtypes import Binding, DType
from opc.testing.bench.benchmark import OURS, Benchmark, Goal, Measurement, Settings, answering, listen, machine
from opc.testing.bench.gpu_cases import BACKWARD_ONCE, CASES, DTYPES, LIMITS, UNORDERED
from opc.testing.bench.onnxruntime import Call
from opc.testing.bench.peers import attempt, reference
from opc.testing.bench.problem import Problem, case_problem
from opc.testing.bench.timing import Contender, Timing
from opc.testing.bench.worker import ALIKE

BACKENDS = ("torch", "cuda")
CACHED = 1 << 28
"""Bytes that are more than any GPU's caches hold."""

TINY, TINY_CALLS, TINY_LIMIT = 4, 1000, 1.2


class DeviceProblem(Problem):
    """One op on tensors of the GPU."""

    @cached_property
    def inputs(self) -> dict[str, Any]:
        """The tensors that are given, in the op's order."""
        import torch

        generator = torch.Generator("cuda").manual_seed(0)
        return {o.name: self._tensor(generator, o.name) for o in self.family.forward.inputs if o.name in self.shapes}

    def _tensor(self, generator: Any, name: str) -> Any:
        import torch

        shape = self.shapes[name]
        if name in self.below:
            return torch.randint(0, self.below[name], shape, generator=generator, device="cuda")
        values = torch.randn(shape, generator=generator, device="cuda")
        return (values.abs() + 0.1 if name in self.positive else values).to(getattr(torch, self.dtype))

    @cached_property
    def binding(self) -> Binding:
        """The dtype of each type variable."""
        known: dict[str, DType | None] = {o.name: None for o in self.family.forward.inputs}
        known |= {n: DType(str(t.dtype).removeprefix("torch.")) for n, t in self.inputs.items()}
        return infer_types(self.family.forward, known, self.attributes)

    @cached_property
    def active(self) -> tuple[str, ...]:
        """The inputs whose gradients are computed."""
        return self.wrt or tuple(n for n, t in self.inputs.items() if t.is_floating_point())

    @property
    def tensors(self) -> list[Any]:
        """The inputs in order; None where one is absent."""
        return [self.inputs.get(o.name) for o in self.family.forward.inputs]


def missing() -> str | None:
    """Return what a GPU's benchmark needs that is not here, None where it can run."""
    try:
        import torch
    except ImportError:
        return "torch"
    if not torch.cuda.is_available():
        return "a GPU, and a torch that is made for CUDA"
    from opc.backends.cuda import toolkit

    return None if toolkit.nvcc() else 'nvcc: have it in PATH, or install "opc-compiler[cuda]"'


def measure(found: Benchmark, settings: Settings, say: Callable[[str], None]) -> None:
    """Measure the sections of a GPU; `say` gets what is being measured.

    Raises:
        RuntimeError: when the process fails, with the end of what it printed.
    """
    listen([sys.executable, "-m", "opc.testing.bench.gpu"], settings, found, say)


class _Worker:
    """Runs the sections; `emit` takes what they find."""

    def __init__(self, settings: Settings, emit: Callable[[dict[str, Any]], None]) -> None:
        import torch

        self.settings, self.emit = settings, emit
        # Each contender computes float32 in float32: torch rounds factors of convolutions to tf32 unless it is told not to.
        torch.backends.cudnn.allow_tf32 = False
        self.flushed = torch.empty(CACHED, dtype=torch.uint8, device="cuda")
        told = {"GPU": torch.cuda.get_device_name(), "torch": torch.__version__}
        emit({"machine": machine() | told})

    def run(self) -> None:
        """Run every requested section."""
        for problem, name, group, once in self.problems():
            if "gpu" in self.settings.sections:
                self.emit({"doing": name})
                copies = [attempt("copy", partial(_copy, problem))] if group == "elementwise" else []
                self.compare("gpu", name, [*_agreeing(self.forward(problem)), *copies], problem.cost, LIMITS[group])
            if "gpu-backward" in self.settings.sections and problem.family.backward is not None and not once:
                self.emit({"doing": f"{name}, gradient"})
                self.compare("gpu-backward", name, self.backward(problem), problem.gradient_cost, LIMITS[group])
        if "gpu-tiny" in self.settings.sections and "leaky_relu" in self.settings.specs:
            self.tiny()

    def problems(self) -> Iterator[tuple[DeviceProblem, str, str, bool]]:
        """Yield the calls of the table on the requested ops, their names and groups, and whether they have no gradient."""
        from opc.pipeline import load_family

        for case in CASES:
            if case.op not in self.settings.specs:
                continue
            family = load_family(Path(self.settings.specs[case.op]))
            plain = case_problem(case, family, Path(self.settings.out) / family.name, self.settings.threads)
            for dtype in DTYPES:
                given = {n: getattr(plain, n) for n in plain.__dataclass_fields__} | {"dtype": dtype}
                yield DeviceProblem(**given), f"{case.name} {dtype}", case.group, case.name in BACKWARD_ONCE

    def forward(self, problem: DeviceProblem) -> list[Contender]:
        """Return the contenders of an op."""
        compiled = ("torch.compile", lambda: (partial(_compiled(problem), *problem.tensors), ()))
        return [
            attempt("opc torch", lambda: (partial(_ours(problem), *problem.tensors), ())),
            *_eager(problem),
            *([attempt(*compiled)] if self.settings.compiled else ()),
        ]

    def backward(self, problem: DeviceProblem) -> list[Contender]:
        """Return the contenders of its gradient, from what the forward call saved."""
        compiled = ("torch.compile", lambda: _gradient(problem, _compiled(problem)))
        return [
            attempt("opc torch", lambda: _gradient(problem, _ours(problem))),
            attempt("torch", lambda: _gradient(problem, reference(problem))),
            *([attempt(*compiled)] if self.settings.compiled else ()),
        ]

    def compare(self, section: str, name: str, contenders: Sequence[Contender], cost: Cost, limit: float) -> None:
        """Time contenders; hold ours against the best of torch's."""
        timings = self.time(contenders)
        ours = next((t for t in timings if t.contender.name.startswith(OURS) and t.seconds), None)
        for t in timings:
            ratio, low = (ours.ratio(t), ours.low_ratio(t)) if ours is not None and t is not ours else (None, None)
            row = Measurement(section, name, t.contender.name, t.median, ratio, cost.bytes, cost.flops, t.contender.note, low)
            self.emit({"row": asdict(row)})
        theirs = [t for t in timings if t.contender.name.startswith("torch") and t.seconds]
        if ours is not None and theirs:
            best = min(theirs, key=lambda t: t.median or 0.0)
            what = "ours over the best of torch's" if section == "gpu" else "gradient, ours over the best of torch's"
            self.target(f"{name}: {what}", ours.ratio(best), limit, ours.low_ratio(best))
        copy = next((t for t in timings if t.contender.name == "copy" and t.seconds), None)
        if ours is not None and copy is not None:
            self.target(f"{name}: time over a copy's", ours.ratio(copy), 1 / 0.9, ours.low_ratio(copy))
        gc.collect()

    def time(self, contenders: Sequence[Contender]) -> list[Timing]:
        """Time contenders in turn, each round in an order of its own."""
        import torch

        ready = [_warm(c) for c in contenders]
        times: list[list[Any]] = [[] for _ in ready]
        for number in range(self.settings.rounds):
            for i in random.Random(number).sample(range(len(ready)), len(ready)):
                run = ready[i].run
                if run is None:
                    continue
                start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                self.flushed.zero_()
                start.record()
                run()
                end.record()
                times[i].append((start, end))
        torch.cuda.synchronize()
        return [Timing(c, tuple(a.elapsed_time(b) / 1e3 for a, b in t)) for c, t in zip(ready, times, strict=True)]

    def tiny(self) -> None:
        """Four elements: what it costs the host to start a call."""
        import torch

        from opc.backends import package

        function = package.load(Path(self.settings.out) / "leaky_relu", "torch").leaky_relu
        x = torch.randn(TINY, device="cuda")
        contenders = [
            Contender("opc torch", partial(function, x, 0.01)),
            Contender("torch", partial(torch.nn.functional.leaky_relu, x, 0.01)),
        ]
        times: list[list[float]] = [[], []]
        for number in range(self.settings.rounds + 1):
            for contender, found in zip(contenders, times, strict=True):
                assert contender.run is not None
                torch.cuda.synchronize()
                start = perf_counter()
                for _ in range(TINY_CALLS):
                    contender.run()
                torch.cuda.synchronize()
                if number:
                    found.append((perf_counter() - start) / TINY_CALLS)
        ours, theirs = (Timing(c, tuple(t)) for c, t in zip(contenders, times, strict=True))
        for t in (ours, theirs):
            ratio = ours.ratio(t) if t is theirs else None
            self.emit({"row": asdict(Measurement("gpu-tiny", "leaky_relu", t.contender.name, t.median, ratio))})
        self.target("leaky_relu, 4 elements: ours over torch's", ours.ratio(theirs), TINY_LIMIT, ours.low_ratio(theirs))

    def target(self, name: str, value: float | None, limit: float, low: float | None) -> None:
        """Emit a figure the project promises."""
        if value is not None:
            self.emit({"target": asdict(Goal(name, value, limit, low=low))})


def _eager(problem: DeviceProblem) -> list[Contender]:
    """Return torch's op; where that adds up in any order, one that does in the same order each time, as ours does, and that."""
    eager = attempt("torch", lambda: (partial(reference(problem), *problem.tensors), ()))
    if problem.family.name not in UNORDERED:
        return [eager]
    ordered = attempt("torch", lambda: (partial(_deterministic, reference(problem), *problem.tensors), ()))
    return [ordered, replace(eager, name="atomic torch")]


def _deterministic(function: Callable[..., Any], *inputs: Any) -> Any:
    import torch

    torch.use_deterministic_algorithms(True)
    try:
        return function(*inputs)
    finally:
        torch.use_deterministic_algorithms(False)


def _ours(problem: DeviceProblem) -> Callable[..., Any]:
    from opc.backends import package

    return partial(getattr(package.load(problem.package, "torch"), problem.family.name), **problem.attributes)


def _compiled(problem: DeviceProblem) -> Callable[..., Any]:
    import torch
    from torch._functorch import config

    config.donated_buffer = False  # What the forward call saved is used again in every round.
    torch.compiler.reset()
    return torch.compile(reference(problem), fullgraph=True, dynamic=False)  # type: ignore[no-any-return]  # torch's own type


def _gradient(problem: DeviceProblem, function: Callable[..., Any]) -> Call:
    """Return a call that takes given gradients of the outputs that the reference has to those of the active inputs."""
    import torch

    names = [o.name for o in problem.family.forward.inputs]
    given = [None if t is None else t.detach().requires_grad_(n in problem.active) for n, t in zip(names, problem.tensors)]
    active = [t for t in given if t is not None and t.requires_grad]
    with torch.no_grad():
        count = len(_tuple(reference(problem)(*problem.tensors)))
    outputs = [t for t in _tuple(function(*given))[:count] if t.requires_grad]
    generator = torch.Generator("cuda").manual_seed(1)
    cotangents = [torch.randn(t.shape, generator=generator, device="cuda").to(t.dtype) for t in outputs]
    return lambda: torch.autograd.grad(outputs, active, cotangents, retain_graph=True), ()


def _copy(problem: DeviceProblem) -> Call:
    """A copy that moves as many bytes as the op must."""
    import torch

    source = torch.empty(problem.cost.bytes // 2, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return lambda: target.copy_(source), ()


def _warm(contender: Contender) -> Contender:
    """Return a contender after three calls, or one that says why it fails."""
    import torch

    try:
        for _ in range(3 if contender.run is not None else 0):
            assert contender.run is not None
            contender.run()
        torch.cuda.synchronize()
    # A peer may refuse an op in any way it likes; that is its row, not the end of the benchmark.
    except Exception as error:
        return replace(contender, run=None, note=f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:120]}")
    return contender


def _agreeing(contenders: Iterable[Contender]) -> list[Contender]:
    """Return the contenders, those whose first output is not like the first one's without a call and with a note."""
    found: list[Contender] = []
    truth: Any = None
    for contender in map(_warm, contenders):
        if contender.run is not None:
            value = _tuple(contender.run())[0].double()
            truth = value if truth is None else truth
            if value.shape != truth.shape or not (value - truth).norm() <= ALIKE * truth.norm():
                contender = replace(contender, run=None, note="computes something else")
        found.append(contender)
    return found


def _tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, tuple | list) else (value,)


def main() -> None:
    """Measure what standard input requests."""
    _Worker(*answering()).run()


if __name__ == "__main__":
    main()
