"""A built module in live PopXL, as the proof calls it."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends import package as packages
from opc.backends.base import OpError, Session, Unsupported
from opc.backends.derived import derivation, differentiable, required_outputs
from opc.backends.poplar.carried import reached
from opc.backends.poplar.models import import_popart, only_reached, refusal, refusals
from opc.backends.poplar.values import contiguous, declared, held_arrays, held_attributes
from opc.backends.popxl.library import module_name
from opc.backends.sessions import as_tuple, is_floating
from opc.ir.op import AttributeKind, Family, Op, camel_case

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs


class PopxlSession(Session):
    """Calls ops in graphs of one op: the op itself by the package's function, derived ones as the module makes them."""

    no_autograd = "gradients of the gradient are ops of their own here; PopART's column runs them through autodiff"

    def __init__(self, family: Family, package: Path) -> None:
        """Load the module that was built, and the package's function over it.

        Raises:
            ImportError: when it is not built, or PopXL is missing.
        """
        super().__init__(family, package)
        import_popart()
        import popxl

        self.popxl: Any = popxl
        self.reached = reached(family)
        self.module = _load(family, package)
        functions = packages.load(package, "popxl")
        self.function = getattr(functions, family.name)
        self.function_in_place: Any = getattr(functions, f"{family.name}_", None)
        self.refusals: tuple[type[Exception], ...] = (*refusals(), RuntimeError, ValueError, TypeError)

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        described = self.ops[op]
        if described not in self.reached:
            raise only_reached(described)
        arrays = held_arrays(described, inputs, attributes)
        wanted = required_outputs(described, arrays, attributes, only)
        try:
            ir = self.popxl.Ir()
            with ir.main_graph:
                fed, tensors = self._loaded(arrays)
                made = self._made(described, tensors, attributes, wanted)
                streams = self._stored({n: t for n, t in made.items() if n in wanted})
            found = self._run(ir, fed, streams)
        except self.refusals as error:
            raise refusal(error) from error
        results = declared(described, inputs, attributes, found)
        return results if only is None else {name: results[name] for name in only}

    def gradient(self, inputs: Inputs, attributes: Attributes, cotangents: Mapping[str, Array]) -> dict[str, Array]:
        """Return the gradients of the floating inputs through `popxl.transforms.autodiff`, by input name."""
        popxl, op = self.popxl, self.family.forward
        if self.family.backward is None:
            raise Unsupported("the spec says gradient: none")
        arrays = held_arrays(op, inputs, attributes)
        moving = [x.name for x in op.inputs if differentiable(x) and x.name in arrays and is_floating(arrays[x.name])]
        of = [n for n in moving if n in derivation(self.family.backward).outputs]
        zeros = {n: np.zeros_like(arrays[n]) for n in moving}
        if not of:
            return zeros
        ir = popxl.Ir()
        with ir.main_graph:
            fed, tensors = self._loaded(arrays)
            seeds_fed, seeds = self._loaded({f"d_{n}": contiguous(c) for n, c in cotangents.items()})

            def function(*given: Any) -> Any:
                made = self._made(op, dict(zip(tensors, given, strict=True)), attributes, list(cotangents))
                return tuple(made[n] for n in cotangents)

            graph = ir.create_graph(function, *tensors.values())
            forward = popxl.ops.call_with_info(graph, *tensors.values())
            given = dict(zip(tensors, graph.inputs, strict=True))
            provided = graph.outputs[: len(cotangents)]
            backward = popxl.transforms.autodiff(graph, grads_provided=provided, grads_required=[given[n] for n in of])
            results = popxl.ops.call(backward.graph, *seeds.values(), inputs_dict=backward.inputs_dict(forward))
            streams = self._stored(dict(zip(of, as_tuple(results), strict=True)))
        try:
            return zeros | self._run(ir, {**fed, **seeds_fed}, streams)
        except refusals() as error:
            raise refusal(error) from error

    def refusal_of(self, inputs: Inputs, attributes: Attributes) -> str:
        """Return what the function says of a call as it is added to a graph; empty when it takes the call."""
        arrays = held_arrays(self.family.forward, inputs, attributes)
        try:
            with self.popxl.Ir().main_graph:
                self._made(self.family.forward, self._loaded(arrays)[1], attributes, [])
        except self.refusals as error:
            return str(error)
        return ""

    def refusal_of_foreign(self, inputs: Inputs, attributes: Attributes) -> str:
        """Return what the function says of tensors of another graph; empty when it takes them."""
        arrays = held_arrays(self.family.forward, inputs, attributes)
        with self.popxl.Ir().main_graph:
            tensors = self._loaded(arrays)[1]
        try:
            with self.popxl.Ir().main_graph:
                self._made(self.family.forward, tensors, attributes, [])
        except self.refusals as error:
            return str(error)
        return ""

    def infos(self, op: Op, inputs: Inputs, attributes: Attributes) -> tuple[list[Any], list[Any]]:
        """Return the dtypes and sizes of a call's outputs as it is added to a graph, and after `setup()` was called again."""
        arrays = held_arrays(op, inputs, attributes)
        ir = self.popxl.Ir()
        with ir.main_graph:
            self._made(op, self._loaded(arrays)[1], attributes, required_outputs(op, arrays, attributes, None))
        (added,) = (o for o in ir.main_graph._pb_graph.getOps() if o.opType() == op.class_name)
        first = _infos(added)
        added.setup()
        return first, _infos(added)

    def in_place(self, name: str, inputs: Inputs, attributes: Attributes) -> tuple[Array, Array]:
        """Return what the function in place gives of a variable, the input `name`, and what the variable is then."""
        arrays = held_arrays(self.family.forward, inputs, attributes)
        ir = self.popxl.Ir()
        with ir.main_graph:
            fed, tensors = self._loaded({n: a for n, a in arrays.items() if n != name})
            tensors[name] = variable = self.popxl.variable(arrays[name], name=name)
            made = self.function_in_place(**tensors, **_named(self.family.forward, attributes))
            streams = self._stored({"made": made})
        with self.popxl.Session(ir, "ipu_model") as session:
            outputs = session.run(dict(fed))
            left = session.get_tensor_data(variable)
        return np.asarray(outputs[streams["made"]]), np.asarray(left)

    def _loaded(self, arrays: Mapping[str, Array]) -> tuple[dict[Any, Array], dict[str, Any]]:
        """Return streams with what is fed to them, and the tensors that are loaded from these."""
        fed, tensors = {}, {}
        for name, array in arrays.items():
            try:
                dtype = self.popxl.dtype.as_dtype(array)
            except ValueError as error:
                raise OpError(f"{name}: {error}") from error
            stream = self.popxl.h2d_stream(array.shape, dtype, name=f"{name}_stream")
            fed[stream] = array
            tensors[name] = self.popxl.ops.host_load(stream, name)
        return fed, tensors

    def _stored(self, tensors: Mapping[str, Any]) -> dict[str, Any]:
        streams = {}
        for name, tensor in tensors.items():
            streams[name] = self.popxl.d2h_stream(tensor.shape, tensor.dtype, name=f"{name}_out_stream")
            self.popxl.ops.host_store(streams[name], tensor)
        return streams

    def _run(self, ir: Any, fed: Mapping[Any, Array], streams: Mapping[str, Any]) -> dict[str, Array]:
        with self.popxl.Session(ir, "ipu_model") as session:
            outputs = session.run(dict(fed))
        return {name: np.asarray(outputs[stream]) for name, stream in streams.items()}

    def _made(self, op: Op, tensors: Mapping[str, Any], attributes: Attributes, wanted: Sequence[str]) -> dict[str, Any]:
        """Add an op to the current graph; return its outputs by name."""
        if op is self.family.forward:
            given = {x.name: tensors.get(x.name) for x in op.inputs}
            made = as_tuple(self.function(**given, **_named(op, attributes)))
            return dict(zip((o.name for o in op.outputs), made, strict=True))
        return self._derived(op, tensors, attributes, wanted)

    def _derived(self, op: Op, tensors: Mapping[str, Any], attributes: Attributes, wanted: Sequence[str]) -> dict[str, Any]:
        from popxl.context import get_current_context
        from popxl.tensor import Tensor

        context = get_current_context()
        graph = context.graph
        params = getattr(self.module, f"{camel_case(self.family.name)}Params")
        defaults = {a.name: a.default for a in op.attributes if a.kind is AttributeKind.DTYPE}
        made = getattr(self.module, op.python_class).create_op_in_graph(
            graph=graph._pb_graph,
            inputs={i: tensors[x.name].id for i, x in enumerate(op.inputs) if tensors.get(x.name) is not None},
            outputs={i: graph._create_tensor_id(f"{op.name}_{o.name}") for i, o in enumerate(op.outputs) if o.name in wanted},
            params=params(**held_attributes(op, {**defaults, **attributes})),
            settings=context._get_op_settings(op.name),
        )
        context._op_created(made)
        return {o.name: Tensor._from_pb_tensor(made.outTensor(i)) for i, o in enumerate(op.outputs) if o.name in wanted}


def _infos(op: Any) -> list[tuple[str, list[int]]]:
    """Return the dtypes and sizes of the outputs of an op of PopART's IR."""
    found = (tensor.info for tensor in op.getOutputTensors())
    return [(str(info.dataType()), list(info.shape())) for info in found]


def _named(op: Op, attributes: Attributes) -> dict[str, Any]:
    """Return attributes as the package's function takes them: dtypes by name.

    Raises:
        Unsupported: when Poplar has no tensors of a dtype.
    """
    held_attributes(op, attributes)
    kinds = {a.name: a.kind for a in op.attributes}
    return {n: str(v) if kinds.get(n) is AttributeKind.DTYPE else v for n, v in attributes.items()}


def _load(family: Family, package: Path) -> ModuleType:
    """Load the module that was built, under the name by which the package imports it.

    Raises:
        ImportError: when it is not built, or another one was loaded before.
    """
    name = module_name(family)
    found = sorted((package / "build" / "popxl").glob(f"{name}.*.so"))
    if not found:
        raise ImportError(f"{package / 'build' / 'popxl' / name} is not built")
    path = str(found[0].resolve())
    known = sys.modules.get(name)
    if known is not None:
        if known.__file__ != path:
            raise ImportError(f"this process has loaded {known.__file__}, which defines {family.name} too")
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no module of this Python")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module
