"""The calls that `opc bench` measures: ops at sizes of real models, and what they may take at most beside the frameworks."""

from __future__ import annotations

from opc.ir.op import Op
from opc.testing.bench import formulas
from opc.testing.bench.asked_cases import ASKED
from opc.testing.bench.case import BenchCase, case
from opc.testing.bench.draws import offsets
from opc.testing.bench.fused_cases import FUSED
from opc.testing.bench.onnx_cases import ONNX

_FLAT = (1 << 22,)
_ROWS = (4096, 1024)
_IMAGE = (8, 64, 56, 56)
_BAG = "torch.nn.functional.embedding_bag(ids, table, offsets, mode=mode, include_last_offset=True)"
_COPY = "torch.permute(x, perm).contiguous()"

OPS: tuple[BenchCase, ...] = (
    case("add", "elementwise", {"a": _FLAT, "b": _FLAT}),
    case("addcmul", "elementwise", {"x": _FLAT, "a": _FLAT, "b": _FLAT}),
    case("clamp", "elementwise", {"x": _FLAT, "lo": (), "hi": ()}, positive=("hi",), wrt=("x",)),
    case("dual_residual", "elementwise", {"x": _FLAT, "y": _FLAT}),
    case("elu", "elementwise", {"x": _FLAT}),
    case("gelu", "elementwise", {"x": _FLAT}),
    case("hard_sigmoid", "elementwise", {"x": _FLAT}),
    case("leaky_relu", "elementwise", {"x": _FLAT}),
    case("prelu", "elementwise", {"x": _IMAGE, "slope": (64, 1, 1)}),
    case("relu", "elementwise", {"x": _FLAT}),
    case("selu", "elementwise", {"x": _FLAT}),
    case("sigmoid", "elementwise", {"x": _FLAT}),
    case("silu", "elementwise", {"x": _FLAT}),
    case("softplus", "elementwise", {"x": _FLAT}),
    case("swiglu", "elementwise", {"a": _FLAT, "b": _FLAT}),
    case("dropout", "elementwise", {"x": _FLAT, "mask": _FLAT}, masks=("mask",)),
    case("outer", "elementwise", {"a": (4096,), "b": (1024,)}),
    case(
        "quantize_linear",
        "elementwise",
        {"x": _ROWS, "scale": (1024,), "zero_point": (1024,)},
        positive=("scale",),
        small=("zero_point",),
        wrt=("x",),
    ),
    case(
        "dequantize_linear",
        "elementwise",
        {"x": _ROWS, "scale": (1024,), "zero_point": (1024,)},
        positive=("scale",),
        small=("x", "zero_point"),
        attributes={"axis": 1},  # the reference for PyTorch takes no negative one
        wrt=("scale",),
    ),
    case("rope", "elementwise", {"x": (8, 16, 512, 64), "cosine": (512, 64), "sine": (512, 64)}, wrt=("x",)),
    case("softmax", "rows", {"x": _ROWS}),
    case("softmax/short", "rows", {"x": (1 << 18, 16)}),
    case("softmax/32", "rows", {"x": (32, 768)}),
    case("log_softmax", "rows", {"x": _ROWS}),
    case("logsumexp", "rows", {"x": _ROWS}),
    case("causal_softmax", "rows", {"x": (16, 512, 512)}),
    case("reduce_mean", "rows", {"x": _ROWS}, attributes={"axes": (1,)}),
    case("reduce_mean/first", "rows", {"x": _ROWS}, attributes={"axes": (0,)}),
    case("reduce_mean/narrow", "rows", {"x": (1 << 20, 8)}, attributes={"axes": (0,)}),
    case("reduce_mean/middle", "rows", {"x": (32, 256, 1024)}, attributes={"axes": (1,)}),
    case("reduce_mean/apart", "rows", {"x": (32, 256, 1024)}, attributes={"axes": (0, 2)}),
    case("cosine_similarity", "rows", {"x1": _ROWS, "x2": _ROWS}),
    case("layer_norm", "norms", {"x": _ROWS, "w": (1024,), "b": (1024,)}),
    case("rms_norm", "norms", {"x": _ROWS, "w": (1024,)}),
    case("group_norm", "norms", {"x": _IMAGE, "scale": (64,), "bias": (64,)}, attributes={"num_groups": 8}),
    case("instance_norm", "norms", {"x": _IMAGE, "scale": (64,), "bias": (64,)}),
    case(
        "batch_norm",
        "norms",
        {"x": _IMAGE, "scale": (64,), "bias": (64,), "mean": (64,), "var": (64,)},
        positive=("var",),
        wrt=("x", "scale", "bias"),
    ),
    case("lp_normalize", "norms", {"x": _ROWS}),
    case("lrn", "norms", {"x": (8, 64, 28, 28)}, attributes={"size": 5}),
    case("cross_entropy", "losses", {"x": (2048, 2048), "target": (2048,)}, below={"target": 2048}),
    case("nll_loss", "losses", {"x": (2048, 2048), "target": (2048,)}, below={"target": 2048}),
    case("mse_loss", "losses", {"x": _FLAT, "target": _FLAT}, wrt=("x",)),
    case("huber_loss", "losses", {"x": _FLAT, "target": _FLAT}, wrt=("x",)),
    case("kl_div", "losses", {"x": _ROWS, "target": _ROWS}, positive=("target",), wrt=("x",)),
    case(
        "max_pool2d",
        "pooling",
        {"x": (8, 64, 112, 112)},
        attributes={"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)},
    ),
    case("avg_pool2d", "pooling", {"x": (8, 64, 112, 112)}, attributes={"kernel_size": (2, 2), "stride": (2, 2)}),
    case("global_avg_pool", "pooling", {"x": (16, 256, 28, 28)}),
    case(
        "depthwise_conv2d",
        "depthwise",
        {"x": (8, 128, 56, 56), "w": (128, 1, 3, 3), "b": (128,)},
        attributes={"padding": (1, 1)},
    ),
    case(
        "depthwise_conv2d/14",
        "depthwise",
        {"x": (8, 384, 14, 14), "w": (384, 1, 3, 3), "b": (384,)},
        attributes={"padding": (1, 1)},
    ),
    case(
        "depthwise_conv2d/7",
        "depthwise",
        {"x": (8, 960, 7, 7), "w": (960, 1, 3, 3), "b": (960,)},
        attributes={"padding": (1, 1)},
    ),
    case("embedding", "embedding", {"ids": (8, 512), "table": (32000, 512)}, below={"ids": 32000}),
    case(
        "embedding_bag",
        "others",
        {"table": (32000, 256), "ids": (16384,), "offsets": (1025,)},
        below={"ids": 32000},
        drawn={"offsets": offsets(16384)},
        torch=_BAG,
    ),
    case(
        "embedding_bag/max",
        "others",
        {"table": (32000, 256), "ids": (16384,), "offsets": (1025,)},
        attributes={"mode": "max"},
        below={"ids": 32000},
        drawn={"offsets": offsets(16384)},
        torch=_BAG,
    ),
    case("upsample_nearest2d", "upsampling", {"x": (8, 64, 56, 56)}, attributes={"scale_factor": (2, 2)}),
    case("upsample_bilinear2d", "upsampling", {"x": (8, 64, 56, 56)}, attributes={"scale_factor": (2, 2)}),
    case("matmul", "contractions", {"a": (1024, 1024), "b": (1024, 1024)}),
    case("matmul/row", "contractions", {"a": (1, 1024), "b": (1024, 1024)}),
    case("matmul/64", "contractions", {"a": (64, 64), "b": (64, 64)}),
    case("linear", "contractions", {"x": (1024, 1024), "w": (1024, 1024), "b": (1024,)}),
    case("linear/row", "contractions", {"x": (1, 1024), "w": (1024, 1024), "b": (1024,)}),
    case("matmul_integer", "contractions", {"a": (512, 512), "b": (512, 512)}, small=("a", "b")),
    case("matmul_integer/row", "contractions", {"a": (1, 1024), "b": (1024, 1024)}, small=("a", "b")),
    case("bmm", "contractions", {"a": (32, 256, 64), "b": (32, 64, 256)}),
    case("conv1d", "contractions", {"x": (8, 64, 1024), "w": (64, 64, 5), "b": (64,)}, attributes={"padding": 2}),
    case("conv2d", "contractions", {"x": _IMAGE, "w": (64, 64, 3, 3), "b": (64,)}, attributes={"padding": (1, 1)}),
    case("conv2d/1x1", "contractions", {"x": _IMAGE, "w": (128, 64, 1, 1), "b": (128,)}),
    case(
        "conv2d/stride",
        "contractions",
        {"x": (8, 3, 112, 112), "w": (32, 3, 7, 7), "b": (32,)},
        attributes={"stride": (2, 2), "padding": (3, 3)},
    ),
    case(
        "conv2d/stem",
        "contractions",
        {"x": (1, 3, 224, 224), "w": (64, 3, 7, 7), "b": (64,)},
        attributes={"stride": (2, 2), "padding": (3, 3)},
    ),
    case(
        "conv_integer",
        "contractions",
        {"x": (1, 64, 56, 56), "w": (64, 64, 3, 3)},
        attributes={"padding": (1, 1)},
        small=("x", "w"),
    ),
    case(
        "conv_transpose2d",
        "contractions",
        {"x": (8, 64, 28, 28), "w": (64, 32, 4, 4), "b": (32,)},
        attributes={"stride": (2, 2), "padding": (1, 1)},
    ),
    case("attention", "contractions", {"q": (2, 8, 512, 64), "k": (2, 8, 512, 64), "v": (2, 8, 512, 64)}),
    case(
        "attention/causal",
        "contractions",
        {"q": (2, 8, 512, 64), "k": (2, 8, 512, 64), "v": (2, 8, 512, 64)},
        attributes={"is_causal": True},
    ),
    case("cdist", "others", {"a": (512, 64), "b": (512, 64)}),
    case("gather", "others", {"data": (32000, 256), "indices": (4096,)}, below={"indices": 32000}),
    case("index_select", "others", {"x": (32000, 256), "index": (4096,)}, below={"index": 32000}),
    case(
        "scatter_add",
        "others",
        {"x": (4096, 256), "index": (8192, 256), "src": (8192, 256)},
        below={"index": 4096},
    ),
    case("scatter_add/scalars", "others", {"x": (4096,), "index": (1 << 20,), "src": (1 << 20,)}, below={"index": 4096}),
    case(
        "segment_softmax",
        "others",
        {"x": (16384, 64), "offsets": (1025,)},
        drawn={"offsets": offsets(16384)},
        torch=formulas.segment_softmax,
    ),
    case("cumsum", "others", {"x": (1024, 4096)}, attributes={"axis": 1}),
    case("cumsum/row", "others", {"x": _FLAT}),
    case("argmax", "others", {"x": _ROWS}, attributes={"axis": 1}),
    case("sort", "others", {"x": (1024, 4096)}),
    case("sort/short", "others", {"x": (16384, 64)}),
    case("topk", "others", {"x": (1024, 4096)}, attributes={"k": 50}),
    case("topk/few", "others", {"x": (4096, 1000)}, attributes={"k": 5}),
    case("permute", "others", {"x": (2048, 2048)}, attributes={"perm": (1, 0)}, torch=_COPY),
    case("permute/heads", "others", {"x": (8, 512, 16, 64)}, attributes={"perm": (0, 2, 1, 3)}, torch=_COPY),
    case("permute/channels", "others", {"x": _IMAGE}, attributes={"perm": (0, 2, 3, 1)}, torch=_COPY),
    case("pixel_shuffle", "others", {"x": (8, 64, 56, 56)}, attributes={"upscale_factor": 2}),
    case("depth_to_space", "others", {"x": (8, 64, 56, 56)}, attributes={"blocksize": 2}),
    case("one_hot", "others", {"indices": (4096,), "values": (2,)}, attributes={"depth": 1024}, below={"indices": 1024}),
    case("top1_routing", "others", {"x": (512, 256), "scores": (512, 16), "w": (16, 256, 256)}),
    case("pad_reflect", "others", {"x": (64, 64, 512)}, attributes={"padding": (3, 3)}),
    case("grid_sample", "others", {"x": (4, 32, 64, 64), "grid": (4, 64, 64, 2)}),
)
"""Ops of `specs/`."""

CASES = (*OPS, *FUSED, *ONNX, *ASKED)
"""Every call that is measured, in the order of the report."""


def is_of(case: BenchCase, op: Op) -> bool:
    """Whether a case is a call of an op: one that names a domain of the op of that domain, any other of an op that none names."""
    if case.op != op.name:
        return False
    own = {c.domain for c in CASES if c.op == op.name and c.domain}
    return case.domain == op.domain if op.domain in own else not case.domain
