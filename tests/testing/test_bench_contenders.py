"""The benchmark's cases and contenders: what they cost, and that all compute the same."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opc.build.builder import build_specs
from opc.pipeline import load_family
from opc.spec.files import apart, file_of
from opc.testing.bench import gradients as bench_gradients
from opc.testing.bench import memory, peers
from opc.testing.bench import onnxruntime as bench_onnxruntime
from opc.testing.bench.benchmark import Settings, run_worker
from opc.testing.bench.case import GROUPS
from opc.testing.bench.cases import ASKED, CASES, FUSED, ONNX, is_of
from opc.testing.bench.onnxruntime import reference_node
from opc.testing.bench.peers import attempt
from opc.testing.bench.problem import Problem, case_problem, row_problem
from opc.testing.bench.timing import Contender
from opc.testing.bench.worker import agreeing
from opc.testing.oracle.evaluation import evaluate
from tests.narrow import narrow

SPECS = Path(__file__).parents[2] / "specs"


def test_what_is_missing_is_a_note() -> None:
    def missing() -> peers.Call:
        raise ImportError("No module named 'torch'")

    contender = attempt("torch", missing)
    assert (contender.run, contender.note) == (None, "not here: No module named 'torch'")


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Packages for the frameworks that contenders run on; to build for the others takes longer than all else here."""
    out = tmp_path_factory.mktemp("bench")
    specs = [narrow("leaky_relu", out / "specs", "float32, bfloat16"), narrow("layer_norm", out / "specs")]
    for path in specs:
        # PyTorch holds one operator of a name for each process, and other tests register these.
        path.write_text(path.read_text().replace("domain: opc.nn", "domain: opc.bench"))
    for built in build_specs(specs, out, ["numpy", "onnxruntime", "torch"]):
        assert built.ok, built.diagnostics
    return out


def arrays(values: object) -> list[np.ndarray]:
    items = values if isinstance(values, tuple | list) else (values,)
    return [np.asarray(v) for v in items]


@pytest.mark.rotating("file")
@pytest.mark.parametrize("spec", ["leaky_relu", "layer_norm"])
def test_all_contenders_compute_the_same(packages: Path, spec: str) -> None:
    problem = row_problem(load_family(packages / f"specs/{spec}.yaml"), packages / spec, 4096, 1)
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


@pytest.mark.rotating("file", seconds=35)
def test_contenders_in_a_type_that_numpy_does_not_have(packages: Path) -> None:
    problem = replace(
        row_problem(load_family(packages / "specs/leaky_relu.yaml"), packages / "leaky_relu", 4096, 1), dtype="bfloat16"
    )
    contenders = [c for c in agreeing(peers.frameworks(problem), problem) if c.name != "torch.compile"]
    assert {c.name for c in contenders if c.run is not None} >= {"opc torch", "opc onnxruntime", "opc numpy", "torch"}, contenders
    found = [c for c in bench_gradients.contenders(problem) if c.name != "torch.compile"]
    assert [c.note for c in found if c.run is None] == []
    ours, in_numpy, theirs = (peers.array(first_of(c)).astype(np.float32) for c in found)
    np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(ours, in_numpy)


def first_of(contender: Contender) -> object:
    """Return the first of what a contender computes."""
    assert contender.run is not None
    found = contender.run()
    return found[0] if isinstance(found, tuple | list) else found


@pytest.mark.rotating("file")
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


@pytest.mark.rotating("file")
def test_the_worker_answers(packages: Path) -> None:
    settings = Settings({"leaky_relu": str(SPECS / "leaky_relu.yaml")}, ("leaky_relu",), str(packages), ("fresh",), 1000, 3, 1)
    said: list[str] = []
    found = run_worker(settings, said.append)
    assert {r.contender for r in found.rows} >= {"opc numpy", "torch"}
    assert found.machine["threads"] == "1"
    assert said[0] == "leaky_relu, 1,000 elements, fresh output"
    assert any("memory grown over 1,000 calls" in t.name and t.verdict == "held" for t in found.targets)


@pytest.mark.rotating("file")
def test_a_worker_that_fails_says_why(packages: Path) -> None:
    settings = Settings({"gone": "gone.yaml"}, ("gone",), str(packages), ("large",), 1000, 3, 1)
    with pytest.raises(RuntimeError, match=r"gone\.yaml"):
        run_worker(settings, lambda text: None)


class Nothing:
    """Draws zeros, which no memory is touched for: of what the table computes at the sizes of models, only shapes count here."""

    def standard_normal(self, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
        return np.zeros(shape, dtype)

    def integers(self, low: int, high: int, shape: tuple[int, ...], dtype: type = np.int64) -> np.ndarray:
        return np.zeros(shape, dtype)

    def random(self, shape: tuple[int, ...], dtype: type = np.float64) -> np.ndarray:
        return np.zeros(shape, dtype)

    def permutation(self, count: int) -> np.ndarray:
        return np.zeros(count, np.int64)


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
    folders = {"fused": FUSED, "onnx": ONNX, "bench": ASKED}
    folder = next((SPECS / name for name, cases in folders.items() if case in cases), SPECS)
    return case_problem(case, load_family(folder / f"{case.op}.yaml"), package, 1)


def test_what_the_issue_promises_has_cases() -> None:
    promised = {c.group for c in CASES if c.limit is not None}
    assert promised == {name for name, group in GROUPS.items() if group.limit is not None}
    assert {"matmul", "linear", "conv2d", "attention", "max_pool2d", "embedding", "depthwise_conv2d"} <= {c.op for c in CASES}


def test_cases_are_of_the_ops_of_their_domains() -> None:
    own, standard = (problem_of(name).family.forward for name in ("attention", "attention/onnx"))
    assert (own.name, standard.name) == ("attention", "attention")
    assert {c.name for c in CASES if is_of(c, own)} == {"attention", "attention/causal"}
    assert {c.name for c in CASES if is_of(c, standard)} == {c.name for c in ONNX if c.op == "attention"}
    assert not any(is_of(c, problem_of("matmul").family.forward) for c in ONNX)


def test_every_op_of_a_file_of_several_has_a_case() -> None:
    """Where one had none, `opc bench` would measure others than cases."""
    ops = {c.op for c in ONNX}
    files = {file_of(SPECS / "onnx" / f"{op}.yaml") for op in ops}
    assert {path.stem for file in files for path in apart(file)} == ops


def test_every_fused_op_has_a_case() -> None:
    assert {c.op for c in FUSED} == {p.stem for p in (SPECS / "fused").glob("*.yaml")}


def test_every_op_that_is_there_to_be_measured_has_a_case() -> None:
    assert {c.op for c in ASKED} == {p.stem for p in (SPECS / "bench").glob("*.yaml")}


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


@pytest.mark.rotating("file")
@pytest.mark.parametrize(("name", "wrt"), [("leaky_relu", ()), ("layer_norm", ()), ("layer_norm", ("x", "b"))])
def test_gradients_of_all_contenders_are_the_same(packages: Path, name: str, wrt: tuple[str, ...]) -> None:
    shapes = {"x": (4, 8)} if name == "leaky_relu" else {"x": (4, 8), "w": (8,), "b": (8,)}
    problem = Problem(load_family(packages / f"specs/{name}.yaml"), packages / name, shapes, 1, wrt=wrt)
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
