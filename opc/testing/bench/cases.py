"""The calls that `opc bench` measures: ops at sizes of real models, and what their speed may be at most beside the frameworks'.

The figures are ratios of times, ours over the best of eager torch, torch.compile and ONNX Runtime. A group without a figure is
measured and promises nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

BACKWARD = 1.2
"""What the gradient of a case may take at most, for the groups that promise something."""


@dataclass(frozen=True, slots=True)
class CaseGroup:
    """Cases of one kind: `limit` is what the forward op may take at most, None where nothing is promised."""

    title: str
    limit: float | None


GROUPS: Mapping[str, CaseGroup] = {
    "elementwise": CaseGroup("elementwise", 1.0),
    "rows": CaseGroup("row reductions", 1.0),
    "norms": CaseGroup("normalisations", 1.0),
    "losses": CaseGroup("losses", 1.0),
    "pooling": CaseGroup("pooling", 1.0),
    "depthwise": CaseGroup("depthwise convolutions", 1.0),
    "embedding": CaseGroup("embeddings", 1.0),
    "upsampling": CaseGroup("upsampling", 1.0),
    "contractions": CaseGroup("matrix products, convolutions, attention", 1.25),
    "others": CaseGroup("gathers, scatters, scans, rearrangements", None),
}


@dataclass(frozen=True, slots=True)
class BenchCase:
    """One call: shapes of the inputs in float32, attributes.

    Inputs in `below` are int64 indices below a number, those in `positive` are above zero, those in `masks` are bools, those in
    `small` int8 numbers. `wrt` are the inputs whose gradients are computed, by default every float one.
    """

    name: str
    op: str
    group: str
    shapes: Mapping[str, tuple[int, ...]]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    below: Mapping[str, int] = field(default_factory=dict)
    positive: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    wrt: tuple[str, ...] = ()

    @property
    def limit(self) -> float | None:
        """What the forward op may take at most."""
        return GROUPS[self.group].limit


def _case(name: str, group: str, shapes: Mapping[str, tuple[int, ...]], **more: Any) -> BenchCase:
    """Return a case; what follows a slash in its name distinguishes it from others of the same op."""
    return BenchCase(name, name.partition("/")[0], group, shapes, **more)


_FLAT = (1 << 22,)
_ROWS = (4096, 1024)
_IMAGE = (8, 64, 56, 56)

CASES: tuple[BenchCase, ...] = (
    _case("add", "elementwise", {"a": _FLAT, "b": _FLAT}),
    _case("addcmul", "elementwise", {"x": _FLAT, "a": _FLAT, "b": _FLAT}),
    _case("clamp", "elementwise", {"x": _FLAT, "lo": (), "hi": ()}, positive=("hi",), wrt=("x",)),
    _case("dual_residual", "elementwise", {"x": _FLAT, "y": _FLAT}),
    _case("elu", "elementwise", {"x": _FLAT}),
    _case("gelu", "elementwise", {"x": _FLAT}),
    _case("hard_sigmoid", "elementwise", {"x": _FLAT}),
    _case("leaky_relu", "elementwise", {"x": _FLAT}),
    _case("prelu", "elementwise", {"x": _IMAGE, "slope": (64, 1, 1)}),
    _case("relu", "elementwise", {"x": _FLAT}),
    _case("selu", "elementwise", {"x": _FLAT}),
    _case("sigmoid", "elementwise", {"x": _FLAT}),
    _case("silu", "elementwise", {"x": _FLAT}),
    _case("softplus", "elementwise", {"x": _FLAT}),
    _case("swiglu", "elementwise", {"a": _FLAT, "b": _FLAT}),
    _case("dropout", "elementwise", {"x": _FLAT, "mask": _FLAT}, masks=("mask",)),
    _case("outer", "elementwise", {"a": (4096,), "b": (1024,)}),
    _case(
        "quantize_linear",
        "elementwise",
        {"x": _ROWS, "scale": (1024,), "zero_point": (1024,)},
        positive=("scale",),
        small=("zero_point",),
        wrt=("x",),
    ),
    _case(
        "dequantize_linear",
        "elementwise",
        {"x": _ROWS, "scale": (1024,), "zero_point": (1024,)},
        positive=("scale",),
        small=("x", "zero_point"),
        attributes={"axis": 1},  # the reference for PyTorch takes no negative one
        wrt=("scale",),
    ),
    _case("rope", "elementwise", {"x": (8, 16, 512, 64), "cosine": (512, 64), "sine": (512, 64)}, wrt=("x",)),
    _case("softmax", "rows", {"x": _ROWS}),
    _case("softmax/short", "rows", {"x": (1 << 18, 16)}),
    _case("log_softmax", "rows", {"x": _ROWS}),
    _case("logsumexp", "rows", {"x": _ROWS}),
    _case("causal_softmax", "rows", {"x": (16, 512, 512)}),
    _case("reduce_mean", "rows", {"x": _ROWS}, attributes={"axes": (1,)}),
    _case("reduce_mean/first", "rows", {"x": _ROWS}, attributes={"axes": (0,)}),
    _case("reduce_mean/narrow", "rows", {"x": (1 << 20, 8)}, attributes={"axes": (0,)}),
    _case("reduce_mean/middle", "rows", {"x": (32, 256, 1024)}, attributes={"axes": (1,)}),
    _case("reduce_mean/apart", "rows", {"x": (32, 256, 1024)}, attributes={"axes": (0, 2)}),
    _case("cosine_similarity", "rows", {"x1": _ROWS, "x2": _ROWS}),
    _case("layer_norm", "norms", {"x": _ROWS, "w": (1024,), "b": (1024,)}),
    _case("rms_norm", "norms", {"x": _ROWS, "w": (1024,)}),
    _case("group_norm", "norms", {"x": _IMAGE, "scale": (64,), "bias": (64,)}, attributes={"num_groups": 8}),
    _case("instance_norm", "norms", {"x": _IMAGE, "scale": (64,), "bias": (64,)}),
    _case(
        "batch_norm",
        "norms",
        {"x": _IMAGE, "scale": (64,), "bias": (64,), "mean": (64,), "var": (64,)},
        positive=("var",),
        wrt=("x", "scale", "bias"),
    ),
    _case("lp_normalize", "norms", {"x": _ROWS}),
    _case("lrn", "norms", {"x": (8, 64, 28, 28)}, attributes={"size": 5}),
    _case("cross_entropy", "losses", {"x": (2048, 2048), "target": (2048,)}, below={"target": 2048}),
    _case("nll_loss", "losses", {"x": (2048, 2048), "target": (2048,)}, below={"target": 2048}),
    _case("mse_loss", "losses", {"x": _FLAT, "target": _FLAT}, wrt=("x",)),
    _case("huber_loss", "losses", {"x": _FLAT, "target": _FLAT}, wrt=("x",)),
    _case("kl_div", "losses", {"x": _ROWS, "target": _ROWS}, positive=("target",), wrt=("x",)),
    _case(
        "max_pool2d",
        "pooling",
        {"x": (8, 64, 112, 112)},
        attributes={"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)},
    ),
    _case("avg_pool2d", "pooling", {"x": (8, 64, 112, 112)}, attributes={"kernel_size": (2, 2), "stride": (2, 2)}),
    _case("global_avg_pool", "pooling", {"x": (16, 256, 28, 28)}),
    _case(
        "depthwise_conv2d",
        "depthwise",
        {"x": (8, 128, 56, 56), "w": (128, 1, 3, 3), "b": (128,)},
        attributes={"padding": (1, 1)},
    ),
    _case(
        "depthwise_conv2d/14",
        "depthwise",
        {"x": (8, 384, 14, 14), "w": (384, 1, 3, 3), "b": (384,)},
        attributes={"padding": (1, 1)},
    ),
    _case(
        "depthwise_conv2d/7",
        "depthwise",
        {"x": (8, 960, 7, 7), "w": (960, 1, 3, 3), "b": (960,)},
        attributes={"padding": (1, 1)},
    ),
    _case("embedding", "embedding", {"ids": (8, 512), "table": (32000, 512)}, below={"ids": 32000}),
    _case("upsample_nearest2d", "upsampling", {"x": (8, 64, 56, 56)}, attributes={"scale_factor": (2, 2)}),
    _case("upsample_bilinear2d", "upsampling", {"x": (8, 64, 56, 56)}, attributes={"scale_factor": (2, 2)}),
    _case("matmul", "contractions", {"a": (1024, 1024), "b": (1024, 1024)}),
    _case("linear", "contractions", {"x": (1024, 1024), "w": (1024, 1024), "b": (1024,)}),
    _case("matmul_integer", "contractions", {"a": (512, 512), "b": (512, 512)}, small=("a", "b")),
    _case("matmul_integer/row", "contractions", {"a": (1, 1024), "b": (1024, 1024)}, small=("a", "b")),
    _case("bmm", "contractions", {"a": (32, 256, 64), "b": (32, 64, 256)}),
    _case("conv1d", "contractions", {"x": (8, 64, 1024), "w": (64, 64, 5), "b": (64,)}, attributes={"padding": 2}),
    _case("conv2d", "contractions", {"x": _IMAGE, "w": (64, 64, 3, 3), "b": (64,)}, attributes={"padding": (1, 1)}),
    _case("conv2d/1x1", "contractions", {"x": _IMAGE, "w": (128, 64, 1, 1), "b": (128,)}),
    _case(
        "conv2d/stride",
        "contractions",
        {"x": (8, 3, 112, 112), "w": (32, 3, 7, 7), "b": (32,)},
        attributes={"stride": (2, 2), "padding": (3, 3)},
    ),
    _case(
        "conv2d/stem",
        "contractions",
        {"x": (1, 3, 224, 224), "w": (64, 3, 7, 7), "b": (64,)},
        attributes={"stride": (2, 2), "padding": (3, 3)},
    ),
    _case(
        "conv_integer",
        "contractions",
        {"x": (1, 64, 56, 56), "w": (64, 64, 3, 3)},
        attributes={"padding": (1, 1)},
        small=("x", "w"),
    ),
    _case(
        "conv_transpose2d",
        "contractions",
        {"x": (8, 64, 28, 28), "w": (64, 32, 4, 4), "b": (32,)},
        attributes={"stride": (2, 2), "padding": (1, 1)},
    ),
    _case("attention", "contractions", {"q": (2, 8, 512, 64), "k": (2, 8, 512, 64), "v": (2, 8, 512, 64)}),
    _case(
        "attention/causal",
        "contractions",
        {"q": (2, 8, 512, 64), "k": (2, 8, 512, 64), "v": (2, 8, 512, 64)},
        attributes={"is_causal": True},
    ),
    _case("cdist", "others", {"a": (512, 64), "b": (512, 64)}),
    _case("gather", "others", {"data": (32000, 256), "indices": (4096,)}, below={"indices": 32000}),
    _case("index_select", "others", {"x": (32000, 256), "index": (4096,)}, below={"index": 32000}),
    _case(
        "scatter_add",
        "others",
        {"x": (4096, 256), "index": (8192, 256), "src": (8192, 256)},
        below={"index": 4096},
    ),
    _case("cumsum", "others", {"x": (1024, 4096)}, attributes={"axis": 1}),
    _case("argmax", "others", {"x": _ROWS}, attributes={"axis": 1}),
    _case("sort", "others", {"x": (1024, 4096)}),
    _case("sort/short", "others", {"x": (16384, 64)}),
    _case("topk", "others", {"x": (1024, 4096)}, attributes={"k": 50}),
    _case("topk/few", "others", {"x": (4096, 1000)}, attributes={"k": 5}),
    _case("pixel_shuffle", "others", {"x": (8, 64, 56, 56)}, attributes={"upscale_factor": 2}),
    _case("depth_to_space", "others", {"x": (8, 64, 56, 56)}, attributes={"blocksize": 2}),
    _case("one_hot", "others", {"indices": (4096,), "values": (2,)}, attributes={"depth": 1024}, below={"indices": 1024}),
    _case("top1_routing", "others", {"x": (512, 256), "scores": (512, 16), "w": (16, 256, 256)}),
    _case("pad_reflect", "others", {"x": (64, 64, 512)}, attributes={"padding": (3, 3)}),
    _case("grid_sample", "others", {"x": (4, 32, 64, 64), "grid": (4, 64, 64, 2)}),
)
"""Every call that is measured, in the order of the report."""
