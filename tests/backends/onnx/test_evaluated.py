"""What the proof has ONNX's evaluator compute by other means: where its own gives up, or gives something else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from opc.backends.onnx.session import evaluated


def run(new: list[Any], data: Any, indices: Any) -> Any:
    node = helper.make_node("GatherElements", ["data", "indices"], ["y"], axis=1)
    given = [helper.make_tensor_value_info(n, t, None) for n, t in (("data", TensorProto.FLOAT), ("indices", TensorProto.INT64))]
    graph = helper.make_graph([node], "g", given, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    (found,) = ReferenceEvaluator(helper.make_model(graph), new_ops=new).run(None, {"data": data, "indices": indices})
    return found


@pytest.mark.parametrize("size", [3, 64, 65, 200])
def test_elements_of_long_axes(size: int) -> None:
    rng = np.random.default_rng(size)
    data = rng.standard_normal((2, size)).astype(np.float32)
    indices = rng.integers(0, size, (2, size))
    wanted = np.take_along_axis(data, indices, 1)
    np.testing.assert_array_equal(run(evaluated(), data, indices), wanted)


def test_the_evaluators_own_does_not_serve_them() -> None:
    data, indices = np.zeros((2, 65), np.float32), np.zeros((2, 65), np.int64)
    with pytest.raises(ValueError, match="cannot reshape"):
        run([], data, indices)
