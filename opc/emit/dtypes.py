"""The table of dtypes as C and C++ know it.

`python -m opc.emit.dtypes` writes `runtime/include/opc/core/dtypes.h`, macros for the headers of the runtime; a test holds it
fresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from opc.ir.dtypes import DTYPES, Acc, DType, ElementType, TypeVar

HEADER = Path(__file__).parents[2] / "runtime" / "include" / "opc" / "core" / "dtypes.h"
"""Where the header is in opc's own sources."""

_NATIVE: Mapping[DType, str] = {DType.FLOAT32: "float", DType.FLOAT64: "double", DType.BOOL: "bool"}


def c_storage(dtype: DType) -> str:
    """Return the C++ type that an element is stored as inside a kernel."""
    return f"opc::{dtype}" if dtype.row.minifloat is not None else c_compute(dtype)


@cache
def c_compute(dtype: DType) -> str:
    """Return the C++ type that values of a dtype are computed in."""
    return _NATIVE.get(dtype.compute) or f"{dtype.compute}_t"


def type_variable(t: ElementType) -> TypeVar | None:
    """Return the type variable that `t` is or depends on, or None."""
    match t:
        case TypeVar():
            return t
        case Acc(of=TypeVar() as variable):
            return variable
        case _:
            return None


def header() -> str:
    """Return the text of `opc/core/dtypes.h`."""
    minifloats = [(d, d.row.minifloat) for d in DTYPES if d.row.minifloat is not None]
    lists = (
        _list(
            "Every dtype, in the order by which calls number them: X(name, code of DLPack, bits, computed in, accumulated in).",
            "DTYPES",
            ((d, d.row.dlpack, d.bits, d.compute, d.accumulator) for d in DTYPES),
        ),
        _list(
            "Floating types that are computed in float32: X(name, stored as, bits of the fraction, bias, top).",
            "MINIFLOATS",
            ((d, f"uint{d.bits}_t", m.fraction, m.bias, m.top) for d, m in minifloats),
        ),
        _list(
            "Types that values are computed in: X(name, C++ type).",
            "COMPUTED_DTYPES",
            ((d, c_compute(d)) for d in DTYPES if d.compute is d),
        ),
        _list(
            "ONNX's, of a byte or more: X(name, number, name as enumerators have it).",
            "ONNX_DTYPES",
            ((d, d.row.onnx[1], d.value.capitalize()) for d in DTYPES if d.row.onnx and not d.is_small),
        ),
        _list("PyTorch's: X(name, name in C, name in C++).", "TORCH_DTYPES", ((d, *d.row.torch) for d in DTYPES if d.row.torch)),
        _list("Paddle's: X(name, name there).", "PADDLE_DTYPES", ((d, d.row.paddle) for d in DTYPES if d.row.paddle)),
        _list(
            "MindSpore's: X(name, number).",
            "MINDSPORE_DTYPES",
            ((d, d.row.mindspore) for d in DTYPES if d.row.mindspore is not None),
        ),
        _list("RKNN's: X(name, number).", "RKNN_DTYPES", ((d, d.row.rknn) for d in DTYPES if d.row.rknn is not None)),
        _list(
            "Graphcore's: X(name, name in PopART, name in Poplar).",
            "POPART_DTYPES",
            ((d, *d.row.popart) for d in DTYPES if d.row.popart),
        ),
        _list(
            "TensorRT's: X(name, number).",
            "TENSORRT_DTYPES",
            ((d, d.row.tensorrt) for d in DTYPES if d.row.tensorrt is not None),
        ),
        _list("XLA's: X(name, number).", "XLA_DTYPES", ((d, d.row.xla) for d in DTYPES if d.row.xla is not None)),
    )
    return "\n".join(
        (
            "/* The table of dtypes, generated from opc/ir/dtypes.py by `python -m opc.emit.dtypes`; edits are lost. */",
            "#ifndef OPC_CORE_DTYPES_H\n#define OPC_CORE_DTYPES_H\n",
            *lists,
            "#endif  // OPC_CORE_DTYPES_H\n",
        )
    )


def _list(about: str, name: str, rows: Iterable[tuple[object, ...]]) -> str:
    """Return a macro that applies another one to rows."""
    lines = [f"  X({', '.join(map(str, row))})" for row in rows]
    head = f"#define OPC_{name}(X)"
    width = max(len(line) for line in (head, *lines)) + 1
    text = "\n".join([*(f"{line:<{width}}\\" for line in (head, *lines[:-1])), lines[-1]])
    return f"/* {about} */\n{text}\n"


if __name__ == "__main__":
    HEADER.write_text(header(), encoding="utf-8")
