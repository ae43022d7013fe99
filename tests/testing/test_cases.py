"""The cases cover what they promise, are the same every time, and bad calls are bad."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pytest

from opc.analysis.shapes.inference import ShapeError, infer, infer_types
from opc.ir.dtypes import DType
from opc.ir.op import AttributeKind, Family, Op
from opc.pipeline import compile_text, load_family
from opc.testing.cases.arguments import LAYOUTS, TensorArg, special_values
from opc.testing.cases.bad_calls import refused
from opc.testing.cases.calls import Case
from opc.testing.cases.samples import attribute_samples
from opc.testing.cases.table import accepted
from opc.testing.extent import Extent
from opc.testing.references.examples import check_examples

SPECS = Path(__file__).parents[2] / "specs"


def family(name: str) -> Family:
    return load_family(SPECS / f"{name}.yaml")


def dtype_of(case: Case, name: str) -> str:
    arg = case.inputs[name]
    return "" if arg is None else str(arg.data.dtype)


def types_and_shapes(op: Op, case: Case) -> None:
    infer_types(op, {n: None if a is None else DType(str(a.data.dtype)) for n, a in case.inputs.items()}, case.attributes)
    infer(op, {n: None if a is None else a.data.shape for n, a in case.inputs.items()}, case.attributes)


@pytest.mark.parametrize("name", ["gelu", "softmax", "layer_norm", "add"])
def test_cases_are_deterministic(name: str) -> None:
    op = family(name).forward
    first, second = accepted(op), accepted(op)
    assert [c.name for c in first] == [c.name for c in second]
    assert len({c.name for c in first}) == len(first)
    for a, b in zip(first, second, strict=True):
        assert a.attributes == b.attributes
        for n, arg in a.inputs.items():
            other = b.inputs[n]
            assert (arg is None) == (other is None)
            if arg is not None and other is not None:
                assert arg.layout == other.layout
                assert arg.data.tobytes() == other.data.tobytes()


def test_an_op_fused_by_rows_is_called_with_several_blocks_of_them() -> None:
    header = SPECS.parent / "runtime" / "include" / "opc" / "core" / "slices.h"
    (shift,) = re.findall(r"define OPC_BLOCK_ELEMENTS \(1 << (\d+)\)", header.read_text())
    for extent in (Extent.WHOLE, Extent.SAMPLE):
        cases = [c for c in accepted(family("attention").forward, extent=extent) if "-blocks" in c.name]
        assert [c.attributes for c in cases] == [{"is_causal": True}, {}]
        assert [c.inputs["mask"] is None for c in cases] == [False, True]
        for case in cases:
            q, k = case.inputs["q"], case.inputs["k"]
            assert q is not None
            assert k is not None
            heads, rows, _ = q.data.shape
            scores = rows * k.data.shape[1]
            # From four blocks on a call goes through its stages block by block.
            assert scores > 1 << int(shift)
            assert heads * -(-scores // (1 << int(shift))) >= 4
    assert not [c for c in accepted(family("softmax").forward) if "-blocks" in c.name]
    # Heads that share keys, of which there are no fewer than queries.
    grouped = compile_text((SPECS / "fused" / "grouped_query_attention.yaml").read_text()).forward
    shapes = [{n: x.data.shape for n, x in c.inputs.items() if x is not None} for c in accepted(grouped) if "-blocks" in c.name]
    assert shapes == [{"q": (1, 2, 523, 1), "k": (1, 1, 1031, 1), "v": (1, 1, 1031, 1)}] * 2


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "add", "conv2d"])
def test_a_sample_has_every_kind_of_call_and_element_type(name: str) -> None:
    op = family(name).forward

    def told(cases: list[Case]) -> tuple[set[str], set[tuple[str, str]]]:
        kinds = {c.name.split("-")[1] for c in cases}
        return kinds, {(name, str(a.data.dtype)) for c in cases for name, a in c.inputs.items() if a is not None}

    every, cover, sample = (accepted(op, extent=e) for e in (Extent.WHOLE, Extent.COVER, Extent.SAMPLE))
    assert told(sample) == told(cover) == told(every)
    assert len(sample) < len(every) / 2
    assert len(sample) < len(cover) < len(every)


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_pointwise_cases_cover_the_list(name: str) -> None:
    op = family(name).forward
    cases = accepted(op)
    assert 100 <= len(cases) <= 300
    arrays = [c.inputs["x"] for c in cases]
    shapes = {a.data.shape for a in arrays if a is not None}
    assert {len(s) for s in shapes} >= {0, 1, 2, 3, 4, 5}
    sizes = {n for s in shapes for n in s}
    assert {0, 1, 2, 3, 5, 7, 13, 17, 67, 131} <= sizes
    assert max(int(np.prod(s)) for s in shapes) >= 100_000
    assert {dtype_of(c, "x") for c in cases} == {d.value for d in op.types[0].dtypes}
    assert {a.layout for a in arrays if a is not None} == {"contiguous", *LAYOUTS}
    for dtype in op.types[0].dtypes:
        if dtype.is_floating:
            own = [a.data.astype(np.float64) for c, a in zip(cases, arrays) if a is not None and dtype_of(c, "x") == dtype.value]
            values = np.concatenate([v.reshape(-1) for v in own])
            assert np.isnan(values).any()
            assert np.isposinf(values).any()
            assert np.isneginf(values).any()
            assert ((values == 0) & np.signbit(values)).any()
            assert (np.abs(values) == np.abs(special_values(dtype)[2].astype(np.float64))).any()


@pytest.mark.parametrize("name", ["fused/grid_sample2d", "onnx/resize", "kl_div"])
def test_each_choice_of_an_attribute_stands_beside_each_of_another(name: str) -> None:
    op = family(name).forward
    named = {a.name: a.values for a in op.attributes if a.values}
    named |= {a.name: (False, True) for a in op.attributes if a.kind is AttributeKind.BOOL}
    calls = [{a.name: a.default for a in op.attributes} | dict(c.attributes) for c in accepted(op) if c.kind == "attributes"]
    for (a, values), (b, others) in itertools.combinations(named.items(), 2):
        assert {(c[a], c[b]) for c in calls} == set(itertools.product(values, others))


def test_every_axis_enum_value_optional_and_broadcast() -> None:
    axes = {(len(c.inputs["x"].data.shape), c.attributes.get("axis", -1)) for c in accepted(family("softmax").forward)}
    for rank in range(1, 5):
        assert {(rank, a) for a in range(-rank, rank)} <= axes
    modes = {c.attributes.get("approximate", "default") for c in accepted(family("gelu").forward)}
    assert modes == {"default", "tanh", "none"} or modes == {"default", "tanh"}
    given = {tuple(n for n in ("w", "b") if c.inputs[n] is not None) for c in accepted(family("layer_norm").forward)}
    assert given == {(), ("w",), ("b",), ("w", "b")}
    pairs = {(c.inputs["a"].data.shape, c.inputs["b"].data.shape) for c in accepted(family("add").forward)}
    assert ((2, 1, 5), (3, 1)) in pairs
    assert any(a == () and len(b) == 3 for a, b in pairs)
    assert any(len(a) == 3 and b == () for a, b in pairs)


def test_unwanted_outputs_and_derived_ops() -> None:
    fam = family("layer_norm")
    assert fam.backward is not None
    assert fam.backward_jvp is not None
    wanted = {c.wanted for c in accepted(fam.backward, fam.forward)}
    assert {("d_x",), ("d_w",), ("d_b",)} <= wanted
    for case in accepted(fam.backward_jvp, fam.backward):
        if case.inputs.get("w") is None:
            assert case.inputs.get("t_w") is None


def test_accepted_calls_are_accepted_and_refused_ones_refused() -> None:
    for name in ("leaky_relu", "layer_norm", "add", "softmax", "clamp"):
        fam = family(name)
        for op in fam.ops:
            for case in accepted(op, random=4):
                types_and_shapes(op, case)
            for case in refused(op):
                with pytest.raises(ShapeError):
                    types_and_shapes(op, case)


def test_bad_calls_are_of_every_kind() -> None:
    kinds = {c.name.split("-")[1] for name in ("layer_norm", "softmax", "gelu") for c in refused(family(name).forward)}
    assert kinds >= {"dtype", "missing", "rank", "size", "axis", "attribute"}


def test_attribute_samples_keep_to_the_check() -> None:
    op = family("leaky_relu").forward
    good, bad = attribute_samples(op, op.attribute("alpha"))
    for value in good:
        infer(op, {"x": (2,)}, {"alpha": value})
    for value in bad:
        with pytest.raises(ShapeError):
            infer(op, {"x": (2,)}, {"alpha": value})
    gelu = family("gelu").forward
    assert attribute_samples(gelu, gelu.attribute("approximate")) == (["none", "tanh"], ["no_such_value"])
    cast = family("onnx/cast").forward
    assert cast.attribute("to").required, "a dtype stands beside it"
    assert attribute_samples(cast, cast.attribute("saturate")) == ([False, True], [])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0, 3), (2, 1, 4)])
def test_layouts(layout: str, shape: tuple[int, ...]) -> None:
    data = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    view = TensorArg(data, layout).array()
    assert view.shape == shape
    if layout != "broadcast":
        assert np.array_equal(view, data)
    if data.size > 4 and view.ndim > 1:
        expected = {
            "strided": all(s > 4 for s in view.strides),
            "negative": all(s < 0 for s in view.strides),
            "transposed": view.strides[0] < view.strides[-1],
            "broadcast": 0 in view.strides,
            "offset": view.__array_interface__["data"][0] % 8 == 4,
        }
        assert expected[layout]


def test_examples_hold_and_wrong_ones_do_not() -> None:
    from dataclasses import replace

    fam = family("leaky_relu")
    assert [wrong for _, wrong in check_examples(fam)] == [""] * len(fam.examples)
    values = tuple((n, [[0.0, -0.0011], [-0.2, 1.0]] if n == "y" else v) for n, v in fam.examples[0].values)
    wrong = replace(fam, examples=(replace(fam.examples[0], values=values),))
    assert all(message for _, message in check_examples(wrong))


def test_an_example_is_checked_in_the_type_that_it_asks_for() -> None:
    text = (
        "op: as_type\ndomain: tests\nversion: 1\ndoc: A cast.\ntypes: {T: floating, U: [float64, int32, bool]}\n"
        "inputs: {x: 'T[N]'}\nattributes: {to: {type: dtype, binds: U, default: int32}}\noutputs: {y: 'U[N]'}\n"
        "kernel: |\n  y = cast(U, x)\nexamples:\n  - {x: [-1.5, 2.0], y: [-1, 2]}\n"
        "  - {x: [0.0, 2.0], to: bool, y: [false, true]}\n  - {x: [1.5], to: bool, y: [1.5]}\n"
    )
    assert [bool(wrong) for _, wrong in check_examples(compile_text(text, "as_type"))] == [False, False, True]
