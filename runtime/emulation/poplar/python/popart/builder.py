"""The builder: makes ONNX models, op by op."""

from contextlib import contextmanager

import numpy as np
import onnx
import popart_core
from onnx import helper, numpy_helper

from popart.dtypes import FROM_ONNX, ONNX_NUMBER, TO_NUMPY
from popart.opsets import AiGraphcoreOpset1, AiOnnxOpset
from popart.tensorinfo import TensorInfo

DEFAULT_AI_ONNX_OPSET = 10
ONNX_OPSETS = (6, 7, 8, 9, 10, 11)


class Builder:
    """Makes a model; starts from one that is given as bytes or as the name of a file.

    Raises:
        popart_exception: what PopART refuses: an unknown tensor, another opset, an attribute of a type that it doesn't take.
    """

    def __init__(self, modelProtoOrFilename=None, opsets=None) -> None:  # noqa: N803
        self._model = onnx.ModelProto()
        self._opset_versions: dict[str, int] = {}
        self._ids: set[str] = set()
        # What is known of each tensor: a TensorInfo, or None where nothing was inferred.
        self._infos: dict[str, object] = {}
        self._names: list[str] = []
        self._nodes: dict[tuple[str, ...], onnx.NodeProto] = {}
        if modelProtoOrFilename is None:
            self._model.ir_version = 8
            self._model.graph.name = "BuilderGraph"
            self._model.producer_name = "PopART"
        else:
            self._start(modelProtoOrFilename)
        chosen = (opsets or {}).get("ai.onnx")
        self._onnx = AiOnnxOpset(self, chosen) if chosen else None
        self.aiGraphcore = self.aiGraphcoreOpset1 = AiGraphcoreOpset1(self)

    def _start(self, source) -> None:
        from popart.models import read_model

        self._model.CopyFrom(read_model(source))
        graph = self._model.graph
        self._opset_versions = {opset.domain or "ai.onnx": opset.version for opset in self._model.opset_import}
        for info in (*graph.input, *graph.output, *graph.value_info):
            self._infos[info.name] = _info(info)
        for node in graph.node:
            self._nodes[tuple(node.output)] = node
            for name in node.output:
                self._infos.setdefault(name, None)
        for tensor in graph.initializer:
            self._infos[tensor.name] = TensorInfo(FROM_ONNX[tensor.data_type], tensor.dims)
        self._ids.update(self._infos)

    def __getattr__(self, name: str):
        if name == "aiOnnx":
            return self._opset(self._onnx.version if self._onnx else DEFAULT_AI_ONNX_OPSET)
        number = name.removeprefix("aiOnnxOpset")
        if number != name and number.isdigit() and int(number) in ONNX_OPSETS:
            return self._opset(int(number))
        raise AttributeError(f"'Builder' object has no attribute {name!r}")

    def _opset(self, version: int) -> AiOnnxOpset:
        # As in PopART: the first that is used is the one for the model.
        if self._onnx is None:
            self._onnx = AiOnnxOpset(self, version)
        if self._onnx.version != version:
            raise RuntimeError(
                f"Invalid opset 'aiOnnxOpset{version}' selected. Opset for domain ai.onnx already defined as {self._onnx.version}"
            )
        return self._onnx

    def _next_id(self, name: str) -> str:
        base = "/".join((*self._names, name))
        made, count = base, 0
        while made in self._ids:
            count += 1
            made = f"{base}/{count}"
        self._ids.add(made)
        return made

    def setGraphName(self, name: str) -> None:  # noqa: N802
        """Names the graph."""
        self._model.graph.name = name

    def addInputTensor(self, *args, **kwargs) -> str:  # noqa: N802
        """`addInputTensor(tensorInfo, debugContext="")` or `addInputTensor(dataType, shape, debugContext="")`: its name."""
        info, name = _input_arguments(args, kwargs)
        made = self._next_id(name or "input")
        self._model.graph.input.append(_value_info(made, info))
        self._infos[made] = info
        return made

    def addInitializedInputTensor(self, initVal, debugContext: str = "") -> str:  # noqa: N802, N803
        """A tensor that starts as `initVal`: a variable in training, a constant else."""
        array = np.ascontiguousarray(initVal).reshape(np.shape(initVal))
        info = popart_core.getTensorInfo(array)
        made = self._next_id(debugContext or "init_input")
        self._model.graph.input.append(_value_info(made, info))
        self._model.graph.initializer.append(numpy_helper.from_array(array, made))
        self._infos[made] = info
        return made

    def addOutputTensor(self, outputName: str) -> None:  # noqa: N802, N803
        """Makes a tensor an output of the model."""
        output = self._model.graph.output.add()
        info = self._infos.get(outputName)
        output.CopyFrom(_value_info(outputName, info)) if info is not None else setattr(output, "name", outputName)

    def customOp(self, opName, opVersion, domain, inputs, attributes=None, numOutputs=1, name="") -> list[str]:  # noqa: N802, N803
        """A node of an op that a loaded library registers; the names of its outputs.

        Attributes are texts, whole numbers, floats, or lists of whole numbers or of floats: Python's types, not NumPy's.
        """
        values = {key: _attribute(key, value) for key, value in (attributes or {}).items()}
        return self._op(domain, opName, opVersion, 1, list(inputs), values, numOutputs, name)

    def _op(self, domain, op_type, version, opset, inputs, attributes, outputs: int, name: str = "") -> list[str]:
        """Adds a node of an op of `version` of the domain, which the model imports as `opset`."""
        for tensor in inputs:
            if tensor and tensor not in self._infos:
                known = ", ".join(f"'{known}'" for known in sorted(self._infos)) or "none"
                raise popart_core.popart_exception(f"Unknown tensor '{tensor}' (valid tensors are {known})")
        known = self._opset_versions.setdefault(domain, opset)
        if known != opset:
            raise popart_core.popart_exception(
                f"Invalid opset {opset} used to add an operation. Opset for domain {domain} already defined as {known}"
            )
        if len(self._model.opset_import) < len(self._opset_versions):
            self._model.opset_import.append(helper.make_opsetid("" if domain == "ai.onnx" else domain, opset))
        made = [self._next_id(f"{name or op_type}:{index}") for index in range(outputs)]
        node = self._model.graph.node.add(op_type=op_type, domain="" if domain == "ai.onnx" else domain, input=inputs, output=made)
        if name or self._names:
            node.name = "/".join((*self._names, name or op_type))
        for key, value in attributes.items():
            node.attribute.append(value if isinstance(value, onnx.AttributeProto) else helper.make_attribute(key, value))
        self._nodes[tuple(made)] = node
        self._infer(popart_core.OperatorIdentifier(domain, op_type, version), node)
        return made

    def _infer(self, opid, node: onnx.NodeProto) -> None:
        """What the registered function says of the node's outputs; ONNX's own inference runs when its answer is asked for."""
        self._infos.update(dict.fromkeys(node.output))
        if not popart_core._hasShapeFunction(opid):
            return
        from popart.models import attribute_values

        infos = {index: self._known(tensor) for index, tensor in enumerate(node.input)}
        found = popart_core._inferShapes(opid, infos, attribute_values(node), len(node.output))
        for index, info in found.items():
            if any(size < 0 for size in info.shape()):
                raise popart_core.popart_exception(
                    f"Output '{node.output[index]}' of node '{node.op_type}' has invalid shape, {info.shape()}. "
                    "Values must be non-negative in each shape dimension."
                )
            self._infos[node.output[index]] = info
            self._model.graph.value_info.append(_value_info(node.output[index], info))

    def _known(self, tensor: str):
        if tensor not in self._infos:
            # PopART asks for the info of each input, also of one that is absent, before it calls a registered function.
            raise popart_core.popart_exception(
                f"{tensor} is not an known tensor. Must be one of {sorted(self._infos)}. Please check the info log level to confirm "
                "whether the shape has been inferred successfully for the requested tensor."
            )
        if self._infos[tensor] is None:
            inferred = onnx.shape_inference.infer_shapes(self._model)
            for info in inferred.graph.value_info:
                if self._infos.get(info.name) is None:
                    self._infos[info.name] = _info(info)
        info = self._infos[tensor]
        return TensorInfo("UNDEFINED", []) if info is None else info

    def getModelProto(self) -> bytes:  # noqa: N802
        """The model, as the bytes of an ONNX ModelProto."""
        return self._model.SerializeToString()

    def saveModelProto(self, filename: str) -> None:  # noqa: N802
        """Writes the model to a file."""
        onnx.save(self._model, filename)

    def getInputTensorIds(self) -> list[str]:  # noqa: N802
        """The names of the inputs."""
        return [info.name for info in self._model.graph.input]

    def getOutputTensorIds(self) -> list[str]:  # noqa: N802
        """The names of the outputs."""
        return [info.name for info in self._model.graph.output]

    def getValueTensorIds(self) -> list[str]:  # noqa: N802
        """The names of the tensors between."""
        outside = {*self.getInputTensorIds(), *self.getOutputTensorIds()}
        return [name for name in self._infos if name not in outside]

    def getTrainableTensorIds(self) -> list[str]:  # noqa: N802
        """The names of the tensors that have a value to start with."""
        return [tensor.name for tensor in self._model.graph.initializer]

    def isInitializer(self, id: str) -> bool:  # noqa: N802
        """Whether a tensor has a value to start with."""
        return id in self.getTrainableTensorIds()

    def getTensorShape(self, id: str) -> list[int]:  # noqa: N802
        """The sizes of a tensor: empty where they couldn't be inferred, too."""
        return list(self._known(id).shape())

    def getTensorDtypeString(self, id: str) -> str:  # noqa: N802
        """The name of a tensor's type: "float32"."""
        return self._known(id).data_type_lcase()

    def addNodeAttribute(self, attributeName: str, attributeValue, nodeOutputNames) -> None:  # noqa: N802, N803
        """Adds an attribute to the node that has just these outputs."""
        for outputs, node in self._nodes.items():
            if set(outputs) == set(nodeOutputNames):
                node.attribute.append(helper.make_attribute(attributeName, _attribute(attributeName, attributeValue)))
                return
        raise popart_core.popart_exception(
            f"Could not find a node with outputs {', '.join(nodeOutputNames)}. Must specify all outputs of a node"
        )

    @contextmanager
    def nameScope(self, name: str):  # noqa: N802
        """Puts `name/` before the names of what is made inside."""
        self._names.append(name)
        try:
            yield
        finally:
            self._names.pop()

    def reshape_const(self, aiOnnx, args, shape, debugContext: str = "") -> str:  # noqa: N803
        """Reshapes `args[0]` to sizes that are known now."""
        return aiOnnx.reshape([args[0], aiOnnx.constant(np.array(shape, np.int64), debugContext + "_const")], debugContext)


def _input_arguments(args: tuple, kwargs: dict):
    """The info and the name of an input, from the arguments of either form."""
    names = ["tensorInfo", "debugContext"]
    if "dataType" in kwargs or (args and isinstance(args[0], str)):
        names = ["dataType", "shape", "debugContext"]
    given = {**dict(zip(names, args)), **kwargs}
    info = given.get("tensorInfo")
    if info is None:
        info = TensorInfo(given["dataType"], given["shape"])
    return info, given.get("debugContext", "")


def _attribute(key: str, value):
    """The value, where PopART takes its type."""
    if isinstance(value, (str, int, float)):
        return int(value) if isinstance(value, int) else value
    if isinstance(value, list):
        for kind in (int, float):
            if all(isinstance(item, kind) for item in value):
                return _list(key, [kind(item) for item in value], kind)
        raise popart_core.popart_exception(f"Invalid or mismatched python list type provided in custom op attribute '{key}'")
    raise popart_core.popart_exception(f"Invalid type provided in custom op attribute '{key}'")


def _list(key: str, values: list, kind: type) -> onnx.AttributeProto:
    if kind is int:
        return onnx.AttributeProto(name=key, type=onnx.AttributeProto.INTS, ints=values)
    return onnx.AttributeProto(name=key, type=onnx.AttributeProto.FLOATS, floats=values)


def _value_info(name: str, info) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, ONNX_NUMBER[info.dataType().name], info.shape())


def _info(value: onnx.ValueInfoProto):
    tensor = value.type.tensor_type
    if not tensor.elem_type or not tensor.HasField("shape"):
        return None
    return TensorInfo(FROM_ONNX.get(tensor.elem_type, "UNDEFINED"), [dim.dim_value for dim in tensor.shape.dim])


def numpy_dtype(info) -> np.dtype:
    """NumPy's type for the elements of a tensor."""
    return TO_NUMPY[info.dataType().name]
