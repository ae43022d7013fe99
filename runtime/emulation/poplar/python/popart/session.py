"""Sessions: a model on a device."""

import numpy as np
from popart_core import (
    AnchorReturnTypeId,
    InputShapeInfo,
    Patterns,
    SessionOptions,
    _InferenceSessionCore,
    _TrainingSessionCore,
)

from popart import models


class _Session:
    """What both kinds of sessions have."""

    replicationFactor = 1  # noqa: N815  # PopART's name
    accumulationFactor = 1  # noqa: N815  # PopART's name

    @property
    def dataFlow(self):  # noqa: N802  # PopART's name
        """What the session runs on and gives back."""
        return self._getDataFlow()

    def initAnchorArrays(self) -> dict[str, np.ndarray]:  # noqa: N802  # PopART's name
        """New arrays for the anchors, by their names: with an axis of batches where the anchor returns more than one."""
        flow = self.dataFlow
        arrays = {}
        for anchor in flow.anchors():
            info, kind = self.getInfo(anchor), flow.art(anchor)
            batches = flow.batchesPerStep()
            if kind.id() == AnchorReturnTypeId.EveryN:
                batches //= kind.rp()
            elif kind.id() != AnchorReturnTypeId.All:
                batches = 1
            shape = ([batches] if batches != 1 else []) + list(info.shape())
            arrays[anchor] = np.empty(shape, info.data_type_lcase())
        return arrays


class InferenceSession(_Session, _InferenceSessionCore):
    """Runs a model: bytes or the name of an ONNX file, or `fromIr`."""

    def __init__(
        self,
        fnModel,  # noqa: N803  # PopART's name
        dataFlow,  # noqa: N803  # PopART's name
        deviceInfo,  # noqa: N803  # PopART's name
        inputShapeInfo=None,  # noqa: N803  # PopART's name
        patterns=None,
        userOptions=None,  # noqa: N803  # PopART's name
        name: str = "inference",
    ) -> None:
        _InferenceSessionCore.__init__(
            self,
            models.to_core(fnModel),
            dataFlow,
            deviceInfo,
            inputShapeInfo or InputShapeInfo(),
            userOptions or SessionOptions(),
            patterns or Patterns(),
            name,
        )

    @classmethod
    def fromIr(cls, ir, deviceInfo, name: str = "fromIr") -> "InferenceSession":  # noqa: N802, N803  # PopART's name
        """Runs an IR that was built in Python."""
        self = cls.__new__(cls)
        _InferenceSessionCore.__init__(self, ir=ir, deviceInfo=deviceInfo, name=name)
        return self


class TrainingSession(_Session, _TrainingSessionCore):
    """Runs a model, the gradients of the tensor `loss`, and one step of the optimizer."""

    def __init__(
        self,
        fnModel,  # noqa: N803  # PopART's name
        dataFlow,  # noqa: N803  # PopART's name
        loss: str,
        optimizer,
        deviceInfo,  # noqa: N803  # PopART's name
        inputShapeInfo=None,  # noqa: N803  # PopART's name
        patterns=None,
        userOptions=None,  # noqa: N803  # PopART's name
        name: str = "training",
    ) -> None:
        _TrainingSessionCore.__init__(
            self,
            models.to_core(fnModel),
            dataFlow,
            loss,
            optimizer,
            deviceInfo,
            inputShapeInfo or InputShapeInfo(),
            userOptions or SessionOptions(),
            patterns or Patterns(),
            name,
        )


class PyWeightsIO:
    """Arrays that `session.readWeights` fills."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.weights = weights


def _read_weights(self, weights: PyWeightsIO) -> None:
    self._readWeights(weights.weights)


_InferenceSessionCore.readWeights = _TrainingSessionCore.readWeights = _read_weights
