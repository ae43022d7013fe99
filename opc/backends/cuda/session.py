"""A built library of kernels as the proof calls it: on NumPy arrays, which are copied to the device and back."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opc.backends.base import DeviceLostError, OpError, Session, Unsupported
from opc.backends.cuda.toolkit import EMULATED_LIBRARY, cublaslt, library_path
from opc.backends.derived import asked_outputs
from opc.backends.dtypes import fills_bytes, require_dtypes
from opc.emit import abi
from opc.ir.dtypes import DTYPES, DType, numpy_dtype
from opc.ir.op import Family, Op, ScatterMode
from opc.lower.cuda.library import ops_with_library

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

SEED = "OPC_CUDA_SEED"
"""Environment variable: the order in which the emulation runs the threads of a block is random, by this seed."""

LIBRARY = "OPC_CUBLASLT"
"""Environment variable: whether cuBLASLt makes products of matrices: `off`, or `all`, which are those of any size."""

LIBRARY_PATH = "OPC_CUBLASLT_LIBRARY"
"""Environment variable: the path of cuBLASLt, where it is not looked for."""

_C_TYPES: Mapping[str, Any] = {
    "double": ctypes.c_double,
    "int64_t": ctypes.c_int64,
    "int32_t": ctypes.c_int32,
    "const char *": ctypes.c_char_p,
}
_MAX_RANK, _GPU = 32, 2


class _DataType(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", _DataType),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _Type(ctypes.Structure):
    _fields_ = (("dtype", _DataType), ("ndim", ctypes.c_int32), ("shape", ctypes.c_int64 * _MAX_RANK))


class _Context(ctypes.Structure):
    _fields_ = (
        ("stream", ctypes.c_void_p),
        ("device", ctypes.c_int32),
        ("allocate", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("allocator", ctypes.c_void_p),
        ("status", ctypes.c_void_p),
        ("message", ctypes.c_char_p),
        ("message_size", ctypes.c_int64),
    )


class CudaSession(Session):
    """Calls the functions of a built library. In the emulation every call is made twice, the second time with the threads of a
    block in a random order, and has to give the same bits.

    `told_by_data` is whether kernels refused the last call for what they found in its data.
    """

    no_autograd = "NumPy has no autograd; the gradients are functions of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Load the library.

        Raises:
            ImportError: when it is not built.
        """
        super().__init__(family, package)
        path = package / library_path(family)
        try:
            self.library = ctypes.CDLL(str(path))
        except OSError as error:
            raise ImportError(f"{path} can't be loaded: {error}") from error
        self.library.opc_array_allocate.restype = ctypes.c_void_p
        self.emulated = bool(self.library.opc_array_is_emulated())
        self.calls = 0
        self.told_by_data = False

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        described = self.ops[op]
        names = asked_outputs(described, inputs, attributes, only)
        found = self._call(described, inputs, attributes, names)
        # Where any order of additions is permitted, another one may round otherwise.
        if self.emulated and described.scatter is not ScatterMode.ATOMIC:
            self.calls += 1
            with _environment(SEED, str(self.calls)):
                again = self._call(described, inputs, attributes, names)
            for name, array in found.items():
                assert array.tobytes() == again[name].tobytes(), (
                    f"{name} depends on the order of the threads: a barrier is missing"
                )
        return found

    def variants(self) -> Mapping[str, Session]:
        """Return the session whose products of matrices are cuBLASLt's, where the op has such and the library is there."""
        made = getattr(self.library, f"opc_{self.family.name}_cuda_library", None)
        if made is None:
            return {}
        made.restype = ctypes.c_int64
        path = self.package / EMULATED_LIBRARY if self.emulated else cublaslt()
        found = None if path is None or LIBRARY_PATH in os.environ else str(path)
        with _environment(LIBRARY_PATH, found):
            return {"cublaslt": _ByLibrary(self, made, found)} if made() >= 0 else {}

    def _call(self, op: Op, inputs: Inputs, attributes: Attributes, names: Sequence[str]) -> dict[str, Array]:
        self.told_by_data = False
        require_dtypes(op, inputs, attributes, "CUDA", fills_bytes)
        with _Memory(self.library) as memory:
            message = ctypes.create_string_buffer(1024)
            status = memory.filled(np.zeros(4, np.int64))
            functions = (
                ctypes.cast(f, ctypes.c_void_p) for f in (self.library.opc_array_allocate, self.library.opc_array_release)
            )
            text = ctypes.cast(message, ctypes.c_char_p)
            context = _Context(None, 0, *functions, None, status, text, len(message))
            lent = ctypes.byref(context)
            values = ctypes.byref(_attributes(self.family, attributes))
            tensors = [None if (a := inputs.get(x.name)) is None else memory.tensor(a) for x in op.inputs]
            given = _pointers(tensors)
            types = (_Type * len(op.outputs))()
            self._check(getattr(self.library, f"opc_{op.name}_cuda_infer")(given, values, types, lent), message)
            made = {o.name: _empty(t) for o, t in zip(op.outputs, types) if o.name in names and t.ndim >= 0}
            outputs = [memory.tensor(made[o.name]) if o.name in made else None for o in op.outputs]
            self._check(getattr(self.library, f"opc_{op.name}_cuda")(given, _pointers(outputs), values, lent), message)
            if self.library.opc_array_wait() != 0:
                raise DeviceLostError(f"the kernels of {op.name} failed on the GPU")
            found = np.zeros(4, np.int64)
            memory.copy_out(status, found)
            code = getattr(self.library, f"opc_{self.family.name}_cuda_status")(found.ctypes.data_as(ctypes.c_void_p), lent)
            self.told_by_data = code != 0
            self._check(code, message)
            for o, tensor in zip(op.outputs, outputs):
                if tensor is not None:
                    memory.copy_out(tensor.data, made[o.name])
            return made

    @staticmethod
    def _check(code: int, message: Any) -> None:
        """Raise OpError where a function has refused the call."""
        if code != 0:
            raise OpError(message.value.decode(errors="replace"))


class _ByLibrary(CudaSession):
    """The same library, whose products of matrices are cuBLASLt's whatever their sizes are. Each call with such a product
    is made twice, and has to give the same bits."""

    def __init__(self, plain: CudaSession, made: Callable[[], int], path: str | None) -> None:
        """Take the library of another session; `made` tells how many products cuBLASLt has made, and `path` where that is."""
        Session.__init__(self, plain.family, plain.package)
        self.ops = {op.name: op for op in ops_with_library(self.family)}
        self.library, self.emulated, self.made, self.path = plain.library, plain.emulated, made, path
        self.calls = 0
        self.told_by_data = False

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`. Products that cuBLASLt can't make are made in tiles."""
        described = self.ops[op]
        names = asked_outputs(described, inputs, attributes, only)
        with _environment(LIBRARY, "all"), _environment(LIBRARY_PATH, self.path):
            before = self.made()
            found = self._call(described, inputs, attributes, names)
            if self.made() == before:
                return found
            again = self._call(described, inputs, attributes, names)
        for name, array in found.items():
            assert array.tobytes() == again[name].tobytes(), f"{name} differs from one call to the next"
        return found

    def variants(self) -> Mapping[str, Session]:
        """Return nothing: this is one."""
        return {}


@contextmanager
def _environment(name: str, value: str | None) -> Iterator[None]:
    """Set an environment variable for a while; None leaves it as it is."""
    before = os.environ.get(name)
    if value is not None:
        os.environ[name] = value
    try:
        yield
    finally:
        if value is not None and before is None:
            del os.environ[name]
        elif before is not None:
            os.environ[name] = before


class _Memory:
    """Memory of the device for one call."""

    def __init__(self, library: Any) -> None:
        self.library, self.held = library, list[int]()

    def __enter__(self) -> _Memory:
        return self

    def __exit__(self, *_: object) -> None:
        for place in self.held:
            self.library.opc_array_release(None, ctypes.c_void_p(place), ctypes.c_int64(0), None)

    def _copied(self, source: int, size: int) -> int:
        place = self.library.opc_array_allocate(None, ctypes.c_int64(max(size, 1)), None)
        if not place:
            raise Unsupported("the device has no memory for the call")
        self.held.append(place)
        self._copy(self.library.opc_array_copy_in, place, source, size)
        return int(place)

    @staticmethod
    def _copy(function: Any, to: int, source: int, size: int) -> None:
        if size and function(ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_int64(size)) != 0:
            raise RuntimeError("a copy to or from the GPU failed")

    def filled(self, array: Array) -> int:
        """Return where a contiguous array has been copied to."""
        return self._copied(array.ctypes.data, array.nbytes)

    def copy_out(self, place: int, array: Array) -> None:
        """Copy the device's memory to a contiguous array."""
        self._copy(self.library.opc_array_copy_out, array.ctypes.data, place, array.nbytes)

    def tensor(self, array: Array) -> _Tensor:
        """Return a tensor with an array's elements and strides: the bytes from its first to its last element and no more."""
        steps = [(n - 1) * s for n, s in zip(array.shape, array.strides)] if array.size else []
        before, behind = -sum(s for s in steps if s < 0), sum(s for s in steps if s > 0)
        place = self._copied(array.ctypes.data - before, before + behind + array.itemsize if array.size else 0)
        try:
            dtype = DType(array.dtype.name)
        except ValueError as error:
            raise Unsupported(f"there are no tensors of {array.dtype}") from error
        shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        return _Tensor(place, _GPU, 0, array.ndim, _DataType(dtype.row.dlpack, dtype.bits, 1), shape, strides, before)


def _pointers(tensors: Sequence[_Tensor | None]) -> Any:
    kind = ctypes.POINTER(_Tensor)
    return (kind * max(len(tensors), 1))(*(kind() if t is None else ctypes.pointer(t) for t in tensors))


_BY_CODE = {(d.row.dlpack, d.bits): d for d in DTYPES}


def _empty(of: _Type) -> Array:
    """Return an array of the type of an output, filled with what no kernel writes."""
    dtype = numpy_dtype(_BY_CODE[of.dtype.code, of.dtype.bits])
    array = np.empty(tuple(of.shape[: of.ndim]), dtype)
    array.reshape(-1).view(np.uint8)[...] = 0xA5
    return array


def _attributes(family: Family, given: Mapping[str, Any]) -> Any:
    """Return the attribute struct; what is left out has its default."""
    fields: list[tuple[str, Any]] = []
    values: dict[str, Any] = {}
    for f, value in abi.field_values(family, given):
        kind = _C_TYPES[f.c_type]
        if f.count is not None:
            elements = tuple(value)
            if f.count >= 0 and len(elements) != f.count:
                raise OpError(f"{family.name}: {f.attribute} has {len(elements)} values, but must have {f.count}")
            value = (kind * max(len(elements), 1))(*elements)
            kind = ctypes.POINTER(kind) if f.count < 0 else kind * f.count
            value = ctypes.cast(value, kind) if f.count < 0 else value
        elif f.c_type == "const char *":
            value = str(value).encode()
        fields.append((f.name, kind))
        values[f.name] = value
    layout = type("Attributes", (ctypes.Structure,), {"_fields_": fields or [("unused", ctypes.c_char)]})
    return layout(**values)
