"""Runs models in an ONNX Runtime for CPUs that is given a provider called CUDA's; started by `test_cuda.py`.

It gets the provider's library, a folder with packages of the ops `picked` and `tripled`, and a library of the former's kernels
that checks each call. That op is `y[n, d] = t[ids[n], d] * scale * w[d]`, where `w` may be absent, and sums of it without w.
"""

from __future__ import annotations

import ctypes
import gc
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import helper

from opc.backends import package as packages

Arrays = Mapping[str, Any]


class Emulation:
    """The provider, and the packages of ops."""

    def __init__(self, provider: Path, folder: Path) -> None:
        self.path, self.folder = provider, folder
        ort.set_default_logger_severity(4)
        ort.register_execution_provider_library("CUDAExecutionProvider", str(provider))
        self.devices = [d for d in ort.get_ep_devices() if d.ep_name == "CUDAExecutionProvider"]

    def show(self) -> None:
        """Have libraries find out that the provider is no GPU's."""
        self.library = ctypes.CDLL(str(self.path), ctypes.RTLD_GLOBAL)

    def module(self, name: str, part: str) -> Any:
        """Return a module of a package."""
        return packages.load(self.folder / name, part)

    def session(self, model: Any, *, gpu: bool = True, plain: bool = False) -> Any:
        """Return a session that knows all ops, on the provider and the CPU or on the latter alone; `plain`: not optimised."""
        options = ort.SessionOptions()
        options.intra_op_num_threads = 1
        if plain:
            options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        for package in ("picked", "tripled"):
            options = self.module(package, "onnxruntime").session_options(options)
        if gpu:
            options.add_provider_for_devices(self.devices, {})
        return ort.InferenceSession(model.SerializeToString(), options, providers=None if gpu else ["CPUExecutionProvider"])

    def counts(self) -> dict[str, int]:
        """Return what the provider has counted."""
        found = (ctypes.c_int * 5)()
        self.library.emulated_counts(found)
        return dict(zip(("nodes", "copies", "copy_nodes", "runs", "blocks"), found, strict=True))

    def both(self, model: Any, feeds: Arrays, *, nodes: int = 1) -> None:
        """Assert that a model computes on the provider, which takes so many nodes, what it does on the CPU."""
        before = self.counts()["nodes"]
        session = self.session(model)
        assert self.counts()["nodes"] - before == nodes
        found, expected = session.run(None, feeds), self.session(model, gpu=False).run(None, feeds)
        for a, b in zip(found, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-3)


def refused(call: Any, says: str) -> None:
    """Assert that a session or a run of one is refused with a message."""
    found = "nothing"
    try:
        call()
    except Exception as error:  # ONNX Runtime's errors share no base class.
        found = str(error)
    assert says in found, found


def graph(nodes: list[Any], inputs: Mapping[str, int], outputs: list[str]) -> Any:
    """Return a model whose inputs have these element types and any shape."""
    made = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(name, element, None) for name, element in inputs.items()],
        [helper.make_tensor_value_info(name, 1, None) for name in outputs],
    )
    domains = [helper.make_opsetid("", 21), helper.make_opsetid("opc.ort_test", 1)]
    return helper.make_model(made, opset_imports=domains, ir_version=10)


def kernels_that_do_not_fit(cuda: Emulation, model: Any, feeds: Arrays, checked: Path) -> None:
    """Check what happens without kernels for GPUs, and with others than the library's."""
    library = cuda.folder / "picked" / "build" / "libpicked_cuda.so"
    made = library.read_bytes()
    source = cuda.module("picked", "onnxruntime").library_path().read_bytes()
    refused(
        lambda: cuda.session(model), "Picked: its kernels are for this machine's CPU: run `opc build --backend cuda` where nvcc"
    )
    cuda.show()
    library.unlink()
    cuda.both(model, feeds, nodes=0)
    hashed = next(h for h in re.findall(rb"[0-9a-f]{64}", made) if h in source)
    for data, says in (
        (b"no library", "its kernels can't be loaded"),
        (made.replace(hashed, hashed[::-1]), "from the same spec"),
    ):
        library.write_bytes(data)
        refused(lambda: cuda.session(model), says)
        library.unlink()
    shutil.copy(checked, library)


def one_node(cuda: Emulation, feeds: Arrays) -> None:
    """Check models of one node: element types, an absent input, gradients, no elements, calls to be refused."""
    make_model = cuda.module("picked", "onnx").make_model
    for dtype in ("float32", "float16"):
        given = {n: a if n == "ids" else a.astype(dtype) for n, a in feeds.items()}
        cuda.both(make_model("Picked", dtypes=dtype, scale=2.0), given)
    without = {n: a for n, a in feeds.items() if n != "w"}
    cuda.both(make_model("Picked", absent=["w"]), without)
    cuda.both(make_model("Picked"), {**feeds, "ids": np.zeros(0, "int64")})
    d_y = np.arange(12, dtype="float32").reshape(4, 3)
    cuda.both(make_model("PickedBackward", absent=["d_total"]), {**feeds, "d_y": d_y})

    session = cuda.session(make_model("Picked"))
    refused(lambda: session.run(None, {**feeds, "w": feeds["w"][:2]}), "D is 3 in t, but 2 in w")
    refused(lambda: session.run(None, {**feeds, "ids": feeds["ids"] + 3}), "an index of t is 6, outside axis 0 of size 5")
    refused(lambda: cuda.session(make_model("Picked", scale=-1.0)), "scale")
    np.testing.assert_array_equal(session.run(["y"], feeds)[0], feeds["t"][feeds["ids"]] * feeds["w"])


def several_nodes(cuda: Emulation, feeds: Arrays) -> None:
    """Check what ONNX Runtime does around nodes: copies between providers, memory that is used again, or written in place."""
    nodes = [
        helper.make_node("Relu", ["t"], ["positive"]),
        helper.make_node("Picked", ["positive", "ids", "w"], ["y", "total"], domain="opc.ort_test"),
        helper.make_node("Tripled", ["y", "y"], ["same", "three"], domain="opc.ort_test"),
        helper.make_node("Tripled", ["same", "three"], ["again", "nine"], domain="opc.ort_test"),
        helper.make_node("Add", ["nine", "again"], ["sum"]),
        helper.make_node("Picked", ["sum", "ids"], ["z", "unused"], domain="opc.ort_test"),
    ]
    model = graph(nodes, {"t": 1, "ids": 7, "w": 1}, ["total", "z", "sum"])
    before = cuda.counts()["copy_nodes"]
    cuda.both(model, feeds, nodes=4)
    assert cuda.counts()["copy_nodes"] > before
    plain, expected = cuda.session(model, plain=True), cuda.session(model, gpu=False, plain=True)
    for _ in range(2):
        for a, b in zip(plain.run(None, feeds), expected.run(None, feeds), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6)


def main(provider: Path, folder: Path, checked: Path) -> None:
    cuda = Emulation(provider, folder)
    feeds = {
        "t": np.linspace(-2, 2, 15, dtype="float32").reshape(5, 3),
        "ids": np.array([3, 0, 3, 1]),
        "w": np.array([1, 2, 4], "float32"),
    }
    kernels_that_do_not_fit(cuda, cuda.module("picked", "onnx").make_model("Picked"), feeds, checked)
    one_node(cuda, feeds)
    several_nodes(cuda, feeds)
    gc.collect()
    assert cuda.counts()["blocks"] == 0
    calls = ctypes.CDLL(str(folder / "picked" / "build" / "libpicked_cuda.so"))
    seen = [ctypes.c_int.in_dll(calls, name).value for name in ("emulated_calls", "emulated_scratch")]
    assert min(seen) > 0, seen
    print("all held")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
