"""The core's graphs, tensors and ops, under the names that PopXL uses."""

from types import SimpleNamespace

from popart_core import (
    Autodiff,
    BwdGraphInfo,
    CallOp,
    DataType,
    ExpectedConnection,
    ExpectedConnectionType,
    Graph,
    GraphId,
    Ir,
    NumInputs,
    Op,
    OperatorIdentifier,
    Settings,
    Tensor,
    addScope,
    removeScope,
)
from popart_core import _TensorInfoCore as TensorInfo

transforms = SimpleNamespace(Autodiff=Autodiff)

__all__ = [
    "BwdGraphInfo",
    "CallOp",
    "DataType",
    "ExpectedConnection",
    "ExpectedConnectionType",
    "Graph",
    "GraphId",
    "Ir",
    "NumInputs",
    "Op",
    "OperatorIdentifier",
    "Settings",
    "Tensor",
    "TensorInfo",
    "addScope",
    "removeScope",
    "transforms",
]
