"""What the plugins of an op are called."""

from __future__ import annotations

import re

from opc.backends.paddle_names import operator_name
from opc.ir.op import Family
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class PluginNames:
    """The names of an op's plugins: those of version 2, which Paddle makes of its operator's, and that of version 3 with its
    namespace."""

    static: str
    dynamic: str
    third: str
    namespace: str


def plugin_names(family: Family) -> PluginNames:
    """Return the names; `names: {tensorrt: ...}` of a spec gives version 3 its own, which is else the op's in ONNX.

    TensorRT's ONNX parser looks for a plugin by a node's operator type, in no namespace unless the node names one.
    """
    op = family.forward
    namespace, _, third = (family.name_for("tensorrt") or op.class_name).rpartition("::")
    name = operator_name(family, op)
    return PluginNames(f"{name}_paddle_trt_plugin", f"{name}_paddle_trt_dynamic_plugin", third, re.sub(r"::", ".", namespace))


def register_name(family: Family) -> str:
    """Return the name of the C function that registers an op's plugins."""
    return f"opc_{family.name}_register_tensorrt"


def status_name(family: Family) -> str:
    """Return the name of the C function that tells what an op's kernels have found."""
    return f"opc_{family.name}_tensorrt_status"


def place_name(family: Family) -> str:
    """Return the name of the C function that tells plugins where kernels write that."""
    return f"opc_{family.name}_tensorrt_place"
