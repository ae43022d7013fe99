"""The calls that `opc bench specs/bench` measures: ops that people ask for, of no library here, beside torch's own of them."""

from __future__ import annotations

from opc.testing.bench.case import BenchCase, case

_IMAGE = (8, 64, 56, 56)
_HEADS = (2, 8, 512, 64)

ASKED: tuple[BenchCase, ...] = (
    # Of equal elements torch names the last, the spec the first.
    case("cummax", "others", {"x": (1024, 4096)}, attributes={"axis": 1}, torch="torch.cummax(x, axis)"),
    case("logcumsumexp", "others", {"x": (1024, 4096)}, attributes={"axis": 1}),
    case("causal_linear_attention", "others", {"q": _HEADS, "k": _HEADS, "v": _HEADS}),
    case("bincount", "others", {"x": (1 << 22,)}, attributes={"bins": 1024}, below={"x": 1024}),
    case("kron", "others", {"a": (64, 64), "b": (32, 32)}),
    case("unfold2d", "others", {"x": _IMAGE}, attributes={"kernel_size": (3, 3), "padding": (1, 1)}),
    case("adaptive_avg_pool2d", "others", {"x": _IMAGE}, attributes={"output_size": (7, 7)}),
    case("adaptive_avg_pool2d/uneven", "others", {"x": (8, 256, 14, 14)}, attributes={"output_size": (6, 6)}),
    case("adaptive_max_pool2d", "others", {"x": _IMAGE}, attributes={"output_size": (7, 7)}),
    case("adaptive_max_pool2d/uneven", "others", {"x": (8, 256, 14, 14)}, attributes={"output_size": (6, 6)}),
    case("image_tokens", "others", {"x": (8, 256, 28, 28)}),
)
"""Ops of `specs/bench/`."""
