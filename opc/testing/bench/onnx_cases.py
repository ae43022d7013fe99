"""The calls that `opc bench specs/onnx/NAME.yaml` measures: operators of the standard beside ONNX Runtime's own and torch's."""

from __future__ import annotations

from opc.testing.bench import formulas
from opc.testing.bench.case import BenchCase, case
from opc.testing.bench.draws import boxes, distinct, pooled

DOMAIN = "opc.onnx"
"""What tells an operator from the op of `specs/` that is called so too."""

_HEADS = (2, 8, 512, 64)
_SCORES = {"q": _HEADS, "k": _HEADS, "v": _HEADS}
_GROUPED = {"q": _HEADS, "k": (2, 2, 512, 64), "v": (2, 2, 512, 64)}
_SCALE = {"scale": 0.125}

ONNX: tuple[BenchCase, ...] = (
    case("concat2", "others", {"x0": (2048, 1024), "x1": (2048, 1024)}, domain=DOMAIN, attributes={"axis": 1}),
    case("concat2/short", "others", {"x0": (1 << 17, 8), "x1": (1 << 17, 8)}, domain=DOMAIN, attributes={"axis": 1}),
    case("concat3", "others", {"x0": (4096, 512), "x1": (4096, 128), "x2": (4096, 128)}, domain=DOMAIN, attributes={"axis": 1}),
    case(
        "concat4",
        "others",
        {"x0": (8, 64, 28, 28), "x1": (8, 96, 28, 28), "x2": (8, 32, 28, 28), "x3": (8, 32, 28, 28)},
        domain=DOMAIN,
        attributes={"axis": 1},
    ),
    case(
        "concat4/short",
        "others",
        {"x0": (1 << 16, 3), "x1": (1 << 16, 5), "x2": (1 << 16, 8), "x3": (1 << 16, 16)},
        domain=DOMAIN,
        attributes={"axis": 1},
    ),
    case("attention/onnx", "contractions", _SCORES, domain=DOMAIN, attributes=_SCALE),
    case("attention/onnx causal", "contractions", _GROUPED, domain=DOMAIN, attributes={**_SCALE, "is_causal": True}),
    case(
        "attention/onnx masked",
        "contractions",
        {**_SCORES, "allowed": (1, 1, 512, 512)},
        domain=DOMAIN,
        attributes=_SCALE,
        masks=("allowed",),
    ),
    case(
        "cum_prod",
        "others",
        {"x": (4096, 64)},
        domain=DOMAIN,
        attributes={"axis": 1},
        positive=("x",),
        torch="torch.cumprod(x, axis)",
    ),
    case(
        "linear_attention",
        "others",
        {"query": (2, 512, 512), "key": (2, 512, 512), "value": (2, 512, 512)},
        domain=DOMAIN,
        attributes={"q_num_heads": 8, "kv_num_heads": 8, "update_rule": "linear"},
        torch=formulas.linear_attention,
    ),
    case(
        "scatter_nd",
        "others",
        {"data": (4096, 256), "indices": (2048, 1), "updates": (2048, 256)},
        domain=DOMAIN,
        drawn={"indices": distinct(4096)},
        torch="torch.index_put(data, (indices[:, 0],), updates)",
    ),
    case(
        "scatter_elements/max",
        "others",
        {"data": (4096, 256), "indices": (8192, 256), "updates": (8192, 256)},
        domain=DOMAIN,
        attributes={"reduction": "max"},
        below={"indices": 4096},
        torch=formulas.scatter_max,
    ),
    case(
        "max_unpool2d",
        "others",
        {"x": (8, 64, 56, 56), "indices": (8, 64, 56, 56)},
        domain=DOMAIN,
        attributes={"kernel_shape": (2, 2), "strides": (2, 2)},
        drawn={"indices": pooled},
        torch="torch.nn.functional.max_unpool2d(x, indices % (4 * x.shape[2] * x.shape[3]), kernel_shape, strides)",
    ),
    case(
        "deform_conv",
        "others",
        {"x": (4, 64, 28, 28), "w": (64, 64, 3, 3), "offset": (4, 18, 28, 28), "b": (64,), "mask": (4, 9, 28, 28)},
        domain=DOMAIN,
        attributes={"pads": (1, 1, 1, 1)},
        torch=formulas.deform_conv,
    ),
    case(
        "roi_align",
        "others",
        {"x": (2, 256, 50, 50), "rois": (128, 4), "batch_indices": (128,)},
        domain=DOMAIN,
        attributes={"output_height": 7, "output_width": 7, "sampling_ratio": 2, "spatial_scale": 0.0625},
        below={"batch_indices": 2},
        drawn={"rois": boxes(800)},
        wrt=("x",),
        torch=formulas.roi_align,
    ),
    *(
        case(f"flatten{rank}d", "others", {"x": shape}, domain=DOMAIN, torch="torch.reshape(x, [x.shape[0], -1]).clone()")
        for rank, shape in enumerate(((1 << 22,), (2048, 2048), (32, 256, 512), (8, 64, 56, 112)), 1)
    ),
    *(
        case(
            f"col2im{rank}d",
            "others",
            {"x": shape},
            domain=DOMAIN,
            attributes={"image_shape": image, "block_shape": (3,) * rank, "pads_begin": (1,) * rank, "pads_end": (1,) * rank},
            torch=formulas.col2im,
        )
        for rank, image, shape in (
            (1, (1024,), (8, 64 * 3, 1024)),
            (2, (56, 56), (8, 64 * 9, 56 * 56)),
            (3, (8, 28, 28), (2, 16 * 27, 8 * 28 * 28)),
        )
    ),
)
"""Ops of `specs/onnx/`."""
