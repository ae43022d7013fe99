"""The plugins of a built package as the proof calls them: through a host of opc's own.

It does what TensorRT does around an engine (`runtime/emulation/tensorrt/include/emulation/host.h`). Every call is prepared by
each kind of plugin, all of which have to tell the same types and sizes, and run by one of them, in turns: they start the same
kernels, which run on the CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opc.backends.base import OpError, Session, Unsupported, not_carried
from opc.backends.tensorrt.names import plugin_names, status_name
from opc.backends.tensorrt.paths import EMULATED_VERSION, host_path, library_path
from opc.ir.dtypes import DTYPES, numpy_dtype
from opc.ir.op import Attribute, AttributeKind, Family

if TYPE_CHECKING:
    from opc.backends.base import Array, Attributes, Inputs

INFERENCE_ONLY = "TensorRT runs inference only, without gradients"

KINDS = ("static", "dynamic", "third")
"""The kinds of plugins, in the order in which the host numbers them."""

MAX_RANK = 8
"""The most axes of TensorRT's tensors."""

AXES = f"TensorRT's tensors have at most {MAX_RANK} axes"
"""Why a call is not carried."""

MORE_AXES = "an output would have more axes than TensorRT's tensors"
"""What plugins say of such a call where it is an output that has more."""

LAST_OF_8_6 = 6
"""The last dtype of TensorRT 8.6."""

GIVEN = "opc_inputs"
"""The field that says which inputs are given."""

_NUMBERS = {d.row.tensorrt: d for d in DTYPES if d.row.tensorrt is not None}
_FLOAT64, _INT32, _CHAR, _INT64 = 2, 5, 6, 10


Field: TypeAlias = "tuple[str, int, Array]"
"""A field: its name, the number of its type, and its values."""


class _Field(ctypes.Structure):
    _fields_ = (("name", ctypes.c_char_p), ("data", ctypes.c_void_p), ("type", ctypes.c_int32), ("length", ctypes.c_int32))


class _Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("type", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("sizes", ctypes.c_int64 * MAX_RANK),
    )


class Host:
    """The host of one library of plugins, in this process.

    Raises:
        ImportError: when the host or the library can't be loaded.
    """

    def __init__(self, host: Path, library: Path, version: str) -> None:
        self.version = version
        try:
            # The library finds getPluginRegistry among the symbols of the process.
            self.functions = ctypes.CDLL(str(host), mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise ImportError(f"{host} can't be loaded: {error}") from error
        self.functions.emulation_message.restype = ctypes.c_char_p
        self.functions.emulation_open.restype = ctypes.c_void_p
        if not self.functions.emulation_load(str(library).encode()):
            raise ImportError(f"{library} can't be loaded: {self.message()}")

    def message(self) -> str:
        """Return why the last step failed."""
        text: bytes = self.functions.emulation_message()
        return text.decode(errors="replace")

    @property
    def integer(self) -> tuple[int, type[np.signedinteger[Any]]]:
        """The type of the widest fields of whole numbers, and NumPy's."""
        return (_INT32, np.int32) if self.version == "8.6" else (_INT64, np.int64)

    def run(
        self,
        kind: int,
        name: str,
        fields: Sequence[Field],
        inputs: Sequence[Array],
        outputs: int,
        batch: int = 1,
        *,
        runs: bool = True,
    ) -> list[Array]:
        """Return the outputs of one call of a plugin of a kind; with a batch, each input has so many samples.

        A call that is not run is prepared alone, and the outputs have types and sizes but no values.

        Raises:
            OpError: when the plugin refuses it.
        """
        given = (_Field * max(len(fields), 1))()
        for place, (field, number, values) in zip(given, fields):
            place.name, place.data, place.type, place.length = field.encode(), values.ctypes.data, number, values.size
        tensors = (_Tensor * max(len(inputs), 1))(*(_tensor(a, batch) for a in inputs))
        results = (_Tensor * outputs)()
        run = self.functions.emulation_open(kind, name.encode(), given, len(fields), tensors, len(inputs), results, outputs)
        if not run:
            raise OpError(self.message())
        try:
            made = [_empty(t, batch) for t in results]
            places = (ctypes.c_void_p * outputs)(*(a.ctypes.data for a in made))
            if runs and not self.functions.emulation_run(ctypes.c_void_p(run), places, batch):
                raise OpError(self.message())
        finally:
            self.functions.emulation_close(ctypes.c_void_p(run))
        return made


class TensorRTSession(Session):
    """Makes calls of the forward op, each prepared by all kinds of plugins and run by one of them."""

    no_autograd = INFERENCE_ONLY

    def __init__(self, family: Family, package: Path, version: str = EMULATED_VERSION) -> None:
        """Load the host and the plugins.

        Raises:
            ImportError: when they are not built.
        """
        super().__init__(family, package)
        self.op, self.names = family.forward, plugin_names(family)
        library = package / library_path(family, version)
        self.host = Host(package / host_path(version), library, version)
        self.calls = 0
        self.status = getattr(ctypes.CDLL(str(library)), status_name(family))

    def call(self, op: str, inputs: Inputs, attributes: Attributes, only: Sequence[str] | None = None) -> dict[str, Array]:
        """Run the op; see `opc.backends.base.Session`."""
        if op != self.op.name:
            raise not_carried(self.ops[op], INFERENCE_ONLY)
        given = {name: a for name, a in inputs.items() if a is not None}
        for array in given.values():
            self._carried(array)
        fields = list(self._fields(attributes))
        mask = [int(x.name in given) for x in self.op.inputs]
        if not all(mask):
            fields.append((GIVEN, _INT32, np.array(mask, np.int32)))
        arrays = [given[x.name] for x in self.op.inputs if x.name in given]
        kinds = KINDS[: 2 if self.host.version == "8.6" else 3]
        self.calls += 1
        turn = self.calls % len(kinds)
        found = [self._run(kind, fields, arrays, runs=kind == turn) for kind in range(len(kinds))]
        for kind, other in zip(kinds, found):
            for o, a, b in zip(self.op.outputs, found[turn], other):
                same = a.dtype == b.dtype and a.shape == b.shape
                assert same, (
                    f"{o.name} is {b.dtype} {b.shape} of the {kind} plugin, but {a.dtype} {a.shape} of the {kinds[turn]} one"
                )
        return {o.name: a for o, a in zip(self.op.outputs, found[turn])}

    def _run(self, kind: int, fields: Sequence[Field], arrays: Sequence[Array], *, runs: bool) -> list[Array]:
        name = (self.names.static, self.names.dynamic, self.names.third)[kind]
        try:
            made = self.host.run(kind, name, fields, arrays, len(self.op.outputs), runs=runs)
        except OpError as refused:
            self.status(None, ctypes.c_int64(0))  # kernels may have been started before
            if str(refused).endswith(MORE_AXES):
                raise Unsupported(AXES) from refused
            # What TensorRT would say names the plugin.
            raise OpError(str(refused).replace(f"{name}: ", f"{self.op.name}: ", 1)) from refused
        message = ctypes.create_string_buffer(1024)
        if self.status(message, ctypes.c_int64(len(message))) != 0:
            raise OpError(message.value.decode(errors="replace"))
        return made

    def _carried(self, array: Array) -> None:
        """Raise Unsupported for a tensor that TensorRT does not have."""
        number = next((n for n, d in _NUMBERS.items() if d.value == array.dtype.name), None)
        if number is None or (self.host.version == "8.6" and number > LAST_OF_8_6):
            raise Unsupported(f"TensorRT has no tensors of {array.dtype} between layers")
        if array.ndim > MAX_RANK:
            raise Unsupported(AXES)
        if any(s < 0 for s in array.strides) or not array.flags.c_contiguous:
            raise Unsupported("TensorRT's tensors have no strides")

    def _fields(self, attributes: Mapping[str, Any]) -> Iterator[Field]:
        """Yield the fields of the attributes that are given: name, type and values."""
        for a in self.op.attributes:
            if a.name in attributes:
                yield (a.name, *self._field(a, attributes[a.name]))

    def _field(self, a: Attribute, value: Any) -> tuple[int, Array]:
        if a.kind in (AttributeKind.STR, AttributeKind.DTYPE):
            return _CHAR, np.frombuffer(str(value).encode() + b"\0", np.int8)
        number, kind = self.host.integer
        if a.kind is AttributeKind.FLOAT:
            number, kind = _FLOAT64, np.float64  # type: ignore[assignment]  # a number all the same
        try:
            return number, np.atleast_1d(np.array(value, kind)).copy()
        except (OverflowError, ValueError, TypeError) as error:
            raise Unsupported(f"a field has no value {value!r} for {a.name}") from error


def _tensor(array: Array, batch: int) -> _Tensor:
    number = next(n for n, d in _NUMBERS.items() if d.value == array.dtype.name)
    shape = array.shape if batch == 1 else array.shape[1:]
    return _Tensor(array.ctypes.data, number, len(shape), (ctypes.c_int64 * MAX_RANK)(*shape))


def _empty(of: _Tensor, batch: int) -> Array:
    """Return an array for an output, filled with what no kernel writes."""
    shape = tuple(of.sizes[: of.rank])
    array = np.empty(shape if batch == 1 else (batch, *shape), numpy_dtype(_NUMBERS[of.type]))
    array.reshape(-1).view(np.uint8)[...] = 0xA5
    return array
