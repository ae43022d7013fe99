"""The text of kernels on a device: what nvcc makes of it, and what no kernel may hold."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.emit.cuda.files import cuda_files, refused
from opc.emit.kernel.files import kernel_files
from opc.pipeline import compile_text, load_family
from tests.gpu import gates

ROOT = Path(__file__).parents[3]
NVCC = toolkit.nvcc()
WEIGHED = """\
op: weighed
domain: opc.test
version: 1
doc: Weighed sums.
types: {T: [bfloat16, float32]}
broadcast: true
inputs: {q: 'T[..., L, E]', k: 'T[..., S, E]', v: 'T[..., S, V]', mask: 'T[..., L, S]'}
outputs: {y: 'T[..., L, V]'}
require: [S > 0]
kernel: |
  s[..., i, j] = sum[e](q[..., i, e] * k[..., j, e]) + mask[..., i, j] if j <= i else -inf
  m[..., i] = max[j](s[..., i, j])
  c[..., i] = 0 if isinf(m[..., i]) else m[..., i]
  p[..., i, j] = exp(s[..., i, j] - c[..., i])
  t[..., i] = sum[j](p[..., i, j])
  y[..., i, d] = sum[j](p[..., i, j] * v[..., j, d]) / (1 if t[..., i] == 0 else t[..., i])
gradient: none
"""


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
@pytest.mark.parametrize("op", ["leaky_relu", "embedding"])
def test_what_nvcc_makes_of_points(op: str, tmp_path: Path) -> None:
    """No spills, no memory of a thread's own, nothing in double precision, and 16 bytes at a time. The proof asks all ops."""
    assert [*gates.mistakes(op, tmp_path)] == []


@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_points_of_bfloat16_are_read_16_bytes_at_a_time(tmp_path: Path) -> None:
    halves = [text for name, text in gates.kernels(gates.ptx("leaky_relu", tmp_path)).items() if "float16" in name]
    assert halves
    assert all("ld.global.v4.u32" in text for text in halves)


@pytest.mark.rotating
@pytest.mark.skipif(NVCC is None, reason="there is no nvcc")
def test_what_nvcc_makes_of_weighed_sums(tmp_path: Path) -> None:
    """Scores and sums stay in registers, of which none is spilled; tensor cores multiply both, from copies of 16 bytes."""
    found = gates.kernels(gates.ptx_of(compile_text(WEIGHED, "weighed.yaml"), tmp_path))
    found = {name: text for name, text in found.items() if "weighed_y" in name}
    said = gates.assembled("weighed", tmp_path)
    frames = gates.spilled(said)
    assert 0 < max(gates.own_shared(said).values()) <= gates.OWN_SHARED
    assert sorted("bfloat16" in name for name in found) == [False, False, False, True, True, True]
    for name, text in found.items():
        assert frames[name] == (0, 0, 0)
        assert ".local" not in text
        assert ".f64" not in text
        # The third shape of float32 is for GPUs with little shared memory, and brings nothing there.
        assert bool(re.search(r"cp\.async\.c[ag]\.", text)) == ("fLi2E" not in name)
        if "bfloat16" in name:
            # Of many columns two parts of weights are multiplied, else three.
            assert text.count("mma.sync.aligned.m16n8k16") >= 16 + 4 * 4 * 2 * (3 if "Li0E" in name else 2)
            assert "ldmatrix" in text


def test_only_what_is_known_to_be_amiss_is_let_pass() -> None:
    assert gates.known("depthwise_conv2d_y: spills (8, 4, 4) bytes of stack, stores and loads") is not None
    assert gates.known("depthwise_conv2d_y: spills (8, 8, 8) bytes of stack, stores and loads") is None
    assert gates.known("dropout: computes in float64") is None
    assert gates.known("max_pool2d_y: computes in float64") is None
    assert gates.known("softmax: spills (8, 8, 8) bytes of stack, stores and loads") is None


@pytest.mark.parametrize(
    ("mangled", "expected"),
    [
        ("_ZN11linear_cuda8linear_yIfLi0EEEvN3opc6device11device_nestILi4EEE", True),
        ("_ZN14embedding_cuda11embedding_yIfN3opc6device7any_intEEEvNS1_11device_nestILi3EEE", True),
        ("_ZN14embedding_cuda11embedding_yIdlEEvN3opc6device11device_nestILi3EEE", False),
        ("_ZN14embedding_cuda11embedding_yIN3opc8bfloat16ElEEvNS1_6device11device_nestILi3EEE", False),
    ],
)
def test_kernels_for_float32_are_told_by_their_names(mangled: str, expected: bool) -> None:
    assert bool(gates.float32(f".visible .entry {mangled}(\n)")) is expected


def test_every_spec_has_kernels() -> None:
    for path in sorted((ROOT / "specs").glob("*.yaml"))[::4]:
        family = load_family(path)
        assert not refused(family)
        text = cuda_files(family)[f"kernel/{family.name}.cu"]
        assert text == cuda_files(load_family(path))[f"kernel/{family.name}.cu"]
        for op in family.ops:
            assert f"int32_t opc_{op.name}_cuda(const DLTensor *const *inputs" in text


def test_the_checks_are_those_of_the_cpu() -> None:
    family = load_family(ROOT / "specs" / "layer_norm.yaml")
    host, device = kernel_files(family)["kernel/layer_norm.cpp"], cuda_files(family)["kernel/layer_norm.cu"]
    for op in family.ops:
        begin = host[host.index(f"struct {op.name}_call {{") : host.index(f"int32_t opc_{op.name}_infer(")]
        own = begin[: begin.index("/* Says what the outputs of a call must look like")]
        assert own in device


def test_what_sizes_refuse_comes_before_any_kernel() -> None:
    """Else kernels of a refused call would tell of its data, and the next call would be taken for wrong."""
    family = load_family(ROOT / "specs" / "cross_entropy.yaml")
    text = cuda_files(family)["kernel/cross_entropy.cu"]
    entry = text[text.index("int32_t opc_cross_entropy_cuda(") : text.index("int32_t opc_cross_entropy_cuda_infer(")]
    branches = re.split(r"\n  (?:if \(attributes->reduction|\} else)", entry)
    assert len(branches) == 3
    for branch in branches[1:]:
        before, said, behind = branch.partition("max over c of nothing")
        assert said
        assert "OPC_LAUNCH" in behind
        assert "OPC_LAUNCH" not in before
