"""Sizes of test calls keep to an op's rules and to the work that a proof may take."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.analysis.shapes.inference import ShapeError, infer
from opc.ir.op import Family, Op
from opc.pipeline import compile_text, load_family
from opc.testing.cases.bad_calls import refused
from opc.testing.cases.calls import Case
from opc.testing.cases.fitting import POINTS, fit, volume
from opc.testing.cases.sizes import Sizes, dims_of, windows_of
from opc.testing.cases.table import LARGE, accepted
from opc.testing.references.gradcheck import points

SPECS = Path(__file__).parents[2] / "specs"


def conv() -> Family:
    return load_family(SPECS / "conv2d.yaml")


def bmm() -> Op:
    return load_family(SPECS / "bmm.yaml").forward


def points_of(op: Op, case: Case) -> int:
    return volume(op, infer(op, {n: None if a is None else a.data.shape for n, a in case.inputs.items()}, case.attributes))


def test_equations_multiples_and_windows() -> None:
    op = conv().forward
    assert windows_of(op) == ["KH", "KW"]
    sizes = Sizes({"N": 2, "C": 1, "H": 2, "W": 9, "O": 5, "I": 3, "KH": 3, "KW": 2}, {}, {})
    found = fit(op, sizes, {"groups": 2, "dilation": (2, 1)})
    assert found is not None
    # C == I * groups, O % groups == 0, and the filter of height 2 * (3 - 1) + 1 lies inside.
    assert (found.dims["C"], found.dims["O"], found.dims["N"], found.dims["W"]) == (6, 6, 2, 9)
    assert found.dims["H"] >= 5


@pytest.mark.parametrize("name", ["stft", "dft", "gru"])
def test_bounds_and_what_an_attribute_decides_leave_calls(name: str) -> None:
    # x: T[B, L, C] with C <= 2 and L >= W; D == 2 if direction == 'bidirectional' else D == 1.
    cases = accepted(load_family(SPECS / f"onnx/{name}.yaml").forward)
    assert len(cases) >= 90
    assert {"sizes", "large", "random", "special"} <= {c.kind for c in cases}


def test_sizes_are_moved_to_bounds_and_no_further() -> None:
    op = load_family(SPECS / "onnx/stft.yaml").forward
    attributes = {"frame_length": 9, "frame_step": 1}
    found = fit(op, Sizes({"B": 3, "L": 4, "C": 5}, {}, {}), attributes)
    assert found is not None
    assert dict(found.dims) == {"B": 3, "L": 9, "C": 2}
    kept = fit(op, Sizes({"B": 3, "L": 20, "C": 1}, {}, {}), attributes)
    assert kept is not None
    assert dict(kept.dims) == {"B": 3, "L": 20, "C": 1}
    assert fit(op, Sizes({"B": 3, "L": 20, "C": 0}, {}, {}), attributes) is None


def test_an_axis_that_was_asked_to_be_empty_stays_so() -> None:
    sizes = Sizes({"N": 0, "C": 2, "H": 5, "W": 5, "O": 2, "I": 2, "KH": 3, "KW": 3}, {}, {})
    found = fit(conv().forward, sizes, {})
    assert found is not None
    assert found.dims["N"] == 0
    assert fit(conv().forward, Sizes({**sizes.dims, "H": 0}, {}, {}), {}) is None


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_equations_that_depend_on_attributes(transpose_a: bool, transpose_b: bool) -> None:
    attributes = {"transpose_a": transpose_a, "transpose_b": transpose_b}
    found = fit(bmm(), Sizes({"B": 2, "P": 3, "Q": 5, "R": 7, "S": 11}, {}, {}), attributes)
    assert found is not None
    d = found.dims
    assert (d["P"] if transpose_a else d["Q"]) == (d["S"] if transpose_b else d["R"])


def test_the_largest_loop_is_limited() -> None:
    sizes = Sizes({"B": 64, "P": 64, "Q": 64, "R": 64, "S": 64}, {}, {})
    found = fit(bmm(), sizes, {}, limit=1000, keep=("Q",))
    assert found is not None
    assert found.dims["B"] * found.dims["P"] * found.dims["Q"] * found.dims["S"] <= 1000
    assert found.dims["Q"] == 64
    cases = accepted(conv().forward)
    ordinary = [c for c in cases if "-large" not in c.name]
    assert max(points_of(conv().forward, c) for c in ordinary) <= POINTS
    assert POINTS < max(points_of(conv().forward, c) for c in cases) <= LARGE


def test_calls_of_a_convolution_cover_its_attributes() -> None:
    cases = accepted(conv().forward)
    for name in ("stride", "padding", "dilation", "groups"):
        assert len({c.attributes[name] for c in cases if name in c.attributes}) >= 4, name
    shapes = [c.inputs["x"].data.shape for c in cases if c.inputs["x"] is not None]
    assert any(s[0] == 0 for s in shapes)
    assert any(s[2] != s[3] for s in shapes)
    for axis in range(4):
        assert max(s[axis] for s in shapes) >= 31, "every dimension is long once"
    reasons = [c.refused for c in refused(conv().forward)]
    assert any("OH" in r for r in reasons), "a filter larger than the image is refused"
    assert any("C == I * groups" in r for r in reasons)


def test_a_maximum_has_cases_with_ties() -> None:
    family = load_family(SPECS / "max_pool2d.yaml")
    assert family.backward is not None
    for op in (family.forward, family.backward):
        ties = [c for c in accepted(op) if "-ties" in c.name]
        assert len(ties) >= 2
        assert all(len(np.unique(c.inputs["x"].data)) <= 3 for c in ties if c.inputs["x"] is not None)


def test_attributes_without_default_take_turns() -> None:
    op = load_family(SPECS / "max_pool2d.yaml").forward
    sizes = {c.attributes["kernel_size"] for c in accepted(op)}
    assert len(sizes) >= 6
    for case in accepted(op, random=10):
        infer(op, {n: None if a is None else a.data.shape for n, a in case.inputs.items()}, case.attributes)


def test_equations_of_derived_sizes_are_solved_by_those_that_they_are_computed_from() -> None:
    op = load_family(SPECS / "onnx" / "gemm.yaml").forward
    assert "K == L" in [r.text for r in op.require]
    flags = {(c.attributes.get("transpose_a", False), c.attributes.get("transpose_b", False)) for c in accepted(op)}
    assert flags == {(False, False), (False, True), (True, False), (True, True)}


@pytest.mark.parametrize("name", ["conv1d", "conv2d", "matmul", "max_pool2d", "attention", "grid_sample"])
def test_there_are_points_to_differentiate_at(name: str) -> None:
    assert len(list(points(load_family(SPECS / f"{name}.yaml").forward))) >= 6


def test_a_volume_counts_loops_inside_one_another() -> None:
    op = load_family(SPECS / "causal_softmax.yaml").forward
    assert volume(op, infer(op, {"x": (3, 7, 7)})) == 3 * 7 * 7
    with pytest.raises(ShapeError):
        infer(op, {"x": (3, 7, 6)})
    assert dims_of(op) == ("N",)


def test_a_temporary_whose_extent_divides_by_a_size_of_nothing_has_no_points() -> None:
    text = """\
op: f
domain: opc.test
version: 1
doc: Values again and again.
types: {T: [float32]}
inputs: {x: 'T[M, C, H]', c: 'T[C]'}
outputs: {y: 'T[M, C, 2*H]'}
kernel: |
  y[m, i, j] = sum[k:m + 1](c[j % C])
"""
    op = compile_text(text, "f.yaml").backward_backward
    assert op is not None
    assert any("// C" in str(d) for t in op.temporaries for d in t.dims)
    shapes = {o.name: (0,) if o.name in ("c", "d_d_c") else (2, 0, 3) for o in op.inputs}
    assert volume(op, infer(op, shapes)) == 2 * 6 * 2


@pytest.mark.parametrize(
    ("inputs", "kernel", "shapes", "points"),
    [
        ("x: 'T[N]'", "y[i] = sum[k:N](sum[j:i - k](x[j]))", {"x": (5,)}, 5 * 5 * 4),
        ("x: 'T[*A, N]', w: 'T[N]'", "y[i] = sum[*A](x[*A, i] * sum[j:N](w[j]))", {"x": (0, 3, 4), "w": (4,)}, 4 * 3),
    ],
)
def test_a_volume_counts_what_is_evaluated(inputs: str, kernel: str, shapes: dict[str, tuple[int, ...]], points: int) -> None:
    """A range between two indices is longest where one is least; what a loop over nothing holds may be evaluated all the same."""
    head = "op: f\ndomain: opc.test\nversion: 1\ndoc: Sums.\ntypes: {T: [float32]}\ngradient: none\noutputs: {y: 'T[N]'}\n"
    op = compile_text(f"{head}inputs: {{{inputs}}}\nkernel: |\n  {kernel}\n", "f.yaml").forward
    assert volume(op, infer(op, shapes)) == points
