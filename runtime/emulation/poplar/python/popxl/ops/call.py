"""Calls of graphs."""

from collections.abc import Iterable

import popart._internal.ir as _ir

from popxl.context import get_current_context, op_debug_context
from popxl.graph import Graph
from popxl.ops.utils import check_in_graph
from popxl.tensor import Tensor


class CallSiteInfo:
    """One call of a graph: how tensors of the graph and of its caller belong together."""

    def __init__(self, call_op) -> None:
        self._op = call_op

    @property
    def called_graph(self) -> Graph:
        """The graph that is called."""
        return Graph._from_pb(self._op.getCalledGraphs()[0])

    def graph_to_parent_input_index(self, idx: int) -> int:
        """The input of the call for an input of the graph."""
        return self._op.subgraphInToOpInIndex(idx)

    def parent_to_graph_input_index(self, idx: int) -> int:
        """The input of the graph for an input of the call."""
        return self._op.opInToSubgraphInIndex(idx)

    def graph_to_parent_output_index(self, idx: int) -> int:
        """The output of the call for an output of the graph."""
        return self._op.subgraphOutToOpOutIndex(idx)

    def parent_to_graph_output_index(self, idx: int) -> int:
        """The output of the graph for an output of the call."""
        return self._op.opOutToSubgraphOutIndex(idx)

    def graph_to_parent(self, graph_tensor: Tensor) -> Tensor:
        """The caller's tensor for an input or output of the graph; raises ValueError for any other tensor."""
        graph = self._op.getCalledGraphs()[0]
        if graph.hasInputId(graph_tensor.id):
            return self.parent_input(self.graph_to_parent_input_index(graph.getInputIndex(graph_tensor.id)))
        if graph.hasOutputId(graph_tensor.id):
            return self.parent_output(self.graph_to_parent_output_index(graph.getOutputIndex(graph_tensor.id)))
        raise ValueError(f"Tensor {graph_tensor.name} is not an input or output of the called graph(s).")

    def parent_to_graph(self, parent_tensor: Tensor) -> Tensor:
        """The graph's first input that this tensor of the caller is given to; raises ValueError if there is none."""
        for index, tensor in enumerate(self.inputs):
            if tensor == parent_tensor:
                return self.called_graph.inputs[self.parent_to_graph_input_index(index)]
        raise ValueError(f"Tensor {parent_tensor.name} is not a parent graph input of the call site.")

    def parent_input(self, idx: int) -> Tensor:
        """An input of the call."""
        return Tensor._from_pb_tensor(self._op.inTensor(idx))

    def parent_output(self, idx: int) -> Tensor:
        """An output of the call."""
        return Tensor._from_pb_tensor(self._op.outTensor(idx))

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The inputs of the call."""
        return tuple(Tensor._from_pb_tensor(tensor) for tensor in self._op.getInputTensors())

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The outputs of the call."""
        return tuple(Tensor._from_pb_tensor(tensor) for tensor in self._op.getOutputTensors())


def call(graph: Graph, *inputs, inputs_dict=None) -> tuple[Tensor, ...]:
    """Calls `graph`; returns the outputs of the call. Inputs come in order, or by the graph's own tensors in `inputs_dict`."""
    return call_with_info(graph, *inputs, inputs_dict=inputs_dict).outputs


@op_debug_context("call")
def call_with_info(graph: Graph, *inputs, inputs_dict=None, check_inputs: bool = True) -> CallSiteInfo:
    """Calls `graph`; returns what is known of the call.

    Raises:
        ValueError: too many or too few inputs, one given twice, or a tensor of another graph.
    """
    context = get_current_context()
    caller = context.graph
    pb_caller, pb_graph = caller._pb_graph, graph._pb_graph
    given = _inputs(caller, graph, inputs, inputs_dict or {}, check_inputs)
    op = pb_caller.createOp_CallOp(
        _ir.OperatorIdentifier("ai.graphcore", "Call", 1),
        pb_graph,
        context._get_op_settings(f"{caller.name}--call--{graph.name}"),
    )
    for index, tensor in sorted(given.items()):
        op.connectInTensor(op.subgraphInToOpInIndex(index), tensor.id)
    for index, name in enumerate(pb_graph.getOutputIds()):
        output = caller._create_tensor_id(_ir.removeScope(pb_graph, name))
        op.createAndConnectOutTensor(op.subgraphOutToOpOutIndex(index), output)
    op.setup()
    context._op_created(op)
    return CallSiteInfo(op)


def _inputs(caller: Graph, graph: Graph, inputs, by_tensor, complete: bool) -> dict[int, Tensor]:
    """The tensors of the caller by the index of the graph's input."""
    flat: list = []
    for value in inputs:
        flat.extend(value if isinstance(value, Iterable) and not isinstance(value, (str, Tensor)) else [value])
    wanted = graph.inputs
    if len(flat) > len(wanted):
        raise ValueError(
            "Too many inputs have been provided to the called graph. The number of positional inputs exceeds the number of "
            f"inputs of the graph. {len(flat)} > {len(wanted)}. For graph: {graph}"
        )
    given = dict(enumerate(flat))
    for tensor, value in by_tensor.items():
        if tensor not in wanted:
            raise ValueError(f'The graph input tensor "{tensor}" is not an input of the called graph ({graph}).')
        index = wanted.index(tensor)
        if index in given:
            raise ValueError(
                "Graph input tensor is specified twice for the called graph, in `inputs_dict` and positionally in `inputs`: "
                f"{tensor}"
            )
        given[index] = value
    if complete and len(given) < len(wanted):
        missing = [tensor.id for index, tensor in enumerate(wanted) if index not in given]
        raise ValueError(f"Not enough inputs have been provided to the called graph {graph}: {', '.join(missing)}.")
    found = {index: wanted[index]._ensure_tensor(value) for index, value in given.items()}
    check_in_graph(caller, **{tensor.id: tensor for tensor in found.values()})
    return found
