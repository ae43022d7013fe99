"""The calls that `opc bench --device cuda` measures, at sizes that a GPU takes some time for."""

from __future__ import annotations

from collections.abc import Mapping

from opc.testing.bench.case import BenchCase, case

LIMITS: Mapping[str, float] = {
    "elementwise": 1.0,
    "rows": 1.0,
    "norms": 1.0,
    "losses": 1.0,
    "pooling": 1.0,
    "indexed": 1.0,
    "scans": 1.0,
    "products": 1.05,
    "convolutions": 1.3,
    "attention": 1.3,
}
"""What ours may take at most of the best of torch's, forward and backward, by the group of a case."""

DTYPES = ("float32", "bfloat16")

BACKWARD_ONCE = frozenset({"cumsum/few", "softmax/short", "attention/8k", "attention/512", "argmax"})
"""Cases that have no gradient of their own interest: none, or that of another case of the op."""

UNORDERED = frozenset({"scatter_add"})
"""Ops that torch computes by atomic additions unless it is asked for the same result in each run, which ours always gives."""

_FLAT = (1 << 26,)
_ROWS = (16384, 4096)
_IMAGE = (32, 128, 56, 56)


def _attention(length: int, heads: int) -> dict[str, tuple[int, ...]]:
    return dict.fromkeys(("q", "k", "v"), (1, heads, length, 64))


CASES: tuple[BenchCase, ...] = (
    case("add", "elementwise", {"a": _FLAT, "b": _FLAT}),
    case("leaky_relu", "elementwise", {"x": _FLAT}),
    case("gelu", "elementwise", {"x": _FLAT}),
    case("swiglu", "elementwise", {"a": _FLAT, "b": _FLAT}),
    case("softmax", "rows", {"x": _ROWS}),
    case("softmax/short", "rows", {"x": (1 << 20, 64)}),
    case("logsumexp", "rows", {"x": _ROWS}),
    case("argmax", "rows", {"x": _ROWS}, attributes={"axis": 1}),
    case("layer_norm", "norms", {"x": _ROWS, "w": (4096,), "b": (4096,)}),
    case("rms_norm", "norms", {"x": _ROWS, "w": (4096,)}),
    case("group_norm", "norms", {"x": _IMAGE, "scale": (128,), "bias": (128,)}, attributes={"num_groups": 8}),
    case("cross_entropy", "losses", {"x": (8192, 8192), "target": (8192,)}, below={"target": 8192}),
    case(
        "max_pool2d",
        "pooling",
        {"x": (64, 64, 112, 112)},
        attributes={"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)},
    ),
    case("avg_pool2d", "pooling", {"x": (64, 64, 112, 112)}, attributes={"kernel_size": (2, 2), "stride": (2, 2)}),
    case("embedding", "indexed", {"ids": (64, 1024), "table": (50000, 1024)}, below={"ids": 50000}),
    case(
        "scatter_add",
        "indexed",
        {"x": (50000, 256), "index": (65536, 256), "src": (65536, 256)},
        below={"index": 50000},
    ),
    case("cumsum", "scans", {"x": _ROWS}, attributes={"axis": 1}),
    case("cumsum/few", "scans", {"x": (16, 1 << 20)}, attributes={"axis": 1}),
    case("cumsum/down", "scans", {"x": _ROWS}, attributes={"axis": 0}),
    case("matmul", "products", {"a": (4096, 4096), "b": (4096, 4096)}),
    case("linear", "products", {"x": (8192, 4096), "w": (4096, 4096), "b": (4096,)}),
    case(
        "conv2d",
        "convolutions",
        {"x": _IMAGE, "w": (128, 128, 3, 3), "b": (128,)},
        attributes={"padding": (1, 1)},
    ),
    case("attention/512", "attention", _attention(512, 64)),
    case("attention", "attention", _attention(2048, 32)),
    case("attention/8k", "attention", _attention(8192, 8)),
)
"""Every call that is measured, in the order of the report."""
