"""Runs models on a GPU in ONNX Runtime: `python tests/gpu/in_onnxruntime.py FOLDER`, where packages of OPS are built for both.

Values are those of the CPU's provider. It says `all held`, or ends with what did not hold.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

OPS = ("leaky_relu", "layer_norm", "gather")
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"


def session(model: Any, *, gpu: bool = True, cuda: Mapping[str, str] | None = None, alone: bool = False) -> Any:
    """Return a session that knows all ops, on the GPU first or on the CPU; `alone`: with no node on the CPU."""
    options = ort.SessionOptions()
    for name in OPS:
        options = import_module(f"{name}.onnxruntime").session_options(options)
    if alone:
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    providers: list[Any] = [(CUDA, dict(cuda or {}))] if gpu else []
    providers += [] if alone else [CPU]
    made = ort.InferenceSession(model.SerializeToString(), options, providers=providers)
    assert (CUDA in made.get_providers()) is gpu, made.get_providers()
    return made


def close(found: Any, expected: Any) -> None:
    """Assert that results on a GPU are those of the CPU, but for a few roundings."""
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        error = 1e-5 if a.dtype == np.float32 else 2e-3
        np.testing.assert_allclose(np.float32(a), np.float32(b), rtol=error, atol=error)


def refused(call: Callable[[], Any], says: str) -> None:
    """Assert that a run is refused with a message."""
    found = "nothing"
    try:
        call()
    except Exception as error:  # ONNX Runtime's errors share no base class.
        found = str(error)
    assert says in found, found


def node(op: str, feeds: Mapping[str, Any], name: str = "", **how: Any) -> None:
    """Check a model of one node, of a family and perhaps of its derivatives, and that the node goes to the GPU."""
    model = import_module(f"{op}.onnx").make_model(name or "".join(map(str.capitalize, op.split("_"))), **how)
    close(session(model, alone=True).run(None, feeds), session(model, gpu=False).run(None, feeds))


def chain() -> Any:
    """Return a model with nodes of ONNX's between those of ops."""
    nodes = [
        helper.make_node("LayerNorm", ["x", "w"], ["a", "mean", "rstd"], domain="opc.nn"),
        helper.make_node("LeakyRelu", ["a"], ["b"], domain="opc.nn", alpha=0.3),
        helper.make_node("Mul", ["b", "b"], ["c"]),
        helper.make_node("Gather", ["c", "ids"], ["y"], domain="opc.nn"),
    ]
    takes = {"x": (TensorProto.FLOAT, [37, 130]), "w": (TensorProto.FLOAT, [130]), "ids": (TensorProto.INT64, [50])}
    inputs = [helper.make_tensor_value_info(name, *what) for name, what in takes.items()]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, [50, 130])
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("opc.nn", 1)]
    return helper.make_model(helper.make_graph(nodes, "chain", inputs, [output]), opset_imports=domains, ir_version=10)


def captured(model: Any, feeds: Mapping[str, Any]) -> None:
    """Check a CUDA graph, which holds nothing that waits for the device or gets memory elsewhere than from ONNX Runtime."""
    graph = session(model, cuda={"enable_cuda_graph": "1"}, alone=True)
    values = {name: ort.OrtValue.ortvalue_from_numpy(array, "cuda", 0) for name, array in feeds.items()}
    made = ort.OrtValue.ortvalue_from_shape_and_type([50, 130], np.float32, "cuda", 0)
    binding = graph.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    binding.bind_ortvalue_output("y", made)
    for rows in range(4):
        now = {**feeds, "x": np.roll(feeds["x"], rows, 0)}
        values["x"].update_inplace(now["x"])
        graph.run_with_iobinding(binding)
        close([made.numpy()], session(model, gpu=False).run(None, now))


def at_once(model: Any, feeds: Mapping[str, Any]) -> None:
    """Check runs of one session by several threads, whose memory between kernels must not be shared."""
    made, plain = session(model), session(model, gpu=False)
    many = [{**feeds, "x": np.roll(feeds["x"], i, 0)} for i in range(32)]
    with ThreadPoolExecutor(4) as pool:
        for found, each in zip(pool.map(lambda f: made.run(None, f), many), many, strict=True):
            close(found, plain.run(None, each))


def outside(data: Any) -> None:
    """Run a node with an index outside its axis, after which this process can use its GPU no more."""
    made = session(import_module("gather.onnx").make_model("Gather", dtypes={"T": "float32", "I": "int64"}))
    try:
        found = made.run(None, {"data": data, "indices": np.array([3, 99, 0])})
    except Exception as error:  # ONNX Runtime's errors share no base class.
        print("refused:", error, flush=True)
    else:
        print("computed:", found, flush=True)
    os._exit(0)


def main(folder: str, *what: str) -> None:
    sys.path.insert(0, folder)
    if hasattr(ort, "preload_dlls"):
        ort.preload_dlls()
    ort.set_default_logger_severity(4)
    random = np.random.default_rng(0)
    x, w, b = (random.standard_normal(s, dtype="float32") for s in ((37, 130), 130, 130))
    ids = random.integers(-37, 37, 50)
    if what:
        return outside(x)
    for dtype in ("float32", "float16"):
        half = [a.astype(dtype) for a in (x, w, b)]
        node("leaky_relu", {"x": half[0]}, dtypes=dtype, alpha=0.3)
        node("leaky_relu", {"x": half[0], "d_y": 2 * half[0]}, "LeakyReluBackward", dtypes=dtype)
        node("layer_norm", dict(zip(("x", "w", "b"), half, strict=True)), dtypes=dtype)
        node("layer_norm", {"x": half[0]}, dtypes=dtype, absent=["w", "b"])
        node("gather", {"data": half[0], "indices": ids}, dtypes={"T": dtype, "I": "int64"})
    backward = {"data": x, "indices": ids, "d_y": random.standard_normal((50, 130), dtype="float32")}
    node("gather", backward, "GatherBackward", dtypes={"T": "float32", "I": "int64"})
    model = import_module("layer_norm.onnx").make_model("LayerNorm", absent=["b"])
    refused(lambda: session(model).run(None, {"x": x, "w": w[:7]}), "D is 130 in x, but 7 in w")
    feeds = {"x": x, "w": w, "ids": ids}
    close(session(chain()).run(None, feeds), session(chain(), gpu=False).run(None, feeds))
    captured(chain(), feeds)
    at_once(chain(), feeds)
    done = subprocess.run([sys.executable, __file__, folder, "outside"], capture_output=True, text=True, check=False)
    assert "refused:" in done.stdout, done.stdout + done.stderr
    print(f"ONNX Runtime {ort.__version__}: all held")


if __name__ == "__main__":
    main(*sys.argv[1:])
