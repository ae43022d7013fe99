"""The benchmark: its report, its commands, and the machine it tells of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from opc.diagnostics import SpecError
from opc.testing.bench import benchmark, commands, report
from opc.testing.bench import peak as bench_peak
from opc.testing.bench.benchmark import Benchmark, Goal, Measurement, Settings, machine
from opc.testing.bench.worker import resident


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


def test_cases_have_a_geometric_mean() -> None:
    """The quickest on each side count; a case that only one side ran does not."""
    rows = [
        Measurement("ops", "relu", "opc torch", 0.002),
        Measurement("ops", "relu", "opc numpy", 0.001),
        Measurement("ops", "relu", "torch", 0.004),
        Measurement("ops", "softmax/short", "opc numpy", 0.004),
        Measurement("ops", "softmax/short", "torch", 0.002),
        Measurement("ops", "softmax/short", "onnxruntime", 0.001),
        Measurement("ops", "alone", "opc numpy", 0.1),
        Measurement("ops", "alone", "torch", None, note="not here"),
    ]
    said = "The geometric mean of the time of the best of ours over the best framework's is 1.00, over 2 cases; "
    said += "1 of them is above 1.2."
    assert report.means("ops", Benchmark({}, {}, rows)) == said
    assert said in report.as_text(Benchmark({}, {}, rows))
    assert said in report.as_markdown(Benchmark({}, {}, rows))
    assert report.means("large", Benchmark({}, {}, ROWS)) == ""


def test_times_are_written_with_their_unit() -> None:
    texts = [report.seconds_text(t) for t in (None, 1.5e-8, 2.5e-5, 0.25, 12.0)]
    assert texts == ["-", "15 ns", "25 us", "250 ms", "12 s"]


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
