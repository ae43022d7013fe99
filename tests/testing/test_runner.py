"""The runner: processes, crashes, reports. Plans and answers of real ops are in the other tests."""

from __future__ import annotations

import hashlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from rich.console import Console

from opc.build import imports
from opc.build.manifest import Manifest
from opc.build.wheels import proof
from opc.diagnostics import SpecError
from opc.testing import runner, tiers
from opc.testing.extent import Extent
from opc.testing.html import write_html
from opc.testing.keeping import joined, to_data
from opc.testing.markdown import markdown
from opc.testing.process import CrashedError, Worker, Workers
from opc.testing.report import print_report, write_junit
from opc.testing.results import ORACLE, Column, Report, Result, Status, as_json
from opc.testing.schedule import FEWEST, BuiltPackage, Scheduler
from tests.testing import fakes

ROOT = Path(__file__).parents[2]
HASH = hashlib.sha256((ROOT / "specs" / "relu.yaml").read_bytes()).hexdigest()
FAKES = (fakes.Relu(), fakes.Crashing(), fakes.Careless(), fakes.Missing(), fakes.Emulated(), fakes.Compiled())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """relu on every fake backend, two workers at once, nothing built."""
    folder = tmp_path_factory.mktemp("relu")
    spec = ROOT / "specs" / "relu.yaml"
    (folder / "manifest.json").write_text(Manifest(spec_hash=HASH).dumps())

    def build_specs(specs: list[Path], *_: object, **__: object) -> list[SimpleNamespace]:
        return [SimpleNamespace(name="relu", package=folder, ok=True, skipped={}, diagnostics=()) for _ in specs]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        patch.setattr("opc.build.builder.build_specs", build_specs)
        patch.setattr("opc.backends.registry.select", lambda wanted: FAKES)
        return runner.run_tests([spec], [b.name for b in FAKES], folder, 2)


@pytest.mark.rotating
def test_what_is_kept_is_a_proof_for_a_wheel(report: Report, tmp_path: Path) -> None:
    place = tmp_path / "proof.json"
    kept = to_data(joined([report]))
    place.write_text(json.dumps(kept))
    with pytest.raises(SpecError, match="the proof of relu failed"):
        proof.read(place, {"relu": HASH})
    kept["results"] = [r for r in kept["results"] if r["status"] != "failed"]
    place.write_text(json.dumps(kept))
    assert proof.read(place, {"relu": HASH}) == place.read_text()


def test_the_right_backend_passes(report: Report) -> None:
    cell = report.cell("relu", "fake")
    failed = [r.name for r in cell.failures]
    assert failed == ["relu/fails"]
    assert cell.count(Status.PASSED) > 150
    assert cell.kinds["forward"] >= 120
    assert cell.kinds["ONNX node case"] == 1
    assert any("no derived ops here" in reason for reason in cell.reasons)
    assert "this promise is broken" in cell.failures[0].message


def test_a_crash_fails_its_call_and_the_run_goes_on(report: Report) -> None:
    cell = report.cell("relu", "crashing")
    crashed = [r for r in cell.failures if "SIGSEGV" in r.message]
    assert crashed
    assert all("33" in r.name or "random" in r.name for r in crashed if r.kind == "forward")
    whole = report.cell("relu", "fake")
    # Every call is accounted for once: those that crashed as failures, the others as on the backend that is right.
    assert len(cell.results) == len(whole.results)
    assert cell.count(Status.PASSED) + len(crashed) == whole.count(Status.PASSED)


def test_a_careless_backend_is_caught(report: Report) -> None:
    cell = report.cell("relu", "careless")
    messages = [r.message for r in cell.failures]
    assert any("must be NaN" in m for m in messages)
    assert any("was accepted, but must be refused" in m for m in messages)
    assert any("changed its input x" in m for m in messages)
    assert cell.status is Status.FAILED


def test_missing_emulated_and_compiled_are_kinds_of_their_own(report: Report) -> None:
    assert report.backends["missing"] == Column(
        "Fake", reason="its framework is not installed; install with: pip install missing"
    )
    assert report.cell("relu", "missing").results == ()
    emulated = report.cell("relu", "emulated")
    assert emulated.count(Status.PASSED) == 0
    assert emulated.count(Status.EMULATED) > 150
    compiled = report.cell("relu", "compiled")
    assert compiled.status is Status.COMPILED
    assert compiled.count(Status.PASSED, Status.EMULATED) == 0
    assert not report.ok


def test_proofs_without_backend_stand_under_the_oracle(report: Report) -> None:
    cell = report.cell("relu", ORACLE)
    assert cell.status is Status.PASSED
    assert cell.kinds["gradient against differences"] >= 10
    assert cell.kinds["example"] >= 1


def test_reports_in_every_form(report: Report, tmp_path: Path) -> None:
    text = io.StringIO()
    print_report(report, Console(file=text, width=200))
    assert "ONNX node case" in text.getvalue()
    assert "compiled, not executed" in text.getvalue()
    assert "crashed with SIGSEGV" in text.getvalue()
    write_html(report, tmp_path / "out.html")
    html = (tmp_path / "out.html").read_text()
    assert "http://" not in html
    assert "https://" not in html
    assert "src=" not in html
    assert "crashed with SIGSEGV" in html
    write_junit(report, tmp_path / "out.xml")
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    failures = sum(int(s.get("failures", 0)) for s in root)
    assert failures == sum(r.status is Status.FAILED for r in report.results)
    data = json.loads(json.dumps(as_json(report), allow_nan=False))
    assert data["totals"]["forward"] == report.totals()["forward"]


def test_results_survive_the_wire() -> None:
    result = Result("op", "b", "forward", "name", Status.FAILED, float("inf"), 0.5, "wrong", 3)
    assert Result.from_dict(json.loads(json.dumps(result.as_dict(), allow_nan=False))) == result


def test_a_report_is_right_when_something_ran_and_nothing_failed() -> None:
    assert Report(results=[Result("op", "b", "forward", "n", Status.PASSED)]).ok
    assert not Report().ok
    assert not Report(mistakes={"spec": "wrong"}).ok
    assert not Report(results=[Result("op", "b", "forward", "n", Status.FAILED)]).ok


def test_a_silent_worker_is_ended(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec sleep 60\n")
    script.chmod(0o755)
    worker = Worker(str(script), tmp_path, patience=0.3)
    with pytest.raises(CrashedError, match="no sign of life"):
        list(worker.run({"task": "plan"}))
    worker.close()


def test_a_dead_worker_tells_its_last_words(tmp_path: Path) -> None:
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nread line\necho 'out of memory' >&2\nexit 3\n")
    script.chmod(0o755)
    worker = Worker(str(script), tmp_path)
    with pytest.raises(CrashedError, match="ended with code 3: out of memory"):
        list(worker.run({"task": "plan"}))
    worker.close()


def test_an_interpreter_that_does_not_exist_is_a_failure(tmp_path: Path) -> None:
    report = Report()
    package = BuiltPackage("relu", ROOT / "specs" / "relu.yaml", tmp_path, {"fake": str(tmp_path / "nowhere")})
    schedule = Scheduler(report, [package], tmp_path, FAKES[:1], None, Workers(tmp_path))
    schedule.ready = schedule.run_tasks(package)
    schedule.run(1)
    assert "can't start" in report.results[0].message


def test_a_framework_is_imported_twice_only_where_much_is_left(tmp_path: Path) -> None:
    report = Report()
    package = BuiltPackage("relu", ROOT / "specs" / "relu.yaml", tmp_path, {"fake": sys.executable, "careless": sys.executable})
    schedule = Scheduler(report, [package], tmp_path, FAKES, None, Workers(tmp_path))
    fake, careless = schedule.run_tasks(package)
    schedule.ready = [*[fake] * FEWEST, *[careless] * 2]
    # The first thread takes what there is most of, and stays with it; the second takes something else.
    assert schedule.choose(None, 1) is fake
    schedule.serving[1] = "fake"
    assert schedule.choose("fake", 1) is fake
    assert schedule.choose(None, 2) is careless
    schedule.serving[2] = "careless"
    schedule.ready = [fake] * FEWEST
    assert schedule.choose("careless", 2) is fake
    schedule.ready.pop()
    assert schedule.choose("careless", 2) is None
    assert schedule.choose("fake", 1) is fake
    # What no thread is at is taken, however little it is, and plans before all.
    schedule.ready.append(careless)
    assert schedule.choose(None, 3) is None
    del schedule.serving[2]
    assert schedule.choose(None, 3) is careless
    schedule.ready.append(schedule.plan_task(package))
    assert schedule.choose(None, 3) is schedule.ready[-1]


def test_workers_start_ahead_and_import(tmp_path: Path) -> None:
    (tmp_path / "slow_framework.py").write_text("print('a framework that prints')\n")
    (tmp_path / "broken_framework.py").write_text("raise RuntimeError\n")
    modules = ("broken_framework", "no_framework", "slow_framework")
    with imports.links() as path, Workers(path) as workers, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        workers.start(sys.executable, "fake", modules, most=1)
        workers.start(sys.executable, "another", modules, most=1)
        workers.start(str(tmp_path / "nowhere"), "third", modules, most=2)
        assert {*workers.waiting} == {(sys.executable, "fake")}
        worker = workers.waiting[sys.executable, "fake"]
        assert workers.take(sys.executable, "fake") is worker
        answers = list(worker.run({"task": "plan", "spec": str(tmp_path / "none.yaml"), "file": "", "extent": "whole"}))
        worker.close()
        assert [*answers[-1]] == ["error"]
        assert [answer for answer in answers if "error" in answer] == answers[-1:]
        assert worker.process.returncode == 0


def test_workers_that_died_are_replaced_and_those_not_needed_are_ended(tmp_path: Path) -> None:
    (tmp_path / "deadly.py").write_text("import os\nos._exit(3)\n")
    with imports.links() as path, Workers(path) as workers, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        workers.start(sys.executable, "fake", ("deadly",), most=2)
        workers.start(sys.executable, "idle", (), most=2)
        dead, idle = (workers.waiting[sys.executable, name] for name in ("fake", "idle"))
        assert dead.process.wait(60) == 3
        taken = workers.take(sys.executable, "fake")
        assert taken is not dead
        assert taken.process.poll() is None
        taken.close()
    assert idle.process.poll() is not None


def test_what_is_registered_for_the_end_of_a_worker_is_done(tmp_path: Path) -> None:
    (tmp_path / "tidy.py").write_text(
        "import atexit, pathlib\natexit.register(pathlib.Path(__file__).with_suffix('.end').touch)\n"
    )
    with imports.links() as path, Workers(path) as workers, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        workers.start(sys.executable, "fake", ("tidy",), most=1)
        workers.take(sys.executable, "fake").close()
    assert (tmp_path / "tidy.end").exists()


def test_frameworks_may_print(tmp_path: Path) -> None:
    with imports.links() as path:
        worker = Worker(sys.executable, path)
        answers = list(worker.run({"task": "plan", "spec": str(tmp_path / "none.yaml"), "file": ""}))
        worker.close()
    assert "error" in answers[-1]


def test_the_page_for_a_repository_and_the_table_of_many_columns() -> None:
    columns = {name: Column(name.title(), "1.2+cpu") for name in ["one", "two", "three", "four", "five", "six", "seven", "eight"]}
    columns["eight"] = Column("Eight", reason="it is not installed; install with: opc env create eight")
    columns["two"] = Column("Two", "1.2, emulated")
    report = Report(columns)
    for name in (ORACLE, *list(columns)[:-1]):
        status = {"two": Status.EMULATED, "three": Status.COMPILED}.get(name, Status.PASSED)
        report.add(Result("a_rather_long_name", name, "forward", str(i), status, 0.5) for i in range(1234))
    report.add([Result("a_rather_long_name", "four", "gradient", "g", Status.NOT_RUN, message="no autograd", count=3)])
    report.add(Result("relu", name, "build", "relu", Status.REFUSED, message="relu has | in it") for name in ("one", "two"))
    text = io.StringIO()
    print_report(report, Console(file=text, width=110))
    lines = text.getvalue().splitlines()
    assert any(line.split()[:3] == ["a_rather_long_name", "1234", "0.50"] for line in lines)
    assert "  one: relu: has | in it" in lines
    assert any(line.startswith("Eight was not run: it is not installed; install with: opc env create eight") for line in lines)
    page = markdown(report, "opc test specs")
    assert "| One | 1 op, One 1.2, 1 refused |" in page
    assert "| Two | 1 op emulated, Two 1.2, 1 refused |" in page
    assert "| Three | 0 ops, Three 1.2, 1 compiled, not executed |" in page
    assert "| Eight | not run: it is not installed; install with: opc env create eight |" in page
    assert "| One | relu | has \\| in it |" in page
    assert "| Four | 3 | gradient: no autograd |" in page
    assert "| relu |  | refused | refused |" not in page
    assert as_json(report)["cells"][-1]["refused"] == ["relu has | in it"]


def test_the_covering_tier_builds_a_spec_for_the_backends_that_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def build(specs: Sequence[Path], backends: Sequence[SimpleNamespace]) -> list[BuiltPackage]:
        asked.append(([s.stem for s in specs], [b.name for b in backends], os.environ.get("OPC_OPTIMIZE")))
        return [BuiltPackage(s.stem, s, Path(), {b.name: "" for b in backends}) for s in specs]

    monkeypatch.delenv("OPC_OPTIMIZE", raising=False)
    names = ("numpy", "onnx", "paddle", "torch")
    backends = [
        SimpleNamespace(name=name, wraps=name != "onnx", library_of="", on_device=False, size_expressions=False, parts=())
        for name in names
    ]
    _, b, c, d = specs = [Path(f"{name}.yaml") for name in "abcd"]
    report, which = Report(), tiers.Tiers([b, c, d], [b, d], [b, d], loops=[c, d], whole=[d])
    found = runner._build_in_tiers(report, specs, backends, which, build)
    assert asked == [
        (["d"], ["numpy", "onnx", "paddle", "torch"], None),
        (["c"], ["numpy", "onnx", "torch"], "1"),
        (["b"], ["numpy", "onnx", "paddle", "torch"], "0"),
        (["a"], ["numpy"], "0"),
    ]
    assert "OPC_OPTIMIZE" not in os.environ
    # What is compiled without optimisation anyway stays so.
    monkeypatch.setenv("OPC_OPTIMIZE", "0")
    asked.clear()
    runner._build_in_tiers(Report(), specs, backends, which, build)
    assert {optimised for _, _, optimised in asked} == {"0"}
    assert {p.op: p.extent for p in found} == {"a": Extent.SAMPLE, "b": Extent.COVER, "c": Extent.LOOPS, "d": Extent.WHOLE}
    assert all(r.status is Status.NOT_RUN for r in report.results)
    assert {(r.op, r.backend): r.message for r in report.results} == {
        ("a", "numpy"): tiers.SAMPLED,
        ("a", "onnx"): tiers.OUTSIDE,
        ("a", "paddle"): tiers.OUTSIDE,
        ("a", "torch"): tiers.OUTSIDE,
        ("c", "paddle"): tiers.OUTSIDE,
        **{("b", backend.name): tiers.THINNED for backend in backends},
        ("c", "onnx"): tiers.THINNED,
        **{("c", name): tiers.UNCHECKED for name in ("numpy", "torch")},
    }
