"""The sources of a family's package for tvm-ffi: C++ over `runtime/include/opc/adapters/tvm_ffi.h`, and the Python function."""

from __future__ import annotations

from collections.abc import Iterable

from opc.backends.attribute_code import read_attribute
from opc.backends.derived import title
from opc.backends.python_api import PythonApi, documentation
from opc.backends.templates import Templates
from opc.emit.abi import attributes_type, function_name, header_path, infer_name
from opc.emit.cpp.layout import wrap
from opc.emit.cpp.text import string_literal
from opc.emit.python.spelling import decorator, spells
from opc.emit.python.text import Bracket, docstring, quoted, tuple_of
from opc.ir.op import Family, Op
from opc.names import in_words
from opc.records import dataclass

MAX_OPERANDS = 32
"""`opc::tvm::max_operands`."""

templates = Templates("opc.backends.tvm_ffi")
_API = PythonApi("Any", lambda dtype: quoted(dtype.value), tensor="Any", result="Any", tells=False)


@dataclass(frozen=True, slots=True)
class _Op:
    """One op of the family as the template sees it."""

    name: str
    title: str
    names: str
    description: str


def library_source(family: Family) -> str:
    """Return the text of `tvm_ffi/<op>_tvm_ffi.cpp`."""
    op = family.forward
    return templates.render(
        "library.cpp.j2",
        family,
        header=header_path(family),
        attributes_type=attributes_type(family),
        choices=[_texts(f"{a.name}_values", a.values) for a in op.attributes if a.values],
        attributes=[line for a in op.attributes for line in wrap(f"  {read_attribute(a, named=True)}")],
        ops=[_op(family, op) for op in family.ops],
    )


def _op(family: Family, op: Op) -> _Op:
    names = _texts(f"{op.name}_names", [in_words(o.name) for o in (*op.inputs, *op.outputs)])
    counts = f"{len(op.inputs)}, {len(op.attributes)}, {len(op.outputs)}"
    functions = f"read, {function_name(op)}, {infer_name(op)}"
    description = f'constexpr Op<Attributes> {op.name}_op = {{"{in_words(op.name)}", {op.name}_names, {counts}, {functions}}};'
    return _Op(op.name, title(family, op), names, "\n".join(wrap(description)))


def _texts(name: str, values: Iterable[str]) -> str:
    return "\n".join(wrap(f"constexpr const char *{name}[] = {{{', '.join(map(string_literal, values))}}};"))


def threads_source(family: Family) -> str:
    """Return the text of `tvm_ffi/threads.c`."""
    return templates.render("threads.c.j2", family)


def loader_source(family: Family) -> str:
    """Return the text of `tvm_ffi/library.py`."""
    return templates.render("library.py.j2", family)


def api_source(family: Family) -> str:
    """Return the text of `tvm_ffi/__init__.py`."""
    op = family.forward
    kind = ", or an attribute of another kind" if op.attributes else ""
    raised = [f"TypeError: when an operand is no tensor{kind}.", "ValueError: when one does not fit; the message says which."]
    passed: list[str | Bracket] = [*(x.name for x in op.inputs), *(a.name for a in op.attributes)]
    listing = [a.name for a in op.attributes if a.picks is not None]
    call = Bracket(f"_{op.name}(", passed, ")")
    if len(op.outputs) > 1:
        call = tuple_of([Bracket(f"*{call.head}", passed, ")")])
    return templates.render(
        "init.py.j2",
        family,
        signature=decorator(op) + _API.signature(op, family.name),
        spells=spells(op),
        doc=docstring(documentation(op, op.doc.strip(), raised, wrap=True, tells=False), 4),
        listing=[f"    {name} = [{name}] if isinstance({name}, int) else {name}" for name in listing],
        call=f"    return {call.render(4, 0, 7)}",
        lists=any(a.length is not None for a in op.attributes),
    )
