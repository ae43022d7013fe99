"""Sizes that data tells: an attribute that a call may give, and the op beside it that computes it where none is given."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import opc
from opc.backends import registry
from opc.compiler import package_of
from opc.ir.op import Family
from opc.pipeline import compile_text
from opc.testing.cases.calls import Case
from opc.testing.cases.table import accepted
from opc.testing.cases.told import left_to_data
from opc.testing.execution import passed
from opc.testing.oracle.evaluation import DomainError, evaluate, told_sizes
from opc.testing.oracle.frame import UndecidedError
from opc.testing.plan import make_plan
from opc.testing.references.examples import check_examples
from opc.testing.results import Status
from tests.testing.fakes import ReluSession

HEAD = """\
op: kept
domain: tests
version: 1
doc: The elements above a bound, and those of a mask.
types: {T: [float32, float64]}
inputs: {x: 'T[N]', p: 'bool[N]', 'w?': 'T[N]'}
"""
TOLD = f"""\
{HEAD}attributes: {{few: {{type: size, doc: How many are above.}}, bound: {{type: float, default: 0.0}}, many: size}}
outputs: {{y: 'T[few]', z: 'T[L]'}}
shape: {{L: many + 1}}
kernel: |
  above[n:N] = cast(int64, x[n] > bound and (w[n] > 0 if present(w) else True))
  few = sum[n](above[n])
  many = sum[n](cast(int64, p[n]))
  rank[n:N] = sum[m:n](above[m])
  y[k] = sum[n](x[n] if above[n] == 1 and rank[n] == k else 0)
  z[l] = l * bound
examples:
  - {{x: [0.0, 2.0, 1.0], p: [true, false, true], y: [2.0, 1.0], z: [0.0, 0.0, 0.0]}}
  - {{x: [0.0, 2.0, 1.0], p: [true, false, true], bound: 1.0, few: 2, y: [2.0, 0.0], z: [0.0, 1.0, 2.0]}}
"""
BY_HAND = f"""\
{HEAD}attributes: {{bound: {{type: float, default: 0.0}}}}
outputs: {{few: 'int64[]', many: 'int64[]'}}
gradient: none
kernel: |
  above[n:N] = cast(int64, x[n] > bound and (w[n] > 0 if present(w) else True))
  few = sum[n](above[n])
  many = sum[n](cast(int64, p[n]))
"""


def told() -> Family:
    return compile_text(TOLD, "kept.yaml")


def test_the_op_of_the_sizes_is_the_one_that_a_person_would_write() -> None:
    sizes, own = told().forward.sizes, compile_text(BY_HAND, "kept.yaml").forward
    assert sizes is not None
    assert [s.value for s in sizes.body] == [s.value for s in own.body]
    assert {o.name for o in sizes.outputs} == {"size_of_few", "size_of_many"}
    for case in accepted(own, random=8)[::6]:
        found = evaluate(sizes, case.arrays(), case.attributes)
        for name, want in evaluate(own, case.arrays(), case.attributes).items():
            np.testing.assert_array_equal(found[f"size_of_{name}"].value, want.value)


def test_derived_ops_take_the_size_that_the_call_had() -> None:
    family = told()
    assert family.forward.told == ("few", "many")
    assert [op.name for op in family.ops][-1] == "kept_sizes"
    for op in family.ops[1:-1]:
        assert op.told == ()
        assert op.sizes is None
        assert op.attribute("few").required


def test_a_call_without_a_size_has_as_many_as_data_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path))
    (tmp_path / "kept.yaml").write_text(TOLD)
    kept = opc.load(tmp_path / "kept.yaml")
    x, p = np.array([0.5, -1.0, 2.0, 3.0], np.float32), np.array([True, False, False, True])
    y, z = kept(x, p)
    np.testing.assert_array_equal(y, x[x > 0])
    assert z.shape == (3,)
    assert [a.shape for a in kept(x, p, few=7)] == [(7,), (3,)]
    assert [a.shape for a in kept(x, p, many=0, bound=2.0)] == [(1,), (1,)]
    assert [a.shape for a in kept(x, p, np.array([0, 1, 1, 0], np.float32))] == [(1,), (3,)]
    assert [a.shape for a in kept(x[:0], p[:0])] == [(0,), (1,)]
    with pytest.raises(ValueError, match=r"kept: few = -1 violates its check: few >= 0"):
        kept(x, p, few=-1, many=1)
    assert "few: int, few >= 0. How many are above. By default as many as data tells." in str(kept.__doc__)


@pytest.mark.parametrize(
    ("backend", "tells"),
    [("numpy", True), ("torch", True), ("jax", True), ("paddle", True), ("mindspore", False), ("tvm_ffi", False)],
)
def test_functions_leave_the_size_to_data_where_shapes_may_depend_on_it(backend: str, *, tells: bool) -> None:
    files = package_of(told(), [registry.load(backend)]).files
    signature = re.search(r"def kept\(.*?\) ->", files[f"{backend}/__init__.py"], re.DOTALL)
    assert signature is not None
    parameters = " ".join(signature[0].split())
    assert ("few: int | None = None" in parameters) == tells, parameters
    assert ("kept_sizes" in files[f"{backend}/__init__.py"]) == tells


def test_shape_inference_knows_no_size_that_data_is_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kept_shape.py").write_text(package_of(told(), ()).files["shape.py"])
    monkeypatch.syspath_prepend(str(tmp_path))
    infer = importlib.import_module("kept_shape").infer_shapes_kept
    assert infer((4,), (4,)) == ((None,), (None,))
    assert infer((4,), (4,), few=2) == ((2,), (None,))
    with pytest.raises(ValueError, match="few = -2 violates its check"):
        infer((4,), (4,), few=-2)


def test_an_example_is_held_to_as_many_as_data_tells() -> None:
    assert [wrong for _, wrong in check_examples(told())] == ["", ""]
    family = compile_text(TOLD.replace("y: [2.0, 1.0], z", "y: [2.0, 1.0, 0.0], z"), "kept.yaml")
    ((_, wrong), _) = check_examples(family)
    assert wrong.endswith("few is 2, but the outputs of the example have 3")


def test_the_proof_leaves_sizes_to_frameworks_that_tell_them_and_sets_others() -> None:
    family = told()
    plan, results = make_plan(family)
    assert not [r for r in results if r.status is Status.FAILED]
    forward = [i.case for i in plan.items if i.kind == "forward"]
    left, given = [c for c in forward if c.told], [c for c in forward if not c.told]
    assert len(left) > len(given) > 3
    op = family.forward.sizes
    assert op is not None
    for case in left[:20]:
        sizes = evaluate(op, case.arrays(), {n: v for n, v in case.attributes.items() if n not in case.told})
        assert case.attributes["few"] == sizes["size_of_few"].value
    session = ReluSession.__new__(ReluSession)
    assert passed(session, left[0]) == left[0].attributes
    session.tells_sizes = True
    assert not passed(session, left[0]).keys() & {"few", "many"}
    assert passed(session, given[0]) == given[0].attributes
    assert {c.attributes["few"] for c in given} >= {0, 1, 5}


def test_a_size_that_a_rounding_decides_is_undecided() -> None:
    op = compile_text(TOLD.replace("x[n] > bound", "x[n] * 3 > bound * 0.1"), "kept.yaml").forward
    given = {"x": np.array([0.1], np.float32) / np.float32(3), "p": np.array([True])}
    with pytest.raises(UndecidedError, match="few is from 0 to 1, as roundings turn out"):
        told_sizes(op, given, {"bound": 1.0})
    case = Case("kept/001-sizes", "kept", {}, {"few": 1})
    assert left_to_data(compile_text(BY_HAND, "kept.yaml").forward, case) is case


def test_nothing_is_told_of_data_that_the_op_refuses() -> None:
    text = TOLD.replace("x: 'T[N]'", "x: 'T[N]', ids: 'int64[N]'").replace("x[n] > bound", "x[ids[n]] > bound")
    op = compile_text(text.partition("examples")[0], "kept.yaml").forward
    given = {"x": np.ones(2, np.float32), "ids": np.array([0, 2]), "p": np.array([True, True])}
    with pytest.raises(DomainError, match="an index of x is outside axis 0 of size 2"):
        told_sizes(op, given, {})


@pytest.mark.rotating
@pytest.mark.parametrize("framework", ["torch", "jax", "paddle"])
def test_frameworks_compute_several_sizes(framework: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path))
    (tmp_path / "kept.yaml").write_text(TOLD)
    kept = opc.load(tmp_path / "kept.yaml")
    module = importlib.import_module(framework)
    make = {"torch": "from_numpy", "jax": "numpy.asarray", "paddle": "to_tensor"}[framework]
    for part in make.split("."):
        module = getattr(module, part)
    arrays = np.array([0.5, -1.0, 2.0, 3.0], np.float32), np.array([True, False, False, True])
    for attributes in ({}, {"few": 2}, {"many": 4}, {"few": 1, "many": 0}):
        found = kept(*(module(a) for a in arrays), bound=1.0, **attributes)
        for y, want in zip(found, kept(*arrays, bound=1.0, **attributes), strict=True):
            np.testing.assert_array_equal(np.asarray(y), want)
