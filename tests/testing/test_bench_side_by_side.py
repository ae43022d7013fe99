"""Kernels made in several ways, by other compilers and to other schedules: the same calls of each, and a line for each op."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.build import zig
from opc.testing.bench import compilers, report, side_by_side
from opc.testing.bench.benchmark import Benchmark, Measurement, Settings
from opc.testing.bench.case import BenchCase
from opc.testing.bench.timing import Contender, Timing
from tests.narrow import narrow

CASE = BenchCase("leaky_relu/tiny", "leaky_relu", "elementwise", {"x": (32,)})


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setattr(side_by_side, "CASES", (CASE,))
    monkeypatch.setattr(side_by_side, "IN_OTHER_DTYPES", (CASE.name,))
    spec = narrow("leaky_relu", tmp_path / "specs", "float16, bfloat16, float32, float64")
    return Settings({"leaky_relu": str(spec)}, (), str(tmp_path), (compilers.SECTION,), 1, 3, 1)


def test_compilers_that_are_here() -> None:
    found = compilers.commands()
    assert next(iter(found)) == "g++"
    assert found["zig c++"] == zig.COMMAND
    assert "clang" in compilers.version(zig.COMMAND)


def test_calls_of_every_dtype(settings: Settings) -> None:
    dtypes = [np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64)]
    found = list(side_by_side.problems(settings))
    assert [name for name, _ in found] == [CASE.name, *(f"{CASE.name}, {d}" for d in ("float16", "bfloat16", "float64"))]
    assert [p.inputs["x"].dtype for _, p in found] == dtypes
    assert [p.new_outputs()[0].dtype for _, p in found] == dtypes
    assert all(p.active == ("x",) for _, p in found)


def test_what_compilers_made_is_called_in_turn(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side_by_side, "IN_OTHER_DTYPES", ())
    out = Path(settings.out)
    compilers.build([Path(settings.specs["leaky_relu"])], out / "one", ["g++"])
    shutil.copytree(out / "one", out / "other")
    told: list[dict[str, Any]] = []
    side_by_side.run(settings, {name: out / name for name in ("one", "other")}, 1.3, told.append)
    rows = [t["row"] for t in told if "row" in t]
    assert [(r["op"], r["contender"]) for r in rows] == [
        (title, name) for title in (CASE.name, f"{CASE.name}, gradient") for name in ("one", "other")
    ]
    assert all(r["seconds"] > 0 and r["note"] == "" for r in rows)
    assert {r["section"] for r in rows} == {compilers.SECTION}
    (target,) = compilers.targets([Measurement(**r) for r in rows])
    assert target.value == max(r["ratio"] for r in rows if r["ratio"])
    assert target.name == "the slowest kernel of other over that of one"


def test_a_build_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"g\+\+ failed:\n.*there is no file"):
        compilers.build([tmp_path / "gone.yaml"], tmp_path, ["g++"])


def test_one_compiler_is_compared_with_none(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compilers, "commands", lambda: {"g++": ("g++",)})
    monkeypatch.setattr(compilers, "build", lambda specs, out, command: None)
    found = Benchmark()
    compilers.measure(found, [], settings, lambda text: None)
    assert [(r.contender, r.note) for r in found.rows] == [("clang++", "not here: there is only one compiler")]
    assert "only one compiler" in report.as_text(found)


def test_rounds_go_on_until_all_are_told() -> None:
    first, same, slow = (
        Timing(Contender(n, None), s) for n, s in (("a", (1.0,) * 9), ("b", (1.1,) * 9), ("c", (1.2, 1.4) * 4 + (1.3,)))
    )
    assert side_by_side.decided([first, same], compilers.LIMIT)
    assert not side_by_side.decided([first, same, slow], compilers.LIMIT)


def test_a_line_for_each_op() -> None:
    rows = [
        Measurement("compilers", "add", "g++", 1e-3),
        Measurement("compilers", "add", "clang++", 2e-3, 2.0),
        Measurement("compilers", "add, gradient", "g++", 1e-3),
        Measurement("compilers", "add, gradient", "clang++", None),
    ]
    found = Benchmark({"processor": "A"}, {}, rows)
    assert "| op | g++ | clang++ / g++ |\n" in report.as_markdown(found)
    assert report.table("compilers", found)[1:] == [("add", "1 ms", "2.00"), ("add, gradient", "1 ms", "-")]
