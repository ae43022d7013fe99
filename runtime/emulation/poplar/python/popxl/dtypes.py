"""The types of a tensor's elements."""

import numpy as np
import popart._internal.ir as _ir


class dtype:  # noqa: N801  # PopXL's name
    """The type of the elements of a tensor; the instances stand in the module `popxl`, none can be made."""

    def __init__(self) -> None:
        raise TypeError(f"Cannot create {self.__module__}.dtype instances.")

    @classmethod
    def _make(cls, name, pb_name, np_name, *, signed=True):
        self = super().__new__(cls)
        self._name = name
        self._pb_dtype = getattr(_ir.DataType, pb_name)
        self._np_type = np.dtype(np_name)
        self._is_signed = signed
        _BY_KEY.update({name: self, self._np_type: self, self._pb_dtype: self})
        return self

    @property
    def name(self) -> str:
        """The name of the type."""
        return self._name

    @property
    def is_complex(self) -> bool:
        """Whether its elements are complex numbers."""
        return self._np_type.kind == "c"

    @property
    def is_int(self) -> bool:
        """Whether its elements are whole numbers."""
        return self._np_type.kind in "iu"

    @property
    def is_floating_point(self) -> bool:
        """Whether its elements are floating-point numbers."""
        return self._np_type.kind == "f"

    @property
    def is_signed(self) -> bool:
        """Whether its elements have a sign."""
        return self._is_signed

    @classmethod
    def from_name(cls, name: str) -> "dtype":
        """The type of this name; raises ValueError for an unknown one."""
        if isinstance(name, str) and name in _BY_KEY:
            return _BY_KEY[name]
        raise ValueError(f"There is not a `popxl.dtype` that has a name: {name}.")

    @classmethod
    def as_dtype(cls, type_value) -> "dtype":
        """The type that a name, a type of NumPy or Python, or an array stands for; raises ValueError for any other."""
        if isinstance(type_value, dtype):
            return type_value
        for key in (type_value, getattr(type_value, "dtype", None)):
            try:
                if key is not None and key in _BY_KEY:
                    return _BY_KEY[key]
            except TypeError:
                continue
        try:
            return _BY_KEY[np.dtype(type_value)]
        except (KeyError, TypeError):
            message = f"There is not a `popxl.dtype` that is compatible with value: {type_value}, type: {type(type_value)}."
            raise ValueError(message) from None

    def as_numpy(self) -> np.dtype:
        """The type of NumPy."""
        return self._np_type

    def __repr__(self) -> str:
        return f"popxl.{self._name}"


_BY_KEY: dict = {}

int8 = dtype._make("int8", "INT8", "int8")
int16 = dtype._make("int16", "INT16", "int16")
int32 = dtype._make("int32", "INT32", "int32")
int64 = dtype._make("int64", "INT64", "int64")
uint8 = dtype._make("uint8", "UINT8", "uint8", signed=False)
uint16 = dtype._make("uint16", "UINT16", "uint16", signed=False)
uint32 = dtype._make("uint32", "UINT32", "uint32", signed=False)
uint64 = dtype._make("uint64", "UINT64", "uint64", signed=False)
float16 = half = dtype._make("float16", "FLOAT16", "float16")
float32 = dtype._make("float32", "FLOAT", "float32")
float64 = double = dtype._make("float64", "DOUBLE", "float64")
_bool = dtype._make("bool", "BOOL", "bool", signed=False)
# As in the package itself: `float` is 32 bits wide, whatever Python and NumPy call a float.
_BY_KEY.update({float: float32, int: int32, bool: _bool, "half": float16, "float": float32, "double": float64})
float = float32
bool = _bool
