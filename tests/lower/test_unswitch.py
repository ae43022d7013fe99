"""Stages that only some calls need: what is one for each choice, and what is shared."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from opc.ir.expr import size
from opc.ir.op import Op
from opc.lower.calls import calls_of, put, values_of
from opc.lower.fuse import cpu_programs
from opc.lower.loop_ir import NestStage, Program, read_by, written_by
from opc.lower.lower import lower
from opc.lower.nest_plans import VectorPlan
from opc.pipeline import compile_text, load_family
from tests.transform.language import spec_text

GROWTH = Path(__file__).parents[1] / "transform" / "growth"

ATTRIBUTES = """\
attributes:
  mode: {type: str, values: [near, linear, cubic], default: linear}
  edge: {type: str, values: [zeros, clamp, wrap], default: zeros}
  centred: {type: bool, default: false}
"""


def op_of(kernel: str, inputs: str = "{x: 'T[N, W]', u: 'T[N, W]'}", outputs: str = "{y: 'T[N, W]'}") -> Op:
    body = "".join(f"  {line}\n" for line in kernel.splitlines())
    text = spec_text("f", f"inputs: {inputs}\n{ATTRIBUTES}outputs: {outputs}\nkernel: |\n{body}")
    return compile_text(text).forward


SAMPLED = """\
p[n, i] = u[n, i] + 1 if centred else u[n, i]
a[n, i] = p[n, i] if edge == 'zeros' else maximum(p[n, i], 0) if edge == 'clamp' else abs(p[n, i])
g[n, i:W] = a[n, W - 1 - i] - floor(a[n, i])
h[n, i:W] = a[n, W - 1 - i] * 3
y[n, i] = (pad(x[n, cast(int64, round(a[n, i]))], 0) if mode == 'near' else
  sum[k:2](g[n, i] * pad(x[n, cast(int64, floor(a[n, i])) + k], 0)) if mode == 'linear' else
  sum[k:9](h[n, i] * pad(x[n, cast(int64, floor(a[n, i])) + k], 0)))"""


def test_a_sum_of_each_mode_is_a_stage_of_its_own_and_what_it_alone_reads_runs_with_it() -> None:
    op = op_of(SAMPLED)
    (variant,) = cpu_programs(op)
    program = variant.program
    when = {s.name: program.when[s.name].text(op) for s in program.stages if s.name in program.when}
    assert when == {
        "f_g": "mode == 'linear'",
        "f_h": "mode == 'cubic'",
        "f_y_near": "mode == 'near'",
        "f_y_linear": "mode == 'linear'",
        "f_y_cubic": "mode == 'cubic'",
    }
    memory = {t.name: None if t.when is None else t.when.text(op) for t in program.temporaries}
    assert memory == {"a": None, "g": "mode == 'linear'", "h": "mode == 'cubic'"}


def test_the_sum_of_a_mode_has_the_form_that_it_has_alone() -> None:
    """A few terms are written out in a loop over lanes, where a choice between sums goes point by point."""
    (variant,) = cpu_programs(op_of(SAMPLED))
    nests = {s.name: s for s in variant.program.stages if isinstance(s, NestStage)}
    plans = [p for p in nests["f_y_linear"].plans if isinstance(p, VectorPlan)]
    assert len(plans) == len(nests["f_y_linear"].plans) > 0
    assert all(p.vector_axis == "i" and p.looked_up == ("x",) for p in plans)


def test_a_condition_on_all_modes_is_none() -> None:
    """Where no attribute chooses between reductions, or there are cases of all, the program is that of `lower`."""
    op = op_of("y[n, i] = x[n, W - 1 - i] * (2 if centred else 1) + (0 if edge == 'zeros' else 1) + (0 if mode == 'near' else 1)")
    assert [v.program for v in cpu_programs(op)] == [v.program for v in lower(op)]


@pytest.mark.parametrize("name", ["grid_modes", "grid_reflect", "roi_align"])
@pytest.mark.parametrize("n", [0, 1, 2])
def test_in_each_call_all_that_is_read_has_been_written_once(name: str, n: int) -> None:
    op = load_family(GROWTH / f"{name}.yaml").ops[n]
    for variant in cpu_programs(op):
        for call in calls(op):
            check_call(variant.case.op, variant.program, call)


def calls(op: Op) -> list[dict[str, int | bool]]:
    attributes = [a for a in op.attributes if values_of((a,)) and (a.values or a.kind.value == "bool")]
    own = ([v for (v,) in values_of((a,))] for a in attributes)
    return [dict(zip([a.name for a in attributes], values, strict=True)) for values in itertools.product(*own)]


def check_call(op: Op, program: Program, call: dict[str, int | bool]) -> None:
    def runs(name: str) -> bool:
        found = program.when.get(name)
        return found is None or any(all(call[a] in values for a, values in case) for case in found.cases)

    memory = {o.name for o in op.inputs}
    for s in program.stages:
        if runs(s.name):
            total = [s.sum] if isinstance(s, NestStage) and s.sum is not None else []
            assert set(read_by(s)) <= memory
            written = {*written_by(s), *total}
            assert not memory & written
            memory |= written
    there = {t.name for t in program.temporaries if t.when is None or any(all(call[a] in v for a, v in c) for c in t.when.cases)}
    assert {o.name for o in op.outputs} <= memory
    assert memory - {o.name for o in (*op.inputs, *op.outputs)} == there


def test_modes_are_shared_but_for_what_they_choose() -> None:
    """What a CPU runs of a spec with many modes has about as many nodes as the spec is lowered to, not so many for each mode."""
    for op in load_family(GROWTH / "grid_modes.yaml").ops[:2]:
        (lowered,), (variant,) = lower(op), cpu_programs(op)
        whole = sum(size(s.value) for s in lowered.case.op.body)
        own: dict[str, int] = {}
        for s in variant.program.stages:
            if isinstance(s, NestStage):
                own[s.assign.target] = own.get(s.assign.target, 0) + size(s.assign.value)
        rest = sum(size(s.value) for s in lowered.case.op.body if s.target not in own)
        assert len(variant.program.when) >= 2
        assert sum(own.values()) + rest <= 1.5 * whole


@pytest.mark.parametrize("seed", range(8))
def test_a_condition_says_which_values_it_is_for(seed: int) -> None:
    op = op_of(SAMPLED)
    every = values_of(op.attributes)
    some = frozenset(v for v in every if np.random.default_rng(seed * 100 + every.index(v)).random() < 0.5)
    found = calls_of(op.attributes, some)
    assert found is not None
    text = found.text(op)
    for v in every:
        assert bool(eval(text, {}, dict(put(op.attributes, v)))) == (v in some)
    assert calls_of(op.attributes, every) is None
