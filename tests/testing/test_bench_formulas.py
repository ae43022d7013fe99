"""What cases say is torch's own of an op computes what the op does, on inputs as the cases draw them, at smaller sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opc.testing.bench import draws, peers
from opc.testing.bench.cases import CASES
from opc.testing.oracle.evaluation import evaluate
from tests.testing.test_bench_contenders import problem_of

SMALL: Mapping[str, dict[str, Any]] = {
    "embedding_bag": {
        "shapes": {"table": (9, 3), "ids": (12,), "offsets": (5,)},
        "below": {"ids": 9},
        "drawn": {"offsets": draws.offsets(12)},
    },
    "segment_softmax": {"shapes": {"x": (12, 3), "offsets": (4,)}, "drawn": {"offsets": draws.offsets(12)}},
    "permute": {"shapes": {"x": (3, 4)}},
    "cummax": {"shapes": {"x": (3, 9)}},
    "cum_prod": {"shapes": {"x": (3, 7)}},
    "linear_attention": {"shapes": dict.fromkeys(("query", "key", "value"), (2, 5, 16))},
    "scatter_nd": {
        "shapes": {"data": (7, 3), "indices": (4, 1), "updates": (4, 3)},
        "drawn": {"indices": draws.distinct(7)},
    },
    "scatter_elements/max": {
        "shapes": {"data": (5, 3), "indices": (8, 3), "updates": (8, 3)},
        "below": {"indices": 5},
    },
    "max_unpool2d": {"shapes": {"x": (2, 3, 4, 5), "indices": (2, 3, 4, 5)}},
    "deform_conv": {
        "shapes": {"x": (2, 3, 6, 7), "w": (4, 3, 3, 3), "offset": (2, 18, 6, 7), "b": (4,), "mask": (2, 9, 6, 7)},
    },
    "roi_align": {"shapes": {"x": (2, 3, 10, 12), "rois": (5, 4), "batch_indices": (5,)}, "drawn": {"rois": draws.boxes(160)}},
    "flatten3d": {"shapes": {"x": (2, 3, 4)}},
    "col2im1d": {"shapes": {"x": (2, 6, 1024)}},
}


@pytest.mark.parametrize("name", SMALL)
def test_the_formula_computes_the_op(name: str) -> None:
    problem = replace(problem_of(name), **SMALL[name])
    function, tensors = peers.torch_text(problem)
    found = function(*tensors)
    outputs = found if isinstance(found, tuple) else (found,)
    wanted = evaluate(problem.family.forward, problem.inputs, problem.attributes)
    for got, want in zip(outputs, wanted.values(), strict=True):
        np.testing.assert_allclose(peers.array(got), want.value, rtol=1e-3, atol=1e-5)


def test_every_formula_of_a_case_is_tried() -> None:
    tried = {name.partition("/")[0].rstrip("123456789d") for name in SMALL}
    assert {c.op.rstrip("123456789d") for c in CASES if c.torch} == tried
