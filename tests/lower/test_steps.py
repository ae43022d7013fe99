"""Recurrences are serial loops around the stages of one step, and what can't hold them says so."""

from __future__ import annotations

from opc.analysis.sharding import shardings
from opc.emit.cuda.files import refused as refused_on_device
from opc.emit.onnx.function import NoBody, function_body
from opc.emit.poplar.files import refused as refused_on_tiles
from opc.ir.op import Family, Op
from opc.lower.loop_ir import ContractionStage
from opc.lower.lower import lower
from opc.lower.memory import read_by
from opc.lower.printer import format_variant
from opc.pipeline import compile_text

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
    lines = text(LINEAR.forward).splitlines()
    (head,) = (n for n, line in enumerate(lines) if line == "  for t_now in 0 .. N, one after the other:")
    inside = [line for line in lines[head + 1 :] if line.startswith("    ")]
    assert any(
        "h_now[d] = a_copy[t_now, d] * (h_steps[t_now - 1, d] if t_now - 1 >= 0 else s[d]) + b_copy[t_now, d]" in x
        for x in inside
    )
    assert "  temporary h_now: T[D:D], the present step of h_steps" in lines


def test_the_gradient_falls() -> None:
    assert LINEAR.backward is not None
    assert "  for t_now in 0 .. N, falling, one after the other:" in text(LINEAR.backward)


def test_what_is_read_step_by_step_is_copied_once() -> None:
    """A nest copies a tensor that is strided or narrow whole: in a loop that would take time with the square of its steps."""
    (variant,) = lower(LINEAR.forward)
    (loop,) = variant.program.steps
    tensors = {o.name for o in LINEAR.forward.inputs if len(o.dims) == 2}
    read = [set(read_by(s)) for s in variant.program.stages]
    assert set[str]().union(*read[: loop.first]) == tensors
    assert not tensors & set[str]().union(*read[loop.first : loop.end])


def test_a_sum_in_a_step_is_a_contraction() -> None:
    (variant,) = lower(RECURRENT.forward)
    (loop,) = variant.program.steps
    assert any(isinstance(s, ContractionStage) for s in variant.program.stages[loop.first : loop.end])
    # What is made of the whole comes behind the loop.
    assert loop.end < len(variant.program.stages)


def test_the_axis_of_steps_is_not_cut() -> None:
    assert {s.along for s in shardings(LINEAR.forward)} == {"D"}
    assert {s.along for s in shardings(RECURRENT.forward)} == {"B"}


def test_devices_and_onnx_functions_refuse_them() -> None:
    for refused in (refused_on_device, refused_on_tiles):
        assert any("recurrence (h)" in d.message for d in refused(LINEAR))
    body = function_body(LINEAR.forward)
    assert isinstance(body, NoBody)
    assert "recurrence" in body.reason
