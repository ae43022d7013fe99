"""How Paddle runs an operator inside TensorRT: by a plugin of its own, which asks for sizes and for combinations of formats.

That plugin takes four element types, calls of which the first input is float32 or float16, as are the outputs then, and no
operand that is left out. An operator without such a call is not run by it.
"""

from __future__ import annotations

from itertools import product

from opc.emit.cpp.text import string_literal
from opc.emit.shapes.builder import CPP, builder_calls
from opc.ir.dtypes import DType, resolve
from opc.ir.op import Op

FIRST = (DType.FLOAT32, DType.FLOAT16)
"""Element types of the first input, and of the outputs with it."""

TYPES = (*FIRST, DType.INT8, DType.INT32)
"""Element types of other inputs."""


def formats(op: Op) -> tuple[str, ...]:
    """Return the combinations of element types that Paddle's plugin can carry: `float32:LINEAR+float32:LINEAR`."""
    found: list[str] = []
    for chosen in product(*(t.dtypes for t in op.types)):
        binding = {t.name: d for t, d in zip(op.types, chosen)}
        inputs = [resolve(x.type, binding) for x in op.inputs]
        outputs = [resolve(o.type, binding) for o in op.outputs]
        if inputs and inputs[0] in FIRST and set(inputs) <= set(TYPES) and set(outputs) == {inputs[0]}:
            found.append("+".join(f"{d.value}:LINEAR" for d in (*inputs, *outputs)))
    return tuple(found)


def operands(op: Op) -> list[str]:
    """Return the inputs as C++ initialisers of `opc::trt::Operand`, of which the names are read."""
    return [f"{{{string_literal(x.name)}, {str(x.optional).lower()}, -1, false, 0}}," for x in op.inputs]


def size_calls(op: Op) -> list[str]:
    """Return the statements that make the outputs' sizes."""
    return [f"{call};" for call in builder_calls(op, CPP)]
