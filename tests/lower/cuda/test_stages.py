"""The stages of a device, and the schedules of their loops."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.emit.cuda.files import cuda_files
from opc.ir.expr import Const, reads
from opc.loops.printer import format_kernel
from opc.lower.cuda.kernels import cuda_kernel
from opc.lower.cuda.stages import device_programs
from opc.lower.loop_ir import NestStage, RowStage, written_by
from opc.pipeline import compile_text, load_family
from opc.records import replace

ROOT = Path(__file__).parents[3]
HEAD = "op: f\ndomain: opc.test\nversion: 1\ndoc: A test.\ntypes: {T: [float32, float64]}\n"


def schedules(op: str) -> dict[str, str]:
    """Return the schedule of each stage of the first program of an op of the folder of specs."""
    variant = device_programs(load_family(ROOT / "specs" / f"{op}.yaml").forward)[0]
    return {s.name: str(cuda_kernel(variant.case.op, s).schedule) for s in variant.program.stages}


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("leaky_relu", {"leaky_relu": "bind(points to all threads), pack(16 bytes), unroll(4)"}),
        ("softmax", {"softmax": "bind(rows to teams, points to threads), pack(16 bytes), unroll(2), occupancy(2)"}),
        ("gather", {"gather_y": "bind(points to all threads), pack(16 bytes, B)"}),
        ("argmax", {"argmax_y_select_last_index": "bind(points to teams), share(terms, pairs), coalesce(points)"}),
        ("cumsum", {"cumsum_y_reverse": "bind(lines to teams), scan(i, one pass)"}),
        (
            "matmul",
            {
                "matmul_y": "bind(tiles to blocks), tile(64 x 64, 128 x 128, 128 x 256), "
                "tensor(float16, bfloat16), library(cuBLASLt)"
            },
        ),
        (
            "conv2d",
            {
                "conv2d_w_moved": "bind(tiles to blocks), move(j)",
                "conv2d_x_moved": "bind(tiles to blocks), move(j)",
                "conv2d_y": (
                    "bind(tiles to blocks), tile(64 x 64, 128 x 128, 128 x 256), tensor(float16, bfloat16), gather(right)"
                ),
            },
        ),
        ("max_pool2d", {"max_pool2d_y": "bind(points to teams), share(terms, parts), index(32 bits)"}),
    ],
)
def test_schedules(op: str, expected: dict[str, str]) -> None:
    assert schedules(op) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("sum[k:i + 1](x[n, k])", "bind(lines to teams), scan(i, one pass)"),
        ("sum[k:N - i](x[n, i + k])", "bind(lines to teams), scan(i, one pass)"),
        ("sum[k:i - 2*n](x[0, k])", "bind(rows to all threads), scan(i)"),
    ],
)
def test_lines_that_take_in_as_many_terms_are_read_in_one_pass(value: str, expected: str) -> None:
    spec = f"inputs: {{x: 'T[M, N]'}}\noutputs: {{y: 'T[M, N]'}}\nkernel: 'y[n, i] = cast(T, {value})'\ngradient: none\n"
    (variant,) = device_programs(compile_text(HEAD + spec, "f.yaml").forward)
    assert [str(cuda_kernel(variant.case.op, s).schedule) for s in variant.program.stages] == [expected]


def test_kernels_that_compute_alike_are_one_whatever_their_operands_are_called() -> None:
    family = load_family(ROOT / "specs" / "cumsum.yaml")
    text = cuda_files(family)["kernel/cumsum.cu"]
    stages = [s for op in family.ops for v in device_programs(op) for s in v.program.stages]
    assert len(stages) == 10
    assert text.count("OPC_KERNEL(") == 5


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("atomic", ["bind(terms to all threads), scatter(v, atomic)", "bind(points to all threads), pack(16 bytes, j)"]),
        ("deterministic", ["bind(points to teams), scatter(v, sort)"]),
    ],
)
def test_terms_are_added_atomically_where_a_spec_permits_it(order: str, expected: list[str]) -> None:
    spec = "inputs: {t: 'T[V, D]', ids: 'int64[N]'}\noutputs: {y: 'T[N, D]'}\nkernel: 'y[n, d] = t[ids[n], d]'\n"
    family = compile_text(HEAD + spec + f"gradient: {{scatter: {order}}}\n", "f.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    found = [str(cuda_kernel(variant.case.op, s).schedule) for s in variant.program.stages]
    assert [re.sub(r"scatter\(\w+", "scatter(v", text) for text in found] == expected


def test_places_of_windows_are_searched_for_once() -> None:
    """Each term has its search once; an element then goes over the windows that hold it alone."""
    family = load_family(ROOT / "specs" / "max_pool2d.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    place, d_x = variant.program.stages
    assert [t.name for t in variant.program.temporaries] == ["d_x_place"]
    assert isinstance(place, NestStage)
    found = format_kernel("f", cuda_kernel(variant.case.op, place))
    assert sum("var argmax" in line for line in found) == 1
    text = "\n".join(format_kernel("f", cuda_kernel(variant.case.op, d_x)))
    assert "argmax" not in text
    assert text.count("narrow_low(") == text.count("narrow_high(") == 2


def test_a_remainder_makes_a_loop_go_in_steps() -> None:
    """Of a window's places, one in so many as a step is wide may have added an element."""
    family = load_family(ROOT / "specs" / "avg_pool2d.yaml")
    assert family.backward is not None
    variant = device_programs(family.backward)[0]
    (stage,) = [s for s in variant.program.stages if written_by(s) == ("d_x",)]
    found = [line.strip() for line in format_kernel("f", cuda_kernel(variant.case.op, stage))]
    assert sum(line.startswith("rolled for term") for line in found) == 2
    divided = [line for line in found if "%" in line and not line.startswith("#")]
    assert [line.split(", ")[0] for line in divided] == ["skip_ahead(low", "skip_ahead(low_2"]


def test_places_that_no_window_bounds_are_sorted() -> None:
    spec = "inputs: {t: 'T[K]', x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: 'y[n] = t[argmax[k:K](pad(x[n + k], -inf))]'\n"
    family = compile_text(HEAD + spec, "f.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    found = {s.name: str(cuda_kernel(variant.case.op, s).schedule) for s in variant.program.stages}
    assert [t.name for t in variant.program.temporaries] == ["d_t_found"]
    assert re.fullmatch(r"bind\(points to teams\), scatter\(\w+, sort\)", found["f_backward_d_t"])


def test_sums_over_rows_are_statements_beside_the_rows() -> None:
    """What they add up is made anew in them, not read from memory."""
    family = load_family(ROOT / "specs" / "layer_norm.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    rows, *sums = variant.program.stages
    assert isinstance(rows, RowStage)
    assert written_by(rows) == ("d_x",)
    assert [written_by(s) for s in sums] == [("d_w",), ("d_b",)]
    assert all(isinstance(s, NestStage) for s in sums)
    assert variant.program.temporaries == ()
    (first, _) = (cuda_kernel(variant.case.op, s) for s in sums)
    assert str(first.schedule) == "bind(points to teams), share(terms, parts), coalesce(points), pack(16 bytes, j)"


def test_sums_over_images_are_sums_of_rows_first() -> None:
    """One stage of rows reads what all of them add up; what is left is as small as rows are few."""
    family = load_family(ROOT / "specs" / "group_norm.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    rows, *_ = variant.program.stages
    assert isinstance(rows, RowStage)
    assert len(written_by(rows)) == 5
    assert [o.name for o in rows.operands if o.along_row] == ["x", "d_y"]


def test_rows_read_what_sums_over_points_come_to() -> None:
    """The mean of a loss divides by a sum over all labels, which is there before the rows."""
    family = load_family(ROOT / "specs" / "cross_entropy.yaml")
    assert family.backward is not None
    mean, _ = device_programs(family.backward)
    names = [written_by(s) for s in mean.program.stages]
    rows = next(s for s in mean.program.stages if "d_x" in written_by(s))
    assert isinstance(rows, RowStage)
    assert names.index(("y_sum",)) < names.index(written_by(rows))
    assert "y_sum" in {o.name for o in rows.operands if not o.written}


def test_rows_across_what_they_read_are_summed_at_points() -> None:
    """Neighbouring threads have neighbouring columns; a thread of a row would read each element from afar."""
    family = load_family(ROOT / "specs" / "linear.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    (bias,) = [s for s in variant.program.stages if written_by(s) == ("d_b",)]
    assert "coalesce(points), pack(16 bytes, o)" in str(cuda_kernel(variant.case.op, bias).schedule)


def test_rows_that_are_left_with_one_product_run_where_it_is_wanted() -> None:
    """The sum beside them may be all that a call asks for: they would write to nowhere."""
    text = cuda_files(load_family(ROOT / "specs" / "outer.yaml"))["kernel/outer.cu"]
    body = text.split("int32_t opc_outer_backward_cuda(")[1]
    before, _ = body.split("opc::operand operands[4];", 1)
    assert before.rstrip().endswith("if (opc::wanted(outputs[0])) {")


def test_what_a_product_reads_stays_in_memory() -> None:
    """Its factors are elements, which tiles are copied from and tensor cores take."""
    spec = "inputs: {a: 'T[M, K]', b: 'T[K, N]'}\noutputs: {y: 'T[M, N]'}\nkernel: |\n  c[m, k] = 2 * a[m, k]\n"
    spec += "  d[m] = sum[k](c[m, k])\n  y[m, n] = sum[k](c[m, k] * b[k, n]) + d[m]\ngradient: none\n"
    (variant,) = device_programs(compile_text(HEAD + spec, "f.yaml").forward)
    schedules = {written_by(s)[-1]: str(cuda_kernel(variant.case.op, s).schedule) for s in variant.program.stages}
    assert schedules["y"].startswith("bind(tiles to blocks)")
    assert {n for s in variant.program.stages for n in written_by(s)} == {"c", "d", "y"}


TURNED = (
    "inputs: {x: 'T[N, C, L]', w: 'T[O, C, K]'}\nattributes: {s: {type: int, check: s > 0}}\noutputs: {y: 'T[N, O, M]'}\n"
    "shape: {M: (L - 1)*s + K - 2}\nkernel: |\n  y[n, o, i] = sum[c, p](w[o, c, p] * x[n, c, (i - p + 1) // s]\n"
    "    if (i - p + 1) % s == 0 and (i - p + 1) // s >= 0 and (i - p + 1) // s < L else 0)\ngradient: none\n"
)


def test_a_window_turned_round_is_found_by_places() -> None:
    """A point and a term tell together where an element lies: what is left of one is what completes the other."""
    (variant,) = device_programs(compile_text(HEAD + TURNED, "f.yaml").forward)
    assert [s.name for s in variant.program.stages] == ["f_w_moved", "f_x_moved", "f_y"]
    assert all(t.copied for t in variant.program.temporaries)
    kernel = cuda_kernel(variant.case.op, variant.program.stages[-1])
    text = "\n".join(format_kernel("f", kernel))
    schedule = "bind(tiles to blocks), tile(64 x 64, 128 x 128), gather(right)"
    assert str(kernel.schedule) == schedule
    expected = [
        "let quotient: int64 = quotient_down(-i - 1, s)",
        "result placed<2>((n*x_moved.stride[0] + (-quotient)*x_moved.stride[1] + 0*x_moved.stride[2]), i + 1, ",
        " -i - quotient*s - 1)",
        "let quotient: int64 = quotient_down(-p, s)",
        "result placed<2>((0*x_moved.stride[0] + quotient*x_moved.stride[1] + c*x_moved.stride[2]), -p, -p - quotient*s)",
        "gathered_places<1, 1>(&x_moved[0], right_points, right_terms, L*s)",
    ]
    assert [line for line in expected if line not in text] == []
    # What does not count is not to make infinite times 0: such points are added up again.
    assert text.count("function again(") == 1


def test_channels_of_images_are_moved_once_for_both_gradients() -> None:
    family = load_family(ROOT / "specs" / "conv2d.yaml")
    assert family.backward is not None
    (variant,) = device_programs(family.backward)
    names = ["w_moved", "d_y_moved", "d_x", "x_moved", "d_w", "2_0", "d_b"]
    assert [s.name.removeprefix("conv2d_backward_") for s in variant.program.stages] == names
    found = {t.name: t.needed_by for t in variant.program.temporaries}
    assert found == {"w_moved": ("d_x",), "d_y_moved": ("d_x", "d_w"), "x_moved": ("d_w",), "d_b_rows": ("d_b",)}
    schedules = [str(cuda_kernel(variant.case.op, s).schedule) for s in variant.program.stages]
    assert schedules[2].endswith("gather(left, right)")
    assert schedules[4].endswith("gather(right)")


def test_images_that_a_window_reads_along_channels_are_not_moved() -> None:
    spec = "inputs: {x: 'T[N, L, C]', w: 'T[O, K, C]'}\noutputs: {y: 'T[N, M, O]'}\nshape: {M: L}\n"
    spec += "kernel: 'y[n, i, o] = sum[p, c](w[o, p, c] * pad(x[n, i + p, c], 0))'\ngradient: none\n"
    (variant,) = device_programs(compile_text(HEAD + spec, "f.yaml").forward)
    assert [s.name for s in variant.program.stages] == ["f_y"]
    assert str(cuda_kernel(variant.case.op, variant.program.stages[0]).schedule).endswith("gather(left)")


def test_a_statement_in_two_stages_runs_once() -> None:
    """On a CPU the sum is a stage of its own, and what is made of it another."""
    spec = "inputs: {x: 'T[N, M]'}\noutputs: {y: 'T[]'}\nkernel: 'y[] = sum[n, m](x[n, m] * x[n, m]) / (N * M)'\n"
    (variant,) = device_programs(compile_text(HEAD + spec, "f.yaml").forward)
    assert [s.name for s in variant.program.stages] == ["f_y"]
    assert variant.program.temporaries == ()


def test_rows_keep_what_is_computed_and_not_what_is_stored() -> None:
    variant = device_programs(load_family(ROOT / "specs" / "softmax.yaml").forward)[0]
    (stage,) = variant.program.stages
    assert isinstance(stage, RowStage)
    text = "\n".join(map(str, cuda_kernel(variant.case.op, stage).body))
    assert "buffer_of" in text


def test_sums_over_rows_have_a_version_for_dense_operands() -> None:
    """There a place is found by a product; elsewhere by a loop over the group's axes."""
    family = load_family(ROOT / "specs" / "layer_norm.yaml")
    op = next(o for o in family.ops if o.name == "layer_norm_backward")
    stages = {s.name: (v.case.op, s) for v in device_programs(op) for s in v.program.stages}
    text = "\n".join(format_kernel("f", cuda_kernel(*stages["layer_norm_backward_d_b"])))
    packs, points = text.split("if are_dense(d_y):")[1:]
    assert "dense_step(" in packs.split("else:")[0]
    dense, other = points.split("else:")
    assert "group_offset" not in dense
    assert "dense_step(d_y" in dense
    assert "group_offset" in other


def test_a_product_with_a_power_of_two_is_kept_apart_from_the_product_before_it() -> None:
    """ptxas would take the factor into that, which then does not overflow; no emulation shows it."""
    body = "inputs: {x: 'T[N]', w: 'T[N]'}\noutputs: {y: 'T[N]'}\n"
    for kernel, factor in (("x[i] * w[i] / 2", "0.5"), ("4 * (x[i] * w[i])", "4.0"), ("x[i] * w[i] / 3", "")):
        text = cuda_files(compile_text(f"{HEAD}{body}kernel: 'y[i] = {kernel}'\ngradient: none\n", "f.yaml"))["kernel/f.cu"]
        assert re.findall(r"opc::scaled<T>\(x \* w, ([0-9.]+)\)", text) == ([factor] * 2 if factor else [])


def test_the_function_of_a_statement_is_made_once_for_all_stages_of_it() -> None:
    variant = device_programs(load_family(ROOT / "specs" / "avg_pool2d.yaml").forward)[0]
    stage = next(s for s in variant.program.stages if isinstance(s, NestStage))
    assert cuda_kernel(variant.case.op, replace(stage, name="other")) is cuda_kernel(variant.case.op, stage)
    other = stage.assign.with_value(Const(0, stage.assign.value.type))
    assert cuda_kernel(variant.case.op, replace(stage, assign=other)) is not cuda_kernel(variant.case.op, stage)


def test_sums_that_wait_for_rows_do_not_run_ahead_of_them() -> None:
    """Such a sum would bring what rows leave in memory there before them."""
    spec = "inputs: {s: 'T[]', ids: 'int64[...]', z: 'T[..., K]', w: 'T[N]', x: 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\n"
    spec += "out_of_range: zero\nattributes: {width: int}\nkernel: |\n  t[..., i] = z[..., i]\n"
    cond = "(cast(T, size(...)) if x[..., i] <= s[()] else (0.5 if x[..., i] <= s[()] or K >= width else 0) * s[()]) <= s[()]"
    spec += f"  y[..., i] = (sum[k:i](w[k]) if {cond} else t[..., ids[...]]) ** 2\n"
    for op in compile_text(HEAD + spec, "f.yaml").ops:
        for variant in device_programs(op):
            names = [name for s in variant.program.stages for name in written_by(s)]
            assert len(names) == len(set(names))


@pytest.mark.parametrize("name", ["kl_div", "cross_entropy", "batch_norm", "group_norm"])
def test_no_stage_leaves_in_memory_what_none_reads(name: str) -> None:
    for op in load_family(ROOT / "specs" / f"{name}.yaml").ops:
        outputs = {o.name for o in op.outputs}
        for variant in device_programs(op):
            stages = variant.program.stages
            rows = {o.name for s in stages if isinstance(s, RowStage) for o in s.operands if not o.written}
            read = rows | {r.operand for s in stages if isinstance(s, NestStage) for r in reads(s.assign.value)}
            assert {n for s in stages for n in written_by(s)} <= read | outputs, variant.program.name


def test_no_place_is_outside_of_what_is_absent() -> None:
    """What an absent operand's size is nobody says: a scan, which goes through its terms whoever asks, tests none of them."""
    body = (
        "inputs: {x: 'T[..., N]', 'm?': 'T[..., N]'}\noutputs: {y: 'T[..., N]'}\nrequire: [N > 0]\nkernel: |\n"
        "  p[..., i:N] = argsort[k](x[..., k])[i]\n  c[..., i:N] = sum[j:i + 1](m[..., p[..., j]]) if present(m) else 0\n"
        "  y[..., i] = c[..., i] * x[..., i]\n"
    )
    text = cuda_files(compile_text(f"{HEAD}{body}gradient: none\n", "f.yaml"))["kernel/f.cu"]
    tests = [line.strip() for line in text.splitlines() if "has_m" in line or "opc::outside(" in line]
    first = next(n for n, line in enumerate(tests) if "opc::outside(" in line)
    assert tests[first - 1].startswith("if (!has_m)")
