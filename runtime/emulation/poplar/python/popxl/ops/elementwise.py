"""Element-wise ops and sums."""

from popxl.context import op_debug_context
from popxl.ops.make import make
from popxl.tensor import Tensor


@op_debug_context
def add(lhs: Tensor, rhs: Tensor) -> Tensor:
    """`lhs + rhs`, with NumPy's broadcasting."""
    return make("ai.onnx", "Add", 7, "add", {"lhs": lhs, "rhs": rhs})


@op_debug_context
def sub(lhs: Tensor, rhs: Tensor) -> Tensor:
    """`lhs - rhs`, with NumPy's broadcasting."""
    return add(lhs, negate(rhs))


@op_debug_context
def mul(lhs: Tensor, rhs: Tensor) -> Tensor:
    """`lhs * rhs`, with NumPy's broadcasting."""
    return make("ai.onnx", "Mul", 7, "mul", {"lhs": lhs, "rhs": rhs})


@op_debug_context
def negate(t: Tensor) -> Tensor:
    """`-t`."""
    return make("ai.onnx", "Neg", 6, "negate", {"t": t})


@op_debug_context
def relu(t: Tensor) -> Tensor:
    """The greater of each element and 0."""
    return make("ai.onnx", "Relu", 6, "relu", {"t": t})


@op_debug_context
def identity(t: Tensor, output_name: str | None = None) -> Tensor:
    """A copy."""
    return make("ai.onnx", "Identity", 1, output_name or "identity", {"t": t})


@op_debug_context
def cast(t: Tensor, data_type) -> Tensor:
    """The elements as another dtype."""
    return make("ai.onnx", "Cast", 9, "cast", {"t": t}, {"to": data_type._pb_dtype.name})


@op_debug_context
def sum(t: Tensor, axis=None, keepdims: bool = False) -> Tensor:
    """The sum over an axis, over several, or over all."""
    axes = [axis] if isinstance(axis, int) else range(t.rank) if axis is None else axis
    attributes = {"axes": ("ints", [int(each) for each in axes]), "keepdims": int(keepdims)}
    return make("ai.onnx", "ReduceSum", 1, "sum", {"t": t}, attributes)
