"""The quick tier runs a sample of the calls of an op outside the covering set, says so, and keeps it apart from the whole."""

import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from rich.console import Console

from opc.backends import registry
from opc.backends.base import Backend
from opc.pipeline import load_family
from opc.testing import tiers
from opc.testing.cases.calls import Case
from opc.testing.execution import HALVED, some
from opc.testing.extent import TURNS, Extent, alternating, waiting
from opc.testing.plan import Item, ProofPlan, make_plan
from opc.testing.references.gradcheck import FEW, check_family, check_sample, points
from opc.testing.report import print_report
from opc.testing.results import Report, Status, as_json
from opc.testing.runner import run_tests
from opc.testing.tiers import Tiers
from tests.narrow import narrow

SPEC = Path(__file__).parents[2] / "specs" / "leaky_relu.yaml"


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tiers")


@pytest.fixture(scope="module")
def spec(out: Path) -> Path:
    return narrow("leaky_relu", out / "specs", "float32, float64")


@pytest.fixture(scope="module")
def whole(out: Path, spec: Path) -> Report:
    return run_tests([spec], ["numpy"], out, tiers=Tiers([spec]))


@pytest.fixture(scope="module")
def sample(out: Path, spec: Path, whole: Report) -> Report:
    assert whole.ok
    return run_tests([spec], ["numpy"], out, tiers=Tiers([]))


def test_a_sample_has_every_kind_of_outcome(whole: Report, sample: Report) -> None:
    assert sample.ok
    assert not sample.remembered
    assert sample.totals().keys() == whole.totals().keys() - {"check"}
    assert 20 < sum(sample.totals().values()) < sum(whole.totals().values()) / 2


def test_an_unchanged_op_of_the_covering_set_has_more_than_a_sample_and_all_checks(
    tmp_path: Path, spec: Path, whole: Report, sample: Report
) -> None:
    found = run_tests([spec], ["numpy"], tmp_path, tiers=Tiers([spec], whole=[]))
    assert found.ok
    assert found.totals().keys() == whole.totals().keys()
    assert sum(sample.totals().values()) < sum(found.totals().values()) < sum(whole.totals().values())
    told = [(r.op, r.backend) for r in found.results if r.message == tiers.THINNED]
    assert told == [("leaky_relu", "numpy")]
    again = run_tests([spec], ["numpy"], tmp_path, tiers=Tiers([spec], whole=[]))
    assert again.remembered == sum(found.totals().values())
    assert again.not_run == found.not_run


def test_an_op_whose_signature_others_have_is_not_checked_where_the_kernel_is_called(
    tmp_path: Path, spec: Path, whole: Report
) -> None:
    found = run_tests([spec], ["numpy"], tmp_path, tiers=Tiers([spec], signature=[], whole=[]))
    assert found.ok
    assert found.totals().keys() == whole.totals().keys() - {"check"}
    assert [(r.op, r.backend) for r in found.results if r.message == tiers.UNCHECKED] == [("leaky_relu", "numpy")]


def test_backends_that_wrap_the_kernel_run_half_of_the_calls_that_are_alike(spec: Path) -> None:
    plan, _ = make_plan(load_family(spec), Extent.COVER)

    def runs(plan: ProofPlan, name: str, wraps: bool, on_device: bool = False, execution: str = "native") -> list[Item]:
        return some(cast(Backend, SimpleNamespace(name=name, wraps=wraps, on_device=on_device, execution=execution)), plan)

    def has(items: Iterable[Item], what: Callable[[Case], Iterable[str]]) -> set[tuple[str, str, str]]:
        return {(i.kind, i.case.op, text) for i in items for text in what(i.case)}

    every, half = [*plan.items], runs(plan, "mindspore", True)
    assert len(every) / 2 < len(half) < len(every) * 3 / 4
    assert [i for i in every if i in half] == half
    # No kind of call is lost, no element type, no missing operand, nothing that is to be refused.
    assert has(half, lambda c: [c.kind]) == has(every, lambda c: [c.kind])
    types = [has(given, lambda c: (str(a.data.dtype) for a in c.inputs.values() if a is not None)) for given in (half, every)]
    assert types[0] == types[1]
    absent = [has(given, lambda c: (n for n, a in c.inputs.items() if a is None)) for given in (half, every)]
    assert absent[0] == absent[1]
    assert [i for i in half if i.expected is None] == [i for i in every if i.expected is None]
    # PyTorch does so too, and what runs on a device. All calls are made of what is made from the body, on NumPy, which runs every
    # op, and of what is run as a whole or as a sample anyway.
    assert runs(plan, "torch", True) == runs(plan, "cuda", False, on_device=True) == half
    assert runs(plan, "onnx", False) == runs(plan, "numpy", True) == every
    # An emulation that calls what another backend runs makes no large calls.
    emulated, own = runs(plan, "tensorrt", True, execution="emulated"), runs(plan, "cuda", False, True, "emulated")
    assert own == half
    assert emulated == [i for i in half if i.case.kind != "large" or i.kind not in HALVED or i.expected is None]
    assert len(emulated) < len(half)
    assert runs(replace(plan, extent=Extent.WHOLE), "mindspore", True) == every
    assert runs(replace(plan, extent=Extent.SAMPLE), "mindspore", True) == every


def test_an_op_waits_for_its_turn(tmp_path: Path, spec: Path) -> None:
    found = run_tests([spec], ["numpy"], tmp_path / "out", tiers=Tiers([], waiting={spec: "leaky_relu"}))
    assert [(r.op, r.backend, r.status, r.message) for r in found.results] == [
        ("leaky_relu", "numpy", Status.NOT_RUN, tiers.WAITING)
    ]
    assert not (tmp_path / "out" / "leaky_relu").exists()


@pytest.mark.parametrize("count", [1, 7, 43])
def test_each_op_has_one_turn(count: int) -> None:
    ran = [set(range(count)) - set(waiting(range(count), turn)) for turn in range(5, 5 + TURNS)]
    assert sorted(n for part in ran for n in part) == [*range(count)]
    assert max(map(len, ran)) - min(map(len, ran)) <= 1
    assert waiting(range(count), 1) == waiting(range(count), 1 + TURNS)
    assert waiting(range(count), None) == []


def test_an_unchanged_op_of_the_covering_set_runs_on_every_backend_in_one_of_two_turns() -> None:
    specs = [Path(f"{n}.yaml") for n in range(7)]
    changed, sometimes, device, outside = specs[0], specs[1:5], specs[5], specs[6]
    backends = registry.load_all()[0]

    def at(turn: int | None) -> Tiers:
        return Tiers(specs[:5], device=[*specs[:2], device], whole=[], alternating=alternating([*sometimes, device], turn))

    def runs(turn: int | None) -> set[tuple[Path, str]]:
        return {(s, b.name) for s in specs for b in backends if at(turn).runs(s, b)}

    every = runs(None)
    on_device = {b.name for b in backends if b.on_device}
    assert {name for s, name in every if s == device} == {*on_device, "numpy"}
    assert {name for s, name in every if s == outside} == {"numpy"}
    first, second = runs(6), runs(7)
    assert first | second == every
    assert first == runs(8)
    # What changed runs in both, and what NumPy runs of other ops has turns of its own.
    assert first & second == {(s, name) for s, name in every if s == changed or (name == "numpy" and s in (device, outside))}
    # An op runs on all of its backends or on none, so that what is built for it is built in half of the runs.
    for spec in sometimes:
        assert {name for s, name in every if s == spec} in [{name for s, name in ran if s == spec} for ran in (first, second)]
    for name in {b.name for b in backends} - on_device:
        assert sum((s, name) in first for s in sometimes) == 2
    told = [(name, why) for s in (*sometimes, device) for name, why in at(6).left_out(s, backends, [])]
    assert sorted(name for name, why in told if why == tiers.ALTERNATING) == sorted(name for _, name in every - first)
    assert {why for _, why in told} == {tiers.ALTERNATING, tiers.OUTSIDE}


def test_a_sample_is_told(sample: Report) -> None:
    told = {(r.op, r.backend) for r in sample.results if r.status is Status.NOT_RUN and r.message == tiers.SAMPLED}
    assert told == {("leaky_relu", "numpy")}
    text = io.StringIO()
    print_report(sample, Console(file=text, width=300))
    assert tiers.SAMPLED in text.getvalue()


def test_what_a_sample_proved_is_remembered_as_a_sample(out: Path, spec: Path, sample: Report) -> None:
    again = run_tests([spec], ["numpy"], out, tiers=Tiers([]))
    assert again.totals() == sample.totals()
    assert again.remembered == sum(sample.totals().values())
    assert again.not_run == sample.not_run
    assert not run_tests([spec], ["numpy"], out).remembered


def test_a_sample_of_points_that_decide_nothing_is_followed_by_the_others() -> None:
    family = load_family(SPEC.with_name("conv2d.yaml"))
    few = check_family(family, islice(points(family.forward, FEW), FEW))
    assert any(r.decided == r.flat for r in few)
    found = check_sample(family)
    assert all(r.ok for r in found)
    assert min(r.decided - r.flat for r in found) > 0


def test_the_time_of_each_part_is_told(whole: Report) -> None:
    assert set(whole.cpu) == {"build", "oracle", "numpy"}
    assert min(whole.cpu.values()) > 0
    text = io.StringIO()
    print_report(whole, Console(file=text, width=300))
    assert "Processor time: build " in text.getvalue()
    assert as_json(whole)["cpu_seconds"].keys() == whole.cpu.keys()
