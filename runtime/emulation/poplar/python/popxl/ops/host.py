"""What comes from the host and goes back to it."""

from popxl.context import get_current_context, gmg, op_debug_context
from popxl.ops.make import make
from popxl.ops.utils import check_in_graph
from popxl.streams import DeviceToHostStream, HostToDeviceStream
from popxl.tensor import Tensor


def _in_main_graph(name: str) -> None:
    if get_current_context().graph != gmg():
        raise NotImplementedError(f"The emulation has {name} in the main graph alone.")


@op_debug_context
def host_load(h2d_stream: HostToDeviceStream, name: str | None = None) -> Tensor:
    """The values that the host gives to the stream; one load of a stream in a program, in the main graph."""
    _in_main_graph("host_load")
    tensor = h2d_stream._stream_tensor
    ir = tensor.ir
    if h2d_stream.tensor_id in ir._loaded:
        raise NotImplementedError(f"The emulation loads a stream once: {h2d_stream.tensor_id} is loaded already.")
    ir._loaded[h2d_stream.tensor_id] = h2d_stream
    return make("ai.onnx", "Identity", 1, f"{name or tensor.name}_hostload", {"h2d_stream": tensor})


@op_debug_context
def host_store(d2h_stream: DeviceToHostStream, t: Tensor) -> None:
    """Gives `t` to the host; raises ValueError where the stream has another dtype or shape."""
    _in_main_graph("host_store")
    check_in_graph(get_current_context().graph, t=t)
    check_in_graph(gmg(), d2h_stream=d2h_stream._stream_tensor)
    for what in ("dtype", "shape"):
        ours, theirs = getattr(d2h_stream, what), getattr(t, what)
        if ours != theirs:
            raise ValueError(
                f"{what} of stream {d2h_stream.tensor_id} `{ours}` does not match {what} of provided tensor `{theirs}`"
            )
    ir = t.ir
    if d2h_stream.tensor_id in ir._stored:
        raise NotImplementedError(f"The emulation stores into a stream once: {d2h_stream.tensor_id} is stored already.")
    ir._stored[d2h_stream.tensor_id] = d2h_stream
    ir._pb_ir.addAnchor(d2h_stream.tensor_id)
    make("ai.onnx", "Identity", 1, "host_store", {"t": t}, output=d2h_stream.tensor_id)
