"""Element types of the IR: concrete dtypes, type variables, accumulator types, and the weak types of literals.

An element type says how a tensor is stored. The value type of an expression says how it is computed: floating types of fewer than
32 bits are computed in float32, so a read of `x: T` has the type variable T again, and `compute` of its binding tells the C type.

`DType` is the one table of dtypes: analysis, kernels, adapters and proof read its rows, the C++ ones in the form of
`runtime/include/opc/core/dtypes.h`, which `python -m opc.emit.dtypes` writes. All layers may import this module,
which rests on `opc.ir.node` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from math import ldexp
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from opc.records import dataclass

if TYPE_CHECKING:
    import numpy as np

from opc.ir.node import interned, memoised

INT64_MIN = -(2**63)
"""The least whole number. C++ and NumPy have no literal for it: its digits without the sign are too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minifloat:
    """A binary floating format of a sign, an exponent and a fraction, computed in float32, which has all of its values.

    Attributes:
        fraction: Bits of the fraction.
        bias: What is taken off the exponent's field; with this field 0 numbers are denormal.
        top: What the greatest encodings stand for. "ieee": infinity and, above it, NaN. "nan": the greatest is NaN, and there is
            no infinity (formats called fn). "finite": all are numbers, and NaN is what would be -0 (fnuz).

    Sources: IEEE 754-2019, section 3.4; Micikevicius et al., FP8 Formats for Deep Learning (2022), table 1; Noune et al., 8-bit
    Numerical Formats for Deep Neural Networks (2022) for fnuz.
    """

    fraction: int
    bias: int
    top: Literal["ieee", "nan", "finite"]

    def overflow(self, bits: int) -> float:
        """Return the least float32 number that is rounded beyond the greatest of the format, which has so many bits.

        It is half a step from the greatest or, where that one is even, which takes ties, the number after.
        """
        field = (1 << bits - 1 - self.fraction) - 1
        exponent = field - self.bias - (self.top == "ieee")
        greatest = (1 << self.fraction + 1) - 1 - (self.top == "nan")
        even = ldexp(1, self.fraction - 23) if self.top == "nan" else 0
        return ldexp(greatest + 0.5 + even, exponent - self.fraction)


@dataclass(frozen=True, slots=True, kw_only=True)
class DTypeRow:
    """What is known of a dtype; the only place that knows it.

    Attributes:
        kind: "float", "int", "uint" or "bool".
        bits: Size of one element as stored.
        dlpack: `DLDataType.code`; the bits are those above, and there is one lane.
        sets: The named sets of dtypes it is part of.
        minifloat: Of a floating type that is computed in float32, how its bits are to be read.
        numpy: The package that has the type by this name, "numpy" or "ml_dtypes".
        onnx: The name and the number in `TensorProto.DataType`.
        torch: The name in `torch` and in libtorch's C functions `aoti_torch_dtype_...`, and that in `c10::ScalarType`.
        paddle: The name in Paddle's enumeration `phi::DataType`.
        mindspore: The number in MindSpore's enumeration `TypeId`.
        paddle_graphs: Whether Paddle's graphs have inputs of it, and its autograd differentiates them where they are floating.
        rknn: The number in RKNN's enumeration `rknn_tensor_type`.
        rknn_models: Whether the models of RKNN's toolkit hold tensors of it.
        popart: The names in Graphcore's `popart::DataType` and among the constants of `poplar::Type`.
        tensorrt: The number in `nvinfer1::DataType`, of types that tensors between layers have.
        xla: The number in XLA's `PrimitiveType`, by which its foreign functions know JAX's arrays.

    A framework that has no such type, or no tensors of it in a CPU's memory, has None.
    """

    kind: Literal["float", "int", "uint", "bool"]
    bits: int
    dlpack: int
    sets: tuple[str, ...] = ()
    minifloat: Minifloat | None = None
    numpy: Literal["numpy", "ml_dtypes"] = "numpy"
    onnx: tuple[str, int] | None = None
    torch: tuple[str, str] | None = None
    paddle: str | None = None
    mindspore: int | None = None
    paddle_graphs: bool = False
    rknn: int | None = None
    rknn_models: bool = False
    popart: tuple[str, str] | None = None
    tensorrt: int | None = None
    xla: int | None = None


class DType(Enum):
    """A concrete element type: its name in the spec language, and its row.

    A new dtype is a new line, behind those that are there: calls carry dtypes by position.
    """

    FLOAT16 = "float16", DTypeRow(
        kind="float", bits=16, dlpack=2, sets=("floating", "any"), minifloat=Minifloat(fraction=10, bias=15, top="ieee"),
        onnx=("FLOAT16", 10), torch=("float16", "Half"), paddle="FLOAT16", paddle_graphs=True,
        mindspore=42, rknn=1, rknn_models=True, popart=("FLOAT16", "HALF"), tensorrt=1, xla=10,
    )  # fmt: skip
    BFLOAT16 = "bfloat16", DTypeRow(
        kind="float", bits=16, dlpack=4, sets=("floating", "any"), minifloat=Minifloat(fraction=7, bias=127, top="ieee"),
        numpy="ml_dtypes", onnx=("BFLOAT16", 16), torch=("bfloat16", "BFloat16"), paddle="BFLOAT16", paddle_graphs=True,
        mindspore=45, tensorrt=7, xla=16,
    )  # fmt: skip
    FLOAT32 = "float32", DTypeRow(
        kind="float", bits=32, dlpack=2, sets=("floating", "any"),
        onnx=("FLOAT", 1), torch=("float32", "Float"), paddle="FLOAT32", paddle_graphs=True,
        mindspore=43, rknn=0, rknn_models=True, popart=("FLOAT", "FLOAT"), tensorrt=0, xla=11,
    )  # fmt: skip
    FLOAT64 = "float64", DTypeRow(
        kind="float", bits=64, dlpack=2, sets=("floating", "any"),
        onnx=("DOUBLE", 11), torch=("float64", "Double"), paddle="FLOAT64", paddle_graphs=True,
        mindspore=44, xla=12,
    )  # fmt: skip
    INT8 = "int8", DTypeRow(
        kind="int", bits=8, dlpack=0, sets=("integer", "any"),
        onnx=("INT8", 3), torch=("int8", "Char"), paddle="INT8", paddle_graphs=True,
        mindspore=32, rknn=2, rknn_models=True, popart=("INT8", "SIGNED_CHAR"), tensorrt=2, xla=2,
    )  # fmt: skip
    INT16 = "int16", DTypeRow(
        kind="int", bits=16, dlpack=0, sets=("integer", "any"),
        onnx=("INT16", 5), torch=("int16", "Short"), paddle="INT16", paddle_graphs=True,
        mindspore=33, rknn=4, popart=("INT16", "SHORT"), xla=3,
    )  # fmt: skip
    INT32 = "int32", DTypeRow(
        kind="int", bits=32, dlpack=0, sets=("integer", "any"),
        onnx=("INT32", 6), torch=("int32", "Int"), paddle="INT32", paddle_graphs=True,
        mindspore=34, rknn=6, rknn_models=True, popart=("INT32", "INT"), tensorrt=3, xla=4,
    )  # fmt: skip
    INT64 = "int64", DTypeRow(
        kind="int", bits=64, dlpack=0, sets=("integer", "any"),
        onnx=("INT64", 7), torch=("int64", "Long"), paddle="INT64", paddle_graphs=True,
        mindspore=35, rknn=8, rknn_models=True, tensorrt=8, xla=5,
    )  # fmt: skip
    UINT8 = "uint8", DTypeRow(
        kind="uint", bits=8, dlpack=1, sets=("integer", "any", "unsigned"),
        onnx=("UINT8", 2), torch=("uint8", "Byte"), paddle="UINT8", paddle_graphs=True,
        mindspore=37, rknn=3, rknn_models=True, popart=("UINT8", "UNSIGNED_CHAR"), xla=6,
    )  # fmt: skip
    BOOL = "bool", DTypeRow(
        kind="bool", bits=8, dlpack=6, sets=("any",),
        onnx=("BOOL", 9), torch=("bool", "Bool"), paddle="BOOL", paddle_graphs=True,
        mindspore=30, rknn=9, rknn_models=True, popart=("BOOL", "BOOL"), xla=1,
    )  # fmt: skip
    UINT16 = "uint16", DTypeRow(
        kind="uint", bits=16, dlpack=1, sets=("unsigned",),
        onnx=("UINT16", 4), torch=("uint16", "UInt16"), mindspore=38, rknn=5, popart=("UINT16", "UNSIGNED_SHORT"), xla=7,
    )  # fmt: skip
    UINT32 = "uint32", DTypeRow(
        kind="uint", bits=32, dlpack=1, sets=("unsigned",),
        onnx=("UINT32", 12), torch=("uint32", "UInt32"), mindspore=39, rknn=7, popart=("UINT32", "UNSIGNED_INT"), xla=8,
    )  # fmt: skip
    UINT64 = "uint64", DTypeRow(
        kind="uint", bits=64, dlpack=1, sets=("unsigned",),
        onnx=("UINT64", 13), torch=("uint64", "UInt64"), mindspore=40, xla=9,
    )  # fmt: skip
    FLOAT8_E4M3FN = "float8_e4m3fn", DTypeRow(
        kind="float", bits=8, dlpack=10, sets=("float8",), minifloat=Minifloat(fraction=3, bias=7, top="nan"),
        numpy="ml_dtypes", onnx=("FLOAT8E4M3FN", 17), torch=("float8_e4m3fn", "Float8_e4m3fn"), paddle="FLOAT8_E4M3FN",
        tensorrt=6, xla=20,
    )  # fmt: skip
    FLOAT8_E5M2 = "float8_e5m2", DTypeRow(
        kind="float", bits=8, dlpack=12, sets=("float8",), minifloat=Minifloat(fraction=2, bias=15, top="ieee"),
        numpy="ml_dtypes", onnx=("FLOAT8E5M2", 19), torch=("float8_e5m2", "Float8_e5m2"), paddle="FLOAT8_E5M2", xla=19,
    )  # fmt: skip
    FLOAT8_E4M3FNUZ = "float8_e4m3fnuz", DTypeRow(
        kind="float", bits=8, dlpack=11, sets=("float8",), minifloat=Minifloat(fraction=3, bias=8, top="finite"),
        numpy="ml_dtypes", onnx=("FLOAT8E4M3FNUZ", 18), torch=("float8_e4m3fnuz", "Float8_e4m3fnuz"), xla=25,
    )  # fmt: skip
    FLOAT8_E5M2FNUZ = "float8_e5m2fnuz", DTypeRow(
        kind="float", bits=8, dlpack=13, sets=("float8",), minifloat=Minifloat(fraction=2, bias=16, top="finite"),
        numpy="ml_dtypes", onnx=("FLOAT8E5M2FNUZ", 20), torch=("float8_e5m2fnuz", "Float8_e5m2fnuz"), xla=24,
    )  # fmt: skip
    INT4 = "int4", DTypeRow(
        kind="int", bits=4, dlpack=0, sets=("small",), numpy="ml_dtypes", onnx=("INT4", 22),
    )  # fmt: skip
    UINT4 = "uint4", DTypeRow(
        kind="uint", bits=4, dlpack=1, sets=("small",), numpy="ml_dtypes", onnx=("UINT4", 21),
    )  # fmt: skip
    INT2 = "int2", DTypeRow(
        kind="int", bits=2, dlpack=0, sets=("small",), numpy="ml_dtypes", onnx=("INT2", 26),
    )  # fmt: skip
    UINT2 = "uint2", DTypeRow(
        kind="uint", bits=2, dlpack=1, sets=("small",), numpy="ml_dtypes", onnx=("UINT2", 25),
    )  # fmt: skip

    row: DTypeRow

    def __new__(cls, name: object, row: DTypeRow | None = None) -> DType:
        """Make a member of a line, whose value is its name. Type checkers take a look-up, `DType(name)`, for a call of this."""
        member = object.__new__(cls)
        assert row is not None, "a line is a name and a row"
        member._value_, member.row = name, row
        return member

    @property
    def value(self) -> str:
        """The name."""
        name: str = self._value_
        return name

    # Members are singletons: the hash of the object is found without a call of Python's.
    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.value

    @property
    def is_floating(self) -> bool:
        """Whether this is a floating type."""
        return self.row.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether this is an integer type; bool is not one."""
        return self.row.kind in ("int", "uint")

    @property
    def is_whole(self) -> bool:
        """Whether int64 has every value of this type: one of an integer type other than uint64, or bool."""
        return not self.is_floating and self.most < 2**63

    @property
    def bits(self) -> int:
        """Size of one element in bits as stored."""
        return self.row.bits

    @property
    def itemsize(self) -> int:
        """Size of one element in bytes as stored: one of fewer than 8 bits has a byte of its own."""
        return max(self.bits // 8, 1)

    @property
    def is_small(self) -> bool:
        """Whether this is an integer type of fewer than 8 bits: kernels hold what they read and write of it in a wider type."""
        return self.is_integer and self.bits < 8

    @property
    def least(self) -> int:
        """The least value of an integer type or bool."""
        return -(1 << self.bits - 1) if self.row.kind == "int" else 0

    @property
    def most(self) -> int:
        """The greatest value of an integer type or bool."""
        return {"int": (1 << self.bits - 1) - 1, "uint": (1 << self.bits) - 1, "bool": 1}[self.row.kind]

    @property
    def compute(self) -> DType:
        """The type values of this dtype are computed in: float32 below 32 bits of floating types, int8 below 8, else itself."""
        if self.is_small:
            return DType.INT8
        return DType.FLOAT32 if self.is_floating and self.bits < 32 else self

    def holds(self, value: int) -> bool:
        """Whether this is an integer type or bool that has the value, or a floating one, which rounds it."""
        return self.is_floating or self.least <= value <= self.most

    @property
    def accumulator(self) -> DType:
        """The type `acc(T)` stands for: float32 up to float32, float64; of integers and bool int64, of uint64 itself."""
        if self.is_floating:
            return self.compute
        return DType.INT64 if self.is_whole else self


DTYPES: tuple[DType, ...] = tuple(DType)
"""Every dtype, in the order by which calls number them."""


def _type_sets() -> dict[str, tuple[DType, ...]]:
    names = dict.fromkeys(name for d in DTYPES for name in d.row.sets)
    return {name: tuple(d for d in DTYPES if name in d.row.sets) for name in names}


TYPE_SETS: Mapping[str, tuple[DType, ...]] = _type_sets()
"""The sets of dtypes that a spec may name."""


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class TypeVar:
    """A type variable of the spec's `types`, over the dtypes it may be bound to."""

    name: str
    dtypes: tuple[DType, ...]

    def __str__(self) -> str:
        return self.name


@interned
@dataclass(frozen=True, slots=True, weakref_slot=True)
class Acc:
    """`acc(T)`: the accumulator type of a type variable or dtype."""

    of: TypeVar | DType

    def __str__(self) -> str:
        return f"acc({self.of})"


class Weak(Enum):
    """The type of a literal, dimension, index or attribute: it takes the type of what it is combined with."""

    INT = "weak int"
    FLOAT = "weak float"

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return self.value


ElementType: TypeAlias = DType | TypeVar | Acc
ValueType: TypeAlias = DType | TypeVar | Acc | Weak
Binding: TypeAlias = Mapping[str, DType]
"""Type variable name to the dtype it is bound to."""


def numpy_dtype(dtype: DType) -> np.dtype[Any]:
    """Return NumPy's dtype; those that NumPy lacks are of ml_dtypes."""
    import numpy as np

    kind: Any = dtype.value
    if dtype.row.numpy == "ml_dtypes":
        import ml_dtypes

        kind = getattr(ml_dtypes, dtype.value)
    found: np.dtype[Any] = np.dtype(kind)
    return found


@memoised
def candidates(t: ElementType) -> tuple[DType, ...]:
    """Return every dtype `t` may stand for, in the order of the spec."""
    match t:
        case DType():
            return (t,)
        case TypeVar():
            return t.dtypes
        case Acc():
            return tuple(dict.fromkeys(d.accumulator for d in candidates(t.of)))


def half_types(t: ValueType) -> tuple[DType, ...]:
    """Return the floating dtypes of 16 bits that `t` may stand for."""
    return () if isinstance(t, Weak) else tuple(d for d in candidates(t) if d.row.minifloat is not None and d.row.bits == 16)


def resolve(t: ElementType, binding: Binding) -> DType:
    """Return the dtype `t` is stored as under `binding`.

    Raises:
        KeyError: when a type variable is not bound.
    """
    match t:
        case DType():
            return t
        case TypeVar():
            return binding[t.name]
        case Acc():
            return resolve(t.of, binding).accumulator


def compute_dtype(t: ValueType, binding: Binding) -> DType:
    """Return the dtype values of type `t` are computed in under `binding`; weak types stand for int64 and float64."""
    match t:
        case Weak.INT:
            return DType.INT64
        case Weak.FLOAT:
            return DType.FLOAT64
        case _:
            return resolve(t, binding).compute


@memoised
def is_floating(t: ValueType) -> bool:
    """Whether every dtype `t` may stand for is floating."""
    return t is Weak.FLOAT or (not isinstance(t, Weak) and all(d.is_floating for d in candidates(t)))


@memoised
def is_integer(t: ValueType) -> bool:
    """Whether every dtype `t` may stand for is an integer type."""
    return t is Weak.INT or (not isinstance(t, Weak) and all(d.is_integer for d in candidates(t)))


def is_whole(t: ValueType) -> bool:
    """Whether every dtype `t` may stand for is an integer type other than uint64: int64 has all of its values."""
    return is_integer(t) and (isinstance(t, Weak) or all(d.is_whole for d in candidates(t)))


def accumulated(t: ElementType) -> ElementType:
    """Return `acc(t)`, as the dtype it stands for where that is one whole type."""
    found = candidates(Acc(t) if not isinstance(t, Acc) else t)
    return found[0] if len(found) == 1 and not found[0].is_floating else Acc(t) if not isinstance(t, Acc) else t


def is_bool(t: ValueType) -> bool:
    """Whether `t` is bool."""
    return t is DType.BOOL


ELSEWHERE = {
    **dict.fromkeys(("float", "real", "fp", "number"), "floating is all floating types, float32 one of them"),
    **dict.fromkeys(("int", "integers", "long"), "integer is all integer types, int64 one of them"),
    "double": "write float64",
    "half": "write float16",
    "single": "write float32",
    "short": "write int16",
    "char": "write int8",
    "byte": "write uint8",
    "boolean": "write bool",
    "uint": "write uint32 or uint64",
}
"""What other languages call dtypes and sets of them, with what is meant here."""
