"""Tensors of a graph, and what makes them: variables, constants, inputs and outputs of graphs."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
import popart._internal.ir as _ir

from popxl import dtypes
from popxl.context import gcg, gmg


class TensorSpec(Mapping):
    """The shape and dtype of a tensor that is still to come: an argument of `ir.create_graph`."""

    def __init__(self, shape, dtype, meta_shape=()) -> None:
        self.shape, self.dtype, self.meta_shape = tuple(shape), dtype, tuple(meta_shape)

    def to_dict(self) -> dict:
        """Its fields."""
        return {"shape": self.shape, "dtype": self.dtype, "meta_shape": self.meta_shape}

    def __iter__(self):
        return iter(self.to_dict())

    def __len__(self) -> int:
        return len(self.to_dict())

    def __getitem__(self, key):
        return self.to_dict()[key]

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.meta_shape))

    def __repr__(self) -> str:
        return f"TensorSpec(shape={self.shape}, dtype={self.dtype}, meta_shape={self.meta_shape})"


class Tensor:
    """A tensor of a graph; ops and streams make them."""

    def __init__(self) -> None:
        raise RuntimeError("popxl.Tensor cannot be constructed directly.")

    _tensor_types: ClassVar[dict] = {}

    def __init_subclass__(cls, tensor_type=None, **kwargs) -> None:
        super().__init_subclass__(**kwargs)
        if tensor_type is not None:
            Tensor._tensor_types[tensor_type] = cls

    @classmethod
    def _from_pb_tensor(cls, pb_tensor) -> "Tensor":
        from popxl.ir import Ir

        ir = Ir._from_pb(pb_tensor.getIr())
        name = pb_tensor.id
        known = ir._tensor_cache.get(name)
        if known is None:
            known = object.__new__(cls._tensor_types.get(pb_tensor.tensor_type(), Tensor))
            known._pb_tensor = pb_tensor
            known._ir = ir
            ir._tensor_cache[name] = known
        return known

    @property
    def id(self) -> str:
        """The name of the tensor with the scope of its graph before it."""
        return self._pb_tensor.id

    @property
    def name(self) -> str:
        """The name of the tensor without the scope of its graph."""
        return _ir.removeScope(self._pb_tensor.getGraph(), self.id)

    @property
    def scope(self) -> str:
        """The scope of its graph."""
        return self._pb_tensor.getGraph().getScope().str()

    @property
    def dtype(self) -> dtypes.dtype:
        """The type of its elements."""
        return dtypes._BY_KEY[self._pb_tensor.info.dataType()]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(self._pb_tensor.info.shape())

    @property
    def meta_shape(self) -> tuple[int, ...]:
        """Its sizes before it was sharded over replicas: always empty here."""
        return ()

    @property
    def spec(self) -> TensorSpec:
        """Its shape and dtype."""
        return TensorSpec(self.shape, self.dtype)

    @property
    def rank(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def nelms(self) -> int:
        """How many elements it has."""
        return self._pb_tensor.info.nelms()

    @property
    def ir(self):
        """Its IR."""
        return self._ir

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.id} {self.shape} {self.dtype}]"

    def __hash__(self) -> int:
        return hash((self.id, self._ir))

    def __eq__(self, other) -> bool:
        return isinstance(other, Tensor) and self.id == other.id and self._ir == other._ir

    def __len__(self) -> int:
        if not self.shape:
            raise ValueError("Tensor is a scalar and doesn't have a length.")
        return self.shape[0]

    def _ensure_tensor(self, value) -> "Tensor":
        """`value` itself if it is a tensor, else a constant of this tensor's dtype."""
        return value if isinstance(value, Tensor) else constant(value, self.dtype)

    def __add__(self, other):
        from popxl import ops

        return ops.add(self, self._ensure_tensor(other))

    def __radd__(self, other):
        from popxl import ops

        return ops.add(self._ensure_tensor(other), self)

    def __sub__(self, other):
        from popxl import ops

        return ops.sub(self, self._ensure_tensor(other))

    def __rsub__(self, other):
        from popxl import ops

        return ops.sub(self._ensure_tensor(other), self)

    def __mul__(self, other):
        from popxl import ops

        return ops.mul(self, self._ensure_tensor(other))

    def __rmul__(self, other):
        from popxl import ops

        return ops.mul(self._ensure_tensor(other), self)

    def __neg__(self):
        from popxl import ops

        return ops.negate(self)


class Variable(Tensor, tensor_type="Variable"):
    """A tensor whose value the session keeps from run to run."""


class Constant(Tensor, tensor_type="Const"):
    """A tensor whose value is known when the graph is built."""


class TensorByRef(Tensor):
    """A type hint: an input of a graph that is passed by reference."""


def to_numpy(value, dtype=None, downcast: bool = True) -> np.ndarray:
    """A C-contiguous array of `value`; 64-bit types become 32-bit ones where `downcast` says so and no dtype is asked for."""
    array = np.asarray(value.detach().numpy() if hasattr(value, "detach") else value)
    if dtype is not None:
        array = array.astype(dtypes.dtype.as_dtype(dtype).as_numpy())
    elif downcast:
        narrower = {"float64": "float32", "int64": "int32", "uint64": "uint32"}.get(array.dtype.name)
        array = array.astype(narrower) if narrower else array
    return np.asarray(array, order="C")


def _data(data, dtype, downcast: bool):
    array = to_numpy(data, dtype, downcast)
    return array, _ir.TensorInfo(dtypes.dtype.as_dtype(array.dtype)._pb_dtype, list(array.shape))


def variable(data, dtype=None, name: str | None = None, downcast: bool = True) -> Variable:
    """A tensor of the main graph that starts as `data` and that ops may change."""
    graph = gmg()
    array, info = _data(data, dtype, downcast)
    tensor_id = graph._create_tensor_id(name or "t")
    graph._pb_graph.addVarInit(tensor_id, info, array)
    return Tensor._from_pb_tensor(graph._pb_graph.getTensor(tensor_id))


def constant(data, dtype=None, name: str | None = None, downcast: bool = True) -> Constant:
    """A tensor of the current graph that is always `data`."""
    graph = gcg()
    array, info = _data(data, dtype, downcast)
    tensor_id = graph._create_tensor_id(name or "t")
    graph._pb_graph.addConstInit(tensor_id, info, array)
    return Tensor._from_pb_tensor(graph._pb_graph.getTensor(tensor_id))


def graph_input(shape, dtype, name: str | None = None, by_ref: bool = False, meta_shape=None) -> Tensor:
    """A new input of the current graph, which must not be the main graph."""
    graph = gcg()
    if graph is gmg():
        raise TypeError("Graph inputs can only be added to a graph that is called, not to the main graph.")
    tensor_id = graph._create_tensor_id(name or "t")
    graph._pb_graph.addInput(tensor_id, _ir.TensorInfo(dtype._pb_dtype, list(shape)))
    tensor = Tensor._from_pb_tensor(graph._pb_graph.getTensor(tensor_id))
    if by_ref:
        graph._by_ref_inputs.add(tensor)
    return tensor


def graph_output(t: Tensor) -> None:
    """Makes `t` an output of the current graph, which must not be the main graph."""
    from popxl.ops.utils import check_in_graph

    graph = gcg()
    if graph is gmg():
        raise TypeError("Graph outputs can only be added to a graph that is called, not to the main graph.")
    check_in_graph(graph, t=t)
    graph._pb_graph.markAsOutput(t.id)
