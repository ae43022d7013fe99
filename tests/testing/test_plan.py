"""Plans: no call in them is larger than the oracle has time for, and whoever waits for one hears from it."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from rich.console import Console

from opc.build import imports
from opc.ir.op import Family
from opc.pipeline import compile_text, load_family
from opc.testing import plan as plans
from opc.testing.cases.derived import family_volume
from opc.testing.extent import Extent
from opc.testing.plan import LARGEST_DERIVED, LARGEST_GRADIENT, ProofPlan, make_plan
from opc.testing.process import Worker
from opc.testing.report import print_report, verdict
from opc.testing.results import UNCALLED, Report, Result, Status
from tests.transform.language import spec_text

RUNNING_PRODUCT = "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nkernel: |\n  y[..., i] = prod[k:i + 1](x[..., k])\n"
"""An op whose second gradient takes the fourth power of its length."""

Made = tuple[ProofPlan, list[Result], list[str]]


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "running_product.yaml"
    path.write_text(spec_text("running_product", RUNNING_PRODUCT).replace("float32, float64", "float32"))
    return path


@pytest.fixture(scope="module")
def family(spec: Path) -> Family:
    return load_family(spec)


@pytest.fixture(scope="module")
def made(family: Family) -> Made:
    begun: list[str] = []
    return *make_plan(family, begin=begun.append), begun


def test_calls_are_differentiated_only_where_their_derivatives_are_small(family: Family, made: Made) -> None:
    plan = made[0]
    small = [i.case for i in plan.items if i.kind == "forward" and i.case.inputs["x"].data.size <= LARGEST_GRADIENT]
    assert max(family_volume(family, c) for c in small) > LARGEST_DERIVED
    differentiated = [i.case for i in plan.items if i.kind in ("gradient", "second gradient")]
    assert max(family_volume(family, c) for c in differentiated) <= LARGEST_DERIVED
    # Still calls of as many kinds as there are.
    assert {c.kind for c in differentiated} == {c.kind for c in small if family_volume(family, c) <= LARGEST_DERIVED}
    assert len({c.kind for c in differentiated}) >= 5


def test_its_gradients_are_proved(made: Made) -> None:
    proofs = [r for r in made[1] if "gradient" in r.kind]
    assert len(proofs) == 4
    assert {r.status for r in proofs} == {Status.PASSED}
    assert min(r.count for r in proofs) >= 4


def test_every_call_and_proof_is_told_before_it_is_worked_on(made: Made) -> None:
    plan, results, begun = made
    calls = [i.case.name for i in plan.items if i.kind in ("forward", "derived", "example")]
    assert [name for name in begun if name in {*calls}] == calls
    proofs = [r.name for r in results if "gradient" in r.kind]
    assert [name for name in begun if name in {*proofs}] == proofs


def test_a_worker_gives_signs_of_life_while_it_plans(spec: Path, tmp_path: Path) -> None:
    with imports.links() as path:
        worker = Worker(sys.executable, path)
        task = {"task": "plan", "spec": str(spec), "file": str(tmp_path / "plan"), "extent": Extent.SAMPLE.value}
        answers = list(worker.run(task))
        worker.close()
    assert "done" in answers[-1]
    begun = [a["begin"] for a in answers if "begin" in a]
    assert {kind for kind, _ in begun} == {"plan"}
    assert begun[0][1] == "running_product"
    assert len(begun) > 30


@pytest.mark.parametrize(
    ("kind", "name", "label"),
    [
        ("forward", "relu/001-sizes-7", "forward relu/001-sizes-7"),
        ("gradient against differences", "gradient against differences", "gradient against differences"),
        ("example", "example 1", "example 1"),
        ("gradient", "gradients/001", "gradient gradients/001"),
    ],
)
def test_a_label_says_nothing_twice(kind: str, name: str, label: str) -> None:
    assert Result("relu", "oracle", kind, name, Status.FAILED).label == label


POWER = "inputs: {a: 'T[N]', b: 'U[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[i] = "


@pytest.mark.parametrize(("value", "differentiated"), [("a[i] ** cast(T, b[i])", True), ("a[i] ** cast(T, b[i] // 2)", False)])
def test_calls_with_constants_of_integers_are_differentiated_by_the_others(value: str, differentiated: bool) -> None:
    """Unless the op is another function of integers, of which derived ops know nothing."""
    text = spec_text("power", f"{POWER}{value}\n").replace("types: {", "types: {U: [int16, float64], ")
    plan, _ = make_plan(compile_text(text, "power"))
    calls = [i for i in plan.items if i.kind in ("gradient", "second gradient")]
    mixed = [i for i in calls if i.case.arrays()["b"].dtype == "int16"]
    assert bool(mixed) == differentiated
    assert {name for i in mixed for name in {*(i.expected or {}), *i.directions}} == ({"a", "d_y"} if differentiated else set())
    assert {name for i in calls if i not in mixed for name in i.expected or {}} == {"a", "b", "d_y"}


BESIDE = {
    "a position": ("p: 'int64[...]', y: 'T[...]'", "p[...] = argmax[k](x[..., k])", "y[...] = max[k](x[..., k])"),
    "a flag": ("y: 'T[..., N]', p: 'bool[..., N]'", "y[..., k] = x[..., k] ** 2", "p[..., k] = x[..., k] > 0"),
}


@pytest.mark.parametrize("beside", BESIDE)
def test_calls_with_integers_beside_what_is_differentiated_have_gradients(beside: str) -> None:
    outputs, *lines = BESIDE[beside]
    body = "".join(f"  {line}\n" for line in lines)
    text = f"inputs: {{x: 'T[..., N]'}}\noutputs: {{{outputs}}}\nrequire: [N > 0]\nkernel: |\n{body}"
    plan, results = make_plan(compile_text(spec_text("f", text), "f"), Extent.LOOPS)
    assert {i.kind for i in plan.items} >= {"gradient", "second gradient"}
    assert {name for i in plan.items if i.kind == "gradient" for name in i.cotangents} == {"y"}
    assert not [r for r in results if r.kind == UNCALLED]


def test_a_gradient_without_points_is_not_said_to_be_proved() -> None:
    """An op that refuses all calls that are drawn, since no number is its own successor."""
    text = (
        "inputs: {x: 'T[N]', i: 'int64[]'}\noutputs: {y: 'T[N]'}\nrequire: [N > 0]\nkernel: |\n"
        "  p[] = i[] if i[] == i[] + 1 else N\n  y[n] = x[n] * x[p[]]\n"
    )
    found = [r for r in make_plan(compile_text(spec_text("f", text), "f"))[1] if "gradient" in r.kind]
    assert {r.kind for r in found} >= {"gradient against differences", "second gradient against differences"}
    assert {r.status for r in found} == {Status.NOT_RUN}
    assert all("to differentiate" in r.message for r in found)


PELL = "inputs: {x: 'T[N, M]'}\noutputs: {y: 'T[N, M]'}\nrequire: [N*N == 61*M*M + 1, M > 0]\nkernel: y = 2 * x\n"


def test_an_op_without_calls_is_told() -> None:
    _, results = make_plan(compile_text(spec_text("pell", PELL), "pell"))
    told = [r for r in results if r.kind == UNCALLED]
    assert [(r.name, r.status, r.message) for r in told] == [("pell", Status.NOT_RUN, "no call was found that it accepts")]
    report = Report(results=[*told, Result("pell", "numpy", "check", "n", Status.PASSED)])
    assert report.uncalled == ("pell",)
    assert verdict(report).startswith("all that ran is right; no call was found of pell, of which nothing is proved")
    text = io.StringIO()
    print_report(report, Console(file=text, width=200))
    assert "warning: pell: no call was found that it accepts" in text.getvalue()


def test_a_gradient_without_calls_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    family = compile_text(spec_text("twice", PELL.replace("require: [N*N == 61*M*M + 1, M > 0]\n", "")), "twice")
    assert not [r for r in make_plan(family)[1] if r.kind == UNCALLED]
    monkeypatch.setattr(plans, "LARGEST_GRADIENT", -1)
    told = [(r.name, r.message.partition(",")[0]) for r in make_plan(family)[1] if r.kind == UNCALLED]
    assert told == [("twice_backward", "no call was found to differentiate")]


REPEATED = """
op: repeated
domain: tests
version: 1
doc: Elements as often as numbers say, of which special ones are as great as they get.
inputs: {x: 'float32[N]', times: 'int64[N]'}
attributes: {total: size}
outputs: {y: 'float32[total]'}
gradient: none
kernel: |
  total = sum[n](maximum(times[n], 0))
  end[n:N] = sum[m:n + 1](maximum(times[m], 0))
  y[i] = sum[n](x[n] if end[n] - times[n] <= i and i < end[n] else 0)
"""


def test_sizes_beyond_what_is_computed_are_given() -> None:
    plan, results = make_plan(compile_text(REPEATED))
    assert not [r for r in results if r.status is Status.FAILED]
    assert any(i.case.told for i in plan.items)
    assert (
        max(int(i.case.attributes.get("total", 0)) for i in plan.items if i.kind == "forward" and i.expected is not None)
        <= 2_000_000
    )
