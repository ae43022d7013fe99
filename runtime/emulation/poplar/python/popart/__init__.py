"""PopART on the emulated SDK: models of ops, run on the CPU. It stands in for Graphcore's package of the same name.

`import popart` comes before `import onnx`, as the original asks for: the other way round is an error there, and so it is here.
"""

import sys

if "onnx" in sys.modules:
    raise ImportError(
        "It looks like onnx has already been imported. Due to an ongoing issue, popart must be imported before onnx."
    )

from popart_core import (
    AnchorReturnType,
    AnchorReturnTypeId,
    ConstSGD,
    DataFlow,
    DataType,
    DeviceInfo,
    DeviceManager,
    DeviceType,
    InputShapeInfo,
    OperatorIdentifier,
    Optimizer,
    Patterns,
    PatternsLevel,
    PyStepIO,
    ReductionType,
    SessionOptions,
    getTensorInfo,
    popart_exception,
    popart_internal_exception,
    popart_runtime_error,
    poplar_exception,
    poplar_runtime_error,
    poplibs_exception,
    reservedGradientPrefix,
    versionString,
)

from popart.builder import DEFAULT_AI_ONNX_OPSET as defaultAiOnnxOpset  # noqa: N811  # PopART's name
from popart.builder import Builder
from popart.session import InferenceSession, PyWeightsIO, TrainingSession
from popart.tensorinfo import TensorInfo

# Each process tells it once, beside what the program prints, which stays what it is on an IPU.
print("popart: emulated on the CPU, no IPU is used", file=sys.stderr, flush=True)

defaultAiGraphcoreOpset = 1  # noqa: N816  # PopART's name
__version__ = versionString()
__all__ = [
    "AnchorReturnType",
    "AnchorReturnTypeId",
    "Builder",
    "ConstSGD",
    "DataFlow",
    "DataType",
    "DeviceInfo",
    "DeviceManager",
    "DeviceType",
    "InferenceSession",
    "InputShapeInfo",
    "OperatorIdentifier",
    "Optimizer",
    "Patterns",
    "PatternsLevel",
    "PyStepIO",
    "PyWeightsIO",
    "ReductionType",
    "SessionOptions",
    "TensorInfo",
    "TrainingSession",
    "defaultAiGraphcoreOpset",
    "defaultAiOnnxOpset",
    "getTensorInfo",
    "popart_exception",
    "popart_internal_exception",
    "popart_runtime_error",
    "poplar_exception",
    "poplar_runtime_error",
    "poplibs_exception",
    "reservedGradientPrefix",
    "versionString",
]
