"""The builder: makes ONNX models, op by op."""

import popart_core

from popart import models

DEFAULT_AI_ONNX_OPSET = 10


class Builder:
    """Makes a model; starts from one that is given as bytes or as the name of a file.

    What isn't written here is the core's: `addInputTensor`, `addInitializedInputTensor`, `addOutputTensor`, `customOp` ...
    """

    def __init__(self, modelProtoOrFilename=None, opsets=None) -> None:  # noqa: N803  # PopART's name
        if modelProtoOrFilename is None:
            self._impl = popart_core._BuilderCore()
        else:
            self._impl = popart_core._BuilderCore(models.to_core(modelProtoOrFilename, values=True))
        self._chosen = (opsets or {}).get("ai.onnx")
        self.aiGraphcore = self.aiGraphcoreOpset1 = self._impl._aiGraphcoreOpset1()

    def __getattr__(self, name: str):
        if not name.startswith("aiOnnx"):
            return getattr(self._impl, name)
        version = name.removeprefix("aiOnnxOpset") if name != "aiOnnx" else str(self._chosen or DEFAULT_AI_ONNX_OPSET)
        # The first opset that is used is the one of the model.
        self._chosen = self._chosen or int(version)
        if int(version) != self._chosen:
            raise RuntimeError(f"Invalid opset '{name}' selected. Opset for domain ai.onnx already defined as {self._chosen}")
        return getattr(self._impl, f"_aiOnnxOpset{version}")()

    def getModelProto(self) -> bytes:  # noqa: N802  # PopART's name
        """The model, as the bytes of an ONNX ModelProto."""
        return models.from_core(self._impl._model())

    def saveModelProto(self, filename: str) -> None:  # noqa: N802  # PopART's name
        """Writes the model to a file."""
        with open(filename, "wb") as file:
            file.write(self.getModelProto())
