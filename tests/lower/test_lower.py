"""Golden tests of lowering: spec in, printed loops out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from opc.emit.kernel.slices import MOST_KEPT, MOST_SLICED
from opc.ir.expr import Reduce, Select, walk
from opc.lower.loop_ir import NestStage, RowStage
from opc.lower.lower import lower
from opc.lower.nest_plans import VectorPlan
from opc.lower.places import MOST_PLACED
from opc.lower.printer import format_variant
from opc.lower.rows.flatten import IrregularError, flatten
from opc.lower.rows.schedule import MOST_OPERANDS
from opc.lower.specialise import specialise
from opc.lower.summed import MOST_SUMMED
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[2] / "specs"

HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"

FUSED = """\
inputs: {x: 'T[...]', y: 'T[...]'}
outputs: {u: 'T[...]', v: 'T[...]'}
kernel: |
  s = exp(x)
  u = s - y
  v = s * y
"""
FUSED_LOOPS = """\
program f
  parallel rows along [...]: f
    schedule: nontemporal, convert(T)
    read input x: T[...]
    read input y: T[...]
    write output u: T[...]
    write output v: T[...]
    for each point of the row
      let s: T = exp(x)
      store u: T = s - y
      store v: T = s * y
"""

ROW = """\
inputs: {x: 'T[..., D]'}
outputs: {y: 'T[..., D]'}
kernel: |
  e[..., i] = exp(x[..., i])
  y[..., i] = e[..., i] / sum[k](e[..., k])
"""
ROW_LOOPS = """\
program f
  parallel whole rows of [...] along [i:D]: f
    schedule: interleave, batch(4, whole)
    read input x: T[..., k:D]
    write output y: T[..., i:D]
    for each point of the row
      buffer e in y: T = exp(x)
      accumulate y_sum: T = sum(e)
    for each point of the row
      store y: T = e / y_sum
"""

SCALE = """\
inputs: {x: 'T[..., D]', w: 'T[D]'}
outputs: {y: 'T[..., D]'}
kernel: |
  y[..., i] = x[..., i] * w[i]
"""
SCALE_BACKWARD_LOOPS = """\
program f_backward
  parallel rows along [..., i:D]: f_backward
    schedule: plain loops
    read input x: T[..., i:D]
    read input w: T[i:D]
    read input d_y: T[..., i:D]
    write output d_x: T[..., i:D]
    write output d_w: T[i:D], sum over points
    for each point of the row
      store d_x: T = w * d_y  if d_x wanted
      store d_w: T = x * d_y  if d_w wanted
"""

WHOLE = """\
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y[...] = x[...] / sum[...](x[...] * x[...])
"""
WHOLE_LOOPS = """\
program f
  temporary y_sum: T[]
  parallel rows along [...]: f_0
    schedule: vectorise(...)
    read input x: T[...]
    write temporary y_sum: T[], sum over points
    for each point of the row
      store y_sum: T = x * x
    or, where rows along [...] are long, with y_sum once a row
      for each point of the row
        accumulate y_sum: T = sum(x * x)
      store y_sum: T = y_sum
  parallel rows along [...]: f_1
    schedule: nontemporal, convert(T)
    read input x: T[...]
    read temporary y_sum: T[], once a row
    write output y: T[...]
    for each point of the row
      store y: T = x / y_sum
"""

BROADCAST = """\
broadcast: true
inputs: {a: 'T[...]', b: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = a * b
"""
BROADCAST_BACKWARD_LOOPS = """\
program f_backward
  parallel rows along [...]: f_backward
    schedule: nontemporal
    read input a: T[...]
    read input b: T[...]
    read input d_y: T[...]
    write output d_a: T[...@a], sum over points
    write output d_b: T[...@b], sum over points
    for each point of the row
      store d_a: T = b * d_y  if d_a wanted
      store d_b: T = a * d_y  if d_b wanted
"""

CASES = """\
inputs: {x: 'T[...]'}
attributes:
  mode: {type: str, values: [slow, fast], default: slow}
  flip: {type: bool, default: false}
outputs: {y: 'T[...]'}
kernel: |
  y = (-x if flip else x) if mode == 'fast' else exp(x)
"""
CASES_LOOPS = """\
program f when mode == 'slow'
  parallel rows along [...]: f_slow
    schedule: nontemporal, convert(T)
    read input x: T[...]
    write output y: T[...]
    for each point of the row
      store y: T = exp(x)

program f when mode == 'fast' and flip
  parallel rows along [...]: f_fast_flip
    schedule: nontemporal, convert(T)
    read input x: T[...]
    write output y: T[...]
    for each point of the row
      store y: T = -x

program f when mode == 'fast' and not flip
  parallel rows along [...]: f_fast_not_flip
    schedule: nontemporal, convert(T)
    read input x: T[...]
    write output y: T[...]
    for each point of the row
      store y: T = x
"""

BOTH = """\
inputs: {x: 'T[N, M]'}
outputs: {y: 'T[M]', z: 'T[N]'}
kernel: |
  y[j] = sum[i](x[i, j])
  z[i] = max[j](x[i, j])
"""
BOTH_LOOPS = """\
program f
  parallel whole rows of [i:N] along [j:M]: f
    schedule: plain loops
    read input x: T[i:N, j:M]
    write output y: T[j:M], sum over points
    write output z: T[i:N], once a row
    for each point of the row
      accumulate z: T = max(x)
      store y: T = x
    store z: T = z
"""

REVERSED = """\
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
kernel: |
  y[i] = x[N - 1 - i]
"""
REVERSED_LOOPS = """\
program f
  parallel [i]: f_y
    schedule: vectorise(i)
    y[i] = x[-i + N - 1]
"""

WINDOW = """\
gradient: none
inputs: {x: 'T[N, H, W]'}
attributes: {k: {type: int, check: k >= 1}}
outputs: {y: 'T[N, OH, OW]'}
shape: {OH: H - k + 1, OW: W - k + 1}
kernel: |
  y[n, i, j] = max[p:k, q:k](x[n, i + p, j + q])
"""
WINDOW_LOOPS = """\
program f
  parallel [n, i, j]: f_y
    schedule: vectorise(j), tile(p, q), channels(n)
    y[n, i, j] = max[p:k, q:k](x[n, i + p, j + q])
"""

GATHER = """\
inputs: {t: 'T[V, D]', ids: 'int64[N]'}
outputs: {y: 'T[N, D]'}
kernel: |
  y[n, d] = t[ids[n], d]
"""
GATHER_BACKWARD_LOOPS = """\
program f_backward
  parallel [i, j]: f_backward_d_t
    schedule: scatter(i = ids[n])
    d_t[i, j] = sum[n:N](d_y[n, j] if i == ids[n] else 0)
"""

HISTOGRAM = """\
gradient: none
inputs: {ids: 'int64[N]', x: 'T[V]'}
outputs: {y: 'T[V]'}
kernel: |
  y[v] = x[v] + sum[n](1 if ids[n] == v else 0)
"""
HISTOGRAM_LOOPS = """\
program f
  temporary y_sum: int64[V:V]
  parallel [v]: f_y_sum
    schedule: scatter(v = ids[n])
    y_sum[v] = sum[n:N](1 if ids[n] == v else 0)
  parallel rows along [v:V]: f_1
    schedule: nontemporal, convert(T)
    read input x: T[v:V]
    read temporary y_sum: int64[v:V]
    write output y: T[v:V]
    for each point of the row
      store y: T = x + y_sum
"""

CUMSUM = """\
inputs: {x: 'T[N, D]'}
outputs: {y: 'T[N, D]'}
kernel: |
  y[i, d] = sum[k:i + 1](x[k, d])
"""
CUMSUM_LOOPS = """\
program f
  parallel [i, d]: f_y
    schedule: scan(i)
    y[i, d] = sum[k:i + 1](x[k, d])
"""
CUMSUM_BACKWARD_LOOPS = """\
program f_backward
  parallel [k, d]: f_backward_d_x
    schedule: scan(k, down)
    d_x[k, d] = sum[j:-k + N](d_y[j + k, d])
"""

HALVES = """\
inputs: {x: 'T[N, D]', w: 'T[D]'}
outputs: {y: 'T[N, D]'}
require: [D % 2 == 0]
kernel: |
  y[n, d] = x[n, d] + w[d] * (pad(x[n, d + D // 2], 0) if d < D // 2 else pad(x[n, d - D // 2], 0))
"""
HALVES_LOOPS = """\
program f
  parallel [n, d]: f_y
    schedule: vectorise(d), split
    y[n, d] = x[n, d] + w[d] * (x[n, d + (D // 2)] if d < D // 2 else x[n, d - (D // 2)])
"""
HALVES_BACKWARD = (
    "d_x[n, d] = d_y[n, d] + w[d - (D // 2)] * d_y[n, d - (D // 2)] + 0 if d - (D // 2) >= 0"
    " else d_y[n, d] + 0 + w[d + (D // 2)] * d_y[n, d + (D // 2)]"
)


@pytest.mark.parametrize(
    ("text", "which", "expected"),
    [
        pytest.param(FUSED, "forward", FUSED_LOOPS, id="statements share a loop"),
        pytest.param(ROW, "forward", ROW_LOOPS, id="a kept value lives in the output's row"),
        pytest.param(SCALE, "backward", SCALE_BACKWARD_LOOPS, id="a sum over points joins the loop over points"),
        pytest.param(WHOLE, "forward", WHOLE_LOOPS, id="a sum over everything is a stage of its own"),
        pytest.param(BROADCAST, "backward", BROADCAST_BACKWARD_LOOPS, id="broadcast axes are summed over points"),
        pytest.param(CASES, "forward", CASES_LOOPS, id="string and bool attributes make cases"),
        pytest.param(BOTH, "forward", BOTH_LOOPS, id="reductions of both axes in one pass"),
        pytest.param(REVERSED, "forward", REVERSED_LOOPS, id="a shifted read makes a nest"),
        pytest.param(WINDOW, "forward", WINDOW_LOOPS, id="a window's accumulators are a row"),
        pytest.param(GATHER, "backward", GATHER_BACKWARD_LOOPS, id="the gradient of a gather is one pass over the terms"),
        pytest.param(HISTOGRAM, "forward", HISTOGRAM_LOOPS, id="a scatter in an expression is a statement of its own"),
        pytest.param(CUMSUM, "forward", CUMSUM_LOOPS, id="a running sum is one pass"),
        pytest.param(CUMSUM, "backward", CUMSUM_BACKWARD_LOOPS, id="and so is a sum from here on"),
        pytest.param(HALVES, "forward", HALVES_LOOPS, id="what a condition says of a read decides its padding"),
    ],
)
def test_loops(text: str, which: str, expected: str) -> None:
    op = getattr(compile_text(HEAD + text, "f.yaml"), which)
    assert "\n".join(format_variant(v) for v in lower(op)) == expected


def test_one_condition_stands_around_all_terms_that_hang_on_it() -> None:
    backward = compile_text(HEAD + HALVES, "f.yaml").backward
    assert backward is not None
    (variant,) = lower(backward)
    loops = format_variant(variant)
    assert HALVES_BACKWARD in loops
    assert "pad(" not in loops


@pytest.mark.parametrize(
    ("inputs", "outputs", "kernel", "reason"),
    [
        ("{x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = x[N - 1 - i]", "x is indexed by -i + N - 1"),
        ("{x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = pad(x[i + 1], 0)", "a read of x may fall outside"),
        ("{x: 'T[N]'}", "{y: 'T[N, N]'}", "y[i, j] = x[i] * x[j]", "two indices of one statement run over the same extent"),
        ("{x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = x[i] + sum[j](x[j] * j)", "a reduction uses the value of an index"),
        ("{x: 'T[N]'}", "{y: 'T[N]'}", "y[i] = sum[j:i + 1](x[j])", "the extent of j depends on an index"),
    ],
)
def test_irregular_bodies(inputs: str, outputs: str, kernel: str, reason: str) -> None:
    text = f"{HEAD}gradient: none\ninputs: {inputs}\noutputs: {outputs}\nkernel: |\n  {kernel}\n"
    with pytest.raises(IrregularError, match=reason.replace("+", r"\+")):
        flatten(compile_text(text, "f.yaml").forward)


def test_sums_lie_as_what_is_made_of_them_does() -> None:
    """The sum for d_b of a[i, k] - b[j, k] is kept by rows of b, though k is named first."""
    loops = program("cdist", "cdist_backward")
    assert "write temporary d_b_sum: T[...@b, j:R, k:M], sum over points" in loops


COMPARED = """\
inputs: {x: 'T[..., N]', w: 'T[...]'}
attributes: {p: {type: float, default: 2.5}, scale: {type: float, default: 0.0}}
outputs: {y: 'T[...]'}
kernel: |
  y[...] = sum[n](x[..., n] ** 2 if p == 2.5 else abs(x[..., n]) ** p) * (N * w[...] if scale == 0 else scale * w[...])
"""


def test_a_number_that_chooses_between_loops_has_a_case_for_either_answer() -> None:
    """Sides that differ in what operands are multiplied with are no reason: `scale == 0` is asked in the loops there are."""
    cases = specialise(compile_text(f"{HEAD}gradient: none\n{COMPARED}", "f.yaml").forward)
    assert [case.suffix for case in cases] == ["_p_2_5", "_p_not_2_5"]
    sums = [e for case in cases for s in case.op.body for e in walk(s.value) if isinstance(e, Reduce)]
    assert not any(isinstance(e, Select) for total in sums for e in walk(total))


def program(spec: str, op: str) -> str:
    """Return the loops of one op of a spec's family, of its first case."""
    family = load_family(SPECS / f"{spec}.yaml")
    (found,) = (o for o in family.ops if o.name == op)
    return format_variant(lower(found)[0])


def test_positions_that_a_scatter_asks_for_have_no_memory() -> None:
    """The gradient of max pooling finds the greatest of each window in the rows of its scatter."""
    loops = program("max_pool2d", "max_pool2d_backward")
    assert "temporary" not in loops
    assert "argmax[k_found:kernel_size[0], l_found:kernel_size[1]]" in loops
    assert ", windows)" in loops


def test_positions_that_others_read_stay_in_memory() -> None:
    assert "temporary y_argmax: int64" in program("max_pool2d", "max_pool2d_jvp")


def test_sums_over_points_of_whole_rows_are_folds() -> None:
    """Rows are those of which most is computed; what sums them over other loops too adds a number a row."""
    loops = program("instance_norm", "instance_norm_backward")
    assert "parallel whole rows of [n:N, c:C] along [*S]" in loops
    assert "write temporary d_scale_sum: T[c:C], once a row, sum over points" in loops
    assert "accumulate d_scale_sum: T = sum((x - mean) * rstd * d_y)" in loops


def test_a_group_of_one_point_leaves_the_axis_before_it_as_the_lane() -> None:
    """The last axis of a tensor is searched along itself, where it lies, whatever groups its statement names behind it."""
    family = load_family(SPECS / "argmax.yaml")
    (op,) = (o for o in family.ops if o.name == "argmax")
    plans = [s.plans for v in lower(op) for s in v.program.stages if isinstance(s, NestStage)]
    assert plans
    assert all(isinstance(alone, VectorPlan) and alone.vector_axis is None for _, alone in plans)


@pytest.mark.parametrize(("inputs", "copies"), [("abc", True), ("abcd", False)])
def test_loops_that_leave_out_products_are_copied_for_few_of_them(inputs: str, copies: bool) -> None:
    """The kernel's loops are compiled once more for each; where there are many, what nobody wants is computed and dropped."""
    operands = ", ".join(f"{n}: 'T[N]'" for n in inputs)
    text = f"inputs: {{{operands}}}\noutputs: {{y: 'T[N]'}}\nkernel: y[i] = {' * '.join(f'{n}[i]' for n in inputs)}\n"
    family = compile_text(HEAD + text, "f.yaml")
    assert family.backward is not None
    assert family.backward_jvp is not None
    (backward,), (tangent,) = lower(family.backward), lower(family.backward_jvp)
    assert ("wanted" in format_variant(backward)) == copies
    assert "wanted" not in format_variant(tangent), "a tangent wants all"


LIMITS = {
    "max_operands": ("core/stage.h", MOST_OPERANDS),
    "most_sliced": ("core/slices.h", MOST_SLICED),
    "most_kept": ("core/slices.h", MOST_KEPT),
    "most_placed": ("core/slices.h", MOST_PLACED),
    "most_summed": ("rows/summed_slices.h", MOST_SUMMED),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_are_those_of_the_runtime(name: str) -> None:
    header, value = LIMITS[name]
    text = (SPECS.parent / "runtime" / "include" / "opc" / header).read_text()
    assert f"{name} = {value} " in text.replace(",", " ")


@pytest.mark.parametrize("value", ["x[..., m] * {}", "max[k](x[..., k]) - {} * x[..., m]"])
def test_a_stage_has_no_more_operands_than_a_tile(value: str) -> None:
    count = 2 * MOST_OPERANDS
    outputs = ", ".join(f"y{n}: 'T[..., M]'" for n in range(count))
    body = "".join(f"  y{n}[..., m] = {value.format(n)}\n" for n in range(count))
    text = f"{HEAD}inputs: {{x: 'T[..., M]'}}\noutputs: {{{outputs}}}\ngradient: none\nkernel: |\n{body}"
    (variant,) = lower(compile_text(text, "f.yaml").forward)
    stages = [s for s in variant.program.stages if isinstance(s, RowStage)]
    assert all(len(s.operands) <= MOST_OPERANDS for s in stages)
    assert sorted(o.name for s in stages for o in s.products if o.kind == "output") == sorted(f"y{n}" for n in range(count))


def test_an_op_is_lowered_once_and_one_that_says_the_same_by_itself() -> None:
    """The covering set is read off the programs that kernels are made of; equal is not the same, as 1 and True are equal."""
    first = compile_text(f"{HEAD}{FUSED}", "f.yaml").forward
    second = replace(first)
    assert lower(first) is lower(first)
    assert lower(second) is not lower(first)
