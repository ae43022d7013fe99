"""A generated library on ONNX Runtime: attributes of every kind, optional operands, axes, several libraries in one session."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnxruntime as ort
import pytest
from onnx import helper

from opc.backends.base import OpError
from opc.backends.onnxruntime.backend import OnnxRuntimeBackend
from opc.backends.onnxruntime.session import OnnxRuntimeSession
from opc.emit.numpy.reference import numpy_module
from opc.ir.op import Family

Built = dict[str, tuple[Family, Path]]

X = np.arange(24, dtype="float32").reshape(2, 3, 4) / 8
W, B = np.array([1, 2, 4], "float32"), np.array([1, 0, -1], "float32")


@pytest.fixture(scope="module")
def session(built: Built) -> OnnxRuntimeSession:
    session = OnnxRuntimeBackend().session(*built["everything"])
    assert isinstance(session, OnnxRuntimeSession)
    return session


def reference(family: Family, op: str, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
    namespace: dict[str, Any] = {}
    exec(numpy_module(family), namespace)
    result: tuple[Any, ...] = namespace[f"evaluate_{op}"](*inputs, **attributes)
    return result


@pytest.mark.rotating
@pytest.mark.parametrize(
    "attributes",
    [
        {"factor": 2.0},
        {"factor": 2.0, "axis": 1, "scale": 0.5},
        {"factor": 2.0, "axis": 1, "shift": -7},
        {"factor": 0.5, "axis": -2, "flip": True},
        {"factor": 2.0, "axis": 1, "mode": "double"},
        {"factor": 2.0, "axis": 1, "sizes": [5, -3]},
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_attributes(built: Built, session: OnnxRuntimeSession, attributes: dict[str, Any], dtype: str) -> None:
    x = X.astype(dtype)
    got = session.call("everything", {"x": x, "w": None, "b": None}, attributes)
    y, s = reference(built["everything"][0], "everything", x, None, None, **attributes)
    np.testing.assert_allclose(got["y"], y, rtol=1e-6)
    np.testing.assert_allclose(got["s"], s, rtol=1e-6)
    assert got["y"].dtype == got["s"].dtype == dtype


@pytest.mark.parametrize(("w", "b"), [(W, B), (W, None), (None, B)], ids=["both", "first", "second"])
def test_optional_inputs(built: Built, session: OnnxRuntimeSession, w: Any, b: Any) -> None:
    attributes = {"factor": 1.0, "axis": 1}
    got = session.call("everything", {"x": X, "w": w, "b": b}, attributes)
    y, _ = reference(built["everything"][0], "everything", X, w, b, **attributes)
    np.testing.assert_allclose(got["y"], y, rtol=1e-6)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({}, "attribute 'factor' is required"),
        ({"factor": 1}, "attribute 'factor' must be a float"),
        ({"factor": [1.0, 2.0]}, "attribute 'factor' must be a float"),
        ({"factor": 1.0, "shift": 1.0}, "attribute 'shift' must be an integer"),
        ({"factor": 1.0, "flip": 2}, "attribute 'flip' must be 0 or 1, not 2"),
        ({"factor": 1.0, "mode": "triple"}, "attribute 'mode' is 'triple', must be one of 'plain', 'double'"),
        ({"factor": 1.0, "mode": 1}, "attribute 'mode' must be a string"),
        ({"factor": 1.0, "sizes": [1, 2, 3]}, "attribute 'sizes' must have 2 values, not 3"),
        ({"factor": 1.0, "sizes": [1.0, 2.0]}, "attribute 'sizes' must be a list of integers"),
        ({"factor": 1.0, "scale": -1.0}, "scale = -1 violates its check: scale > 0"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_a_wrong_attribute_is_refused_when_the_model_loads(
    built: Built, module: Callable[[str, str], ModuleType], attributes: dict[str, Any], message: str
) -> None:
    models, runtime = module("everything", "onnx"), module("everything", "onnxruntime")
    complete = {"factor": 1.0} | attributes
    model = models.make_model("Everything", absent=["w", "b"], **{"factor": 1.0})
    node = model.graph.node[0]
    del node.attribute[:]
    node.attribute.extend(helper.make_attribute(k, v) for k, v in (complete if attributes else {}).items())
    with pytest.raises(Exception, match=r"(?i)everything") as caught:
        ort.InferenceSession(model.SerializeToString(), runtime.session_options())
    assert message in str(caught.value)


def test_lists_of_any_length(built: Built) -> None:
    session = OnnxRuntimeBackend().session(*built["scaled"])
    inputs = {"x": X, "z": W[:, None]}
    for weights in ([], [1.0], [1.0, 2.0, 3.0]):
        np.testing.assert_array_equal(session.call("scaled", inputs, {"weights": weights})["y"], X * W[:, None])
    with pytest.raises(OpError, match="attribute 'weights' must be a list of floats"):
        session.call("scaled", inputs, {"weights": "text"})


def inferred(module: Callable[[str, str], ModuleType], name: str, shapes: dict[str, Any], **attributes: Any) -> dict[str, Any]:
    """Return the outputs' shapes as a session tells them."""
    models, runtime = module(name, "onnx"), module(name, "onnxruntime")
    op_type = next(iter(models.SCHEMAS))
    absent = [p.name for p in models.SCHEMAS[op_type].inputs if p.name not in shapes]
    model = models.make_model(op_type, shapes=shapes, absent=absent, **attributes)
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    session = ort.InferenceSession(model.SerializeToString(), runtime.session_options())
    return {o.name: o.shape for o in session.get_outputs()}


def test_names_of_sizes_are_kept(module: Callable[[str, str], ModuleType]) -> None:
    shapes = {"x": ["batch", 3, "width"]}
    assert inferred(module, "everything", shapes, factor=1.0, axis=1) == {"y": ["batch", 3, "width"], "s": ["batch", "width"]}
    assert inferred(module, "everything", shapes, factor=1.0) == {"y": ["batch", 3, "width"], "s": ["batch", 3]}
    assert inferred(module, "everything", shapes, factor=1.0, axis=-3) == {"y": ["batch", 3, "width"], "s": [3, "width"]}


@pytest.mark.parametrize(
    ("x", "z", "y"),
    [
        (["n", 4], [4], ["n", 4]),
        (["n", 4], ["n", 1], ["n", 4]),
        ([1, "n"], ["m", 1], ["m", "n"]),
        (["n"], ["m", 5, "n"], ["m", 5, "n"]),
        (["n"], [7], [7]),
        ([3, 1], [1, 5], [3, 5]),
        # Either size may be 1.
        (["n"], ["m"], []),
    ],
    ids=str,
)
def test_broadcast_sizes(module: Callable[[str, str], ModuleType], x: list[Any], z: list[Any], y: list[Any]) -> None:
    assert inferred(module, "scaled", {"x": x, "z": z})["y"] == y


def test_a_scalar_operand_has_a_known_rank(module: Callable[[str, str], ModuleType]) -> None:
    assert inferred(module, "scaled", {"x": ["n", 4], "z": [4], "s": []})["y"] == ["n", 4]


def test_a_rank_that_is_not_known_is_no_rank_0(module: Callable[[str, str], ModuleType]) -> None:
    assert inferred(module, "scaled", {"x": None, "z": None})["y"] == []
    models, runtime = module("scaled", "onnx"), module("scaled", "onnxruntime")
    model = models.make_model("Scaled", absent=["s"])
    session = ort.InferenceSession(model.SerializeToString(), runtime.session_options())
    for array in (np.float32(3), X):
        (y,) = session.run(None, {"x": np.asarray(array), "z": np.asarray(array)})
        np.testing.assert_array_equal(y, array * array)


@pytest.mark.parametrize("order", [("everything", "scaled"), ("scaled", "everything", "scaled")], ids=str)
def test_two_libraries_of_one_domain_in_a_session(module: Callable[[str, str], ModuleType], order: tuple[str, ...]) -> None:
    options = None
    for name in order:
        options = module(name, "onnxruntime").session_options(options)
    graph = helper.make_graph(
        [
            helper.make_node("Everything", ["x"], ["t", "s"], domain="opc.test", factor=1.0),
            helper.make_node("Scaled", ["t", "t"], ["y"], domain="opc.test"),
            helper.make_node("Relu", ["y"], ["z"]),
        ],
        "both",
        [helper.make_tensor_value_info("x", 1, ["n", 4])],
        [helper.make_tensor_value_info("z", 1, None)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("opc.test", 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    sessions = [ort.InferenceSession(model, options) for _ in range(2)]
    del options
    for session in sessions:
        (z,) = session.run(None, {"x": X[0]})
        np.testing.assert_allclose(z, (X[0] * np.float32(0.1) + 3) ** 2, rtol=1e-6)


def test_a_large_tensor_uses_all_its_elements(session: OnnxRuntimeSession) -> None:
    """Long enough to be split over the runtime's threads: every range must be computed, once."""
    x = np.arange(1 << 20, dtype="float32").reshape(1, -1) % 1000
    got = session.call("everything", {"x": x, "w": None, "b": None}, {"factor": 1.0, "scale": 1.0, "shift": 0})
    np.testing.assert_array_equal(got["y"], x)


def test_an_output_in_an_input_s_memory(module: Callable[[str, str], ModuleType]) -> None:
    """The first node may overwrite its input, the second may not: that is needed once more."""
    graph = helper.make_graph(
        [
            helper.make_node("Neg", ["x"], ["a"]),
            helper.make_node("Tripled", ["x", "a"], ["unused", "b"], domain="opc.test"),
            helper.make_node("Tripled", ["x", "b"], ["u", "c"], domain="opc.test"),
            helper.make_node("Add", ["b", "c"], ["y"]),
        ],
        "chain",
        [helper.make_tensor_value_info("x", 1, ["n", 4])],
        [helper.make_tensor_value_info("y", 1, None), helper.make_tensor_value_info("u", 1, None)],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("opc.test", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()
    options = module("tripled", "onnxruntime").session_options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options)
    for _ in range(3):
        y, u = session.run(None, {"x": X[0]})
        np.testing.assert_array_equal(y, -12 * X[0])
        np.testing.assert_array_equal(u, X[0])


def test_an_op_tells_what_it_may_overwrite(built: Built) -> None:
    sources = {n: OnnxRuntimeBackend().emit(f)[f"onnxruntime/{n}_ort.cpp"] for n, (f, _) in built.items()}
    assert "inplace_op<Attributes, 1, 1>()" in sources["tripled"]
    assert "inplace_op" not in sources["scaled"]


def test_threads_share_a_session(built: Built) -> None:
    from concurrent.futures import ThreadPoolExecutor

    session = OnnxRuntimeBackend().session(*built["scaled"])
    arrays = [np.full((50, 40), i, "float32") for i in range(16)]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda a: session.call("scaled", {"x": a, "z": a}, {})["y"], arrays * 4))
    for array, result in zip(arrays * 4, results, strict=True):
        np.testing.assert_array_equal(result, array * array)


def test_checks_hold(built: Built, session: OnnxRuntimeSession) -> None:
    names = {c.name for c in OnnxRuntimeBackend().checks(session)}
    assert {"shape inference", "attribute defaults", "I/O binding", "library over the function"} <= names


def test_source_is_the_same_every_time(built: Built) -> None:
    for family, _ in built.values():
        assert OnnxRuntimeBackend().emit(family) == OnnxRuntimeBackend().emit(family)
