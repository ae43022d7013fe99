"""LeakyRelu in PopXL: the function that makes the op."""

import cppimport.import_hook  # noqa: F401  # it builds the C++ part
import sample_leaky_relu_impl
from popxl.context import get_current_context, op_debug_context
from popxl.ops.utils import check_in_graph
from popxl.tensor import Tensor


@op_debug_context
def leaky_relu(x: Tensor, alpha: float = 0.01) -> Tensor:
    """`x`, times `alpha` where it is negative."""
    ctx = get_current_context()
    graph = ctx.graph
    check_in_graph(graph, **{x.id: x})
    op = sample_leaky_relu_impl.LeakyRelu.create_op_in_graph(
        graph=graph._pb_graph,
        inputs={0: x.id},
        outputs={0: graph._create_tensor_id("leaky_relu_out")},
        params=sample_leaky_relu_impl.LeakyReluParams(alpha=alpha),
        settings=ctx._get_op_settings("leaky_relu"),
    )
    ctx._op_created(op)
    return Tensor._from_pb_tensor(op.outTensor(0))
