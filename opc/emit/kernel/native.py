"""Native code of a spec as C++ sources: the author's lines in a function that has everything by its name.

Each line stands in the column it has in the spec, and `#line` says which line that is, so that a compiler's messages point into
the spec. What the code is called with is checked before: `opc.emit.kernel.entry` writes `<op>_prepare`, which every function here
begins with.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence

from opc.analysis.shapes.plan import plan
from opc.emit.abi import attributes_type, c_type, kernel_prototype
from opc.emit.cpp.layout import wrap
from opc.emit.cpp.text import comment, string_literal
from opc.emit.dtypes import c_storage
from opc.emit.shapes.cpp import axis_member, dim_member, type_member
from opc.ir.dtypes import Acc, DType, ElementType
from opc.ir.op import Attribute, AttributeKind, CodeLine, Family, Native, Op

_PARAMETERS = "const DLTensor *const *inputs, DLTensor *const *outputs"


def header_path(family: Family) -> str:
    """Return the path of the header that ties native code to the kernel, relative to the package."""
    return f"kernel/{family.name}_native.h"


def source_path(family: Family, target: str) -> str:
    """Return the path of the source with the native code for a compiler, relative to the package."""
    return f"{_FOLDERS[target]}/{family.name}_native.{'cu' if target == 'cuda' else 'cpp'}"


_FOLDERS = {"cpp": "kernel", "torch": "torch", "cuda": "cuda"}


def call_struct(op: Op) -> str:
    """Return the name of the struct that passes what a call binds to native code."""
    return f"{op.name}_native_call"


def prepare_prototype(family: Family, op: Op) -> str:
    """Return the prototype of the function that checks a call and fills the struct, without the semicolon."""
    second = f"const {attributes_type(family)} *attributes, {call_struct(op)} &bound, const opc_context *context"
    return f"int32_t {op.name}_prepare({_PARAMETERS}, {second})"


def native_prototype(family: Family, op: Op) -> str:
    """Return the prototype of the function with the C++ code, which is called after `<op>_prepare`."""
    second = f"const {attributes_type(family)} *attributes, const {call_struct(op)} &call, const opc_context *context"
    return f"int32_t {op.name}_native({_PARAMETERS}, {second})"


def torch_function(op: Op) -> str:
    """Return the name of the function with the code on at::Tensor; it takes what a kernel takes."""
    return f"opc_{op.name}_torch"


def torch_prototype(family: Family, op: Op) -> str:
    """Return the prototype of `torch_function`, without the semicolon."""
    return kernel_prototype(family, op).replace(f"opc_{op.name}(", f"{torch_function(op)}(", 1)


def native_header(family: Family) -> str:
    """Return the header that declares the struct and the functions."""
    op = family.forward
    guard = f"OPC_KERNEL_{family.name.upper()}_NATIVE_H"
    members = [f"  int32_t {type_member(t.name)}; /* an opc::dtype */" for t in op.types]
    members += [f"  int64_t {dim_member(d)};" for d in plan(op).dims]
    members += [f"  int64_t {axis_member(a.name)};" for a in op.attributes if a.kind is AttributeKind.AXIS]
    members.append("  bool nothing; /* no output has an element */")
    prepare = comment("Checks a call, and binds its types and sizes where it returns OPC_OK.")
    own = comment("The native code, for a call that was checked and has something to compute.")
    functions = [f"{prepare}\n{_wrapped(prepare_prototype(family, op))};"]
    if family.native_for("cpp") is not None:
        functions.append(f"{own}\n{_wrapped(native_prototype(family, op))};")
    if family.native_for("torch") is not None:
        about = comment("The op by its code on at::Tensor, for the torch backend; otherwise as its kernel.")
        functions.append(f"{about}\n{torch_prototype(family, op)};")
    return (
        f"{_banner(family)}\n#ifndef {guard}\n#define {guard}\n\n"
        f'#include "{family.name}.h"\n\n/* What a call of {op.name} binds. */\nstruct {call_struct(op)} {{\n'
        + "\n".join(members)
        + "\n};\n\n"
        + "\n\n".join(functions)
        + f"\n\n#endif  // {guard}\n"
    )


def native_files(family: Family, target: str) -> dict[str, str]:
    """Return the source with the native code for a compiler by its path; empty where the spec has none."""
    native = family.native_for(target)
    if native is None:
        return {}
    writer = {"cpp": _cpp, "torch": _torch, "cuda": _cuda}[target]
    path = source_path(family, target)
    return {path: _numbered(list(writer(family, native)), path.rsplit("/", 1)[1])}


def _cpp(family: Family, native: Native) -> Iterator[str]:
    op = family.forward
    yield from (
        _banner(family),
        f'#include "{family.name}_native.h"',
        "",
        '#include "opc/adapters/native.h"',
        *_includes(native),
        "",
    )
    yield from _function(family, native, _parameters(op), ["opc::host opc_host"])
    yield from _pieces(f"{native_prototype(family, op)} {{")
    if not op.attributes:
        yield "  static_cast<void>(attributes);"
    yield f"  return opc::guarded({string_literal(op.name)}, context, [&] {{"
    yield from _dispatch(op, [*_values(op), "opc::host(context)"])
    yield from ("  });", "}")


def _torch(family: Family, native: Native) -> Iterator[str]:
    op = family.forward
    yield from (
        _banner(family),
        '#include "opc/adapters/native_torch.h"',
        *_includes(native),
        "",
        f'#include "../{header_path(family)}"',
        "",
    )
    tensors = [f"const at::Tensor &{x.name}" for x in op.inputs] + [f"at::Tensor {y.name}" for y in op.outputs]
    types = [f"at::ScalarType {t.name}" for t in op.types]
    yield from _function(family, native, [*tensors, *types, *_scalars(op)], [])
    yield from _pieces(f"{torch_prototype(family, op)} {{")
    yield f"  {call_struct(op)} call;"
    yield f"  const int32_t code = {op.name}_prepare(inputs, outputs, attributes, call, context);"
    yield "  if (code != OPC_OK || call.nothing) return code;"
    yield f"  return opc::guarded_torch({string_literal(op.name)}, context, [&] {{"
    given = [f"opc::tensor_of({where})" for where in _places(op)]
    given += [f"opc::scalar_type(static_cast<opc::dtype>(call.{type_member(t.name)}))" for t in op.types]
    yield from _pieces(f"    compute({', '.join([*given, *_values(op)])});")
    yield from ("  });", "}")


def _cuda(family: Family, native: Native) -> Iterator[str]:
    """Yield the CUDA source: a host function that launches kernels of its own, on views of device memory."""
    op = family.forward
    about = "No backend of this version of opc compiles this file; it is kept for those that will."
    yield from (_banner(family), comment(about), "#include <cuda_runtime.h>", "", '#include "opc/adapters/native.h"')
    yield from (*_includes(native), "")
    yield from _function(family, native, _parameters(op), ["cudaStream_t opc_stream"])


def _function(family: Family, native: Native, parameters: Sequence[str], more: Sequence[str]) -> Iterator[str]:
    """Yield the author's lines: declarations, then the statements as the function `compute`."""
    op = family.forward
    yield "namespace {"
    yield ""
    if native.declarations:
        yield from _placed(native.declarations, family)
        yield ""
    if op.types and native.target != "torch":
        yield f"template <{', '.join(f'typename {t.name}' for t in op.types)}>"
    # One parameter a line: none may be used, and the author need not use all.
    yield "void compute("
    every = [*parameters, *more]
    yield from (f"    [[maybe_unused]] {p}{',' if n < len(every) - 1 else ') {'}" for n, p in enumerate(every))
    yield from _placed(native.code, family)
    yield "}"
    yield ""
    yield "}  // namespace"
    yield ""


def _placed(lines: Iterable[CodeLine], family: Family) -> Iterator[str]:
    """Yield lines in their columns, each behind a `#line` where it does not follow the one before."""
    expected = -1
    for line in lines:
        if line.text and line.line != expected:
            yield f"#line {line.line} {string_literal(family.source_name)}"
            expected = line.line
        yield f"{' ' * (line.column - 1)}{line.text}" if line.text else ""
        expected += 1
    yield _OWN_LINE


_OWN_LINE = "#line OWN"
"""Stands where the file's own lines go on; `_numbered` puts number and name in."""


def _numbered(lines: list[str], name: str) -> str:
    text = "\n".join(lines).split("\n")
    return "\n".join(f"#line {n + 2} {string_literal(name)}" if t == _OWN_LINE else t for n, t in enumerate(text)) + "\n"


def _dispatch(op: Op, arguments: Sequence[str]) -> Iterator[str]:
    """Yield the call of `compute` for each combination of dtypes."""
    choices = list(itertools.product(*(t.dtypes for t in op.types)))
    for n, dtypes in enumerate(choices):
        names = {t.name: _storage(d) for t, d in zip(op.types, dtypes)}
        views = [f"opc::view<{qualifier}{_element(t, names)}>({where})" for (qualifier, t), where in zip(_types(op), _places(op))]
        chosen = f"<{', '.join(names.values())}>" if names else ""
        call = f"compute{chosen}({', '.join([*views, *arguments])});"
        if len(choices) == 1:
            yield from _pieces(f"    {call}")
            continue
        is_it = " && ".join(f"call.{type_member(t.name)} == opc::dtype_{d}" for t, d in zip(op.types, dtypes))
        last = n == len(choices) - 1
        yield from _pieces(f"    {'} else ' if n else ''}{'{' if last else f'if ({is_it}) {{'}")
        yield from _pieces(f"      {call}")
    if len(choices) > 1:
        yield "    }"


def _types(op: Op) -> list[tuple[str, ElementType]]:
    return [("const ", x.type) for x in op.inputs] + [("", y.type) for y in op.outputs]


def _places(op: Op) -> list[str]:
    return [f"inputs[{n}]" for n in range(len(op.inputs))] + [f"outputs[{n}]" for n in range(len(op.outputs))]


def _storage(dtype: DType) -> str:
    """Return the C++ type of an element in native code, where minifloats convert to and from float."""
    return f"opc::minifloat<{c_storage(dtype)}>" if dtype.row.minifloat is not None else c_storage(dtype)


def _element(t: ElementType, names: dict[str, str] | None = None) -> str:
    """Return the C++ type of an element; type variables by the names given, or by their own."""
    match t:
        case DType():
            return _storage(t)
        case Acc(of=DType() as of):
            return _storage(of.accumulator)
        case Acc(of=of):
            return f"opc::accumulator_t<{_element(of, names)}>"
        case _:
            return t.name if names is None else names[t.name]


def _parameters(op: Op) -> list[str]:
    """Return the parameters of code on views: operands, attributes, dimensions."""
    operands = (*op.inputs, *op.outputs)
    views = [f"opc::view<{q}{_element(t)}> {o.name}" for (q, t), o in zip(_types(op), operands)]
    return [*views, *_scalars(op)]


def _scalars(op: Op) -> list[str]:
    return [f"{_attribute_type(a)} {a.name}" for a in op.attributes] + [f"int64_t {d}" for d in plan(op).dims]


def _values(op: Op) -> list[str]:
    return [_attribute_value(a) for a in op.attributes] + [f"call.{dim_member(d)}" for d in plan(op).dims]


def _attribute_type(a: Attribute) -> str:
    if a.length is not None:
        return f"opc::list<{c_type(a)}>"
    match a.kind:
        case AttributeKind.STR:
            return "std::string_view"
        case AttributeKind.BOOL:
            return "bool"
        case AttributeKind.DTYPE:
            return "opc::dtype"
        case _:
            return c_type(a)


def _attribute_value(a: Attribute) -> str:
    value = f"attributes->{a.name}"
    if a.length is not None:
        return f"{_attribute_type(a)}({value}, {a.length if a.length >= 0 else f'attributes->{a.name}_length'})"
    if a.values:
        names = ", ".join(map(string_literal, a.values))
        return f"std::string_view(std::initializer_list<const char *>{{{names}}}.begin()[{value}])"
    match a.kind:
        case AttributeKind.BOOL:
            return f"{value} != 0"
        case AttributeKind.DTYPE:
            return f"static_cast<opc::dtype>({value})"
        case AttributeKind.AXIS:
            return f"call.{axis_member(a.name)}"
        case _:
            return value


def _includes(native: Native) -> list[str]:
    return [f"#include <{name}>" for name in native.include]


def _banner(family: Family) -> str:
    return comment(f"Generated by opc from {family.source_name}; edits are lost.")


def _pieces(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from wrap(line)


def _wrapped(text: str) -> str:
    return "\n".join(_pieces(text))
