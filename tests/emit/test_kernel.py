"""The C++ kernels against the oracle, through the C ABI alone: every case, on one thread and on oddly split ranges."""

from __future__ import annotations

import ctypes
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.backends.kernel.backend import instruction_sets
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Op
from opc.pipeline import compile_text, load_family
from opc.testing.cases.bad_calls import refused
from opc.testing.cases.calls import Case
from opc.testing.cases.table import accepted
from opc.testing.oracle.evaluation import Bounded, evaluate
from opc.testing.oracle.frame import DomainError
from opc.testing.oracle.tolerance import compare
from tests.emit.conftest import Build
from tests.emit.kernel_library import (
    DataType,
    KernelError,
    KernelLibrary,
    Tensor,
    compile_kernel,
    odd_parallel_for,
    split_everywhere,
)
from tests.transform.language import spec_text

SPECS = Path(__file__).parents[2] / "specs"
MEMBERS = ("forward", "backward", "backward_backward", "jvp", "backward_jvp")
PARENTS = {"backward_backward": "backward", "backward_jvp": "backward"}


Judged = tuple[Op, Case, dict[str, Bounded] | None]
"""A call of an op, and what it must give; None where it must be refused."""


def judged(op: Op, parent: Op | None = None) -> list[Judged]:
    """Return calls of an op of the table, and random ones, with what they must give."""
    return judge(op, accepted(op, parent, random=12))


def judge(op: Op, cases: list[Case]) -> list[Judged]:
    """Return calls of an op with what they must give."""
    found: list[Judged] = []
    for case in cases:
        try:
            found.append((op, case, evaluate(op, case.arrays(), case.attributes, wanted=case.wanted)))
        except DomainError:
            found.append((op, case, None))
    return found


@cache
def calls(name: str, member: str) -> list[Judged]:
    """Return the calls of a member of a family, for all ways of splitting work."""
    family = load_family(SPECS / f"{name}.yaml")
    return judged(getattr(family, member), getattr(family, PARENTS.get(member, ""), None))


def wrong(kernel: KernelLibrary, calls: list[Judged]) -> list[str]:
    """Return what is wrong with the kernel's answers, one line a case."""
    found = []
    for op, case, want in calls:
        try:
            got = kernel.call(op, case.arrays(), case.attributes, case.wanted)
        except KernelError as error:
            if want is not None:
                found.append(f"{case.name}: refused: {error}")
            continue
        if want is None:
            found.append(f"{case.name}: not refused")
            continue
        found += [f"{case.name}: {c.message}" for n in got if not (c := compare(n, got[n], want[n])).ok]
    return found


@pytest.mark.rotating
@pytest.mark.parametrize("parallel_for", [None, odd_parallel_for, split_everywhere], ids=["one thread", "odd", "all"])
@pytest.mark.parametrize("member", MEMBERS)
@pytest.mark.parametrize("name", ["leaky_relu", "add", "gelu", "softmax", "layer_norm"])
def test_cases(build: Build, name: str, member: str, parallel_for: Any) -> None:
    family, library = build(name)
    assert calls(name, member)
    assert wrong(KernelLibrary(family, library, parallel_for), calls(name, member)) == []


@pytest.mark.parametrize("name", ["leaky_relu", "add", "softmax"])
def test_refused_calls(build: Build, name: str) -> None:
    family, library = build(name)
    kernel = KernelLibrary(family, library)
    for op in family.ops:
        for case in refused(op, family.backward):
            with pytest.raises(KernelError, match=rf"^{op.name}: "):
                kernel.call(op, case.arrays(), case.attributes, case.wanted)


@pytest.mark.rotating
@pytest.mark.parametrize("variant", instruction_sets())
@pytest.mark.parametrize("name", ["leaky_relu", "softmax"])
def test_other_variants(build: Build, name: str, variant: str) -> None:
    family, library = build(name, f"-DOPC_FORCE_VARIANT={variant}", derived=())
    kernel = KernelLibrary(family, library)
    assert wrong(kernel, judged(family.forward)) == []


def test_reductions_over_points_do_not_depend_on_threads(build: Build) -> None:
    family, library = build("layer_norm", derived=("backward",))
    op = family.backward
    assert op is not None
    rng = np.random.default_rng(1)
    x, d_y = (rng.standard_normal((700, 321)).astype(np.float32) for _ in range(2))
    mean, rstd = (rng.standard_normal(700).astype(np.float32) for _ in range(2))
    inputs = {"x": x, "w": x[0], "b": x[1], "d_y": d_y, "mean": mean, "rstd": rstd}
    inputs = {o.name: inputs[o.name] for o in op.inputs if o.name in inputs}
    answers = [
        KernelLibrary(family, library, parallel_for).call(op, inputs, {}, ["d_w"])
        for parallel_for in (None, odd_parallel_for, split_everywhere)
    ]
    for other in answers[1:]:
        np.testing.assert_array_equal(answers[0]["d_w"], other["d_w"])


def test_overlapping_memory_is_refused(build: Build) -> None:
    family, library = build("softmax")
    kernel = KernelLibrary(family, library)
    memory = np.zeros(40, np.float32)
    with pytest.raises(KernelError, match="softmax: the output y overlaps the input x in memory"):
        kernel.call(family.forward, {"x": memory[:32].reshape(4, 8)}, {}, outputs={"y": memory[8:].reshape(4, 8)})
    op = family.backward_backward
    assert op is not None
    inputs = {o.name: np.ones((2, 2), np.float32) for o in op.inputs}
    outputs = {o.name: memory[i : i + 4].reshape(2, 2) for i, o in enumerate(op.outputs)}
    with pytest.raises(KernelError, match="softmax_backward_backward: the outputs d_saved_y and d_d_y overlap in memory"):
        kernel.call(op, inputs, {}, outputs=outputs)


NOWHERE = [
    (b"", None, (3, 1), "has axes, but no shape"),
    (None, (2, 3), (3, 1), "has elements, but no data"),
    (b"", (2**62, 4), (0, 0), "has more elements than 64 bits count"),
    (b"", (2**40, 2**40, 1), (1, 1, 1), "has more elements than 64 bits count"),
    (b"", (2, 2**62), (2**62, 1), "has more elements than 64 bits count"),
    (b"", (3, 1), (2**62, 1), "has more elements than 64 bits count"),
    (b"", (3, 1), (-(2**62), 1), "has more elements than 64 bits count"),
    (None, (2**62, 4, 0), (1, 1, 1), ""),
    (None, (0, 2**62, 4), (1, 1, 1), ""),
    (b"", (1, 2), (2**62, 1), ""),
]
"""Memory, shape and strides of tensors, of which those of two axes may have none, and why they can't be."""


@pytest.mark.parametrize("operand", ["x", "y"])
@pytest.mark.parametrize(("data", "shape", "strides", "why"), NOWHERE)
def test_elements_that_lie_nowhere_are_refused(
    build: Build, operand: str, data: bytes | None, shape: tuple[int, ...] | None, strides: tuple[int, ...], why: str
) -> None:
    family, library = build("leaky_relu")
    kernel = KernelLibrary(family, library)
    memory = {name: ctypes.create_string_buffer(64) for name in "xy"}
    tensors = {}
    for name in "xy":
        place = None if data is None and name == operand else ctypes.addressof(memory[name])
        given = (2, 3) if shape is None else shape
        sizes, steps = ((ctypes.c_int64 * len(given))(*numbers) for numbers in (given, strides))
        if shape is None and name == operand:
            sizes = ctypes.POINTER(ctypes.c_int64)()
        # An output is contiguous.
        steps = steps if name == "x" and operand == "x" else ctypes.POINTER(ctypes.c_int64)()
        tensors[name] = Tensor(place, 1, 0, len(given), DataType(2, 32, 1), sizes, steps, 0)
    attributes = (ctypes.c_double * 1)(0.5)
    pointers = {name: (ctypes.POINTER(Tensor) * 1)(ctypes.pointer(t)) for name, t in tensors.items()}
    code = kernel.library.opc_leaky_relu(pointers["x"], pointers["y"], attributes, ctypes.byref(kernel.context))
    if why and (operand == "x" or data is None or shape is None or math.prod(shape) > 2**60):
        assert code == 1
        assert re.fullmatch(f"leaky_relu: (x|the output y) {why}", kernel.message.value.decode())
    else:
        assert code == 0, kernel.message.value.decode()


def test_declared_in_place(build: Build) -> None:
    family, library = build("leaky_relu")
    assert family.forward.inplace, "the spec lets y take the memory of x"
    kernel = KernelLibrary(family, library)
    for dtype in ("float16", "float32"):
        x = np.linspace(-2, 2, 10001).astype(dtype)
        want = kernel.call(family.forward, {"x": x.copy()}, {})["y"]
        kernel.call(family.forward, {"x": x}, {}, outputs={"y": x})
        np.testing.assert_array_equal(x, want)
        with pytest.raises(KernelError, match="overlaps"):
            kernel.call(family.forward, {"x": x[:-1]}, {}, outputs={"y": x[1:]})


def test_unwanted_outputs_are_not_touched(build: Build) -> None:
    family, library = build("add")
    op = family.backward
    assert op is not None
    a, b = np.ones((3, 4), np.float32), np.ones(4, np.float32)
    inputs = {o.name: {"a": a, "b": b}.get(o.name, a) for o in op.inputs}
    got = KernelLibrary(family, library).call(op, inputs, {}, ["d_b"])
    np.testing.assert_array_equal(got["d_b"], np.full(4, 3, np.float32))


def test_stages_that_compute_alike_share_their_loops() -> None:
    """Both reductions add up the same loss, and so does a gradient: its function is compiled once.

    The weights are added up in a mean only, so these are two functions.
    """
    loops = kernel_files(load_family(SPECS / "nll_loss.yaml"))["kernel/nll_loss_loops.cpp"]
    assert "nll_loss_loss_partial_mean(const opc::row_nest &nest" in loops
    assert "nll_loss_loss_partial_sum" not in loops
    assert loops.count("{nll_loss_loss_partial_mean<float, int64_t>, nll_loss_loss_partial_mean<float, int32_t>}") == 3
    assert "nll_loss_w_mean(const opc::row_nest &nest" in loops
    assert "nll_loss_w_sum(const opc::row_nest &nest" in loops


def test_a_stage_runs_once_for_most_of_its_products(tmp_path: Path) -> None:
    spec = """\
op: f
domain: opc.test
version: 1
doc: A test.
types: {T: floating}
inputs: {a: 'T[...]', b: 'T[...]', c: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = a * b * c
"""
    family = compile_text(spec, "f.yaml")
    assert family.backward is not None
    runs = 0

    def counted(pool: object, count: int, grain: int, body: Any, argument: Any) -> None:
        nonlocal runs
        runs += 1
        body(argument, 0, count)

    kernel = KernelLibrary(family, compile_kernel(family, tmp_path), counted)
    given = {n: np.full(1 << 17, x, np.float32) for x, n in enumerate(("a", "b", "c", "d_y"), 2)}
    values = {"d_a": 3.0 * 4 * 5, "d_b": 2.0 * 4 * 5, "d_c": 2.0 * 3 * 5}
    for wanted in (("d_a",), ("d_a", "d_c"), ("d_a", "d_b", "d_c")):
        runs = 0
        got = kernel.call(family.backward, given, {}, wanted)
        assert runs == 1, wanted
        assert {n: float(a[-1]) for n, a in got.items()} == {n: x for n, x in values.items() if n in wanted}


def test_an_attribute_is_compared_with_infinity(tmp_path: Path) -> None:
    """Cases of calls are told by the numbers that the body compares an attribute with, infinity among them."""
    text = (
        "types: {T: [float64]}\ninputs: {x: 'T[N, D]'}\nattributes: {p: {type: float, default: 2.0}}\noutputs: {y: 'T[N]'}\n"
        "kernel: |\n"
        "  y[n] = max[d](abs(x[n, d])) if p == inf else min[d](abs(x[n, d])) if p == -inf else sum[d](abs(x[n, d]))\n"
    )
    family = compile_text(spec_text("norm", text))
    kernel = KernelLibrary(family, compile_kernel(family, tmp_path))
    for p, value in ((float("inf"), 2.0), (float("-inf"), 1.0), (2.0, 3.0)):
        assert kernel.call(family.forward, {"x": np.array([[1.0, -2.0]])}, {"p": p})["y"].tolist() == [value]
