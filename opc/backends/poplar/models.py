"""Models of PopART as the proof makes them: nodes of a family's ops, in a Builder where that can say them, and what they give."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from opc.backends.base import OpError, Unsupported, not_carried
from opc.backends.poplar import sdk
from opc.backends.poplar.classes import VERSION
from opc.backends.poplar.values import data_type
from opc.ir.op import Op

if TYPE_CHECKING:
    from opc.backends.base import Array

IR_VERSION = 8
"""The version of ONNX's file format that models are written in, one that PopART's own ONNX reads."""

_loaded: dict[str, Path] = {}


def import_popart() -> Any:
    """Return the module `popart`, of a real SDK or of the emulation.

    Raises:
        ImportError: when there is neither, or ONNX was imported before it.
    """
    used = sdk.find()
    if used is None:
        raise ImportError("there is no SDK of Graphcore's, and no emulation of it")
    if used.python is not None and str(used.python) not in sys.path:
        sys.path.insert(0, str(used.python))
    import popart

    return popart


def load_once(op: str, library: Path) -> None:
    """Load a library with the ops of a family. A process has one of a family: PopART takes an op's name once.

    Raises:
        ImportError: when it is not built, can't be loaded, or another one was loaded before.
    """
    import_popart()
    path = library.resolve()
    if not path.is_file():
        raise ImportError(f"{path} is not built")
    known = _loaded.setdefault(op, path)
    if known != path:
        raise ImportError(f"this process has loaded {known}, which defines {op} too")
    try:
        ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(f"cannot load {path}: {error}") from error


def refusals() -> tuple[type[Exception], ...]:
    """Return what PopART raises for a call that an op, or Poplar, refuses."""
    popart = import_popart()
    return popart.popart_exception, popart.poplar_exception, popart.poplibs_exception


def refusal(error: Exception) -> OpError | Unsupported:
    """Return what an error of PopART means: that the op refuses the call, or that a tile has no room for it or its numbers."""
    text = str(error)
    return Unsupported(text) if any(re.search(pattern, text) for pattern in _NO_ROOM) else OpError(text)


_NO_ROOM = (r"Out of memory on tile \d+", r"a tile would need \d+ bytes", r"(tiles|convolutions) count in 32 bits")


class Model:
    """A model in the making: its inputs with their values, and the nodes of a family's ops."""

    device: ClassVar[Mapping[str, Any]] = {}
    """The options of the model of an IPU that all models run on."""

    def __init__(self) -> None:
        self.popart = import_popart()
        self.builder: Any = self.popart.Builder()
        self.feeds: dict[str, Array] = {}
        self.session: Any = None

    def input(self, array: Array) -> str:
        """Add an input that an array is fed to; return its name."""
        name = str(self.builder.addInputTensor(self.popart.TensorInfo(data_type(array), list(array.shape))))
        self.feeds[name] = array
        return name

    def node(
        self, op: Op, tensors: Mapping[str, str | None], attributes: Mapping[str, Any], wanted: Sequence[str]
    ) -> dict[str, str]:
        """Add a node of an op; return the names of the wanted outputs by the op's own.

        A Builder leaves out the last outputs only; where others are absent, the node is written into the model itself.
        """
        inputs = _trimmed([tensors.get(x.name) for x in op.inputs])
        outputs = _trimmed([o.name if o.name in wanted else None for o in op.outputs])
        if None in outputs or any(_is_texts(v) for v in attributes.values()):
            return self._written(op, inputs, outputs, attributes)
        made = self.builder.customOp(
            opName=op.class_name,
            opVersion=VERSION,
            domain=op.domain,
            inputs=[tensor or "" for tensor in inputs],
            attributes=dict(attributes),
            numOutputs=len(outputs),
        )
        return {name: str(tensor) for name, tensor in zip(outputs, made, strict=True) if name is not None}

    def _written(
        self, op: Op, inputs: Sequence[str | None], outputs: Sequence[str | None], attributes: Mapping[str, Any]
    ) -> dict[str, str]:
        import onnx
        from onnx import helper

        proto = onnx.ModelProto.FromString(self.builder.getModelProto())
        number = len(proto.graph.node)
        made = {name: f"{op.name}_{name}:{number}" for name in outputs if name is not None}
        try:
            node = helper.make_node(
                op.class_name, [t or "" for t in inputs], [made.get(n or "", "") for n in outputs], domain=op.domain
            )
            node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items() if v != [])
        except (TypeError, ValueError) as error:
            raise OpError(f"{op.name}: {error}") from error
        proto.graph.node.append(node)
        proto.ir_version = IR_VERSION
        if op.domain not in {o.domain for o in proto.opset_import}:
            proto.opset_import.append(helper.make_opsetid(op.domain, op.version))
        self.builder = self.popart.Builder(proto.SerializeToString())
        return made

    def run(self, anchors: Sequence[str]) -> dict[str, Array]:
        """Run the model once for inference, and return the tensors that are asked for."""
        popart = self.popart
        for name in anchors:
            self.builder.addOutputTensor(name)
        session = popart.InferenceSession(self.builder.getModelProto(), self._flow(anchors), self._device())
        return self._run(session)

    def gradients(self, pairs: Sequence[tuple[str, str]], of: Sequence[str]) -> list[Array]:
        """Return the gradients, by some inputs, of the sum of all products of pairs, through PopART's autodiff.

        The second of a pair is an input.
        """
        popart, builder = self.popart, self.builder
        losses = []
        for tensor, weights in pairs:
            product = builder.aiOnnx.mul([tensor, weights])
            losses.append(builder.aiGraphcore.identityloss([product], reduction=popart.ReductionType.Sum))
        if len({self.feeds[weights].dtype for _, weights in pairs}) > 1:
            losses = [builder.aiOnnx.cast([loss], "FLOAT") for loss in losses]
        loss = losses[0] if len(losses) == 1 else builder.aiOnnx.sum(losses)
        anchors = [popart.reservedGradientPrefix() + name for name in of]
        session = popart.TrainingSession(
            fnModel=builder.getModelProto(),
            dataFlow=self._flow(anchors),
            loss=loss,
            optimizer=popart.ConstSGD(0.1),
            deviceInfo=self._device(),
        )
        found = self._run(session)
        return [found[name] for name in anchors]

    def _flow(self, anchors: Sequence[str]) -> Any:
        return self.popart.DataFlow(1, {name: self.popart.AnchorReturnType("All") for name in anchors})

    def _device(self) -> Any:
        return self.popart.DeviceManager().createIpuModelDevice(dict(self.device))

    def _run(self, session: Any) -> dict[str, Array]:
        self.session = session
        session.prepareDevice()
        anchors: dict[str, Array] = session.initAnchorArrays()
        session.run(self.popart.PyStepIO(self.feeds, anchors))
        return anchors


def _trimmed(names: list[str | None]) -> list[str | None]:
    """Return the names without those at the end that are absent."""
    while names and names[-1] is None:
        names = names[:-1]
    return names


def _is_texts(value: Any) -> bool:
    """Whether an attribute is a list of texts, which a Builder does not take."""
    return isinstance(value, list) and any(isinstance(v, str) for v in value)


def only_reached(op: Op) -> Unsupported:
    """Return why an op of forward mode, or of sizes that data tells, is not run."""
    return not_carried(op, f"{op.name} is of forward mode, which Graphcore's frameworks have none of")
