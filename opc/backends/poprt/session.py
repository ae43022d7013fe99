"""A built library in live PopRT, as the proof calls it: models of one node, converted and run."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends.base import OpError, Session, Unsupported, not_carried
from opc.backends.poplar.library import library_path
from opc.backends.poplar.models import IR_VERSION, import_popart, load_once, refusal, refusals
from opc.backends.poplar.values import declared, held_arrays, held_attributes
from opc.backends.poprt.scripts import least_rank
from opc.ir.op import Family, Op

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

INFERENCE_ONLY = "PopRT runs inference only, without gradients"

OPSET = 11
"""The version of the standard operators that PopRT converts models to."""


class PoprtSession(Session):
    """Runs calls of the op as converted models."""

    no_autograd = INFERENCE_ONLY

    def __init__(self, family: Family, package: Path) -> None:
        """Load the library, and the package's shape inference.

        Raises:
            ImportError: when it is not built, or PopRT is missing.
        """
        super().__init__(family, package)
        load_once(family.name, package / library_path(family))
        self.popart: Any = import_popart()
        import poprt

        self.poprt: Any = poprt
        self.shapes = _run_file(package / "poprt" / "custom_shape_inference.py", f"{family.name}_shape_inference")
        self.refusals: tuple[type[Exception], ...] = (*refusals(), poprt.converter.ConversionError, ValueError, TypeError)

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run the op; see `opc.backends.base.Session`."""
        described = self.ops[op]
        if described is not self.family.forward:
            raise not_carried(described, INFERENCE_ONLY)
        arrays = held_arrays(described, inputs, attributes)
        values = held_attributes(described, attributes)
        if any(0 in a.shape for a in arrays.values()):
            raise Unsupported("PopRT takes a size of 0 for one that is not known yet")
        if any(a.ndim == 0 < least_rank(described.input(n)) for n, a in arrays.items()):
            raise Unsupported("PopRT takes a tensor without axes for one whose shape is not known yet")
        try:
            found = self.run(self.converted(model_of(described, arrays, values)), arrays)
        except self.refusals as error:
            raise refusal(error) from error
        results = declared(described, inputs, attributes, found)
        return results if only is None else {name: results[name] for name in only}

    def converted(self, model: Any, precision: str = "fp32") -> Any:
        """Return a model as PopRT converts it."""
        return self.poprt.converter.Converter(convert_version=OPSET, precision=precision).convert(model)

    def run(self, model: Any, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Run a converted model once."""
        popart = self.popart
        outputs = [o.name for o in model.graph.output]
        flow = popart.DataFlow(1, {name: popart.AnchorReturnType("All") for name in outputs})
        device = popart.DeviceManager().createIpuModelDevice({})
        session = popart.InferenceSession(model.SerializeToString(), flow, device)
        session.prepareDevice()
        anchors: dict[str, Array] = session.initAnchorArrays()
        session.run(popart.PyStepIO(dict(arrays), anchors))
        return anchors


def model_of(op: Op, arrays: Mapping[str, Array], attributes: Mapping[str, Any]) -> Any:
    """Return the `ModelProto` of a call.

    Raises:
        OpError: when ONNX has no such call.
    """
    from onnx import ValueInfoProto, helper

    names = [o.name for o in op.inputs]
    while names and names[-1] not in arrays:
        names.pop()
    try:
        node = helper.make_node(
            op.class_name, [n if n in arrays else "" for n in names], [o.name for o in op.outputs], domain=op.domain
        )
        node.attribute.extend(helper.make_attribute(k, v) for k, v in attributes.items() if v != [])
        infos = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), list(a.shape)) for n, a in arrays.items()
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise OpError(f"{op.name}: {error}") from error
    graph = helper.make_graph([node], op.name, infos, [ValueInfoProto(name=o.name) for o in op.outputs])
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(op.domain, op.version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION)


def _run_file(path: Path, name: str) -> Any:
    """Run a file of the package as PopRT's command does, and return the module."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} can't be read")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
