"""What the C header says for those who call it: the operands of each function in order, and what members of attributes hold."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from opc.emit import abi
from opc.emit.cpp.text import WIDTH, comment, commented
from opc.ir.dtypes import DTYPES, Acc, DType, TypeVar
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand
from opc.ir.printer import format_dims


def about(op: Op, doc: str) -> str:
    """Return the comment of a function: what it is, its inputs and outputs in the order that a call has them, and their types."""
    lines = [comment(doc).removesuffix("*/").rstrip(), " *"]
    for name, operands in (("inputs", op.inputs), ("outputs", op.outputs)):
        for i, o in enumerate(operands):
            lines += _line(f"{name}[{i}] {_operand(o)}")
    accumulated = {o.type.of for o in (*op.inputs, *op.outputs) if isinstance(o.type, Acc)}
    for t in op.types:
        lines += _line(f"{t.name} is {_listed(t.dtypes)}")
        if t in accumulated:
            lines += _line(f"acc({t.name}) is {_accumulators(t.dtypes)}")
    return "\n".join(lines) + " */"


def attribute_struct(family: Family) -> str:
    """Return the C declaration of the attribute struct with a comment where a member's type does not say what it holds."""
    declared = {a.name: a for a in family.forward.attributes}
    members = []
    for f in abi.attribute_fields(family):
        line = f"  {f.declaration};"
        said = "; ".join(() if f.is_length else _said(family.forward, declared[f.attribute]))
        if said and len(line) + len(said) + 7 <= WIDTH:
            members.append(f"{line} {comment(said)}")
        else:
            members += [comment(said, 2), line] if said else [line]
    name = abi.attributes_type(family)
    return "\n".join([f"typedef struct {name} {{", *(members or ["  char unused;"]), f"}} {name};"])


def _line(text: str) -> list[str]:
    return textwrap.wrap(commented(text), WIDTH, initial_indent=" * ", subsequent_indent=" *   ", break_long_words=False)


def _operand(o: Operand) -> str:
    """Return an operand as a signature has it, and whether a call may do without it."""
    return f"{o.name}: {o.type}{format_dims(o.dims)}{', or NULL' if o.optional else ''}"


def _listed(dtypes: Sequence[DType]) -> str:
    *first, last = map(str, dtypes)
    return f"{', '.join(first)} or {last}" if first else last


def _accumulators(dtypes: Sequence[DType]) -> str:
    of: dict[DType, list[DType]] = {}
    for d in dtypes:
        of.setdefault(d.accumulator, []).append(d)
    return ", ".join(f"{acc} of {_listed(some)}" for acc, some in of.items())


def _said(op: Op, a: Attribute) -> Iterator[str]:
    """Yield what a member stands for, and its value in a call that does not name it."""
    if a.kind is AttributeKind.STR and a.values:
        yield ", ".join(f"{i} for {value}" for i, value in enumerate(a.values))
    if a.kind is AttributeKind.DTYPE:
        yield ", ".join(f"{DTYPES.index(d)} for {d}" for d in _chosen(op, a))
    if not a.required and a.default is not None:
        value = abi.encode(a, a.default)
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        yield f"by default {text if value != () else 'empty'}"


def _chosen(op: Op, a: Attribute) -> Sequence[DType]:
    found = next((t for t in op.types if isinstance(t, TypeVar) and t.name == a.binds), None)
    return DTYPES if found is None else found.dtypes
