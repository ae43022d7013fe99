"""PopXL on the emulated SDK: graphs in Python, ops in C++, run on the CPU. It stands in for Graphcore's package."""

import popart as _popart  # noqa: F401  # PopART comes before ONNX

from popxl import ops, transforms
from popxl.context import gcg, get_current_graph, get_ir, get_main_graph, gir, gmg, in_sequence, io_tiles, ipu, name_scope
from popxl.dtypes import (
    bool,
    double,
    dtype,
    float,
    float16,
    float32,
    float64,
    half,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from popxl.graph import Graph
from popxl.ir import Ir
from popxl.module import Module
from popxl.session import Session
from popxl.streams import DeviceToHostStream, HostToDeviceStream, d2h_stream, h2d_stream
from popxl.tensor import Constant, Tensor, TensorByRef, TensorSpec, Variable, constant, graph_input, graph_output, variable

__version__ = "3.4.0+emulated"
__all__ = [
    "Constant",
    "DeviceToHostStream",
    "Graph",
    "HostToDeviceStream",
    "Ir",
    "Module",
    "Session",
    "Tensor",
    "TensorByRef",
    "TensorSpec",
    "Variable",
    "bool",
    "constant",
    "d2h_stream",
    "double",
    "dtype",
    "float",
    "float16",
    "float32",
    "float64",
    "gcg",
    "get_current_graph",
    "get_ir",
    "get_main_graph",
    "gir",
    "gmg",
    "graph_input",
    "graph_output",
    "h2d_stream",
    "half",
    "in_sequence",
    "int8",
    "int16",
    "int32",
    "int64",
    "io_tiles",
    "ipu",
    "name_scope",
    "ops",
    "transforms",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variable",
]
