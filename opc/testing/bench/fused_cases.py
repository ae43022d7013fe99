"""The calls that `opc bench specs/fused` measures: the fused ops at sizes of real models, each beside torch's formula of it.

Some formulas take memory with the square of the steps, or a matrix for each row; these are measured at sizes that allow it.
"""

from __future__ import annotations

from opc.testing.bench.case import BenchCase, case

_FLAT = (1 << 22,)
_ROWS = (4096, 1024)
_HEADS = (1, 8, 512, 64)
_SCORES = {"q": _HEADS, "k": _HEADS, "v": _HEADS}
_GROUPED = {"q": _HEADS, "k": (1, 2, 512, 64), "v": (1, 2, 512, 64)}
_STEPS = {"q": (1, 4, 256, 64), "k": (1, 4, 256, 64), "v": (1, 4, 256, 64), "beta": (1, 4, 256), "g": (1, 4, 256)}

FUSED: tuple[BenchCase, ...] = (
    case(
        "adamw",
        "fused",
        {"p": _FLAT, "grad": _FLAT, "m": _FLAT, "v": _FLAT, "step": ()},
        below={"step": 100},
        positive=("v",),
        wrt=("p", "grad"),
    ),
    case("lion", "fused", {"p": _FLAT, "grad": _FLAT, "m": _FLAT}, wrt=("p", "grad")),
    case("add_layer_norm", "fused", {"x": _ROWS, "residual": _ROWS, "w": (1024,), "b": (1024,)}),
    case("add_rms_norm", "fused", {"x": _ROWS, "residual": _ROWS, "w": (1024,)}),
    case("geglu", "fused", {"x": (2048, 2048)}),
    case("focal_loss", "fused", {"x": _FLAT, "target": _FLAT}, wrt=("x",)),
    case("dice_loss", "fused", {"x": (8, 4, 256, 256), "target": (8, 4, 256, 256)}, positive=("target",), wrt=("x",)),
    case(
        "smoothed_cross_entropy",
        "fused",
        {"x": (2048, 2048), "target": (2048,)},
        attributes={"smoothing": 0.1, "z_weight": 1e-4},
        below={"target": 2048},
    ),
    case("quantize_rows", "fused", {"x": _ROWS}),
    case("rotary_positions", "fused", {"x": (2, 16, 512, 64), "positions": (2, 512)}, below={"positions": 4096}),
    case("grouped_query_attention", "fused", _GROUPED, attributes={"is_causal": True}),
    case("sliding_window_attention", "fused", _SCORES, attributes={"window": 128}),
    case("softcap_attention", "fused", _SCORES, attributes={"is_causal": True}),
    case("alibi_attention", "fused", {**_SCORES, "slopes": (8,)}, positive=("slopes",), wrt=("q", "k", "v")),
    case(
        "paged_attention",
        "fused",
        {"q": (8, 8, 64), "k_cache": (512, 16, 2, 64), "v_cache": (512, 16, 2, 64), "block_table": (8, 64), "lengths": (8,)},
        below={"block_table": 512, "lengths": 1024},
    ),
    case("linear_int8", "fused", {"x": (256, 1024), "w": (1024, 1024), "scale": (1024,)}, small=("w",), wrt=("x",)),
    case("linear_int8/row", "fused", {"x": (1, 1024), "w": (1024, 1024), "scale": (1024,)}, small=("w",), wrt=("x",)),
    case("linear_int4", "fused", {"x": (256, 1024), "packed": (1024, 512), "scale": (1024, 32)}, small=("packed",), wrt=("x",)),
    case("linear_int4/row", "fused", {"x": (1, 1024), "packed": (1024, 512), "scale": (1024, 32)}, small=("packed",), wrt=("x",)),
    case(
        "linear_w8a8",
        "fused",
        {"x": (256, 1024), "x_scale": (256,), "w": (1024, 1024), "w_scale": (1024,)},
        small=("x", "w"),
        positive=("x_scale", "w_scale"),
    ),
    case("moe_routing", "fused", {"scores": (4096, 64)}),
    case(
        "moe_mlp",
        "fused",
        {"x": (64, 256), "gate_up": (8, 2, 512, 256), "down": (8, 256, 512), "experts": (64, 2), "weights": (64, 2)},
        below={"experts": 8},
        scale={"gate_up": 0.05, "down": 0.05},
    ),
    case("grouped_matmul", "fused", {"x": (512, 256), "w": (16, 256, 256), "expert": (512,)}, below={"expert": 16}),
    case(
        "relational_graph_conv",
        "fused",
        {"x": (2048, 64), "sources": (8192,), "ends": (8192,), "kinds": (8192,), "w": (8, 64, 64), "norm": (8192,)},
        below={"sources": 2048, "ends": 2048, "kinds": 8},
    ),
    case(
        "selective_scan",
        "fused",
        {"x": (1, 64, 256), "delta": (1, 64, 256), "a": (256, 16), "b": (1, 64, 16), "c": (1, 64, 16)},
        positive=("delta", "a"),
        scale={"a": -1.0},
    ),
    case("gated_delta_rule", "fused", _STEPS, positive=("beta", "g"), scale={"k": 0.1, "beta": 0.5, "g": -0.1}),
    case("grid_sample2d", "fused", {"x": (4, 32, 64, 64), "grid": (4, 64, 64, 2)}, scale={"grid": 0.5}),
    case(
        "grid_sample2d/bicubic",
        "fused",
        {"x": (4, 32, 64, 64), "grid": (4, 64, 64, 2)},
        attributes={"mode": "bicubic"},
        scale={"grid": 0.5},
    ),
)
"""Ops of `specs/fused/`."""
