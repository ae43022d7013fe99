"""The C++ source of a family's PyTorch library, over `runtime/include/opc/adapters/torch.h`."""

from __future__ import annotations

import textwrap

from opc.backends.attribute_code import read_attribute
from opc.backends.batching import needs_batch_axes
from opc.backends.derived import chooses_outputs
from opc.backends.templates import Templates
from opc.backends.torch.schema import namespace, out_schema, schema
from opc.emit.abi import attributes_type, function_name, header_path, infer_name
from opc.emit.cpp.text import string_literal
from opc.emit.kernel.native import header_path as native_header_path
from opc.emit.kernel.native import torch_function
from opc.ir.dtypes import DTYPES
from opc.ir.op import Family, Op
from opc.records import dataclass

SHIM_FUNCTIONS = (
    *(f"aoti_torch_dtype_{d.row.torch[0]}" for d in DTYPES if d.row.torch is not None),
    "aoti_torch_check",
    "aoti_torch_delete_tensor_object",
    "aoti_torch_device_type_cpu",
    "aoti_torch_device_type_cuda",
    "aoti_torch_dtype_complex128",
    "aoti_torch_dtype_complex64",
    "aoti_torch_empty_strided",
    "aoti_torch_get_device_index",
    "aoti_torch_get_device_type",
    "aoti_torch_get_dim",
    "aoti_torch_get_dtype",
    "aoti_torch_get_sizes",
    "aoti_torch_get_strides",
    "aoti_torch_is_defined",
    "aoti_torch_library_def",
    "aoti_torch_library_init_fragment",
    "aoti_torch_library_init_impl",
    "aoti_torch_new_uninitialized_tensor",
    "torch_delete_list",
    "torch_delete_string",
    "torch_get_const_data_ptr",
    "torch_get_mutable_data_ptr",
    "torch_library_impl",
    "torch_list_get_item",
    "torch_list_size",
    "torch_parallel_for",
    "torch_string_c_str",
    "torch_string_length",
)
"""The functions of libtorch that `opc/adapters/torch_shim.h` declares."""


templates = Templates("opc.backends.torch")


@dataclass(frozen=True, slots=True)
class _LibraryOperator:
    """One op of the family as the template sees it.

    `takes` are the calls that take its inputs, with a comment each; the schemas are string literals, in several lines; `on_gpu`
    are its name, and those of its inputs and outputs, as arguments.
    """

    name: str
    signature: str
    on_gpu: str
    schema: str
    out_schema: str
    inputs: int
    outputs: int
    takes: tuple[str, ...]
    mask: bool
    kernel: str
    infer: str


def library_source(family: Family) -> str:
    """Return the text of `torch/<op>_torch.cpp`."""
    batched = needs_batch_axes(family)
    return templates.render(
        "library.cpp.j2",
        family,
        header=native_header_path(family) if family.native_for("torch") else header_path(family),
        namespace=namespace(family),
        source_hash=family.source_hash,
        attributes_type=attributes_type(family),
        choices=[(a.name, ", ".join(map(string_literal, a.values))) for a in family.forward.attributes if a.values],
        attributes=[read_attribute(a, named=False) for a in family.forward.attributes],
        batched=batched,
        operators=[_operator(op, batched, _function(family, op)) for op in family.ops],
    )


def stub_source(family: Family) -> str:
    """Return the text of `torch/libtorch_stub.c`, which stands in for torch's own library when the op's is linked."""
    return templates.render("libtorch_stub.c.j2", family, functions=SHIM_FUNCTIONS)


def _literal(text: str) -> str:
    """Return a text as a C string literal of several lines; all its characters are plain ones."""
    lines = textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)
    return "\n     ".join(f'"{line}{" " if i < len(lines) - 1 else ""}"' for i, line in enumerate(lines))


def _function(family: Family, op: Op) -> str:
    """Return the name of the function that computes an op: its kernel, or its code on at::Tensor."""
    native = op is family.forward and family.native_for("torch") is not None
    return torch_function(op) if native else function_name(op)


def _operator(op: Op, batched: bool, function: str) -> _LibraryOperator:
    calls = ["call.optional_input();" if x.optional else "call.input();" for x in op.inputs]
    width = max(map(len, calls))
    operands = _literal(" ".join(o.name for o in (*op.inputs, *op.outputs)))
    inputs = ", ".join(f"{x.name}?" if x.optional else x.name for x in op.inputs)
    return _LibraryOperator(
        name=op.name,
        signature="\n// ".join(textwrap.wrap(f"{op.name}({inputs}) -> {', '.join(o.name for o in op.outputs)}", 107)),
        on_gpu=f'"{op.name}", {operands}' if len(op.name + operands) < 80 else f'"{op.name}",\n     {operands}',
        schema=_literal(schema(op, batched=batched)),
        out_schema=_literal(out_schema(op)),
        inputs=len(op.inputs),
        outputs=len(op.outputs),
        takes=tuple(f"{call:{width}}  // {x.name}" for call, x in zip(calls, op.inputs, strict=True)),
        mask=chooses_outputs(op),
        kernel=function,
        infer=infer_name(op),
    )
