"""The C side of the NumPy backend: one static function a kernel that takes a plan, data pointers and attributes."""

from __future__ import annotations

from opc.backends.base import BuildStep, Compile, Link, Script
from opc.emit.abi import attribute_fields, attributes_type, function_name, infer_name
from opc.ir.op import Family, Op
from opc.names import in_words

CDEF = """
typedef struct { int32_t device_type; int32_t device_id; } DLDevice;
typedef struct { uint8_t code; uint8_t bits; uint16_t lanes; } DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;
typedef struct { DLDataType dtype; int32_t ndim; int64_t shape[32]; } opc_tensor_type;

const char *opc_message(void);
int opc_get_threads(void);
void opc_set_threads(int count);
""".strip()
"""What Python needs to know of the runtime, as cffi reads it."""


def module_name(family: Family) -> str:
    """Return the name of the extension module: `_leaky_relu_numpy`."""
    return f"_{family.name}_numpy"


def library_path(family: Family) -> str:
    """Return the path of the built extension module, relative to the package directory.

    Its ending says that it keeps to the limited API of Python, as cffi's C does: one build serves every later version.
    """
    return f"build/{module_name(family)}.abi3.so"


def steps(family: Family, python_include: str, kernel_objects: tuple[str, ...], flags: tuple[str, ...]) -> tuple[BuildStep, ...]:
    """Return the build steps of the extension module: cffi writes C, which is compiled and linked with the kernels."""
    stem = f"build/{module_name(family)}"
    return (
        Script("numpy/bindings.py", f"{stem}.c"),
        Compile(f"{stem}.c", f"{stem}.o", (f"-I{python_include}",), language="c", glue=True),
        Link((f"{stem}.o", *kernel_objects), library_path(family), (*flags, "-pthread")),
    )


def prototypes(family: Family, op: Op) -> tuple[str, str]:
    """Return the declarations, without semicolon, of the functions that infer and run `op`."""
    attributes = _attributes(family)
    infer = ", ".join(["const DLTensor *opc_plan", "opc_tensor_type *opc_types", *attributes])
    data = [f"const void *{o.name}" for o in op.inputs] + [f"void *{o.name}" for o in op.outputs]
    call = ", ".join(["const DLTensor *opc_plan", *_distinct(data), *attributes])
    return f"int32_t infer_{in_words(op.name)}({infer})", f"int32_t call_{in_words(op.name)}({call})"


def declarations(family: Family) -> str:
    """Return the declarations of all functions of the family."""
    return "\n".join(_wrap(f"{text};") for op in family.ops for text in prototypes(family, op))


def definitions(family: Family, op: Op) -> str:
    """Return the C functions that infer and run `op`."""
    infer, call = prototypes(family, op)
    inputs, outputs = len(op.inputs), len(op.outputs)
    names = ", ".join(name.split("*")[-1] for name in _distinct([f"*{o.name}" for o in (*op.inputs, *op.outputs)]))
    bind = f"opc_bind(opc_plan, opc_data, opc_tensors, {inputs}, opc_inputs, {outputs}, opc_outputs)"
    lines = [
        f"static {infer} {{",
        *_struct(family),
        f"  const DLTensor *opc_inputs[{max(inputs, 1)}];",
        f"  opc_bind_inputs(opc_plan, {inputs}, opc_inputs);",
        "  const opc_context opc_lent = opc_host();",
        f"  return {infer_name(op)}(opc_inputs, &opc_given, opc_types, &opc_lent);",
        "}",
        "",
        f"static {call} {{",
        *_struct(family),
        f"  const void *const opc_data[] = {{{names}}};",
        f"  DLTensor opc_tensors[{inputs + outputs}];",
        f"  const DLTensor *opc_inputs[{max(inputs, 1)}];",
        f"  DLTensor *opc_outputs[{outputs}];",
        f"  if (!{bind}) return OPC_MISALIGNED;",
        "  const opc_context opc_lent = opc_host();",
        f"  return {function_name(op)}(opc_inputs, opc_outputs, &opc_given, &opc_lent);",
        "}",
    ]
    return "\n".join(_wrap(line) for line in lines)


def _struct(family: Family) -> list[str]:
    """Return the lines that make the attribute struct from the arguments."""
    fields = attribute_fields(family)
    if not fields:
        return [f"  const {attributes_type(family)} opc_given = {{0}};"]
    parts = []
    for f in fields:
        elements = ", ".join(f"{f.name}[{i}]" for i in range(f.count or 0))
        parts.append(f".{f.name} = {{{elements}}}" if elements else f".{f.name} = {f.name}")
    return [f"  const {attributes_type(family)} opc_given = {{{', '.join(parts)}}};"]


def _attributes(family: Family) -> list[str]:
    """Return the parameters of the attributes: lists of every length are pointers."""
    found = []
    for f in attribute_fields(family):
        space = "" if f.c_type.endswith("*") else " "
        found.append(f"{f.c_type}{space}{f.name}" if f.count is None else f"const {f.c_type}{space}*{f.name}")
    return found


def _distinct(parameters: list[str]) -> list[str]:
    """Return parameters with those that repeat a name renamed: a derived op's output may be called like an input."""
    seen: set[str] = set()
    found = []
    for parameter in parameters:
        name = parameter.split("*")[-1]
        found.append(f"{parameter.removesuffix(name)}opc_out_{name}" if name in seen else parameter)
        seen.add(name)
    return found


def _wrap(line: str, width: int = 110) -> str:
    """Return a C line broken at commas, continuation lines aligned after the first bracket."""
    if len(line) <= width:
        return line
    margin = " " * (max(line.find("("), line.find("{") if "= {" in line else 0) + 1)
    rows, row = [], ""
    for part in line.split(", "):
        piece = part if not row else f"{row}, {part}"
        if row and len(piece) > width - 1:
            rows.append(row + ",")
            piece = margin + part
        row = piece
    return "\n".join([*rows, row])
