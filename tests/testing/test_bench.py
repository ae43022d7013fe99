"""The benchmark: fair turns, the right ratios, and contenders that all compute the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from opc.build.builder import build_specs
from opc.diagnostics import SpecError
from opc.pipeline import load_family
from opc.testing.bench import benchmark, commands, memory, peers, report, worker
from opc.testing.bench import gradients as bench_gradients
from opc.testing.bench import onnxruntime as bench_onnxruntime
from opc.testing.bench import peak as bench_peak
from opc.testing.bench import timing as bench_timing
from opc.testing.bench.benchmark import Benchmark, Goal, Measurement, Settings, machine, run_worker
from opc.testing.bench.cases import CASES, GROUPS
from opc.testing.bench.onnxruntime import reference_node
from opc.testing.bench.peers import attempt
from opc.testing.bench.problem import Problem, case_problem, row_problem
from opc.testing.bench.timing import Contender, Timing, time_in_turn
from opc.testing.bench.worker import agreeing, quickest, resident
from opc.testing.oracle.evaluation import evaluate
from tests.narrow import narrow

SPECS = Path(__file__).parents[2] / "specs"


def test_no_contender_always_follows_the_same_one() -> None:
    order: list[str] = []
    contenders = [Contender(name, lambda name=name: order.append(name)) for name in "abc"]
    timings = time_in_turn(contenders, rounds=20, warmups=0)
    rounds = ["".join(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert {"".join(sorted(r)) for r in rounds} == {"abc"}
    assert set(rounds) == {"abc", "acb", "bac", "bca", "cab", "cba"}
    assert [len(t.seconds) for t in timings] == [20, 20, 20]


def test_the_quickest_is_found_by_its_median() -> None:
    slow, quick, absent = Contender("slow", None), Contender("quick", None), Contender("absent", None)
    timings = [Timing(slow, (1.0, 9.0, 9.0)), Timing(absent, ()), Timing(quick, (5.0, 5.0, 5.0))]
    found = quickest(timings)
    assert found is not None
    assert found.contender is quick
    assert quickest([Timing(absent, ())]) is None


def test_the_verdict_knows_noise() -> None:
    assert Goal("x", 1.0, 1.0).verdict == "held"
    assert Goal("x", 1.02, 1.0, low=0.99).verdict == "held within noise"
    assert Goal("x", 1.02, 1.0, low=1.01).verdict == "missed"
    assert Goal("x", 1.02, 1.0).verdict == "missed"


def test_calls_of_a_round_are_averaged() -> None:
    count = 0

    def run() -> None:
        nonlocal count
        count += 1

    (timing,) = time_in_turn([Contender("a", run)], rounds=3, calls=10, warmups=2)
    assert count == 3 * 10 + 2
    assert len(timing.seconds) == 3


def test_a_contender_that_fails_says_why() -> None:
    def broken() -> None:
        raise ValueError("no such op\nand more")

    fine, failed = time_in_turn([Contender("a", lambda: None), Contender("b", broken)], rounds=3)
    assert fine.median is not None
    assert (failed.median, failed.contender.note) == (None, "ValueError: no such op")
    assert fine.ratio(failed) is None


def test_a_hopeless_contender_is_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(float(i) for i in range(10_000))
    calls = {"quick": 0, "slow": 0}

    def run(name: str, seconds: int) -> None:
        calls[name] += 1
        for _ in range(seconds):
            next(clock)

    monkeypatch.setattr(bench_timing, "perf_counter", lambda: next(clock))
    quick = Contender("quick", lambda: run("quick", 0))
    slow = Contender("slow", lambda: run("slow", 500))
    timings = time_in_turn([quick, slow], rounds=5, warmups=3)
    assert calls == {"quick": 3 - 1 + 5, "slow": 2} or calls["slow"] == 2
    assert timings[1].seconds == (501.0,)
    assert timings[0].ratio(timings[1]) == pytest.approx(1 / 501)


def test_ratios_are_taken_round_by_round() -> None:
    # A machine that halves its speed midway changes both, and no ratio.
    ours = Timing(Contender("opc", None), (1.0, 1.0, 2.0, 2.0))
    theirs = Timing(Contender("peer", None), (2.0, 2.0, 4.0, 4.0))
    assert ours.ratio(theirs) == 0.5


def test_quick_calls_are_timed_several_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_timing, "SHORTEST", 10.0)
    clock = iter(float(i) for i in range(10_000))
    monkeypatch.setattr(bench_timing, "perf_counter", lambda: next(clock))
    calls = {"a": 0, "b": 0}

    def run(name: str) -> None:
        calls[name] += 1

    time_in_turn([Contender(n, partial(run, n)) for n in calls], rounds=3, warmups=2)
    assert calls == {"a": 2 + 3 * 10, "b": 2 + 3 * 10}, "one took a second of the ten"


def test_calls_timed_alone_begin_alike() -> None:
    order: list[str] = []
    contenders = [Contender(n, partial(order.append, n)) for n in "ab"]
    time_in_turn(contenders, rounds=3, calls=1, warmups=0, before=lambda: order.append("before"))
    calls = [tuple(order[i : i + 3]) for i in range(0, len(order), 3)]
    assert sorted(calls) == [("a", "before", "a")] * 3 + [("b", "before", "b")] * 3


def test_several_calls_at_a_time_find_what_the_ones_before_left() -> None:
    order: list[str] = []
    time_in_turn([Contender("a", partial(order.append, "a"))], 3, calls=5, warmups=0, before=lambda: order.append("before"))
    assert order == ["a"] * 15


def test_rounds_are_added_until_the_times_are_enough() -> None:
    asked: list[int] = []

    def enough(timings: Sequence[Timing]) -> bool:
        asked.append(len(timings[0].seconds))
        return asked[-1] >= 12

    (timing,) = time_in_turn([Contender("a", lambda: None)], rounds=4, enough=enough)
    assert asked == [4, 8, 12]
    assert len(timing.seconds) == 12


def test_no_rounds_are_added_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_timing, "LONGEST", 0.0)
    (timing,) = time_in_turn([Contender("a", lambda: None)], rounds=4, enough=lambda _: False)
    assert len(timing.seconds) == 4


@pytest.mark.parametrize(("rounds", "interval", "low"), [(5, (1.0, 5.0), 2.0), (15, (4.0, 12.0), 4.0), (100, (41.0, 60.0), 41.0)])
def test_the_interval_of_a_median(rounds: int, interval: tuple[float, float], low: float) -> None:
    ours = Timing(Contender("opc", None), tuple(float(n + 1) for n in range(rounds)))
    theirs = Timing(Contender("peer", None), (1.0,) * rounds)
    assert ours.interval(theirs) == interval
    assert ours.low_ratio(theirs) == low, "no less than the lower quartile"


@pytest.mark.parametrize(("limit", "tells"), [(0.5, True), (2.0, False), (2.5, False), (3.0, True), (None, True)])
def test_rounds_tell_once_the_limit_is_outside_of_the_interval(limit: float | None, tells: bool) -> None:
    ours = Timing(Contender("opc numpy", None), (2.0, 2.0, 3.0, 2.0, 2.5, 2.0))
    slow = Timing(Contender("opc torch", None), (9.0,) * 6)
    theirs = Timing(Contender("torch", None), (1.0,) * 6)
    assert worker.decided([slow, ours, theirs], limit) == tells


def test_settings_survive_the_way_to_the_worker() -> None:
    settings = Settings({"relu": "relu.yaml"}, ("relu",), "out", ("large",), 10, 3, 2)
    assert Settings.loads(settings.dumps()) == settings


ROWS = [
    Measurement("large", "relu", "opc torch", 0.001, None, 8_000_000, 1_000_000),
    Measurement("large", "relu", "torch", 0.002, 0.5, 8_000_000, 1_000_000),
    Measurement("large", "relu", "numpy", None, None, 8_000_000, 1_000_000, "not here"),
    Measurement("large", "relu", "memcpy", 0.001, 1.0, 8_000_000, 1_000_000),
    Measurement("commands", "opc --help", "opc", 0.1),
]


def test_report_as_text() -> None:
    found = Benchmark({"processor": "A"}, {}, ROWS, [Goal("quick", 0.5, 1.0), Goal("slow", 3e-3, 2e-3, "s")])
    assert report.as_text(found) == (
        "processor A\n"
        "\n"
        "large tensors, output given\n"
        "  op    contender  time  ours / theirs  GB/s  of memcpy  GFLOP/s\n"
        "  relu  opc torch  1 ms                  8.0       100%      1.0\n"
        "  relu  torch      2 ms           0.50   4.0        50%      0.5\n"
        "  relu  numpy         -                                           not here\n"
        "  relu  memcpy     1 ms           1.00   8.0       100%\n"
        "\n"
        "commands, as processes\n"
        "  op          contender    time\n"
        "  opc --help  opc        100 ms\n"
        "\n"
        "targets\n"
        "  figure    measured  at most\n"
        "  quick          0.5        1  held\n"
        "  slow       0.003 s  0.002 s  missed\n"
    )


def test_report_as_markdown_and_data() -> None:
    found = Benchmark({"processor": "A|B"}, {}, ROWS, [Goal("quick", 0.5, 1.0)])
    text = report.as_markdown(found)
    assert "| relu | torch | 2 ms | 0.50 | 4.0 | 50% | 0.5 |  |\n" in text
    assert "| quick | 0.5 | 1 | held |\n" in text
    data = json.loads(json.dumps(found.as_dict()))
    assert data["rows"][1]["ratio"] == 0.5
    assert data["targets"][0]["verdict"] == "held"


def test_times_are_written_with_their_unit() -> None:
    texts = [report.seconds_text(t) for t in (None, 1.5e-8, 2.5e-5, 0.25, 12.0)]
    assert texts == ["-", "15 ns", "25 us", "250 ms", "12 s"]


def test_what_is_missing_is_a_note() -> None:
    def missing() -> peers.Call:
        raise ImportError("No module named 'torch'")

    contender = attempt("torch", missing)
    assert (contender.run, contender.note) == (None, "not here: No module named 'torch'")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages for the frameworks that contenders run on; to build for the others takes longer than all else here."""
    out = tmp_path_factory.mktemp("bench")
    specs = [narrow(name, out / "specs") for name in ("leaky_relu", "layer_norm")]
    for built in build_specs(specs, out, ["numpy", "onnxruntime", "torch"]):
        assert built.ok, built.diagnostics
    return out


def arrays(values: object) -> list[np.ndarray]:
    items = values if isinstance(values, tuple | list) else (values,)
    return [np.asarray(v) for v in items]


@pytest.mark.rotating
@pytest.mark.parametrize("spec", ["leaky_relu", "layer_norm"])
def test_all_contenders_compute_the_same(packages: Path, spec: str) -> None:
    problem = row_problem(load_family(SPECS / f"{spec}.yaml"), packages / spec, 4096, 1)
    contenders = [c for c in peers.given_output(problem) if c.name not in ("memcpy", "torch.compile")]
    contenders += peers.fresh_output(problem)
    assert [c.note for c in contenders if c.run is None and "not here" not in c.note] == []
    assert sum(c.run is not None for c in contenders) >= 3
    answers = {}
    for contender in contenders:
        if contender.run is not None:
            for output in contender.outputs:
                output[...] = 123.0
            returned = contender.run()
            answers[contender.name] = arrays(contender.outputs or returned)[0]
    for name, answer in answers.items():
        # Rounding apart: whether these are right is for the proof to say, here only that they do the same work.
        np.testing.assert_allclose(answer, answers["opc numpy"], rtol=1e-4, atol=1e-5, err_msg=name)


@pytest.mark.rotating
def test_the_cost_of_a_problem(packages: Path) -> None:
    family = load_family(SPECS / "layer_norm.yaml")
    problem = row_problem(family, packages / "layer_norm", 8 * 1024, 1)
    assert problem.shapes == {"x": (8, 1024), "w": (1024,), "b": (1024,)}
    assert problem.cost.read == 4 * (8 * 1024 + 2 * 1024)
    assert problem.cost.written == 4 * (8 * 1024 + 2 * 8)
    softmax = row_problem(load_family(SPECS / "softmax.yaml"), packages / "softmax", 4 * 1024, 1)
    assert softmax.shapes == {"x": (4, 1024)}


def test_memcpy_copies_all_on_several_threads() -> None:
    for threads in (1, 2, 3):
        run, (target,) = peers.memcpy(1001, threads)
        run()
        assert (target == 1).all()


@pytest.mark.rotating
def test_the_worker_answers(packages: Path) -> None:
    settings = Settings({"leaky_relu": str(SPECS / "leaky_relu.yaml")}, ("leaky_relu",), str(packages), ("fresh",), 1000, 3, 1)
    said: list[str] = []
    found = run_worker(settings, said.append)
    assert {r.contender for r in found.rows} >= {"opc numpy", "torch"}
    assert found.machine["threads"] == "1"
    assert said[0] == "leaky_relu, 1,000 elements, fresh output"
    assert any("memory grown over 1,000 calls" in t.name and t.verdict == "held" for t in found.targets)


@pytest.mark.rotating
def test_a_worker_that_fails_says_why(packages: Path) -> None:
    settings = Settings({"gone": "gone.yaml"}, ("gone",), str(packages), ("large",), 1000, 3, 1)
    with pytest.raises(RuntimeError, match=r"gone\.yaml"):
        run_worker(settings, lambda text: None)


def test_machine_and_memory() -> None:
    assert int(machine()["cores"]) >= 1
    before = resident()
    block = np.ones(64 << 20, np.uint8)
    assert resident() - before > 60 << 20
    del block


@pytest.mark.parametrize(
    ("flags", "vectors"), [("sse2 avx2", "AVX2"), ("sse2 avx2 avx512f", "AVX-512"), ("sse2", "SSE2"), ("none", None)]
)
def test_linux_tells_model_and_vectors(flags: str, vectors: str | None) -> None:
    text = f"processor : 0\nmodel name : A: B\nflags : {flags}\n\nprocessor : 1\nmodel name : C\n"
    assert benchmark._told(text) == {"processor": "A: B"} | ({"vectors": vectors} if vectors else {})


def test_builds_are_measured_from_nothing_and_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[list[str]] = []

    def seconds(arguments: list[str], folder: Path) -> float:
        ran.append([Path(a).stem for a in arguments])
        return 0.2

    monkeypatch.setattr(commands, "_seconds", seconds)
    found = Benchmark()
    said: list[str] = []
    commands.measure_builds(found, [Path("a/relu.yaml"), Path("a/leaky_relu.yaml")], said.append)
    assert ran[0] == ["generate", "leaky_relu", "-o", "warm"]
    few = [text for name in ("numpy", "onnx", "onnxruntime", "torch") for text in ("--backend", name)]
    assert ran[1] == ["build", "leaky_relu", "-o", "few", *few]
    assert ran[2] == ["build", "leaky_relu", "-o", "one"]
    assert ran[3:] == [["build", "relu", "leaky_relu", "-o", "every", *few]] * (1 + commands.REPEATS)
    assert [(t.name, t.limit) for t in found.targets] == [
        ("build of leaky_relu, 4 backends", 2.0),
        ("build of leaky_relu, all backends", 8.0),
        ("build of 2 ops, 4 backends", 40.0),
        ("build of 2 ops, nothing changed", 0.3),
    ]
    assert [r.seconds for r in found.rows] == [0.2] * 4


def test_a_command_that_fails_ends_the_measurement(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"opc build gone\.yaml failed:\n.*there is no file gone\.yaml"):
        commands._seconds(["build", "gone.yaml"], tmp_path)


def test_commands_are_those_of_this_opc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tmp_path / "other" / "opc"
    other.mkdir(parents=True)
    for name in ("__init__", "__main__"):
        (other / f"{name}.py").write_text("raise SystemExit('another opc')\n")
    monkeypatch.setenv("PYTHONPATH", str(other.parent))
    assert commands._seconds(["--help"], tmp_path) > 0


class Nothing:
    """Draws zeros, which no memory is touched for: of what the table computes at the sizes of models, only shapes count here."""

    def standard_normal(self, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
        return np.zeros(shape, dtype)

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: type = np.int64) -> np.ndarray:
        return np.zeros(shape, dtype)

    def random(self, shape: tuple[int, ...]) -> np.ndarray:
        return np.zeros(shape)


def test_every_case_is_a_call_of_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Nothing())
    monkeypatch.setattr(memory, "copy", lambda array: array)
    assert len({c.name for c in CASES}) == len(CASES)
    for case in CASES:
        problem = problem_of(case.name)
        assert problem.cost.bytes > 0, case.name
        assert problem.cost.flops > 0 or GROUPS[case.group].limit is None or case.op in FREE, case.name
        if problem.family.backward is not None:
            assert set(problem.active) <= set(problem.inputs), case.name
            assert problem.gradient_cost.bytes > 0, case.name


# Ops that only move values.
FREE = {"embedding", "relu", "upsample_nearest2d", "dropout", "max_pool2d", "nll_loss"}


def problem_of(name: str, package: Path = Path()) -> Problem:
    case = next(c for c in CASES if c.name == name)
    return case_problem(case, load_family(SPECS / f"{case.op}.yaml"), package, 1)


def test_what_the_issue_promises_has_cases() -> None:
    promised = {c.group for c in CASES if c.limit is not None}
    assert promised == {name for name, group in GROUPS.items() if group.limit is not None}
    assert {"matmul", "linear", "conv2d", "attention", "max_pool2d", "embedding", "depthwise_conv2d"} <= {c.op for c in CASES}


def test_costs_of_products_are_those_of_textbooks() -> None:
    matmul = problem_of("matmul")
    assert matmul.cost.flops == pytest.approx(2 * 1024**3, rel=0.01)
    assert matmul.cost.bytes == 4 * 3 * 1024**2
    # Two products of the same size, from both inputs and the output's gradient.
    assert matmul.gradient_cost.flops == pytest.approx(4 * 1024**3, rel=0.01)


def test_reference_nodes() -> None:
    pool = reference_node(problem_of("max_pool2d"))
    assert (pool.op_type, pool.inputs) == ("MaxPool", ("x",))
    assert {k: list(v) for k, v in pool.attributes.items() if k != "dilations"} == {
        "kernel_shape": [3, 3],
        "strides": [2, 2],
        "pads": [1, 1, 1, 1],
    }
    resize = reference_node(problem_of("upsample_nearest2d"))
    assert resize.inputs[:2] == ("x", "")
    scales = resize.inputs[2]
    assert isinstance(scales, np.ndarray)
    assert (scales.dtype, scales.tolist()) == (np.float32, [1, 1, 2, 2])
    softmax = reference_node(problem_of("softmax"))
    assert (softmax.op_type, softmax.inputs, softmax.attributes) == ("Softmax", ("x",), {})
    with pytest.raises(ImportError, match="no ONNX reference"):
        reference_node(problem_of("mse_loss"))


SMALL: dict[str, dict[str, tuple[int, ...]]] = {
    "argmax": {"x": (5, 7)},
    "depth_to_space": {"x": (2, 8, 3, 3)},
    "one_hot": {"indices": (6,), "values": (2,)},
    "swiglu": {"a": (9,), "b": (9,)},
}
"""Ops whose operator the runtime has in an older version only, or as a function of the standard, or keeps reduced axes."""


@pytest.mark.parametrize("name", SMALL)
def test_the_runtime_runs_what_references_name(name: str) -> None:
    problem = replace(problem_of(name), shapes=SMALL[name])
    contender = attempt("onnxruntime", lambda: bench_onnxruntime.theirs(problem))
    assert contender.run is not None, contender.note
    contender.run()
    (answer,) = arrays(contender.outputs)
    (want,) = evaluate(problem.family.forward, problem.inputs, problem.attributes).values()
    assert answer.shape == want.shape
    np.testing.assert_allclose(answer, want.value, rtol=1e-5)


@pytest.mark.rotating
@pytest.mark.parametrize(("name", "wrt"), [("leaky_relu", ()), ("layer_norm", ()), ("layer_norm", ("x", "b"))])
def test_gradients_of_all_contenders_are_the_same(packages: Path, name: str, wrt: tuple[str, ...]) -> None:
    shapes = {"x": (4, 8)} if name == "leaky_relu" else {"x": (4, 8), "w": (8,), "b": (8,)}
    problem = Problem(load_family(SPECS / f"{name}.yaml"), packages / name, shapes, 1, wrt=wrt)
    contenders = [c for c in bench_gradients.contenders(problem) if c.name != "torch.compile"]
    assert [c.note for c in contenders if c.run is None and "not here" not in c.note] == []
    found = [(c.name, c.run()) for c in contenders if c.run is not None]
    # A function of one output returns the array, one of several a tuple with None for those that were not asked for.
    answers = [(n, arrays([g for g in (v if isinstance(v, tuple) else (v,)) if g is not None])) for n, v in found]
    for peer, gradients in answers:
        assert len(gradients) == len(problem.active)
        for got, want in zip(gradients, answers[0][1], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=peer)


def test_a_contender_that_computes_something_else_is_left_out() -> None:
    problem = problem_of("add")
    one, two = np.ones(3, np.float32), np.array([1.0, 1.0, 1.5], np.float32)

    def broken() -> None:
        raise ValueError("out of order")

    contenders = [
        Contender("opc torch", lambda: one),
        Contender("torch", lambda: (one + 1e-5, "more")),
        Contender("torch.compile", lambda: two),
        Contender("onnxruntime", lambda: None, outputs=(one[:2],)),
        Contender("numpy", broken),
        Contender("memcpy", None, "not here"),
    ]
    found = agreeing(contenders, problem)
    assert [c.run is not None for c in found] == [True, True, False, False, False, False]
    assert [c.note for c in found[2:]] == ["computes something else"] * 2 + ["ValueError: out of order", "not here"]


def test_the_machines_peak() -> None:
    peak = bench_peak.measure(1)
    assert peak.flops > 1e9
    assert peak.bytes > 1e8


def test_a_peak_that_cannot_be_measured_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_peak, "_SOURCE", Path("gone.cpp"))
    with pytest.raises(SpecError, match="the machine's peak can't be measured"):
        bench_peak.measure(1)


def test_shares_of_the_peak() -> None:
    rows = [Measurement("ops", "matmul", "opc torch", 0.001, None, 8_000_000, 20_000_000)]
    found = Benchmark({"processor": "A"}, {"flops": 1e11, "bytes": 16e9}, rows)
    assert report.as_text(found) == (
        "processor A, at most 100 GFLOP/s in float32 and 16.0 GB/s\n"
        "\n"
        "ops at the sizes of models, output given\n"
        "  op      contender  time  GB/s  of memory  GFLOP/s  of peak\n"
        "  matmul  opc torch  1 ms   8.0        50%     20.0      20%\n"
    )
