"""The calls that `opc bench specs/onnx/NAME.yaml` measures: operators of the standard beside ONNX Runtime's own and torch's."""

from __future__ import annotations

from opc.testing.bench.case import BenchCase, case

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
)
"""Ops of `specs/onnx/`."""
