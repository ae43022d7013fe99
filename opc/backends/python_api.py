"""What the Python functions of the frameworks have in common: signatures with defaults, and documentation."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from functools import lru_cache

from opc.emit.python.layout import bracketed
from opc.emit.python.text import WIDTH, Bracket, literal
from opc.ir.dtypes import DType, TypeVar
from opc.ir.op import Attribute, AttributeKind, Op, Operand
from opc.names import in_words
from opc.records import dataclass

_PYTHON = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.FLOAT: "float",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "str",
}


@dataclass(frozen=True, slots=True)
class PythonApi:
    """How a framework spells what its functions take.

    `dtype_type` annotates a dtype (`torch.dtype`), `dtype_value` is the expression of one (`torch.float32`), and `sequence` the
    annotation of several values, with `{}` for the type of one. `tensor` annotates what is taken as a tensor, `result` what is
    returned. A function that `tells` computes the sizes that its caller leaves to data, see `telling`.
    """

    dtype_type: str
    dtype_value: Callable[[DType], str]
    sequence: str = "Sequence[{}]"
    tensor: str = "Tensor"
    result: str = "Tensor"
    tells: bool = True

    def annotation(self, attribute: Attribute) -> str:
        """Return the annotation of an attribute: `float`, `Sequence[int]`."""
        element = _PYTHON.get(attribute.kind, self.dtype_type)
        several = element if attribute.length is None else self.sequence.format(element)
        return several if attribute.picks is None else f"{element} | {several}"

    def default(self, attribute: Attribute) -> str | None:
        """Return the Python expression of an attribute's default, None when it must be given."""
        if attribute.required:
            return None
        if attribute.kind is AttributeKind.DTYPE and isinstance(attribute.default, str | DType):
            return self.dtype_value(DType(attribute.default))
        return literal(attribute.default)

    def parameters(self, op: Op) -> list[str]:
        """Return the parameters of the op's function: inputs, then attributes.

        An optional input has the default None unless one that must be given follows it. An attribute without default that
        follows a parameter with one is keyword-only, and so are all after it.
        """
        last_required = max((i for i, x in enumerate(op.inputs) if not x.optional), default=-1)
        found = []
        for i, x in enumerate(op.inputs):
            annotation = f"{x.name}: {self.tensor} | None" if x.optional else f"{x.name}: {self.tensor}"
            found.append(annotation + (" = None" if x.optional and i > last_required else ""))
        defaulted = any(x.optional for x in op.inputs[last_required + 1 :])
        for a in op.attributes:
            if self.tells and a.name in op.told:
                found.append(f"{a.name}: {self.annotation(a)} | None = None")
                defaulted = True
                continue
            default = self.default(a)
            if default is None and defaulted and "*" not in found:
                found.append("*")
            defaulted = defaulted or default is not None
            found.append(f"{a.name}: {self.annotation(a)}" + ("" if default is None else f" = {default}"))
        return found

    def signature(self, op: Op, name: str, more: Sequence[str] = ()) -> str:
        """Return the head of a function of the op, whose parameters end in `more`, which are keyword-only."""
        parameters = self.parameters(op)
        keywords = [*([] if "*" in parameters else ["*"]), *more] if more else []
        return bracketed(f"def {name}(", [*parameters, *keywords], f") -> {tensors(op, self.result)}:", 0)


def telling(
    op: Op, function: str, passed: Sequence[str | Bracket], end: str = "", number: Callable[[str], str] = "int({})".format
) -> list[str]:
    """Return the statements of a function that compute the sizes that were left to data.

    `function` is what calls the op's `sizes` on what is `passed`, and `end` what stands behind the call: it has one scalar, or
    a tuple of some. `number` writes what makes an int of a scalar.
    """
    before, behind = number("{}").split("{}")
    if not op.told:
        return []
    lines = [f"    if {' or '.join(f'{name} is None' for name in op.told)}:"]
    if len(op.told) == 1:
        return [*lines, bracketed(f"{op.told[0]} = {before}{function}(", passed, f"){end}{behind}", 8)]
    lines.append(bracketed(f"_sizes = {function}(", passed, f"){end}", 8))
    for n, name in enumerate(op.told):
        lines += [f"        if {name} is None:", f"            {name} = {before}_sizes[{n}]{behind}"]
    return lines


def eager_number(op: Op) -> Callable[[str], str]:
    """Return what writes a number that a framework has in eager calls alone, by a function `_told` of its."""
    return f'_told("{in_words(op.name)}", {{}})'.format


def tensors(op: Op, tensor: str = "Tensor") -> str:
    """Return the annotation of what the op's function returns."""
    return tensor if len(op.outputs) == 1 else f"tuple[{', '.join([tensor] * len(op.outputs))}]"


def documentation(
    op: Op, doc: str, raises: Sequence[str], more: Sequence[str] = (), *, wrap: bool = False, tells: bool = True
) -> str:
    """Return the documentation of a function of the op: `more` are the entries of parameters behind the op's own.

    A function that `tells` computes the sizes that its caller leaves to data.
    """
    sections = {
        "Args": [*_described_inputs(op, tells), *more],
        "Returns": [f"{o.name}: {_operand(o)}" for o in op.outputs],
        "Raises": raises,
    }
    lines = [doc]
    for title, entries in sections.items():
        lines += ["", f"{title}:", *(wrapped(entries) if wrap else [f"    {entry}" for entry in entries])]
    return "\n".join(lines)


def wrapped(entries: Sequence[str]) -> list[str]:
    """Return the entries of a docstring's section, indented, continuation lines more."""
    return [line for entry in entries for line in _entry(entry)]


@lru_cache(maxsize=1 << 12)
def _entry(text: str) -> tuple[str, ...]:
    """Return one entry's lines: every binding describes the same operands."""
    first, further = " " * 4, " " * 8
    return tuple(textwrap.wrap(text, WIDTH - 4, initial_indent=first, subsequent_indent=further, break_long_words=False))


def _described_inputs(op: Op, tells: bool) -> list[str]:
    """Return the docstring's entries of the op's arguments: inputs, then attributes."""
    entries = [f"{x.name}: {_operand(x)}" for x in op.inputs]
    for a in op.attributes:
        parts = [a.doc.strip()] if a.doc else []
        parts += [f"One of {', '.join(map(literal, a.values))}."] if a.values else []
        parts += [f"Must satisfy `{a.check_text}`."] if a.check_text else []
        parts += ["By default as many as data tells."] if tells and a.name in op.told else []
        entries.append(f"{a.name}: {' '.join(parts) or 'An attribute.'}")
    return entries


def _operand(operand: Operand) -> str:
    """Return what the documentation says of an operand: its shape, dtypes and purpose."""
    text = f"{operand.type}[{', '.join(str(d) for d in operand.dims)}]"
    if isinstance(operand.type, TypeVar):
        text += f", {operand.type} one of {', '.join(map(str, operand.type.dtypes))}"
    text += ", or None" if operand.optional else ""
    return f"{text}. {operand.doc.strip()}".rstrip()
