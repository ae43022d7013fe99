"""Reverse-mode differentiation of a graph: a new graph that computes the gradients."""

from enum import Enum

import popart._internal.ir as _ir

from popxl.graph import Graph
from popxl.ops.call import CallSiteInfo
from popxl.tensor import Tensor


class ExpectedConnectionType(Enum):
    """What an input or output of a gradient graph is: a tensor of the forward graph, or the gradient of one."""

    Fwd = "Fwd"
    FwdGrad = "FwdGrad"


class ExpectedConnection:
    """One input or output of a gradient graph."""

    def __init__(self) -> None:
        raise TypeError("ExpectedConnection should not be constructed directly. Use ExpectedConnection._from_pb instead.")

    @classmethod
    def _from_pb(cls, fwd_graph, pb_connection) -> "ExpectedConnection":
        self = object.__new__(cls)
        self._fwd_graph, self._pb_ec = fwd_graph, pb_connection
        return self

    @property
    def fwd_tensor(self) -> Tensor:
        """The tensor of the forward graph."""
        return Tensor._from_pb_tensor(self._fwd_graph.getTensor(self._pb_ec.fwdId))

    @property
    def connection_type(self) -> ExpectedConnectionType:
        """Whether it is that tensor itself or its gradient."""
        is_value = self._pb_ec.type == _ir.ExpectedConnectionType.Fwd
        return ExpectedConnectionType.Fwd if is_value else ExpectedConnectionType.FwdGrad

    def __repr__(self) -> str:
        return f"({self.connection_type}, {self.fwd_tensor})"


class GradGraphInfo:
    """A gradient graph, and how its inputs and outputs belong to the forward graph."""

    def __init__(self) -> None:
        raise TypeError("GradGraphInfo should not be constructed directly. Use GradGraphInfo._from_pb instead.")

    @classmethod
    def _from_pb(cls, pb_ir, fwd_graph, pb_info) -> "GradGraphInfo":
        self = object.__new__(cls)
        self._ir, self._fwd_graph, self._pb_bwd_info = pb_ir, fwd_graph, pb_info
        self._expected_inputs = [ExpectedConnection._from_pb(fwd_graph, connection) for connection in pb_info.expectedInputs]
        self._expected_outputs = [ExpectedConnection._from_pb(fwd_graph, connection) for connection in pb_info.expectedOutputs]
        return self

    @property
    def graph(self) -> Graph:
        """The gradient graph."""
        return Graph._from_pb(self._ir.getGraph(self._pb_bwd_info.bwdGraphId))

    @property
    def forward_graph(self) -> Graph:
        """The graph that was differentiated."""
        return Graph._from_pb(self._fwd_graph)

    @property
    def expected_inputs(self) -> tuple[ExpectedConnection, ...]:
        """What the inputs of the gradient graph are."""
        return tuple(self._expected_inputs)

    @property
    def expected_outputs(self) -> tuple[ExpectedConnection, ...]:
        """What the outputs of the gradient graph are."""
        return tuple(self._expected_outputs)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors of the forward graph that the inputs belong to."""
        return tuple(connection.fwd_tensor for connection in self._expected_inputs)

    @property
    def outputs(self) -> tuple[Tensor, ...]:
        """The tensors of the forward graph that the outputs are gradients of."""
        return tuple(connection.fwd_tensor for connection in self._expected_outputs)

    def inputs_dict(self, fwd_call_info: CallSiteInfo) -> dict[Tensor, Tensor]:
        """The inputs of the gradient graph that are values, and the tensors that a call of the forward graph has for them.

        Raises:
            TypeError: the call is one of another graph.
        """
        if fwd_call_info.called_graph != self.forward_graph:
            raise TypeError("The called graph does not match the graph that was differentiated.")
        inputs = self.graph.inputs
        return {
            inputs[index]: fwd_call_info.graph_to_parent(connection.fwd_tensor)
            for index, connection in enumerate(self._expected_inputs)
            if connection.connection_type == ExpectedConnectionType.Fwd
        }

    def fwd_graph_ins_to_grad_parent_outs(self, grad_call_info: CallSiteInfo) -> dict[Tensor, Tensor]:
        """The inputs of the forward graph, and their gradients at a call of the gradient graph."""
        outputs = self.graph.outputs
        return {tensor: grad_call_info.graph_to_parent(outputs[index]) for index, tensor in enumerate(self.outputs)}

    def fwd_parent_ins_to_grad_parent_outs(
        self, fwd_call_info: CallSiteInfo, grad_call_info: CallSiteInfo
    ) -> dict[Tensor, Tensor]:
        """What a call of the forward graph was given, and its gradients at a call of the gradient graph."""
        found = self.fwd_graph_ins_to_grad_parent_outs(grad_call_info)
        return {fwd_call_info.graph_to_parent(tensor): gradient for tensor, gradient in found.items()}

    def __repr__(self) -> str:
        lines = ["GradGraphInfo[", f"  graph={self.graph.id}", "  expected_inputs=["]
        lines += [f"    {connection!r}" for connection in self._expected_inputs]
        lines += ["  ]", "  expected_outputs=["]
        lines += [f"    {connection!r}" for connection in self._expected_outputs]
        return "\n".join([*lines, "  ]", "]"])


def autodiff(graph: Graph, grads_provided=None, grads_required=None, called_graphs_grad_info=None, return_all_grad_graphs=False):
    """A graph of the gradients: from those of `grads_provided` (all outputs) to those of `grads_required` (all inputs).

    What the gradients read and `graph` doesn't give back becomes an output of `graph`: differentiate before it is called.
    Graphs that it calls are differentiated with it; `return_all_grad_graphs` returns what is known of all of them.
    """
    provided = graph.outputs if grads_provided is None else grads_provided
    required = graph.inputs if grads_required is None else grads_required
    pb_ir = graph.ir._pb_ir
    made = _ir.transforms.Autodiff().apply(
        pb_ir,
        graph._pb_graph.id,
        [tensor.id for tensor in provided],
        [tensor.id for tensor in required],
        {called._pb_graph.id: info._pb_bwd_info for called, info in (called_graphs_grad_info or {}).items()},
    )
    found = {}
    for name, info in made.items():
        differentiated = Graph._from_pb(pb_ir.getGraph(name))
        found[differentiated] = GradGraphInfo._from_pb(pb_ir, differentiated._pb_graph, info)
    return found if return_all_grad_graphs else found[graph]
