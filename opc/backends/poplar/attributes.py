"""A family's attributes in C++: what a node of PopART is read into, what tells ops apart, and what the rules of calls take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from opc.backends.own import Own
from opc.emit.cpp.text import message_literal, string_literal
from opc.ir.op import Attribute, AttributeKind, Family, Op
from opc.records import dataclass

_SCALARS = {
    AttributeKind.INT: "Int",
    AttributeKind.AXIS: "Int",
    AttributeKind.BOOL: "Int",
    AttributeKind.DTYPE: "Int",
    AttributeKind.FLOAT: "Float",
    AttributeKind.STR: "String",
}
"""The types of `popart::Attributes`; each has one for lists, with an s."""

_DEFAULTED = ("Int", "String", "Ints")
"""Those that `getAttribute` takes a default for, but for numbers, which a model may hold as text."""

_ELEMENTS = {
    AttributeKind.INT: "int64_t",
    AttributeKind.AXIS: "int64_t",
    AttributeKind.BOOL: "int64_t",
    AttributeKind.FLOAT: "float",
    AttributeKind.STR: "std::string",
    AttributeKind.DTYPE: "poplar::Type",
}


def cpp_type(a: Attribute) -> str:
    """Return the C++ type of an attribute in the struct of a body."""
    return _ELEMENTS[a.kind] if a.length is None else f"std::vector<{_ELEMENTS[a.kind]}>"


def read_lines(family: Family, a: Attribute) -> Iterator[str]:
    """Yield the statements that read an attribute of a node into `params`."""
    op, name = message_literal(family.name), string_literal(a.name)
    shown = message_literal(a.name)
    # What reads it takes its key too, where messages spell that otherwise.
    keyed = shown if shown == name else f"{shown}, {name}"
    kind = f"popart::Attributes::{_SCALARS[a.kind]}{'' if a.length is None else 's'}"
    field = f"params.{a.name}"
    if a.required:
        yield f"opc::ipu::require(given, {op}, {keyed});"
    if a.kind is AttributeKind.DTYPE:
        yield from _read_dtypes(a, op, keyed, kind)
        return
    if a.kind is AttributeKind.FLOAT:
        guard = "" if a.required else f"if (given.hasAttribute({name})) "
        read = "number" if a.length is None else "numbers"
        yield f"{guard}{field} = opc::ipu::{read}(given, {op}, {keyed});"
        return
    if a.required:
        yield f"{field} = given.getAttribute<{kind}>({name});"
    elif kind.rpartition(":")[2] in _DEFAULTED:
        yield f"{field} = given.getAttribute<{kind}>({name}, {field});"
    else:
        yield f"if (given.hasAttribute({name})) {field} = given.getAttribute<{kind}>({name});"
    if a.kind is AttributeKind.BOOL and a.length is None:
        yield f"opc::ipu::flag({op}, {shown}, {field});"
    elif a.kind is AttributeKind.BOOL:
        yield f"for (const int64_t value : {field}) opc::ipu::flag({op}, {shown}, value);"


def _read_dtypes(a: Attribute, op: str, keyed: str, kind: str) -> Iterator[str]:
    """Yield the statements that read a dtype, which a model names by ONNX's number."""
    name, one = string_literal(a.name), f"opc::ipu::type_of({op}, {message_literal(a.name)}, "
    guard = "" if a.required else f"if (given.hasAttribute({name})) "
    if a.length is None:
        yield f"{guard}params.{a.name} = opc::ipu::type_of(given, {op}, {keyed});"
        return
    yield f"{guard}{{"
    yield f"  params.{a.name}.clear();"
    yield f"  for (const int64_t number : given.getAttribute<{kind}>({name})) params.{a.name}.push_back({one}number));"
    yield "}"


def append_line(op: Op, a: Attribute) -> str:
    """Return the statement that tells an op's serialiser of an attribute."""
    name, value = string_literal(a.name), a.name
    # PopART writes six digits of a number, and would take two ops for one whose numbers differ in the seventh.
    texts = {
        AttributeKind.STR: "opc::ipu::quoted",
        AttributeKind.DTYPE: "opc::ipu::type_name",
        AttributeKind.FLOAT: "opc::ipu::exact",
    }
    if a.kind in texts and a.length is not None:
        value = f"opc::ipu::joined<{_ELEMENTS[a.kind]}>({a.name}, {texts[a.kind]})"
    elif a.kind in texts and a.kind is not AttributeKind.STR:
        value = f"{texts[a.kind]}({a.name})"
    return f"{Own(op)['os']}.appendAttribute({name}, {value});"


@dataclass(frozen=True, slots=True)
class RuleAttributes:
    """The statements that make the rules' attributes of a body's (`given`), and the members that hold what these point to."""

    lines: list[str]
    holders: list[str]


def rule_attributes(family: Family) -> RuleAttributes:
    """Return how the rules' attributes are made of a body's."""
    made = RuleAttributes([], [])
    for a in family.forward.attributes:
        lines, holders = _converted(family, a)
        made.lines.extend(lines)
        made.holders.extend(holders)
    return made


def _converted(family: Family, a: Attribute) -> tuple[list[str], list[str]]:
    one, own = _element(family, a), Own(family.forward)
    given, i = own["given"], own["i"]
    if a.length is None:
        return [f"{a.name} = {one(f'{given}.{a.name}')};"], []
    shown = f"{message_literal(family.name)}, {message_literal(a.name)}"
    if a.length >= 0 and a.kind is not AttributeKind.DTYPE and a.kind is not AttributeKind.STR:
        return [f"opc::ipu::fill({shown}, {given}.{a.name}, {a.name}, {a.length});"], []
    lines = []
    if a.length >= 0:
        lines.append(f"opc::ipu::has_length({shown}, {given}.{a.name}.size(), {a.length});")
        lines.append(f"for (size_t {i} = 0; {i} < {a.length}; ++{i}) {a.name}[{i}] = {one(f'{given}.{a.name}[{i}]')};")
        return lines, []
    kind = {AttributeKind.FLOAT: "double", AttributeKind.BOOL: "int32_t", AttributeKind.STR: "const char *"}.get(
        a.kind, "int64_t"
    )
    if a.values:
        kind = "int64_t"
    lines.append(f"for (const auto &value : {given}.{a.name}) {a.name}_held.push_back({one('value')});")
    lines += [f"{a.name} = {a.name}_held.data();", f"{a.name}_length = static_cast<int64_t>({a.name}_held.size());"]
    return lines, [f"std::vector<{kind}> {a.name}_held;"]


def _element(family: Family, a: Attribute) -> Callable[[str], str]:
    """Return what makes the text of one value, as rules take it, of that of one of a body's."""
    shown = f"{message_literal(family.name)}, {message_literal(a.name)}"

    def text(value: str) -> str:
        match a.kind:
            case AttributeKind.BOOL:
                return f"static_cast<int32_t>({value} != 0)"
            case AttributeKind.STR if a.values:
                return f"opc::ipu::choice({shown}, {value}, {{{', '.join(map(string_literal, a.values))}}})"
            case AttributeKind.STR:
                return f"{value}.c_str()"
            case AttributeKind.DTYPE:
                return f"opc::ipu::position_of({value})"
            case _:
                return value

    return text
