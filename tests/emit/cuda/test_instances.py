"""The instances of kernels' functions."""

from __future__ import annotations

import re
from pathlib import Path

from opc.emit.cuda.files import cuda_files, kernels_alone
from opc.ir.dtypes import DType
from opc.pipeline import compile_text, load_family

SPECS = Path(__file__).parents[3] / "specs"
SPEC = """op: f
domain: opc.test
version: 1
doc: A test.
types: {T: [float16, float32, float64], I: [int32, int64]}
inputs: {t: 'T[V, D]', ids: 'I[N]'}
outputs: {y: 'T[N, D]'}
kernel: 'y[n, d] = t[ids[n], d] * t[ids[n], d]'
"""


def instances(text: str, function: str) -> set[str]:
    return set(re.findall(rf"\b{function}<([^<>]*)>", re.sub(r"\s+", " ", text)))


def test_what_training_seldom_calls_has_one_instance_for_several_types() -> None:
    text = cuda_files(compile_text(SPEC, "f.yaml"))["kernel/f.cu"]
    assert instances(text, "f_y") == {"opc::float16, opc::any_int", "float, opc::any_int", "double, opc::any_int"}
    assert instances(text, "f_jvp_t_y") == {"opc::any_float, opc::any_int", "double, opc::any_int"}
    # A call finds its instance by the position of its types all the same.
    assert re.search(r"const f_jvp_t_y_kernels\[3\]\[2\] =", text)


def test_integers_that_are_computed_with_are_told_apart() -> None:
    text = cuda_files(compile_text(SPEC.replace("* t[ids[n], d]", "+ cast(T, ids[n] * ids[n])"), "f.yaml"))["kernel/f.cu"]
    assert "float, int32_t" in instances(text, "f_y")
    assert not any("any_int" in found for found in instances(text, "f_y"))


def test_windows_have_instances_for_small_calls_and_few_others() -> None:
    text = re.sub(r"\s+", " ", cuda_files(load_family(SPECS / "max_pool2d.yaml"))["kernel/max_pool2d.cu"])
    small, other = (re.search(rf"max_pool2d_y_{of}kernels\[4\] = {{(.*?)}};", text) for of in ("small_", ""))
    assert small is not None
    assert other is not None
    types = ("opc::float16", "opc::bfloat16", "float", "double")
    assert small[1] == ", ".join(f"max_pool2d_y<{t}, opc::small_nest<2>>" for t in types)
    assert [t.split(",")[0].split("<")[1] for t in other[1].split(">, ")] == [*["opc::any_float"] * 3, "double"]


def test_kernels_alone_have_the_types_that_are_asked_for() -> None:
    text, stages = kernels_alone(compile_text(SPEC, "f.yaml"), (DType.FLOAT32,))
    assert instances(text, "f_y") == {"float, opc::any_int"}
    assert instances(text, "f_jvp_t_y") == {"opc::any_float, opc::any_int"}
    assert "opc_f_cuda(" not in text
    assert {"f_y", "f_jvp_t_y"} <= set(stages)


def test_calls_choose_the_smallest_tiles_where_there_are_no_others() -> None:
    """A kernel goes over as many tiles as a call has counted: both have to mean tiles of one shape."""
    source = cuda_files(load_family(SPECS / "attention.yaml"))["kernel/attention.cu"]
    tables = re.findall(r"const (\w+)_kernels\[4\]\[3\]\)\([^;=]*\) =\s+([^;]*);", source)
    small = {name for name, instances in tables if {*re.findall(r", (\d)>", instances)} == {"0"}}
    assert small
    assert len(small) < len(tables)
    for plan, name in re.findall(
        r"opc::tile_launch plan\(([^;]*)\);.*?OPC_LAUNCH\(attention_cuda::(\w+)_kernels\[", source, re.DOTALL
    ):
        assert ("opc::small_tiles" in plan) == (name in small), name
    shapes = re.findall(
        r"plan\.take_shape\([^;]*,\s+(true|false)\);.*?OPC_LAUNCH\(attention_cuda::(\w+)_kernels\[", source, re.DOTALL
    )
    assert {wide for wide, _ in shapes} == {"true", "false"}
    for wide, name in shapes:
        # All shapes of a sum, or of the greatest, have as many rows.
        assert wide == "false" or name not in small, name
