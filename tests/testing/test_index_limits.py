"""Indices of test calls: which inputs are indices, what their values are, and which are refused."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest

from opc.analysis.shapes.inference import infer
from opc.ir.dtypes import DType
from opc.ir.op import Op
from opc.pipeline import compile_text, load_family
from opc.testing.cases.bad_calls import refused
from opc.testing.cases.calls import Maker
from opc.testing.cases.index_limits import bordering_indices, index_limits, index_values, inside, special_indices
from opc.testing.cases.sizes import Sizes
from opc.testing.cases.table import accepted
from opc.testing.oracle.evaluation import DomainError, evaluate
from tests.transform.language import spec_text

SPECS = Path(__file__).parents[2] / "specs"


def forward(name: str) -> Op:
    return load_family(SPECS / f"{name}.yaml").forward


@pytest.mark.parametrize(
    ("name", "operand", "extent", "direct", "checked"),
    [
        ("embedding", "ids", "V", True, True),
        # An index that may count from the end is computed from the input.
        ("gather", "indices", "N", False, True),
        # A scatter compares: what it does not find, it leaves out.
        ("scatter_add", "index", "N", True, False),
        ("cross_entropy", "target", "C", True, True),
    ],
)
def test_indices_are_found(name: str, operand: str, extent: str, direct: bool, checked: bool) -> None:
    limits = index_limits(forward(name))
    assert set(limits) == {operand}
    assert {str(x.extent) for x in limits[operand]} == {extent}
    assert all(x.direct is direct for x in limits[operand])
    assert any(x.checked for x in limits[operand]) is checked


HEAD = (
    "types: {T: [float32]}\ninputs: {x: 'T[N, D]', ids: 'int32[B]'}\noutputs: {y: 'T[B, D]'}\n"
    "attributes: {skip: {type: int, default: 1}}\n"
)


@pytest.mark.parametrize(
    ("body", "least", "behind"),
    [
        # The last step of each sequence.
        ("  y[b, d] = x[ids[b] - 1, d]\n", 1, 6),
        ("  y[b, d] = x[cast(int64, 2 * ids[b]) + 1, d]\n", 0, 2),
        ("  y[b, d] = x[N - 1 - ids[b], d]\n", 0, 5),
        ("  y[b, d] = x[3 - 2 * ids[b], d]\n", 0, 2),
        ("  y[b, d] = x[ids[b] + skip, d]\n", -2, 3),
        # Through temporaries.
        ("  p[b] = cast(int64, ids[b]) - 1\n  q[b] = p[b] if p[b] > 0 else 0\n  y[b, d] = x[q[b], d]\n", 1, 6),
        ("  p[b] = 2 * ids[b]\n  y[b, d] = x[p[b] - 1, d] + x[p[b], d]\n", 1, 3),
        # Of this, no inverse is known.
        ("  y[b, d] = x[ids[b] * ids[b], d]\n", -5, 5),
    ],
)
def test_values_stand_inside_where_an_index_is_computed_from_them(body: str, least: int, behind: int) -> None:
    op = compile_text(spec_text("f", f"{HEAD}kernel: |\n{body}"), "f").forward
    env = infer(op, {"x": (5, 2), "ids": (3,)}, {"skip": 2})
    assert inside(index_limits(op)["ids"], env) == (least, behind)
    drawn = [index_values(np.random.default_rng(n), (40,), DType.INT32, index_limits(op)["ids"], [], env) for n in range(40)]
    within = [bool(np.all((v >= least) & (v < behind))) for v in drawn if v is not None]
    assert np.mean(within) > 0.5


def test_most_calls_are_accepted_where_an_index_is_computed() -> None:
    """Of these, one in eight was, when each value stood inside by chance."""
    text = f"{HEAD}kernel: |\n  p[b] = ids[b] - 1\n  y[b, d] = x[p[b], d]\n"
    op = compile_text(spec_text("f", text), "f").forward
    cases = [c for c in accepted(op, random=0) if (ids := c.inputs["ids"]) is not None and ids.data.size > 2]
    good = 0
    for case in cases:
        with contextlib.suppress(DomainError):
            evaluate(op, case.arrays(), case.attributes)
            good += 1
    assert good > 0.5 * len(cases) > 5


def test_what_a_condition_excludes_is_among_the_values_of_some_calls() -> None:
    """A read that such a condition guards must not be made there, by no derived op either."""
    text = f"{HEAD}kernel: |\n  y[b, d] = x[ids[b], d] if ids[b] >= 0 and not N <= ids[b] else 0\n"
    op = compile_text(spec_text("f", text), "f").forward
    (bordering,) = bordering_indices(op).values()
    assert sorted(map(str, bordering)) == ["-1", "0", "N", "N - 1"]
    maker = Maker(op)
    drawn = [c for _ in range(40) if (c := maker.make("drawn", Sizes({"N": 5, "B": 6, "D": 2}, {}, {}))) is not None]
    outside = [bool(np.any((ids.data < 0) | (ids.data >= 5))) for c in drawn if (ids := c.inputs["ids"]) is not None]
    assert 0.2 < np.mean(outside) < 0.8


def test_no_index_no_limit() -> None:
    assert index_limits(forward("softmax")) == {}


def test_values_stand_inside_but_for_those_the_op_compares_with() -> None:
    op = forward("cross_entropy")
    assert [str(e) for e in special_indices(op)["target"]] == ["ignore_index"]
    ignored = inside = 0
    for case in accepted(op, random=0):
        target, x = case.inputs["target"], case.inputs["x"]
        assert target is not None
        assert x is not None
        special = case.attributes.get("ignore_index", -100)
        within = (target.data >= 0) & (target.data < max(x.data.shape[1], 1))
        assert np.all(within | (target.data == special))
        ignored += int(np.sum(target.data == special))
        inside += int(np.sum(within))
    assert ignored > 10
    assert inside > 4 * ignored


def test_indices_outside_are_refused() -> None:
    for name, operand, least in (("embedding", "ids", -1), ("gather", "indices", None)):
        cases = [c for c in refused(forward(name)) if f"index-{operand}" in c.name]
        values = [int(c.inputs[operand].data.min()) for c in cases]
        assert len(cases) == 3
        assert all("outside" in c.refused for c in cases)
        assert least is None or least in values
    # What is left out is not refused.
    assert not [c for c in refused(forward("scatter_add")) if "index-index" in c.name]


def test_indices_of_a_temporary_that_a_call_rules_out_are_not_held_to_be_refused() -> None:
    for taken in (True, False):
        text = (
            "op: pick\ndomain: test\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"
            "inputs: {x: 'T[N]', w: 'T[M]', ids: 'int64[N]'}\n"
            f"attributes: {{flag: {{type: bool, default: {str(taken).lower()}}}}}\noutputs: {{y: 'T[N]'}}\n"
            "kernel: |\n  t[i:N] = w[ids[i]]\n  y[i] = t[i] if flag else x[i]\n"
        )
        cases = [c for c in refused(compile_text(text, "pick.yaml").forward) if "index-ids" in c.name]
        assert (len(cases) > 0) == taken


def test_calls_fit_either_alternative_of_a_requirement() -> None:
    sizes = {c.inputs["scale"].data.shape == (1,) for c in accepted(forward("quantize_linear"), random=0)}
    assert sizes == {True, False}
