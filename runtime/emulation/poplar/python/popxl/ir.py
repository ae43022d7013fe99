"""The IR of a program: its graphs and streams."""

import inspect
from collections.abc import Iterable
from typing import ClassVar
from weakref import WeakValueDictionary

import popart._internal.ir as _ir

from popxl.graph import Graph
from popxl.module import Module
from popxl.tensor import Tensor, TensorByRef, TensorSpec, graph_input, graph_output

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Ir:
    """A program: one main graph, and graphs that it calls."""

    _ir_cache: ClassVar[WeakValueDictionary] = WeakValueDictionary()

    def __init__(self, replication=1) -> None:
        if replication != 1:
            raise NotImplementedError("The emulation has one replica: `replication` must be 1.")
        self._pb_ir = _ir.Ir()
        self._id = self._pb_ir.getId()
        self._graph_cache: dict = {}
        self._tensor_cache: dict = {}
        # Streams that ops read and write, by their identifiers.
        self._loaded: dict = {}
        self._stored: dict = {}
        self._num_host_transfers = 1
        Ir._ir_cache[self._id] = self

    @classmethod
    def _from_pb(cls, pb_ir) -> "Ir":
        known = cls._ir_cache.get(pb_ir.getId())
        if known is None:
            raise RuntimeError("Constructing a new Ir with _from_pb is unexpected. This implies the Ir was garbage collected.")
        return known

    @property
    def id(self) -> int:
        """A number that no other IR of the process has."""
        return self._id

    @property
    def main_graph(self) -> Graph:
        """The graph that a session runs."""
        return Graph._from_pb(self._pb_ir.getMainGraph())

    @property
    def num_host_transfers(self) -> int:
        """How often a run goes through the program, each time with the next values of the streams."""
        return self._num_host_transfers

    @num_host_transfers.setter
    def num_host_transfers(self, value: int) -> None:
        self._num_host_transfers = value

    @property
    def replication_factor(self) -> int:
        """Always 1 here."""
        return 1

    instance_replication_factor = replication_factor

    def __repr__(self) -> str:
        return f"Ir[id={self.id}]"

    def __hash__(self) -> int:
        return hash(self._id)

    def __eq__(self, other) -> bool:
        if not isinstance(other, Ir):
            raise TypeError(f"Value must be of type popxl.Ir. Type: {type(other)}")
        return self._id == other._id

    def get_all_d2h_streams(self) -> set:
        """The streams that a `host_store` writes."""
        return set(self._stored.values())

    def get_all_h2d_streams(self) -> set:
        """The streams that a `host_load` reads."""
        return set(self._loaded.values())

    def create_empty_graph(self, name: str | None = None) -> Graph:
        """A new graph without inputs, outputs and ops."""
        return Graph._from_pb(self._pb_ir.createGraph(self._create_name(name or "graph")))

    def _create_name(self, name: str) -> str:
        return self._pb_ir.createUniqueSubgraphId(name.replace(".<locals>", ""))

    def create_graph(self, fn, *args, **kwargs) -> Graph:
        """A graph of what `fn` does: tensors and specs among the arguments become inputs, what it returns the outputs.

        Raises:
            TypeError: `fn` can't be called, or an argument is a list of tensors and others.
            ValueError: the arguments don't fit `fn`, or it returns what is no tensor.
        """
        if not callable(fn) or not (isinstance(fn, Module) or hasattr(fn, "__qualname__")):
            raise TypeError("Callable `fn` must be either a function or a class that extends popxl.Module")
        build = fn.build if isinstance(fn, Module) else fn
        name = type(fn).__qualname__ if isinstance(fn, Module) else fn.__qualname__
        signature = inspect.signature(build)
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ValueError("The arguments, `args` and `kwargs`, do not match the signature of the function `fn`.") from error
        bound.apply_defaults()
        graph = self.create_empty_graph(name)
        with graph:
            for key, value in bound.arguments.items():
                bound.arguments[key] = _as_inputs(key, value, signature.parameters[key])
            outputs = fn(*bound.args, **bound.kwargs)
            outputs = () if outputs is None else (outputs,) if isinstance(outputs, Tensor) else outputs
            if not isinstance(outputs, Iterable) or not all(isinstance(output, Tensor) for output in outputs):
                raise ValueError(
                    "Output of subgraph must be None, a Tensor or an iterable of Tensors."
                    f" Output type: {type(outputs)}. Value {outputs}"
                )
            for output in outputs:
                graph_output(output)
        return graph


def _as_inputs(name: str, value, parameter: inspect.Parameter):
    """`value` with each tensor or spec replaced by a new input of the current graph."""
    by_ref = "TensorByRef" in str(parameter.annotation) or parameter.annotation is TensorByRef
    if isinstance(value, (Tensor, TensorSpec)):
        return graph_input(value.shape, value.dtype, name, by_ref=by_ref)
    if isinstance(value, dict) and parameter.kind not in _VARIADIC:
        return value
    if not isinstance(value, (tuple, list, dict)):
        return value
    items = value if isinstance(value, dict) else {f"{name}_{i}": item for i, item in enumerate(value)}
    tensors = [isinstance(item, (Tensor, TensorSpec)) for item in items.values()]
    if not any(tensors):
        return value
    if not all(tensors):
        raise TypeError(
            f"A {type(value)} argument can't contain a mixture of Tensors and other types. Arg name: {name}. Value: {value}"
        )
    made = {key: graph_input(item.shape, item.dtype, key, by_ref=by_ref) for key, item in items.items()}
    return made if isinstance(value, dict) else type(value)(made.values())
