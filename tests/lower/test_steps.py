"""Recurrences are serial loops around the stages of one step, and what can't hold them says so."""

from __future__ import annotations

import pytest

from opc.analysis.sharding import shardings
from opc.emit.cuda.files import cuda_files
from opc.emit.cuda.files import refused as refused_on_device
from opc.emit.poplar.files import refused as refused_on_tiles
from opc.ir.affine import Affine
from opc.ir.expr import Expr, Read, rewrite
from opc.ir.op import Family, Op
from opc.ir.verify import VerifyError
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import ContractionStage, IndexLoop, NestStage, read_by, written_by
from opc.lower.lower import lower
from opc.lower.printer import format_variant
from opc.lower.steps_by_points import verify_by_points
from opc.pipeline import compile_text
from opc.records import replace

HEAD = "op: foo\ndomain: tests\nversion: 1\ndoc: A test.\ntypes: {T: [float16, float32]}\n"


def family(inputs: str, outputs: str, *body: str, more: str = "") -> Family:
    lines = "".join(f"  {line}\n" for line in body)
    return compile_text(f"{HEAD}{more}inputs: {inputs}\noutputs: {outputs}\nkernel: |\n{lines}")


LINEAR = family(
    "{a: 'T[N, D]', b: 'T[N, D]', s: 'T[D]'}", "{h: 'T[N, D]'}", "h[t, d] = a[t, d] * pad(h[t - 1, d], s[d]) + b[t, d]"
)
RECURRENT = family(
    "{x: 'T[N, B, D]', r: 'T[D, D]'}",
    "{h: 'T[N, B, D]', y: 'T[B, D]'}",
    "z[t, b, d] = x[t, b, d] + sum[k](r[d, k] * pad(h[t - 1, b, k], 0))",
    "h[t, b, d] = tanh(z[t, b, d])",
    "y[b, d] = h[N - 1, b, d]",
    more="require: [N > 0]\n",
)


def text(op: Op) -> str:
    (variant,) = lower(op)
    return format_variant(variant)


def test_the_stages_of_a_step_are_in_a_loop() -> None:
    lines = text(RECURRENT.forward).splitlines()
    (head,) = (n for n, line in enumerate(lines) if line == "  for t_now in 0 .. N, one after the other:")
    inside = [line for line in lines[head + 1 :] if line.startswith("    ")]
    assert any("z_now[b, d] = " in line or "store z_now" in line for line in inside)
    assert "  temporary z_now: T[B:B, D:D], the present step of z" in lines


def test_points_that_need_no_others_take_all_steps_by_themselves() -> None:
    lines = text(LINEAR.forward).splitlines()
    (head,) = (n for n, line in enumerate(lines) if "one after the other" in line)
    assert lines[head] == "  for a few rows of points at a time, in parallel, for t_now in 0 .. N, one after the other:"
    value = "h_now[d] = a[t_now, d] * (h_steps[t_now - 1, d] if t_now - 1 >= 0 else s[d]) + b[t_now, d]"
    assert any(value in line for line in lines[head + 1 :] if line.startswith("    "))
    assert "  temporary h_now: T[D:D], the present step of h_steps" in lines


def test_the_gradient_falls() -> None:
    assert LINEAR.backward is not None
    falls = "for t_now in 0 .. N, falling, one after the other:"
    assert f"  for a few rows of points at a time, in parallel, {falls}" in text(LINEAR.backward)
    assert RECURRENT.backward is not None
    assert f"  {falls}" in text(RECURRENT.backward)


def test_an_output_is_made_in_its_own_memory() -> None:
    values = {t.name: t.becomes for t in lower(LINEAR.forward)[0].program.temporaries}
    assert values == {"h_steps": "h", "h_now": None}
    # The last axis is that of the steps here, so that the values lie in another order.
    of = family("{x: 'T[B, N]'}", "{y: 'T[B, N]'}", "y[b, t] = x[b, t] + pad(y[b, t - 1], 0)").forward
    assert {t.becomes for t in lower(of)[0].program.temporaries} == {None}


def test_a_step_in_the_middle_stays_there() -> None:
    of = family("{x: 'T[B, N, D]'}", "{y: 'T[B, N, D]'}", "y[b, t, d] = x[b, t, d] + pad(y[b, t - 1, d], 0)").forward
    (variant,) = lower(of)
    assert {t.name: str(t.loops[0].extent) for t in variant.program.temporaries if isinstance(t.loops[0], IndexLoop)} == {
        "y_steps": "B",
        "y_now": "B",
    }
    assert {t.part_of: t.axis for t in variant.program.temporaries} == {None: 0, "y_steps": 1}


def test_what_steps_by_points_is_verified() -> None:
    (variant,) = lower(LINEAR.forward)
    op = variant.case.op
    verify_by_points(op, variant.program)
    (stage,) = (s for s in variant.program.stages if isinstance(s, NestStage))
    stray = replace(stage, assign=stage.assign.with_value(rewrite(stage.assign.value, _elsewhere)))
    stages = tuple(stray if s is stage else s for s in variant.program.stages)
    with pytest.raises(VerifyError, match="reads h_steps at other points than its own"):
        verify_by_points(op, replace(variant.program, stages=stages))
    with pytest.raises(VerifyError, match="do not compute rows"):
        verify_by_points(op, replace(variant.program, steps=(replace(variant.program.steps[0], end=2),)))


def _elsewhere(e: Expr) -> Expr:
    """Return a read of the values of all steps at the first point."""
    return replace(e, indices=(e.indices[0], Affine.of(0))) if isinstance(e, Read) and e.operand == "h_steps" else e


def test_what_is_read_step_by_step_is_copied_once() -> None:
    """A nest copies a tensor that is strided or narrow whole: in a loop that would take time with the square of its steps."""
    (variant,) = lower(RECURRENT.forward)
    (loop,) = variant.program.steps
    read = [set(read_by(s)) for s in variant.program.stages]
    assert "x" in set[str]().union(*read[: loop.first])
    assert "x" not in set[str]().union(*read[loop.first : loop.end])


def test_a_sum_in_a_step_is_a_contraction() -> None:
    (variant,) = lower(RECURRENT.forward)
    (loop,) = variant.program.steps
    assert any(isinstance(s, ContractionStage) for s in variant.program.stages[loop.first : loop.end])
    # What is made of the whole comes behind the loop.
    assert loop.end < len(variant.program.stages)


def test_the_axis_of_steps_is_not_cut() -> None:
    assert {s.along for s in shardings(LINEAR.forward)} == {"D"}
    assert {s.along for s in shardings(RECURRENT.forward)} == {"B"}


def test_tiles_refuse_them() -> None:
    assert any("recurrence (h)" in d.message for d in refused_on_tiles(LINEAR))


def test_a_device_launches_each_step() -> None:
    """What its stages read of the call lies where it is: no operand is copied for the steps, and no point has its own loop."""
    for family in (LINEAR, RECURRENT):
        assert not refused_on_device(family)
        (variant,) = device_programs(family.forward)
        (loop,) = variant.program.steps
        assert not loop.by_points
        inside = variant.program.stages[loop.first : loop.end]
        assert set(family.forward.assignments) & {"h"} <= {n.removesuffix("_now") for s in inside for n in written_by(s)}
        assert not any(t.name.endswith("_copy") or t.becomes for t in variant.program.temporaries)
        source = cuda_files(family)["kernel/foo.cu"]
        steps = source[source.index("for (int64_t t_now = 0;") :]
        assert steps.index("OPC_LAUNCH") < steps.index("  return code == OPC_OK")


def test_a_product_that_needs_no_state_is_one_of_all_steps() -> None:
    of = family(
        "{x: 'T[N, B, I]', w: 'T[D, I]', r: 'T[D, D]', u: 'T[D, I]'}",
        "{h: 'T[N, B, D]'}",
        "z[t, b, d] = sum[k](w[d, k] * x[t, b, k]) + sum[k](r[d, k] * pad(h[t - 1, b, k], 0))",
        # What is not read at the first step may not be read there at all.
        "h[t, b, d] = tanh(z[t, b, d] + (sum[k](u[d, k] * x[t - 1, b, k]) if t > 0 else 0))",
    ).forward
    (variant,) = lower(of)
    (loop,) = variant.program.steps
    ahead = variant.program.stages[: loop.first]
    assert any(isinstance(s, ContractionStage) and set(read_by(s)) == {"w", "x"} for s in ahead)
    (inside,) = (s for s in variant.program.stages[loop.first : loop.end] if isinstance(s, ContractionStage))
    assert "r" in set(read_by(inside))
    assert not {"w", "u"} & {n for s in variant.program.stages[loop.first : loop.end] for n in read_by(s)}
