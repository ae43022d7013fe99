"""The Python side of the NumPy backend: a function for each op of a family, with its signature, docstring and fast way."""

from __future__ import annotations

import re

from opc.backends.derived import chooses_outputs
from opc.backends.python_api import telling, wrapped
from opc.emit.python.spelling import decorator
from opc.emit.python.text import WIDTH, Bracket, docstring, literal, quoted, tuple_of
from opc.ir.dtypes import ElementType, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand
from opc.ir.printer import format_dims
from opc.names import in_words, spelled
from opc.records import dataclass

_ANNOTATION = {
    AttributeKind.INT: "int",
    AttributeKind.AXIS: "int",
    AttributeKind.FLOAT: "float",
    AttributeKind.BOOL: "bool",
    AttributeKind.STR: "str",
    AttributeKind.DTYPE: "DTypeLike",
}


@dataclass(frozen=True, slots=True)
class OpFunction:
    """The generated text of one op: the `_Op` that describes it, and the function."""

    name: str
    description: str
    definition: str


def functions(family: Family) -> tuple[OpFunction, ...]:
    """Return the functions of a family, the op itself first."""
    return tuple(OpFunction(op.name, _description(op), _definition(op)) for op in family.ops)


def dtype_constants(family: Family) -> list[str]:
    """Return the module's constants for the dtypes of each element type that an input of the family has."""
    types = dict.fromkeys(o.type for op in family.ops for o in op.inputs)
    return [Bracket(f"{_constant(t)} = (", [quoted(d.value) for d in candidates(t)], ")", single=True).render() for t in types]


def value_constants(family: Family) -> list[str]:
    """Return the module's constants for enumerations: the position of each value."""
    return [
        Bracket(f"{_values(a)} = {{", [f"{quoted(v)}: {i}" for i, v in enumerate(a.values)], "}").render()
        for a in family.forward.attributes
        if a.values
    ]


def _constant(t: ElementType) -> str:
    # The variable of a gradient has the name of the op's own and stands for its floating dtypes only.
    kinds = {d.is_floating for d in candidates(t)}
    name = "".join(c if c.isalnum() else "_" for c in str(t)).strip("_")
    return f"_DTYPES_{name}{'_MIXED' if len(kinds) > 1 else ''}"


def _values(a: Attribute) -> str:
    return f"_VALUES_{a.name}"


def stub(op: Op) -> str:
    """Return the function of an op as a type stub has it, of the tensors of any framework: `Tensor` is a type variable."""
    result = _result(op)
    text = Bracket(f"def {op.name}(", _parameters(op), f") -> {result}:").render()
    head = re.sub(r"\b(Operand|Array)\b", "Tensor", text)
    return f"{head}\n{docstring(_document(op), 4)}\n"


def _description(op: Op) -> str:
    """Return the `_Op` of an op."""
    inputs = [
        Bracket(
            "_Input(",
            [quoted(spelled(o.name)), quoted(str(o.type)), _constant(o.type), *(["optional=True"] if o.optional else [])],
            ")",
        )
        for o in op.inputs
    ]
    attributes = [
        Bracket("_Attribute(", [quoted(spelled(a.name)), quoted(a.kind.value), *_shape_of(a)], ")") for a in op.attributes
    ]
    of = op.derivation.outputs if op.derivation is not None and op.derivation.kind == "vjp" else (None,) * len(op.outputs)
    outputs = [
        Bracket("_Output(", [quoted(o.name), *(_optional(x) if o.optional and chooses_outputs(op) else [])], ")")
        for o, x in zip(op.outputs, of)
    ]
    keys = [str(i) for i, a in enumerate(op.attributes) if _is_key(a)]
    items: list[str | Bracket] = ["_extension", quoted(in_words(op.name))]
    for name, parts in (("inputs", inputs), ("attributes", attributes), ("outputs", outputs)):
        items.append(Bracket(f"{name}=(", parts, ")", single=True))
    if keys:
        items.append(Bracket("key_attributes=(", keys, ")", single=True))
    return Bracket(f"_{op.name} = _Op(", items, ")").render()


def _optional(of: str | None) -> list[str]:
    return ["optional=True"] if of is None else ["optional=True", f"of={quoted(spelled(of))}"]


def _shape_of(a: Attribute) -> list[str]:
    parts = [] if a.length is None else [f"length={a.length}"]
    return [*parts, f"values={literal(a.values)}"] if a.values else parts


def _is_key(a: Attribute) -> bool:
    """Whether shapes or dtypes of outputs, or the length of what C reads, may depend on the attribute's value."""
    return a.length is not None or a.kind in (AttributeKind.INT, AttributeKind.AXIS, AttributeKind.DTYPE)


def _definition(op: Op) -> str:
    result = _result(op)
    one_line = Bracket(f"def {op.name}(", _parameters(op), f") -> {result}:").render()
    head = one_line if "\n" not in one_line else one_line.replace(f" -> {result}:", f" -> {result.render(0, 1, 5)}:")
    inputs = tuple_of([o.name for o in op.inputs])
    attributes = tuple_of([a.name for a in op.attributes])
    rest = ["out", "only"] if chooses_outputs(op) else ["out"]
    careful = Bracket(f"return _{op.name}.call(", [inputs, attributes, *rest], ")").render(4)
    return "\n".join([decorator(op) + head, docstring(_document(op), 4), _fast(op), f"    {careful}"])


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
        told = a.name in op.told
        default = " | None = None" if told else "" if a.required else f" = {_default(a)}"
        text = f"{a.name}: {_annotation(a)}{default}"
        if not default and defaulted:
            keyword.append(text)
        else:
            found.append(text)
            defaulted = defaulted or bool(default)
    array = "Array | None" if len(op.outputs) == 1 else "tuple[Array | None, ...] | None"
    keyword += ["only: Sequence[str] | None = None"] if chooses_outputs(op) else []
    return [*found, "*", *keyword, f"out: {array} = None"]


def _annotation(a: Attribute) -> str:
    single = _ANNOTATION[a.kind]
    several = single if a.length is None else f"Sequence[{single}]"
    return several if a.picks is None else f"{single} | {several}"


def _default(a: Attribute) -> str:
    return quoted(str(a.default)) if a.kind is AttributeKind.DTYPE else literal(a.default)


def _result(op: Op) -> Bracket:
    entry = "Array | None" if chooses_outputs(op) else "Array"
    return Bracket("tuple[", [entry] * len(op.outputs), "]") if len(op.outputs) > 1 else Bracket(entry, [], "")


def _document(op: Op) -> str:
    lines = [op.doc.strip() or f"The op {op.name}.", ""]
    for t in op.types:
        names = [str(d) for d in t.dtypes]
        lines += [f"{t.name} is {', '.join(names[:-1])} or {names[-1]}." if len(names) > 1 else f"{t.name} is {names[0]}."]
    lines += [""] if op.types else []
    entries = [f"{o.name}: {_typed(o)}{', optional' if o.optional else ''}.{_more(o.doc)}" for o in op.inputs]
    entries += [f"{a.name}: {a.kind.value}{_length(a)}{_rule(a)}.{_more(a.doc)}{_told(a, op)}" for a in op.attributes]
    if chooses_outputs(op):
        entries += ["only: names of the outputs to compute; the others are None. By default all that can be."]
    entries += [f"out: {_out(op)}"]
    lines += ["Args:", *wrapped(entries), "", "Returns:"]
    lines += wrapped([f"{o.name}: {_typed(o)}.{_more(o.doc)}" for o in op.outputs])
    return "\n".join(lines)


def _typed(o: Operand) -> str:
    return f"{o.type}{format_dims(o.dims)}"


def _more(doc: str) -> str:
    text = " ".join(doc.split())
    return f" {text}" if text else ""


def _told(a: Attribute, op: Op) -> str:
    return " By default as many as data tells." if a.name in op.told else ""


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
    taken = {o.name for o in op.inputs} | {a.name for a in op.attributes}

    def local(name: str) -> str:
        # No name of a spec ends in an underscore.
        unique = f"{name}_" if name in taken else name
        taken.add(unique)
        return unique

    plan, key = local("plan"), local("key")
    # One output's shape and dtype are unpacked here: a call with a starred argument costs more.
    shape, dtype = local("shape"), local("dtype")
    types = f"(({shape}, {dtype}),)" if len(op.outputs) == 1 else local("types")
    parts = ["only"] if chooses_outputs(op) else []
    parts += [part for o in op.inputs for part in _key(o)] + [a.name for a in op.attributes if _is_key(a)]
    lookup = str(Bracket(f"{plan}, _, {types} = _{op.name}.plans[", parts, "]", single=True))
    lines = []
    for a in op.attributes:
        if a.picks is not None:
            lines += [f"    if isinstance({a.name}, _INTEGER):", f"        {a.name} = ({a.name},)"]
    if op.sizes is not None:
        passed = [*(o.name for o in op.inputs), *(f"{a.name}={a.name}" for a in op.attributes if a.name not in op.told)]
        lines += telling(op, op.sizes.name, passed)
    lines += ["    try:"]
    if len(lookup) <= WIDTH - 8:
        lines += [f"        {lookup}"]
    else:
        lines += [f"        {Bracket(f'{key} = (', parts, ')', single=True).render(8)}"]
        lines += [f"        {plan}, _, {types} = _{op.name}.plans[{key}]"]
    made = local(op.outputs[0].name if len(op.outputs) == 1 else "made")
    if len(op.outputs) == 1:
        empty, given = f"_empty({shape}, {dtype})", f"_given(out, {shape}, {dtype})"
        line = f"        {made} = {empty} if out is None else {given}"
        block = f"        if out is None:\n            {made} = {empty}\n        else:\n            {made} = {given}"
        lines += [line if len(line) <= WIDTH else block]
        outputs, result = f"_from_buffer({made})", made
    else:
        lines += [f"        {made} = _results(out, {types})"]
        outputs, result = f"*_map(_from_buffer, {made})", f"tuple({made})"
    arguments = [plan, *(_pointer(o) for o in op.inputs), outputs, *(x for a in op.attributes for x in _argument(a))]
    lines += [f"        {Bracket(f'if not _{op.name}.run(', arguments, '):').render(8)}"]
    lines += [f"            return {result}", "    except _MISS:", "        pass"]
    return "\n".join(lines)


def _key(o: Operand) -> list[str]:
    return [f"_kind({o.name})"] if o.optional else [f"{o.name}.dtype", f"{o.name}.shape", f"{o.name}.strides"]


def _pointer(o: Operand) -> str:
    return f"_NULL if {o.name} is None else _from_buffer({o.name})" if o.optional else f"_from_buffer({o.name})"


def _argument(a: Attribute) -> list[str]:
    if a.length is not None:
        return [a.name] if a.length >= 0 else [f"len({a.name})", a.name]
    if a.values:
        return [f"{_values(a)}[{a.name}]"]
    match a.kind:
        case AttributeKind.BOOL:
            return [f"_BOOL[{a.name}]"]
        case AttributeKind.STR:
            return [f"{a.name}.encode()"]
        case AttributeKind.DTYPE:
            return [f"_DTYPE_POSITION[{a.name}]"]
        case _:
            return [a.name]
