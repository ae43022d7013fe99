"""Graphs of an IR: what ops are added to, as a context manager."""

from functools import wraps

import popart._internal.ir as _ir

from popxl.context import get_current_context
from popxl.tensor import Constant, Tensor, Variable


class Graph:
    """A graph of an IR; `Ir.main_graph` and `Ir.create_graph` give one."""

    def __init__(self) -> None:
        raise TypeError(f"Cannot create {self.__module__}.Graph instances using the constructor.")

    @classmethod
    def _from_pb(cls, pb_graph) -> "Graph":
        from popxl.ir import Ir

        ir = Ir._from_pb(pb_graph.getIr())
        name = pb_graph.id.str()
        graph = ir._graph_cache.get(name)
        if graph is None:
            graph = object.__new__(cls)
            graph._pb_graph, graph._ir, graph._by_ref_inputs = pb_graph, ir, set()
            ir._graph_cache[name] = graph
        return graph

    @property
    def name(self) -> str:
        """The scope of the graph: empty for the main graph."""
        return self._pb_graph.getScope().str()

    @property
    def id(self) -> str:
        """The identifier of the graph."""
        return self._pb_graph.id.str()

    @property
    def ir(self):
        """Its IR."""
        return self._ir

    @property
    def main_graph(self) -> "Graph":
        """The main graph of its IR."""
        return self._ir.main_graph

    def _tensors(self, ids) -> tuple[Tensor, ...]:
        return tuple(Tensor._from_pb_tensor(self._pb_graph.getTensor(name)) for name in ids)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """Its inputs, in order."""
        return self._tensors(self._pb_graph.getInputIds())

    @property
    def inputs_by_name(self) -> dict[str, Tensor]:
        """Its inputs by their names."""
        return {tensor.name: tensor for tensor in self.inputs}

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """Its outputs, in order."""
        return self._tensors(self._pb_graph.getOutputIds())

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All its tensors."""
        return tuple(Tensor._from_pb_tensor(tensor) for tensor in self._pb_graph.getTensors())

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Its variables."""
        return tuple(tensor for tensor in self.tensors if isinstance(tensor, Variable))

    @property
    def constants(self) -> tuple[Constant, ...]:
        """Its constants."""
        return tuple(tensor for tensor in self.tensors if isinstance(tensor, Constant))

    def get_tensor(self, tensor_id: str) -> Tensor:
        """The tensor of this identifier."""
        return Tensor._from_pb_tensor(self._pb_graph.getTensor(tensor_id))

    def _create_tensor_id(self, name: str | None = None) -> str:
        """An identifier that no tensor of the graph has, made from `name`."""
        scoped = _ir.addScope(self._pb_graph, "/".join((*get_current_context()._name_scope, name or "t")))
        if scoped in self._pb_graph:
            scoped = self._pb_graph.getIr().createIntermediateTensorId(scoped)
        return scoped

    def __contains__(self, value) -> bool:
        if not isinstance(value, Tensor):
            raise TypeError(f"Value must be of type popxl.Tensor. Value: {value}. Type: {type(value)}")
        return value.id in self._pb_graph

    def __eq__(self, value) -> bool:
        if not isinstance(value, Graph):
            raise TypeError(f"Value must be of type popxl.Graph. Value: {value}. Type: {type(value)}")
        return self is value or (self.id == value.id and self._ir == value._ir)

    def __hash__(self) -> int:
        return hash((self.id, self._ir))

    def __repr__(self) -> str:
        return f"Graph[id={self.id} name={self.name}]"

    def __enter__(self) -> "Graph":
        get_current_context().push_graph(self)
        return self

    def __exit__(self, *error) -> bool:
        get_current_context().pop_graph()
        return False

    def register_op_created_hook(self, fn) -> int:
        """Calls `fn` with each op that is made in this graph from now on; returns a handle."""

        @wraps(fn)
        def hook(op):
            if Graph._from_pb(op.getGraph()) is self:
                fn(op)

        return get_current_context().register_op_created_hook(hook)

    def remove_op_created_hook(self, handle: int) -> None:
        """Ends what register_op_created_hook began."""
        get_current_context().remove_op_created_hook(handle)
