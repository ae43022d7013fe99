"""What the NumPy functions of an op share: checks, conversions, and the plans that make a repeated call cheap.

A call goes the fast way when its arrays are contiguous and a call with the same dtypes, shapes and shape-giving attributes was
made before: the plan of that call holds everything but the data pointers. Every other call goes the careful way, `Op.call`,
which converts, checks, says what is wrong, and leaves a plan behind.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISS = (KeyError, AttributeError, TypeError, ValueError, BufferError, OverflowError)
"""What the fast way raises when a call is not for it; the careful way then finds out what is wrong, if anything."""

MOST_PLANS = 1024
"""How many plans an op keeps before it forgets them all; a program has few shapes, but some have no end of them."""

MAX_RANK = 32

DLPACK: Mapping[str, tuple[int, int]] = {
    "float16": (2, 16),
    "bfloat16": (4, 16),
    "float32": (2, 32),
    "float64": (2, 64),
    "int8": (0, 8),
    "int16": (0, 16),
    "int32": (0, 32),
    "int64": (0, 64),
    "uint8": (1, 8),
    "bool": (6, 8),
}
"""Type code and bits of each dtype in DLPack. A `dtype` attribute is the position in this table."""

DTYPE_POSITION: dict[Any, int] = {}
"""The position of each value a `dtype` attribute was given as; filled by the careful way, read by the fast one."""

BOOL = {False: 0, True: 1}

_ERRORS: Mapping[int, type[Exception]] = {1: ValueError, 2: IndexError, 3: MemoryError}
"""The exception of each code a kernel returns."""

Array = NDArray[Any]


def extension(package: str, module: str, op: str) -> ModuleType:
    """Return the built extension module, which lies in `build/` of the op's package.

    Raises:
        ImportError: when it has not been built.
    """
    try:
        return import_module(f"..build.{module}", package)
    except ModuleNotFoundError as error:
        raise ImportError(f"{op} is not built for NumPy: run `opc build` on its spec") from error


@dataclass(frozen=True, slots=True)
class Input:
    """An input: the name of its element type (inputs of one type agree in dtype) and the dtypes that may stand for it."""

    name: str
    type: str
    dtypes: tuple[str, ...]
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute: `length` is None for a scalar, a number for a list of that length, -1 for a list of any length."""

    name: str
    kind: str
    length: int | None = None
    values: tuple[str, ...] = ()

    def encode(self, value: Any) -> list[Any]:
        """Return the arguments of the C function that stand for `value`: one, or length and elements of a list of any length.

        Raises:
            TypeError: when the value is not of the attribute's kind.
            ValueError: when a string is not among the values, or a list has another length.
        """
        if self.length is None:
            return [self._scalar(value)]
        if isinstance(value, str | bytes) or not hasattr(value, "__len__"):
            raise TypeError(f"attribute {self.name} is a list of {self.kind}, got {value!r}")
        elements = [self._scalar(v) for v in value]
        if self.length >= 0 and len(elements) != self.length:
            raise ValueError(f"attribute {self.name} has {self.length} elements, got {len(elements)}: {value!r}")
        return [elements] if self.length >= 0 else [len(elements), elements]

    def _scalar(self, value: Any) -> Any:
        try:
            return getattr(self, f"_{self.kind}")(value)
        except (TypeError, KeyError):
            raise TypeError(f"attribute {self.name} must be {self.kind}, got {value!r}") from None

    def _int(self, value: Any) -> int:
        return operator.index(value)

    _axis = _int

    def _float(self, value: Any) -> float:
        if isinstance(value, str | bytes):
            raise TypeError
        return float(value)

    def _bool(self, value: Any) -> int:
        return BOOL[value]

    def _str(self, value: Any) -> int | bytes:
        if not isinstance(value, str):
            raise TypeError
        if not self.values:
            return value.encode()
        if value not in self.values:
            raise ValueError(f"attribute {self.name} must be one of {', '.join(self.values)}, got {value!r}")
        return self.values.index(value)

    def _dtype(self, value: Any) -> int:
        name = value if isinstance(value, str) else np.dtype(value).name
        if name not in DLPACK:
            raise TypeError
        DTYPE_POSITION[value] = list(DLPACK).index(name)
        return DTYPE_POSITION[value]


@dataclass(frozen=True, slots=True)
class Output:
    """An output; an optional one is computed only when wanted, and never when the input `of` that it is a gradient of is absent."""

    name: str
    optional: bool = False
    of: str | None = None


@dataclass(slots=True)
class Op:
    """One function of the extension module `module`: its signature, and the plans of the calls it has seen.

    `key_attributes` are the positions of the attributes that the shapes and dtypes of the outputs may depend on.
    """

    module: ModuleType
    name: str
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Output, ...]
    key_attributes: tuple[int, ...] = ()
    plans: dict[Any, tuple[Any, ...]] = field(default_factory=dict)

    def call(self, given: Sequence[Any], attributes: Sequence[Any], out: Any = None, only: Sequence[str] | None = None) -> Any:
        """Run the op the careful way: any array-likes, any strides, every mistake told.

        Returns the output, or a tuple of all outputs with None for those not computed. `out` is an array, or a tuple of arrays and
        None, to be written to. `only` names the optional outputs to compute, by default all that can be.

        Raises:
            TypeError: for a dtype, attribute or object of the wrong kind.
            ValueError: for a rank, size, attribute or output array that does not fit.
            IndexError: for an index in the data that is out of range.
        """
        arrays = self._arrays(given)
        encoded = [c for a, value in zip(self.attributes, attributes) for c in a.encode(value)]
        types = self._infer(arrays, encoded)
        wanted = self._wanted(arrays, types, only)
        outputs = self._outputs(types, wanted, out)
        plan = self._plan((*arrays, *outputs))
        pointers = [self._pointer(a) for a in (*arrays, *outputs)]
        self._raise(getattr(self.module.lib, f"call_{self.name}")(plan[0], *pointers, *encoded))
        if all(wanted) and all(a is g and (a is None or a.flags.c_contiguous) for a, g in zip(arrays, given)):
            self._remember(given, attributes, plan, outputs)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _arrays(self, given: Sequence[Any]) -> list[Array | None]:
        """Return the inputs as arrays; lists and numbers take the dtype of the arrays beside them."""
        typed = {i: _as_array(spec.name, g) for i, (spec, g) in enumerate(zip(self.inputs, given)) if _has_dtype(g)}
        dtypes: dict[str, tuple[str, np.dtype[Any]]] = {}
        for i, array in typed.items():
            spec = self.inputs[i]
            if array.dtype.name not in spec.dtypes:
                raise TypeError(f"{self.name}: {spec.name} has dtype {array.dtype}, it takes {', '.join(spec.dtypes)}")
            other, dtype = dtypes.setdefault(spec.type, (spec.name, array.dtype))
            if dtype != array.dtype:
                raise TypeError(
                    f"{self.name}: {other} has dtype {dtype} and {spec.name} has dtype {array.dtype}; both are {spec.type}"
                )
        arrays: list[Array | None] = []
        for i, (spec, value) in enumerate(zip(self.inputs, given)):
            if value is None and not spec.optional:
                raise TypeError(f"{self.name}: {spec.name} is not optional")
            known = dtypes.get(spec.type)
            arrays.append(None if value is None else typed[i] if i in typed else self._weak(spec, value, known and known[1]))
        for spec, made in zip(self.inputs, arrays):
            if made is not None and made.ndim > MAX_RANK:
                raise ValueError(f"{self.name}: {spec.name} has {made.ndim} axes, at most {MAX_RANK} are possible")
        return arrays

    def _weak(self, spec: Input, value: Any, known: np.dtype[Any] | None) -> Array:
        """Return a number or a nested list as an array of a dtype the input takes, if one holds such values."""
        array = np.asarray(value)
        for name in (array.dtype.name, "float64", "float32") if known is None else (known.name,):
            if name in spec.dtypes and (
                np.can_cast(array.dtype, name, "same_kind") if name in np.sctypeDict else known is not None
            ):
                return np.asarray(value, dtype=known or name)
        takes = known.name if known is not None else ", ".join(spec.dtypes)
        raise TypeError(f"{self.name}: {spec.name} would have dtype {array.dtype}, it takes {takes}")

    def _infer(
        self, arrays: Sequence[Array | None], attributes: Sequence[Any]
    ) -> list[tuple[np.dtype[Any], tuple[int, ...]] | None]:
        """Return dtype and shape of each output, or None where nothing given determines them."""
        ffi = self.module.ffi
        types = ffi.new("opc_tensor_type[]", len(self.outputs))
        plan = self._plan(arrays)
        self._raise(getattr(self.module.lib, f"infer_{self.name}")(plan[0], types, *attributes))
        return [(_dtype(t.dtype.code, t.dtype.bits), tuple(t.shape[0 : t.ndim])) if t.ndim >= 0 else None for t in types]

    def _wanted(self, arrays: Sequence[Array | None], types: Sequence[Any], only: Sequence[str] | None) -> list[bool]:
        absent = {spec.name for spec, array in zip(self.inputs, arrays) if array is None}
        names = [o.name for o in self.outputs if o.optional]
        for name in only or ():
            if name not in names:
                raise ValueError(f"{self.name}: no optional output '{name}', there are {', '.join(names) or 'none'}")
        default = [t is not None and o.of not in absent for o, t in zip(self.outputs, types)]
        return [not o.optional or (d if only is None else o.name in only) for o, d in zip(self.outputs, default)]

    def _outputs(self, types: Sequence[Any], wanted: Sequence[bool], out: Any) -> list[Array | None]:
        given = out if isinstance(out, tuple) else (out,) if len(self.outputs) == 1 or out is not None else (None,) * len(types)
        if len(given) != len(types):
            raise ValueError(f"{self.name}: out has {len(given)} arrays for {len(types)} outputs")
        outputs: list[Array | None] = []
        for spec, t, want, array in zip(self.outputs, types, wanted, given):
            if want and t is None:
                raise ValueError(f"{self.name}: the shape of {spec.name} does not follow from the inputs given")
            if array is not None and want:
                self._check_out(spec.name, array, *t)
            outputs.append(None if not want else array if array is not None else np.empty(t[1], t[0]))
        return outputs

    def _check_out(self, name: str, array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(f"{self.name}: out for {name} must be a NumPy array, got {type(array).__name__}")
        if array.dtype != dtype:
            raise TypeError(f"{self.name}: out for {name} has dtype {array.dtype}, needed is {dtype}")
        if array.shape != shape:
            raise ValueError(f"{self.name}: out for {name} has shape {array.shape}, needed is {shape}")
        for flag, text in (("c_contiguous", "contiguous"), ("writeable", "writable"), ("aligned", "aligned")):
            if not getattr(array.flags, flag):
                raise ValueError(f"{self.name}: out for {name} is not {text}")

    def _plan(self, arrays: Sequence[Array | None]) -> tuple[Any, Any]:
        """Return the DLTensors of a call without their data, and the memory of shapes and strides they point into."""
        ffi = self.module.ffi
        plan = ffi.new("DLTensor[]", len(arrays))
        numbers = ffi.new("int64_t[]", sum(2 * a.ndim for a in arrays if a is not None) or 1)
        at = 0
        for tensor, array in zip(plan, arrays):
            tensor.ndim = -1
            if array is None:
                continue
            rank = tensor.ndim = array.ndim
            tensor.device.device_type = 1
            tensor.dtype.code, tensor.dtype.bits = DLPACK[array.dtype.name]
            tensor.dtype.lanes = 1
            tensor.shape, tensor.strides = numbers + at, numbers + at + rank
            numbers[at : at + 2 * rank] = [*array.shape, *(s // array.itemsize for s in array.strides)]
            if array.flags.c_contiguous:
                tensor.strides = ffi.NULL
            at += 2 * rank
        return plan, numbers

    def _pointer(self, array: Array | None) -> Any:
        ffi = self.module.ffi
        return ffi.NULL if array is None else ffi.cast("void *", array.ctypes.data)

    def _raise(self, code: int) -> None:
        if code != 0:
            message = self.module.ffi.string(self.module.lib.opc_message()).decode(errors="replace")
            raise _ERRORS.get(code, RuntimeError)(f"{self.name}: {message}")

    def _remember(self, given: Sequence[Any], attributes: Sequence[Any], plan: tuple[Any, Any], outputs: Sequence[Any]) -> None:
        key: list[Any] = []
        for spec, array in zip(self.inputs, given):
            parts = None if array is None else (array.dtype, array.shape, array.strides)
            key += [parts] if spec.optional else parts or ()
        key += [attributes[i] for i in self.key_attributes]
        if len(self.plans) >= MOST_PLANS:
            self.plans.clear()
        # A list attribute that was given as a list can't be part of a key.
        with suppress(TypeError):
            self.plans[tuple(key)] = (*plan, *(part for o in outputs for part in (o.shape, o.dtype)))


def _has_dtype(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic) or hasattr(value, "__dlpack__") or hasattr(value, "__array__")


def _as_array(name: str, value: Any) -> Array:
    """Return an array-like with a dtype of its own as an array a kernel can read, copied only where it must be."""
    array = _from_dlpack(name, value) if hasattr(value, "__dlpack__") and not isinstance(value, np.ndarray) else np.asarray(value)
    if array.dtype.name not in DLPACK:
        return array
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned or any(s % array.itemsize for s in array.strides):
        array = array.copy()
    return array


def _from_dlpack(name: str, value: Any) -> Array:
    device = int(value.__dlpack_device__()[0])
    if device != 1:
        raise ValueError(f"{name} is not in the CPU's memory (DLPack device type {device})")
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"{name}: NumPy cannot take this {type(value).__name__} through DLPack: {error}") from error


def _dtype(code: int, bits: int) -> np.dtype[Any]:
    name: Any = next(name for name, known in DLPACK.items() if known == (code, bits))
    if name == "bfloat16":
        import ml_dtypes

        name = ml_dtypes.bfloat16
    return np.dtype(name)
