"""Which statements are orders, and what sorts them."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.analysis.cost import cost
from opc.analysis.shapes.inference import infer
from opc.analysis.sharding import shardings
from opc.ir.dtypes import DType
from opc.ir.ordering import orderings
from opc.ir.printer import format_expr
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage
from opc.lower.lower import lower
from opc.lower.nest_plans import OrderPlan
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[2] / "specs"
HEAD = "op: f\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float32]}\n"
AXIS = "attributes: {axis: {type: axis, dim: N, default: -1}}\n"
ROWS = AXIS + "inputs: {x: 'T[*A, N, *B]'}\noutputs: {p: 'int64[*A, N, *B]'}\nkernel: |\n  "


def sorted_stages(text: str) -> list[list[str]]:
    """Return the targets of the stages of a body's programs, with a star behind those that sort."""
    op = compile_text(HEAD + text, "f.yaml").forward
    found = []
    for variant in cpu_programs(op):
        stages = [s for s in variant.program.stages if isinstance(s, NestStage)]
        found.append([s.assign.target + "*" * any(isinstance(p, OrderPlan) for p in s.plans) for s in stages])
    return found


@pytest.mark.parametrize("name", ["sort", "topk"])
def test_a_cpu_sorts_in_place_of_counting(name: str) -> None:
    family = load_family(SPECS / f"{name}.yaml")
    (order,) = orderings(family.forward).values()
    assert (order.along, str(order.extent), str(order.rank), order.counts) == ("n", "N", "i", "indices_sum")
    assert format_expr(order.key) == "x[*A, n, *B]"
    for case, counted in zip(cpu_programs(family.forward), lower(family.forward), strict=True):
        assert [t.name for t in case.program.temporaries] == []
        assert [t.name for t in counted.program.temporaries] == ["indices_sum"]
        assert len(case.program.stages) == len(counted.program.stages) - 1


@pytest.mark.parametrize("name", ["sort", "topk"])
def test_work_and_sharding(name: str) -> None:
    op = load_family(SPECS / f"{name}.yaml").forward
    env = infer(op, {"x": (3, 1000)}, {"axis": 1} | ({"k": 10} if name == "topk" else {"descending": True}))
    found = cost(op, env, {"T": DType.FLOAT32})
    assert str(found.work) == "N*log2(N)*size(A)*size(B)"
    assert found.flops == 3 * 1000 * 10
    assert [s.along for s in shardings(op)] == ["*A", "*B"]


def test_what_is_written_by_hand_is_sorted_too() -> None:
    ranks = "x[*A, k, *B] <= x[*A, j, *B] or x[*A, j, *B] != x[*A, j, *B]"
    behind = "x[*A, j, *B] <= x[*A, k, *B] or x[*A, k, *B] != x[*A, k, *B]"
    text = ROWS + f"r[*A, j:N, *B] = sum[k:N](cast(int64, ({ranks}) and (k < j or not ({behind}))))\n"
    text += "  p[*A, i, *B] = argmax[j:N](cast(int64, r[*A, j, *B] == i))\n"
    assert sorted_stages(text) == [["p*"]]


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("k < j", "k <= j"),  # an element would be ahead of itself
        ("k < j", "k > j"),  # ties from the end
        ("<= x[*A, j, *B] or", "< x[*A, j, *B] or"),
        ("!= x[*A, j, *B]) and", "!= x[*A, k, *B]) and"),
        ("argmax", "argmin"),
    ],
)
def test_what_is_nearly_an_order_is_none(change: str, to: str) -> None:
    ranks = "x[*A, k, *B] <= x[*A, j, *B] or x[*A, j, *B] != x[*A, j, *B]"
    behind = "x[*A, j, *B] <= x[*A, k, *B] or x[*A, k, *B] != x[*A, k, *B]"
    text = ROWS + f"r[*A, j:N, *B] = sum[k:N](cast(int64, ({ranks}) and (k < j or not ({behind}))))\n"
    text += "  p[*A, i, *B] = argmax[j:N](cast(int64, r[*A, j, *B] == i))\n"
    assert change in text
    assert sorted_stages(text.replace(change, to, 1)) == [["r", "p"]]


def test_ranks_that_something_else_reads_are_counted() -> None:
    text = "inputs: {x: 'T[N]'}\noutputs: {p: 'int64[N]', r: 'int64[N]'}\nkernel: |\n"
    rank = "sum[k:N](cast(int64, (x[k] <= x[j] or x[j] != x[j]) and (k < j or not (x[j] <= x[k] or x[k] != x[k]))))"
    text += f"  t[j:N] = {rank}\n  p[i] = argmax[j:N](cast(int64, t[j] == i))\n  r[j] = t[j] + 1\n"
    (targets,) = sorted_stages(text)
    assert "p*" not in targets


@pytest.mark.parametrize(
    "body",
    [
        "p[*A, i, *B] = argsort[k](x[*A, k, *B])[i]",
        "p[*A, i, *B] = argsort[k](x[*A, k, *B], True)[N - 1 - i]",
        "p[*A, i, *B] = argsort[k](x[*A, k, *B], False)[i]",
        "t[*A, n, *B] = exp(x[*A, n, *B]) - 1\n  p[*A, i, *B] = argsort[k](t[*A, k, *B])[i]",
    ],
)
def test_places_and_keys(body: str) -> None:
    for targets in sorted_stages(ROWS + body):
        assert "p*" in targets
        assert not any("sum" in t for t in targets)


def test_one_place_is_found_in_gradients_too() -> None:
    text = "inputs: {x: 'T[..., N]'}\noutputs: {y: 'T[...]'}\nrequire: [N > 0]\nkernel: |\n"
    text += "  p[...] = argsort[k](x[..., k])[0]\n  y[...] = x[..., p[...]] ** 2\n"
    family = compile_text(HEAD + text, "f.yaml")
    for op in family.ops:
        for variant in cpu_programs(op):
            nests = {s.assign.target: s.plans for s in variant.program.stages if isinstance(s, NestStage)}
            assert isinstance(nests["p"][0], OrderPlan), op.name
            assert not any("sum" in target for target in nests), op.name


def test_an_order_beside_a_recurrence() -> None:
    text = """\
inputs: {x: 'T[N, D]', w: 'T[N]'}
outputs: {y: 'T[N]', h: 'T[N, D]', p: 'int64[N]', z: 'T[N, D]'}
kernel: |
  y[i] = w[p[i]]
  p[i] = argsort[k](w[k])[i]
  h[t, d] = pad(h[t - 1, d], 0) / 2 + x[t, d]
  z[t, d] = h[N - 1 - t, d]
"""
    lines = text.splitlines(keepends=True)
    op = compile_text(HEAD + "".join([*lines[:3], lines[4], lines[3], *lines[5:]]), "f.yaml").forward
    for variant in cpu_programs(op):
        program = variant.program
        (loop,) = program.steps
        inside = [s.assign.target for s in program.stages[loop.first : loop.end] if isinstance(s, NestStage)]
        assert inside
        assert "p" not in inside
        (order,) = (s for s in program.stages if isinstance(s, NestStage) and any(isinstance(p, OrderPlan) for p in s.plans))
        assert order.assign.target == "p"


def test_a_computed_key_stays_a_tensor_in_gradients() -> None:
    """Two evaluations of one expression may be rounded differently: ranks of such would be no permutation."""
    text = """\
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
kernel: |
  t[n] = log(x[n])
  p[i] = argsort[k](t[k])[i]
  y[i] = t[p[i]] * x[p[i]]
"""
    family = compile_text(HEAD + text, "f.yaml")
    assert family.backward is not None
    for op in family.ops:
        found = orderings(op)
        if any(s.target == "p" for s in op.body):
            (order,) = found.values()
            assert order.key.operand in {t.name for t in op.temporaries}, op.name
