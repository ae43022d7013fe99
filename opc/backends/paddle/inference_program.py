"""A program in C++ that runs a saved model of an op in Paddle Inference, and what builds and runs it: `paddle_inference/`."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Mapping

from opc.backends.example_text import bound, entry, number
from opc.backends.paddle.library import templates
from opc.emit.dtypes import c_storage
from opc.emit.onnx.types import used_variables
from opc.emit.python.text import Bracket, quoted
from opc.ir.dtypes import DType, resolve
from opc.ir.op import Example, Family, Operand
from opc.records import dataclass

CARRIED = frozenset((DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64, DType.INT8, DType.UINT8, DType.BOOL))
"""The dtypes that a tensor of Paddle Inference is copied from and to as C++'s own."""

FILES = {
    "CMakeLists.txt": "inference_CMakeLists.txt.j2",
    "compile.sh": "inference_compile.sh.j2",
    "run.sh": "inference_run.sh.j2",
    "{op}_test.cc": "inference_test.cc.j2",
    "{op}_model.py": "inference_model.py.j2",
}


@dataclass(frozen=True, slots=True)
class _Given:
    """An operand of the example as the template sees it."""

    name: str
    type: str
    sizes: str
    values: str
    place: int
    """Which of the model's outputs it is."""

    @property
    def variable(self) -> str:
        """The name of its constant."""
        return f"of_{self.name}"


def inference_files(family: Family) -> dict[str, str]:
    """Return the files of the program: none for a spec without an example of types that C++ has, nor for native code."""
    binding = next((b for e in family.examples if (b := _binding(family)) is not None), None)
    if binding is None or family.native_for("cpp") is not None:
        return {}
    op, example = family.forward, family.examples[0]
    given = dict(example.values)
    present = [x for x in op.inputs if given.get(x.name) is not None]
    inputs = [_operand(x, given[x.name], binding, n) for n, x in enumerate(present)]
    outputs = [_operand(o, given[o.name], binding, n) for n, o in enumerate(op.outputs) if o.name in given]
    values = {
        "inputs": inputs,
        "outputs": outputs,
        "operands": _operands(present, example, binding),
        "attributes": Bracket(
            "ATTRIBUTES = {", [entry(a.name, number(given[a.name], "math")) for a in op.attributes if a.name in given], "}"
        ).render(),
    }
    return {
        f"paddle_inference/{path.format(op=family.name)}": templates.render(template, family, **values)
        for path, template in FILES.items()
    }


def _binding(family: Family) -> dict[str, DType] | None:
    """Return what type variables stand for in the example, None where an operand's dtype is none that is carried."""
    op = family.forward
    for dtype in (DType.FLOAT32, DType.FLOAT64, DType.INT64, DType.INT32):
        binding = bound(used_variables(op), dtype)
        if CARRIED.issuperset(resolve(o.type, binding) for o in (*op.inputs, *op.outputs)):
            return binding
    return None


def _shape(value: object) -> tuple[int, ...]:
    """Return the sizes of nested lists of numbers."""
    return (len(value), *(_shape(value[0]) if value else ())) if isinstance(value, list | tuple) else ()


def _numbers(value: object, dtype: DType) -> Iterator[float | int]:
    """Yield the numbers of nested lists in row-major order, as a dtype has them."""
    if isinstance(value, list | tuple):
        for v in value:
            yield from _numbers(v, dtype)
    elif not isinstance(value, int | float):
        raise TypeError(f"an example holds {value!r}")
    elif dtype.is_floating:
        yield ctypes.c_float(value).value if dtype is DType.FLOAT32 else float(value)
    else:
        yield int(value)


def _operand(o: Operand, value: object, binding: Mapping[str, DType], place: int) -> _Given:
    dtype = resolve(o.type, binding)
    values = ", ".join(map(_literal, _numbers(value, dtype)))
    return _Given(o.name, c_storage(dtype), f"{{{', '.join(map(str, _shape(value)))}}}", f"{{{values}}}", place)


def _literal(value: float) -> str:
    if not math.isfinite(value):
        return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
    return repr(value)


def _operands(present: list[Operand], example: Example, binding: Mapping[str, DType]) -> str:
    """Return the assignment of INPUTS: the rank and the dtype of each."""
    values = dict(example.values)
    rows = [f"{quoted(x.name)}: ({len(_shape(values[x.name]))}, {quoted(resolve(x.type, binding).value)})" for x in present]
    return Bracket("INPUTS = {", rows, "}").render()
