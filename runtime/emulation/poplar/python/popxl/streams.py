"""Streams between the host and the device."""

import popart._internal.ir as _ir

from popxl.context import gmg
from popxl.tensor import Tensor, TensorSpec


class Stream:
    """A stream of the main graph; `h2d_stream` and `d2h_stream` make one."""

    def __init__(self) -> None:
        raise NotImplementedError("Cannot construct a popxl.Stream directly. Use `h2d_stream` or `d2h_stream`.")

    @classmethod
    def _from_tensor(cls, tensor: Tensor) -> "Stream":
        self = object.__new__(cls)
        self._stream_tensor = tensor
        return self

    @property
    def dtype(self):
        """The type of its elements."""
        return self._stream_tensor.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self._stream_tensor.shape

    @property
    def spec(self) -> TensorSpec:
        """Its shape and dtype."""
        return self._stream_tensor.spec

    @property
    def tensor_id(self) -> str:
        """Its identifier."""
        return self._stream_tensor.id

    def __hash__(self) -> int:
        return hash(self._stream_tensor)

    def __eq__(self, other) -> bool:
        return isinstance(other, Stream) and self._stream_tensor == other._stream_tensor

    def __str__(self) -> str:
        return f"{type(self).__name__} {self._stream_tensor}"


class HostToDeviceStream(Stream):
    """From the host: `ops.host_load` reads it."""


class DeviceToHostStream(Stream):
    """To the host: `ops.host_store` writes it."""


def _info(shape, dtype):
    return _ir.TensorInfo(dtype._pb_dtype, list(shape))


def h2d_stream(shape, dtype, name: str | None = None) -> HostToDeviceStream:
    """A new stream from the host, in the main graph of the current IR."""
    graph = gmg()
    name = graph._create_tensor_id(name or "h2d_stream")
    graph._pb_graph.addStream(name, _info(shape, dtype), name)
    return HostToDeviceStream._from_tensor(graph.get_tensor(name))


def d2h_stream(shape, dtype, name: str | None = None) -> DeviceToHostStream:
    """A new stream to the host, in the main graph of the current IR."""
    graph = gmg()
    name = graph._create_tensor_id(name or "d2h_stream")
    graph._pb_graph.addActGrad(name)
    graph._pb_graph.getTensor(name).info = _info(shape, dtype)
    return DeviceToHostStream._from_tensor(graph.get_tensor(name))
