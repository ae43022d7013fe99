"""One op of the registry in the current graph."""

import popart._internal.ir as _ir

from popxl.context import get_current_context
from popxl.ops.utils import check_in_graph
from popxl.tensor import Tensor


def make(
    domain: str, op_type: str, version: int, name: str, inputs: dict[str, Tensor], attributes=None, output: str | None = None
):
    """The output of a new op; `inputs` by the names that messages call them, `output` is a tensor that is there already."""
    context = get_current_context()
    graph = context.graph
    check_in_graph(graph, **inputs)
    op = graph._pb_graph._createConnectedOp(
        _ir.OperatorIdentifier(domain, op_type, version),
        {index: tensor.id for index, tensor in enumerate(inputs.values())},
        {0: output or graph._create_tensor_id(f"{name}_out")},
        attributes or {},
        context._get_op_settings(name),
    )
    context._op_created(op)
    return Tensor._from_pb_tensor(op.outTensor(0))
