"""The command line: `opc run` and `opc bench`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, spec
from tests.narrow import narrow

Opc = Callable[..., Outcome]


def make_model(path: Path) -> None:
    import onnx

    helper = onnx.helper
    float32 = onnx.TensorProto.FLOAT
    nodes = [
        helper.make_node("LeakyRelu", ["x"], ["y"], domain="opc.nn", alpha=0.5),
        helper.make_node("Neg", ["y"], ["z"]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", float32, ["n"])],
        [helper.make_tensor_value_info("z", float32, ["n"])],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("opc.nn", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


def test_run_of_a_model_with_custom_ops(opc: Opc, tmp_path: Path) -> None:
    import numpy as np

    make_model(tmp_path / "model.onnx")
    np.save(tmp_path / "x.npy", np.array([-2.0, 4.0], np.float32))
    one = spec(tmp_path)
    done = opc("run", "model.onnx", "--spec", one, "--input", "x=x.npy", "--output", "results")
    assert (done.code, done.out) == (0, "z: float32 [2], wrote results/z.npy\n"), done.err
    assert np.load(tmp_path / "results/z.npy").tolist() == [1.0, -4.0]
    done = opc("run", "model.onnx", "--input", "x=x.npy")
    assert done.code == 1
    assert "opc.nn.LeakyRelu" in done.err
    done = opc("run", "model.onnx", "--spec", one)
    assert done.code == 1
    assert "the input 'x' is missing" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--input", "x"), "--input takes NAME=FILE.npy, not 'x'"),
        (("--input", "x=a.npy", "--input", "x=b.npy"), "the input 'x' is given twice"),
        (("--spec", "gone.yaml"), "there is no file gone.yaml"),
    ],
)
def test_wrong_use_of_run(opc: Opc, arguments: tuple[str, ...], message: str) -> None:
    done = opc("run", "model.onnx", *arguments)
    assert done.code == 2
    assert message in done.err


def test_bench(opc: Opc) -> None:
    done = opc("bench", "--list")
    assert done.code == 0
    sections = [line.split()[0] for line in done.out.splitlines()]
    assert sections == [
        "ops", "backward", "large", "fresh", "frameworks", "tiny", "frameworks-tiny", "compilers", "schedules", "build",
        "commands", "compiler", "gpu", "gpu-backward", "gpu-tiny", "growth",
    ]  # fmt: skip
    done = opc("bench", "--section", "huge")
    assert done.code == 2
    assert f"there is no section 'huge'; the sections are {', '.join(sections)}" in done.err


@pytest.mark.rotating
def test_bench_of_commands(opc: Opc, tmp_path: Path) -> None:
    done = opc("bench", spec(tmp_path), "--section", "commands", "--json")
    assert done.code == 0
    data = json.loads(done.out)
    assert [row["op"] for row in data["rows"]] == ["opc --help", "opc generate leaky_relu.yaml"]
    assert all(row["seconds"] > 0 for row in data["rows"])
    assert [target["limit"] for target in data["targets"]] == [0.2, 0.5]


def test_bench_of_a_schedule(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An experiment is built apart, and is called in turn with what opc makes, which it does not change."""
    from opc.testing.bench import side_by_side

    one = narrow("leaky_relu", tmp_path)
    change = ("--schedule", "leaky_relu: -nontemporal")
    seen: list[dict[str, Path]] = []
    monkeypatch.setattr(side_by_side, "compare", lambda found, section, folders, *_: seen.append(folders))
    assert opc("bench", one, *change).code == 0
    own, experiment = (folder / "leaky_relu/kernel/leaky_relu_loops.cpp" for folder in seen[0].values())
    assert own.is_relative_to(tmp_path / "generated" / "leaky_relu")
    assert "opc::row_store<T, true>" in own.read_text()
    assert "opc::row_store<T, true> y_store" not in experiment.read_text()
    assert "opc::row_store<T, true> d_x_store" in experiment.read_text()  # another stage's is as it was
    before = own.read_text()
    assert opc("bench", one, *change).code == 0
    assert own.read_text() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--schedule", "nosuch: -interleave"), "no stage is called 'nosuch'; there are leaky_relu, leaky_relu_backward"),
        (("--schedule", "leaky_relu: -unroll"), "there is no transformation 'unroll'"),
        (("--schedule", "-nontemporal", "--section", "tiny"), "--schedule measures the section 'schedules' alone"),
        (("--section", "schedules"), "the section 'schedules' measures what --schedule asks for: give it"),
    ],
)
def test_wrong_use_of_bench(opc: Opc, tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    done = opc("bench", spec(tmp_path), *arguments)
    assert done.code == 2
    assert message in done.err
