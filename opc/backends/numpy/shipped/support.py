"""What the NumPy functions of an op share: checked calls, and plans for repeated ones.

A call goes the fast way when its arrays are contiguous and a call with the same dtypes,
shapes and shape-giving attributes was made before: the plan of that call holds
everything but the data pointers. Every other call goes the careful way, `Op.call`,
which converts, checks, says what is wrong, and leaves a plan behind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from opc.backends.numpy.shipped.signature import (
    BOOL,
    DLPACK,
    DTYPE_POSITION,
    Array,
    Attribute,
    Input,
    Output,
    as_array,
    dtype_of,
    has_dtype,
    weak_array,
)

__all__ = [
    "BOOL",
    "DTYPE_POSITION",
    "INTEGER",
    "MISS",
    "Attribute",
    "Input",
    "Op",
    "Output",
    "extension",
    "given",
    "kind",
    "results",
]

MISS = (LookupError, AttributeError, TypeError, ValueError, BufferError, OverflowError)
"""What the fast way raises when a call is not for it; the careful way finds out why."""

INTEGER = (int, np.integer)
"""What stands for a list of one axis."""

MOST_PLANS = 1024
"""How many plans an op keeps before it forgets them all: some programs have no end of
shapes.
"""

MAX_RANK = 32

_ERRORS: Mapping[int, type[Exception]] = {1: ValueError, 2: IndexError, 3: MemoryError}
"""The exception of each code a kernel returns."""


def extension(package: str, module: str, op: str) -> ModuleType:
    """Return the built extension module, which lies in `build/` of the op's package.

    Raises:
        ImportError: when it has not been built, or cffi, which it runs on, is missing.
    """
    try:
        return import_module(f"..build.{module}", package)
    except ModuleNotFoundError as error:
        missing = f"{op} is not built for NumPy: run `opc build` on its spec"
        if error.name == "_cffi_backend":
            missing = f"{op} on NumPy needs the package cffi: run `pip install cffi`"
        raise ImportError(missing, name=error.name) from error


@dataclass(slots=True)
class Op:
    """One function of the extension module `module`: its signature, and the plans of
    the calls it has seen.

    `key_attributes` are the positions of the attributes that the shapes and dtypes of
    the outputs may depend on. A plan is found by `only` where the op has it, dtype,
    shape and strides of each input, and these attributes; it holds the tensors without
    data, the memory they point into, and shape and dtype of each output.
    """

    module: ModuleType
    name: str
    inputs: tuple[Input, ...]
    attributes: tuple[Attribute, ...]
    outputs: tuple[Output, ...]
    key_attributes: tuple[int, ...] = ()
    plans: dict[Any, tuple[Any, ...]] = field(default_factory=dict)
    run: Callable[..., int] = field(init=False)

    def __post_init__(self) -> None:
        """Take the C function, which returns 0 when all went well."""
        self.run = getattr(self.module.lib, f"call_{self.name}")

    @property
    def has_choice(self) -> bool:
        """Whether the caller says which outputs are computed, by `only`."""
        return any(o.optional for o in self.outputs)

    def call(
        self,
        given: Sequence[Any],
        attributes: Sequence[Any],
        out: Any = None,
        only: Sequence[str] | None = None,
    ) -> Any:
        """Run the op the careful way: any array-likes, any strides, with all checks.

        Returns the output, or a tuple of all outputs with None for those not computed.
        `out` is an array, or a tuple of arrays and None, to be written to. `only` names
        the optional outputs to compute, by default all that can be.

        Raises:
            TypeError: for a dtype, attribute or object of the wrong kind.
            ValueError: for a rank, size, attribute or output array that does not fit.
            IndexError: for an index in the data that is out of range.
        """
        arrays = self._arrays(given)
        pairs = zip(self.attributes, attributes)
        encoded = [c for a, value in pairs for c in a.encode(self.name, value)]
        types = self._infer(arrays, encoded)
        wanted = self._wanted(arrays, types, only)
        outputs = self._outputs(types, wanted, out)
        plan = self._plan((*arrays, *outputs))
        pointers = [self._pointer(a) for a in (*arrays, *outputs)]
        self._raise(self.run(plan[0], *pointers, *encoded))
        if all(wanted) and all(map(_is_plain, arrays, given)):
            self._remember(
                (only,) if self.has_choice else (), given, attributes, plan, outputs
            )
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _arrays(self, given: Sequence[Any]) -> list[Array | None]:
        """Return the inputs as arrays; lists and numbers take the dtype of the arrays
        beside them.
        """
        typed = {
            i: as_array(spec.name, g)
            for i, (spec, g) in enumerate(zip(self.inputs, given))
            if has_dtype(g)
        }
        dtypes: dict[str, tuple[str, np.dtype[Any] | None]] = {}
        for i, array in typed.items():
            spec = self.inputs[i]
            if array.dtype.name not in spec.dtypes:
                takes = f"must have {spec.type}"
                if spec.dtypes != (spec.type,):
                    takes = f"{spec.type} is one of {', '.join(spec.dtypes)}"
                raise TypeError(
                    self._said(f"{spec.name} has dtype {array.dtype}, but {takes}")
                )
            other, dtype = dtypes.setdefault(spec.type, (spec.name, array.dtype))
            if dtype != array.dtype:
                both = f"{other} is {dtype} and {spec.name} is {array.dtype}"
                raise TypeError(self._said(f"{both}, both must be {spec.type}"))
        arrays: list[Array | None] = []
        for i, (spec, value) in enumerate(zip(self.inputs, given)):
            if value is None and not spec.optional:
                raise TypeError(self._said(f"{spec.name} is not optional"))
            made = typed.get(i)
            if made is None and value is not None:
                known = dtypes.get(spec.type, ("", None))[1]
                made = weak_array(self.name, spec, value, known)
            if made is not None and made.ndim > MAX_RANK:
                raise ValueError(
                    self._said(
                        f"{spec.name} has {made.ndim} axes, more than {MAX_RANK}"
                    )
                )
            arrays.append(made)
        return arrays

    def _infer(
        self, arrays: Sequence[Array | None], attributes: Sequence[Any]
    ) -> list[tuple[np.dtype[Any], tuple[int, ...]] | None]:
        """Return dtype and shape of each output, or None where nothing given determines
        them.
        """
        ffi = self.module.ffi
        types = ffi.new("opc_tensor_type[]", len(self.outputs))
        plan = self._plan(arrays)
        self._raise(
            getattr(self.module.lib, f"infer_{self.name}")(plan[0], types, *attributes)
        )
        return [
            None
            if t.ndim < 0
            else (dtype_of(t.dtype.code, t.dtype.bits), tuple(t.shape[0 : t.ndim]))
            for t in types
        ]

    def _wanted(
        self,
        arrays: Sequence[Array | None],
        types: Sequence[Any],
        only: Sequence[str] | None,
    ) -> list[bool]:
        absent = {
            spec.name for spec, array in zip(self.inputs, arrays) if array is None
        }
        names = [o.name for o in self.outputs if o.optional]
        for name in only or ():
            if name not in names:
                raise ValueError(
                    self._said(f"no output '{name}' to choose, only {', '.join(names)}")
                )
        default = [
            t is not None and o.of not in absent for o, t in zip(self.outputs, types)
        ]
        return [
            not o.optional or (d if only is None else o.name in only)
            for o, d in zip(self.outputs, default)
        ]

    def _outputs(
        self, types: Sequence[Any], wanted: Sequence[bool], out: Any
    ) -> list[Array | None]:
        given = tuple(out) if isinstance(out, tuple | list) else (out,)
        if out is None:
            given = (None,) * len(types)
        if len(given) != len(types):
            raise ValueError(
                self._said(f"out has {len(given)} arrays for {len(types)} outputs")
            )
        outputs: list[Array | None] = []
        for spec, t, want, array in zip(self.outputs, types, wanted, given):
            if want and t is None:
                raise ValueError(
                    self._said(f"nothing given tells the shape of {spec.name}")
                )
            if array is not None and want:
                self._check_out(spec.name, array, *t)
            if want and array is None:
                array = np.empty(t[1], t[0])
            outputs.append(array if want else None)
        return outputs

    def _check_out(
        self, name: str, array: Any, dtype: np.dtype[Any], shape: tuple[int, ...]
    ) -> None:
        if not isinstance(array, np.ndarray):
            raise TypeError(
                self._said(f"out for {name} is no NumPy array: {type(array)}")
            )
        if array.dtype != dtype:
            raise TypeError(
                self._said(f"out for {name} has dtype {array.dtype}, needed is {dtype}")
            )
        if array.shape != shape:
            raise ValueError(
                self._said(f"out for {name} has shape {array.shape}, needed is {shape}")
            )
        for flag, text in (
            ("c_contiguous", "contiguous"),
            ("writeable", "writable"),
            ("aligned", "aligned"),
        ):
            if not getattr(array.flags, flag):
                raise ValueError(self._said(f"out for {name} is not {text}"))

    def _plan(self, arrays: Sequence[Array | None]) -> tuple[Any, Any]:
        """Return the DLTensors of a call without their data, and the memory of shapes
        and strides they point into.
        """
        ffi = self.module.ffi
        plan = ffi.new("DLTensor[]", len(arrays))
        numbers = ffi.new(
            "int64_t[]", sum(2 * a.ndim for a in arrays if a is not None) or 1
        )
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
            numbers[at : at + 2 * rank] = [
                *array.shape,
                *(s // array.itemsize for s in array.strides),
            ]
            if array.flags.c_contiguous:
                tensor.strides = ffi.NULL
            at += 2 * rank
        return plan, numbers

    def _pointer(self, array: Array | None) -> Any:
        ffi = self.module.ffi
        return ffi.NULL if array is None else ffi.cast("void *", array.ctypes.data)

    def _said(self, text: str) -> str:
        return f"{self.name}: {text}"

    def _raise(self, code: int) -> None:
        if code != 0:
            lib, ffi = self.module.lib, self.module.ffi
            message = ffi.string(lib.opc_message()).decode(errors="replace")
            raise _ERRORS.get(code, RuntimeError)(message)

    def _remember(
        self,
        choice: tuple[Any, ...],
        given: Sequence[Any],
        attributes: Sequence[Any],
        plan: tuple[Any, Any],
        outputs: Sequence[Any],
    ) -> None:
        key = list(choice)
        for spec, array in zip(self.inputs, given):
            key += [kind(array)] if spec.optional else kind(array) or ()
        key += [attributes[i] for i in self.key_attributes]
        if len(self.plans) >= MOST_PLANS:
            self.plans.clear()
        # A list attribute that was given as a list can't be part of a key.
        with suppress(TypeError):
            self.plans[tuple(key)] = (*plan, [(o.shape, o.dtype) for o in outputs])


def kind(array: Any) -> tuple[Any, ...] | None:
    """Return what a plan depends on of an input; None for an absent one."""
    return None if array is None else (array.dtype, array.shape, array.strides)


def given(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return an array given as `out` if it fits.

    Whether it is contiguous is seen when its data is taken.

    Raises:
        ValueError: when it does not fit.
    """
    if out.shape != shape or out.dtype != dtype or not out.flags.writeable:
        raise ValueError
    return out


def results(out: Any, types: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]) -> Any:
    """Return arrays for several outputs, those that `out` gives or new ones.

    Raises:
        ValueError: when `out` is no tuple of as many arrays, or one does not fit.
    """
    if out is None:
        return [np.empty(*t) for t in types]
    if not isinstance(out, tuple) or len(out) != len(types):
        raise ValueError
    return [
        np.empty(*t) if o is None else given(o, *t)
        for o, t in zip(out, types, strict=True)
    ]


def _is_plain(array: Array | None, value: Any) -> bool:
    """Whether an input was used as it was given and its data can be taken as one
    buffer.
    """
    return array is value and (array is None or array.flags.c_contiguous)
