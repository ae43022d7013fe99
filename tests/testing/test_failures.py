"""What a failure says: the call, the wrong element, the elements of inputs it comes from, and where the spec has the example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from opc.backends.base import Check, Session
from opc.ir.dtypes import DType, numpy_dtype
from opc.ir.op import Family
from opc.pipeline import load_family
from opc.testing.cases.arguments import TensorArg
from opc.testing.cases.calls import Case
from opc.testing.cases.derived import gradient, second_gradient
from opc.testing.execution import ProofStep, run, steps
from opc.testing.explanation import inputs_of
from opc.testing.lineage import UntoldError, lineage
from opc.testing.oracle.bounds import Array
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.tolerance import compare
from opc.testing.oracle.wording import number_text
from opc.testing.plan import ProofPlan, make_plan
from opc.testing.references.examples import check_examples
from opc.testing.results import ORACLE, Result, Status
from tests.testing import fakes

SPEC = """\
op: weighted
domain: opc.test
version: 1
doc: x times w, plus b.
types: {T: [float16, bfloat16, float32]}
inputs: {x: 'T[N, D]', w: 'T[D]', 'b?': 'T[D]'}
attributes: {scale: {type: float, default: 0.5}}
outputs: {y: 'T[N, D]'}
kernel: |
  y[n, d] = x[n, d] * w[d] * scale + (b[d] if present(b) else 0)
examples:
  - {x: [[1.0, 2.0]], w: [0.25, 0.5], y: [[0.125, 0.5]]}
  - {x: [[0.1, 0.2]], w: [2.0, 4.0], b: [1.0, 1.0], y: [[1.1, 1.4]]}
"""


class WrongSession(Session):
    """Right but for the last element of each answer, which is 1 too much."""

    def call(
        self, op: str, inputs: Mapping[str, Array | None], attributes: Mapping[str, Any], only: Sequence[str] | None = None
    ) -> Any:
        chosen = next(o for o in self.family.ops if o.name == op)
        return spoiled(evaluate(chosen, inputs, attributes, wanted=None if only is None else list(only)))

    def gradient(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any], cotangents: Mapping[str, Any]) -> Any:
        forward, backward = self.family.forward, self.family.backward
        assert backward is not None
        return spoiled(gradient(forward, backward, inputs, attributes, cotangents))

    def second_gradient(self, inputs: Mapping[str, Any], attributes: Mapping[str, Any], *seeds: Mapping[str, Any]) -> Any:
        family = self.family
        assert family.backward is not None
        assert family.backward_backward is not None
        return spoiled(second_gradient(family.forward, family.backward, family.backward_backward, inputs, attributes, *seeds))


def spoiled(sets: Mapping[str, Bounded]) -> dict[str, Array]:
    """The middle of each set, with 1 added to the last element."""
    found = {}
    for name, want in sets.items():
        array = np.array(want.value)
        if array.size:
            array[(-1,) * array.ndim] += 1
        found[name] = array.astype(numpy_dtype(want.dtype))
    return found


class Wrong(fakes.Relu):
    name = "wrong"

    def session(self, family: Family, package: Path) -> Session:
        return WrongSession(family, package)

    def checks(self, session: object) -> Sequence[Check]:
        return ()


def family_of(folder: Path, text: str) -> Family:
    spec = folder / "spec.yaml"
    spec.write_text(text)
    return load_family(spec)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> ProofPlan:
    return make_plan(family_of(tmp_path_factory.mktemp("weighted"), SPEC))[0]


@pytest.fixture(scope="module")
def failures(plan: ProofPlan) -> dict[str, Result]:
    found = [run(step, plan.family.name, "wrong") for step in steps(Wrong(), plan, Path())]
    return {r.name: r for r in found if r.status is Status.FAILED}


@pytest.mark.rotating
def test_an_example_fails_with_its_line_and_its_inputs(failures: dict[str, Result]) -> None:
    first = failures["weighted/example00-float32"]
    assert (first.op, first.backend) == ("weighted", "wrong")
    place, _, message = first.message.partition(": ")
    assert place.endswith("spec.yaml:12")
    assert message.startswith("y[0, 1] is 1.5, but must be 0.5 +-")
    assert message.endswith("1 of 2 elements wrong; from x[0, 1] = 2.0, w[1] = 0.5, without b")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_numbers_are_as_short_as_their_type_allows(failures: dict[str, Result], dtype: str) -> None:
    message = failures[f"weighted/example01-{dtype}"].message
    assert "y[0, 1] is 2.4, but must be 1.4" in message
    assert message.endswith("from x[0, 1] = 0.2, w[1] = 4.0, b[1] = 1.0")


def test_a_call_fails_with_the_elements_that_feed_the_wrong_one(failures: dict[str, Result], plan: ProofPlan) -> None:
    item = next(i for i in plan.items if i.kind == "forward" and "attribute-scale" in i.case.name)
    message = failures[item.case.name].message
    arrays = item.case.arrays()
    last = [int(n) - 1 for n in np.shape(arrays["x"])]
    x, w = (
        number_text(np.asarray(a)[at], DType(str(np.asarray(a).dtype)))
        for a, at in ((arrays["x"], tuple(last)), (arrays["w"], -1))
    )
    assert f"from x[{last[0]}, {last[1]}] = {x}, w[{last[1]}] = {w}" in message
    assert f"scale = {item.case.attributes['scale']}" in message


def test_gradients_say_what_they_are_and_where_they_come_from(failures: dict[str, Result]) -> None:
    first = next(r for r in failures.values() if r.kind == "gradient" and r.ratio > 1)
    assert first.message.startswith("gradient of x[")
    assert " d_y[" in first.message
    assert " w[" in first.message
    second = next(r for r in failures.values() if r.kind == "second gradient" and r.ratio > 1)
    assert second.message.startswith("second gradient of ")
    assert "; from " in second.message


def test_the_oracle_fails_an_example_with_its_line(tmp_path: Path) -> None:
    family = family_of(tmp_path, SPEC.replace("y: [[1.1, 1.4]]", "y: [[1.1, 1.3]]"))
    wrong = dict(check_examples(family))["example 1"]
    assert wrong == f"{tmp_path / 'spec.yaml'}:13: y[0, 1] is 1.4, but the example says 1.3"
    _, results = make_plan(family)
    assert wrong in [r.message for r in results if r.backend == ORACLE]


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0.1, DType.FLOAT32, "0.1"),
        (0.1, DType.FLOAT64, "0.1"),
        (0.1, DType.FLOAT16, "0.1"),
        (0.1, DType.BFLOAT16, "0.1"),
        (1 / 3, DType.FLOAT16, "0.3333"),
        (1 / 3, DType.BFLOAT16, "0.334"),
        (1 / 3, DType.FLOAT32, "0.33333334"),
        (1 / 3, DType.FLOAT64, "0.3333333333333333"),
        (3.4028234663852886e38, DType.FLOAT32, "3.4028235e+38"),
        (2.0**-149, DType.FLOAT32, "1e-45"),
        (100000.0, DType.FLOAT32, "100000.0"),
        (-0.0, DType.FLOAT16, "-0.0"),
        (np.nan, DType.FLOAT32, "NaN"),
        (-np.inf, DType.BFLOAT16, "-inf"),
        (-7, DType.INT8, "-7"),
        (np.True_, DType.BOOL, "True"),
    ],
)
def test_shortest_numbers(value: float, dtype: DType, text: str) -> None:
    assert number_text(value, dtype) == text


def test_every_bfloat16_reads_back() -> None:
    for bits in range(0, 1 << 16, 7):
        value = np.array(bits, np.uint16).view(ml_dtypes.bfloat16)[()]
        if np.isfinite(float(value)):
            assert ml_dtypes.bfloat16(float(number_text(value, DType.BFLOAT16))) == value


BODIES = {
    "softmax": ("{x: 'T[N, D]'}", "{y: 'T[N, D]'}", "e[n, d] = exp(x[n, d])\n  y[n, d] = e[n, d] / sum[k](e[n, k])"),
    "gather": ("{x: 'T[N, D]', ids: 'int64[M]'}", "{y: 'T[M, D]'}", "y[m, d] = x[ids[m], d]"),
    "scatter": ("{x: 'T[N]', ids: 'int64[N]', z: 'T[M]'}", "{y: 'T[M]'}", "y[m] = sum[n](x[n] if ids[n] == m else 0) + 0*z[m]"),
    "window": ("{x: 'T[N]'}", "{y: 'T[N]'}", "y[n] = sum[k:3](pad(x[n + k - 1], 0))"),
    "maximum": ("{x: 'T[N, D]'}", "{y: 'T[N]'}", "y[n] = x[n, argmax[d](x[n, d])]"),
    "prefix": ("{x: 'T[N]'}", "{y: 'T[N]'}", "y[n] = sum[k:n + 1](x[k])"),
    "groups": ("{x: 'T[*A, N]'}", "{y: 'T[*A]'}", "y[*A] = sum[n](x[*A, n])"),
    "all": ("{x: 'T[...]'}", "{y: 'T[]'}", "y = sum[...](x[...])"),
}
X = np.array([[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]], np.float32)
IDS = np.array([1, 0, 1], np.int64)
ONES = np.ones(2, np.float32)
LINEAGES: list[tuple[str, dict[str, Array], tuple[int, ...], dict[str, Any]]] = [
    ("softmax", {"x": X}, (1, 2), {"x": [(1, 2), (1, 0), (1, 1)]}),
    ("gather", {"x": X, "ids": IDS}, (2, 1), {"x": [(1, 1)], "ids": [(2,)]}),
    ("scatter", {"x": X[0], "ids": IDS, "z": ONES}, (1,), {"x": [(0,), (2,)], "ids": [(0,), (1,), (2,)], "z": [(1,)]}),
    ("window", {"x": X[0]}, (2,), {"x": [(1,), (2,)]}),
    ("maximum", {"x": X}, (0,), {"x": [(0, 0), (0, 1), (0, 2)]}),
    ("prefix", {"x": X[0]}, (1,), {"x": [(0,), (1,)]}),
    ("groups", {"x": X[None]}, (0, 1), {"x": [(0, 1, 0), (0, 1, 1), (0, 1, 2)]}),
    ("all", {"x": X[:, :1]}, (), {"x": [(0, 0), (1, 0)]}),
]


def body(name: str, folder: Path) -> Family:
    inputs, outputs, kernel = BODIES[name]
    return family_of(
        folder,
        f"op: {name}_op\ndomain: opc.test\nversion: 1\ndoc: A body.\ntypes: {{T: floating}}\ninputs: {inputs}\n"
        f"outputs: {outputs}\nkernel: |\n  {kernel}\n",
    )


@pytest.mark.parametrize(("name", "inputs", "at", "expected"), LINEAGES, ids=[case[0] for case in LINEAGES])
def test_an_element_is_traced_to_the_inputs(
    name: str, inputs: dict[str, Array], at: tuple[int, ...], expected: dict[str, Any], tmp_path: Path
) -> None:
    assert lineage(body(name, tmp_path).forward, inputs, {}, "y", at) == expected


def test_what_an_element_depends_on_is_in_its_lineage(tmp_path: Path) -> None:
    """Moving any other element of an input changes nothing: by the oracle, for each body and each element of its output."""
    for name, inputs, _, _ in LINEAGES:
        op = body(name, tmp_path).forward
        before = evaluate(op, inputs, {})["y"].value
        for at in np.ndindex(before.shape):
            feeding = lineage(op, inputs, {}, "y", at)
            for point in np.ndindex(inputs["x"].shape):
                if point not in feeding.get("x", []):
                    moved = inputs["x"].copy()
                    moved[point] -= 0.5
                    after = evaluate(op, {**inputs, "x": moved}, {})["y"].value
                    assert after[at] == before[at], (name, at, point)


def test_broadcast_operands_are_traced_to_their_own_elements(tmp_path: Path) -> None:
    family = family_of(
        tmp_path,
        "op: added\ndomain: opc.test\nversion: 1\ndoc: Sum.\ntypes: {T: floating}\ninputs: {a: 'T[...]', b: 'T[...]'}\n"
        "outputs: {y: 'T[...]'}\nbroadcast: true\nkernel: |\n  y = a + b\n",
    )
    given = {"a": np.zeros((2, 1, 3), np.float32), "b": np.zeros((4, 1), np.float32)}
    assert lineage(family.forward, given, {}, "y", (1, 2, 0)) == {"a": [(1, 0, 0)], "b": [(2, 0)]}
    assert family.backward is not None
    found = lineage(family.backward, {**given, "d_y": np.zeros((2, 4, 3), np.float32)}, {}, "d_b", (2, 0))
    assert found["d_y"] == [(i, 2, k) for i in range(2) for k in range(3)]


def test_what_can_not_be_traced_is_shown_whole_where_it_is_small(tmp_path: Path) -> None:
    family = body("all", tmp_path)
    large, small = np.zeros(5000, np.float32), np.array([0.1, 0.2], np.float32)
    with pytest.raises(UntoldError):
        lineage(family.forward, {"x": large}, {}, "y", ())
    for array, told in ((large, ""), (small, "x = [0.1, 0.2]")):
        case = Case("c", family.name, {"x": TensorArg(array)})
        wrong = compare("y", np.zeros(3, np.float32), evaluate(family.forward, {"x": array}, {})["y"])
        assert wrong.index is None
        assert inputs_of(family, case, wrong) == told


def test_runs_of_elements_are_told_as_slices(tmp_path: Path) -> None:
    family = body("groups", tmp_path)
    array = np.arange(24, dtype=np.float32).reshape(2, 12) / 10
    want = evaluate(family.forward, {"x": array}, {})["y"]
    wrong = compare("y", np.array([want.value[0], 0], np.float32), want)
    told = inputs_of(family, Case("c", family.name, {"x": TensorArg(array)}), wrong)
    assert told == "x[1, 0:12] = [1.2, 1.3, 1.4, 1.5, 1.6, 1.7, 1.8, 1.9, ...]"


def test_a_step_that_raises_names_the_example_too() -> None:
    def broken() -> Any:
        raise RuntimeError("no such device")

    found = run(ProofStep("example", "weighted/example00", broken, "spec.yaml:12"), "weighted", "wrong")
    assert found.message.startswith("spec.yaml:12: RuntimeError: no such device (test_failures.py:")
