"""The Python side of the NumPy backend: a function for each op of a family, with its signature, docstring and fast way."""

from __future__ import annotations

from dataclasses import dataclass

from opc.emit.python_text import Bracket, docstring, literal, quoted, tuple_of
from opc.ir.dtypes import ElementType, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand
from opc.ir.printer import format_dims

RESERVED = ("only", "out")
"""Parameters that every function has beside the op's own."""

_ANNOTATION = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.FLOAT: "float",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "str",
    AttributeKind.DTYPE: "DTypeLike",
}


@dataclass(frozen=True, slots=True)
class Function:
    """The generated text of one op: the `_Op` that describes it, and the function."""

    name: str
    description: str
    definition: str
    call: str


def functions(family: Family) -> tuple[Function, ...]:
    """Return the functions of a family, the op itself first."""
    return tuple(Function(op.name, _description(op), _definition(op), f"_call_{op.name}") for op in family.ops)


def dtype_constants(family: Family) -> dict[str, str]:
    """Return the module's constants for the dtypes of each element type that an input of the family has: name to tuple."""
    types = dict.fromkeys(o.type for op in family.ops for o in op.inputs)
    return {_constant(t): tuple_of([quoted(d.value) for d in candidates(t)]).render(len(_constant(t)) + 3) for t in types}


def value_constants(family: Family) -> dict[str, str]:
    """Return the module's constants for enumerations: each value's position by the name of the attribute."""
    return {
        f"_{a.name.upper()}": Bracket("{", [f"{quoted(v)}: {i}" for i, v in enumerate(a.values)], "}").render(len(a.name) + 4)
        for a in family.forward.attributes
        if a.values
    }


def is_fast(op: Op) -> bool:
    """Whether the function has a fast way: every output is always computed."""
    return not any(o.optional for o in op.outputs)


def _constant(t: ElementType) -> str:
    return f"_DTYPES_{''.join(c if c.isalnum() else '_' for c in str(t)).strip('_')}"


def _description(op: Op) -> str:
    """Return the `_Op` of an op."""
    inputs = [
        Bracket(
            "_Input(", [quoted(o.name), quoted(str(o.type)), _constant(o.type), *(["optional=True"] if o.optional else [])], ")"
        )
        for o in op.inputs
    ]
    attributes = [Bracket("_Attribute(", [quoted(a.name), quoted(a.kind.value), *_shape_of(a)], ")") for a in op.attributes]
    of = op.derivation.outputs if op.derivation is not None and op.derivation.kind == "vjp" else (None,) * len(op.outputs)
    outputs = [
        Bracket("_Output(", [quoted(o.name), *([f"optional=True, of={quoted(x)}"] if o.optional and x else [])], ")")
        for o, x in zip(op.outputs, of)
    ]
    keys = [str(i) for i, a in enumerate(op.attributes) if _is_key(a)]
    items: list[str | Bracket] = ["_extension", quoted(op.name)]
    for name, parts in (("inputs", inputs), ("attributes", attributes), ("outputs", outputs)):
        items.append(Bracket(f"{name}=(", parts, ")", single=True))
    if keys:
        items.append(Bracket("key_attributes=(", keys, ")", single=True))
    return Bracket(f"_{op.name} = _Op(", items, ")").render()


def _shape_of(a: Attribute) -> list[str]:
    parts = [] if a.length is None else [f"length={a.length}"]
    return [*parts, f"values={literal(a.values)}"] if a.values else parts


def _is_key(a: Attribute) -> bool:
    """Whether shapes or dtypes of outputs, or the length of what C reads, may depend on the attribute's value."""
    return a.length is not None or a.kind in (AttributeKind.INT, AttributeKind.AXIS, AttributeKind.DTYPE)


def _definition(op: Op) -> str:
    head = Bracket(f"def {op.name}(", _parameters(op), f") -> {_result(op)}:").render()
    inputs = str(tuple_of([o.name for o in op.inputs]))
    attributes = str(tuple_of([a.name for a in op.attributes]))
    rest = ["out"] if is_fast(op) else ["out", "only"]
    careful = Bracket(f"_{op.name}.call(", [inputs, attributes, *rest], ")").render(11)
    body = [head, docstring(_document(op), 4)]
    if is_fast(op):
        body.append(_fast(op))
    return "\n".join([*body, f"    return {careful}"])


def _parameters(op: Op) -> list[str]:
    """Return the parameters; a required attribute that follows an optional operand is keyword-only, as Python has it."""
    last_required = max((i for i, o in enumerate(op.inputs) if not o.optional), default=-1)
    found = []
    for i, o in enumerate(op.inputs):
        annotation = "Operand | None" if o.optional else "Operand"
        found.append(f"{o.name}: {annotation}" + (" = None" if o.optional and i > last_required else ""))
    defaulted = any(o.optional for o in op.inputs[last_required + 1 :])
    keyword = []
    for a in op.attributes:
        text = f"{a.name}: {_annotation(a)}" + ("" if a.required else f" = {_default(a)}")
        if a.required and defaulted:
            keyword.append(text)
        else:
            found.append(text)
            defaulted = defaulted or not a.required
    array = "Array | None" if len(op.outputs) == 1 else "tuple[Array | None, ...] | None"
    keyword += [] if is_fast(op) else ["only: Sequence[str] | None = None"]
    return [*found, "*", *keyword, f"out: {array} = None"]


def _annotation(a: Attribute) -> str:
    single = _ANNOTATION[a.kind]
    return single if a.length is None else f"Sequence[{single}]"


def _default(a: Attribute) -> str:
    return quoted(str(a.default)) if a.kind is AttributeKind.DTYPE else literal(a.default)


def _result(op: Op) -> str:
    entry = "Array" if is_fast(op) else "Array | None"
    return entry if len(op.outputs) == 1 else f"tuple[{', '.join([entry] * len(op.outputs))}]"


def _document(op: Op) -> str:
    lines = [op.doc.strip() or f"The op {op.name}.", ""]
    for t in op.types:
        names = [str(d) for d in t.dtypes]
        lines += [f"{t.name} is {', '.join(names[:-1])} or {names[-1]}." if len(names) > 1 else f"{t.name} is {names[0]}."]
    lines += [""] if op.types else []
    lines += ["Args:"]
    lines += [f"    {o.name}: {_typed(o)}{', optional' if o.optional else ''}.{_more(o.doc)}" for o in op.inputs]
    lines += [f"    {a.name}: {a.kind.value}{_length(a)}{_rule(a)}.{_more(a.doc)}" for a in op.attributes]
    if not is_fast(op):
        lines += ["    only: names of the outputs to compute; the others are None. By default all that can be."]
    lines += [f"    out: {_out(op)}", "", "Returns:"]
    lines += [f"    {o.name}: {_typed(o)}.{_more(o.doc)}" for o in op.outputs]
    return "\n".join(lines)


def _typed(o: Operand) -> str:
    return f"{o.type}{format_dims(o.dims)}"


def _more(doc: str) -> str:
    text = " ".join(doc.split())
    return f" {text}" if text else ""


def _length(a: Attribute) -> str:
    return "" if a.length is None else "[]" if a.length < 0 else f"[{a.length}]"


def _rule(a: Attribute) -> str:
    rules = [f"one of {', '.join(a.values)}"] if a.values else []
    rules += [a.check_text] if a.check_text else []
    return f", {', '.join(rules)}" if rules else ""


def _out(op: Op) -> str:
    text = "array for the output." if len(op.outputs) == 1 else "arrays for the outputs, None for those to be allocated."
    places = [f"{source} itself may stand for {target}" for target, source in op.inplace]
    return f"{text} {'; '.join(places)}." if places else text


def _fast(op: Op) -> str:
    """Return the statements of the fast way: look up the plan, take the pointers, call."""
    taken = {o.name for o in (*op.inputs, *op.outputs)} | {a.name for a in op.attributes}

    def local(name: str) -> str:
        while name in taken:
            name += "_"
        return name

    plan, memory = local("plan"), local("memory")
    types = [(local(f"{o.name}_shape"), local(f"{o.name}_dtype")) for o in op.outputs]
    key = [part for o in op.inputs for part in _key(o)] + [a.name for a in op.attributes if _is_key(a)]
    names = [plan, memory, *(name for pair in types for name in pair)]
    lookup = Bracket(f"{', '.join(names)} = _{op.name}.plans[", key, "]")
    if len(key) == 1:
        lookup = Bracket(f"{', '.join(names)} = _{op.name}.plans[", [f"{key[0]},"], "]")

    def call(outputs: list[str]) -> str:
        arguments = [plan, *(_pointer(o) for o in op.inputs), *outputs, *(x for a in op.attributes for x in _argument(a))]
        return Bracket(f"if _call_{op.name}(", arguments, ") == 0:").render(12)

    lines = ["    try:", f"        {lookup.render(8)}", "        if out is None:"]
    lines += [f"            {o.name} = _np.empty({shape}, {dtype})" for o, (shape, dtype) in zip(op.outputs, types)]
    lines += [f"            {call([f'_from_buffer({o.name})' for o in op.outputs])}"]
    lines += [f"                return {', '.join(o.name for o in op.outputs)}"]
    if len(op.outputs) == 1:
        shape, dtype = types[0]
        lines += [f"        elif out.shape == {shape} and out.dtype == {dtype}:"]
        writable = '_from_buffer("char[]", out, True)'
        lines += [f"            {call([writable])}", "                return out"]
    return "\n".join([*lines, "    except _MISS:", "        pass"])


def _key(o: Operand) -> list[str]:
    parts = [f"{o.name}.dtype", f"{o.name}.shape", f"{o.name}.strides"]
    return [f"{o.name} if {o.name} is None else ({', '.join(parts)})"] if o.optional else parts


def _pointer(o: Operand) -> str:
    return f"_NULL if {o.name} is None else _from_buffer({o.name})" if o.optional else f"_from_buffer({o.name})"


def _argument(a: Attribute) -> list[str]:
    if a.length is not None:
        return [a.name] if a.length >= 0 else [f"len({a.name})", a.name]
    if a.values:
        return [f"_{a.name.upper()}[{a.name}]"]
    match a.kind:
        case AttributeKind.BOOL:
            return [f"_BOOL[{a.name}]"]
        case AttributeKind.STR:
            return [f"{a.name}.encode()"]
        case AttributeKind.DTYPE:
            return [f"_DTYPE_POSITION[{a.name}]"]
        case _:
            return [a.name]
