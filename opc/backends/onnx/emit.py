"""The files of the ONNX backend that depend on the op: schemas, functions, ops of the reference evaluator."""

from __future__ import annotations

from collections.abc import Iterator

from opc.backends.templates import Templates
from opc.emit.dtypes import type_variable
from opc.emit.numpy.reference import function_name, numpy_module
from opc.emit.onnx.formulas import methods
from opc.emit.onnx.function import FunctionBody, NoBody, body_name, function_body
from opc.emit.onnx.types import TENSOR_TYPE, TYPE_STRING, attribute_type, used_variables
from opc.emit.python.layout import bracketed
from opc.emit.python.text import Bracket, docstring, literal, quoted, tuple_of
from opc.ir.arrangement import arrangement
from opc.ir.dtypes import DTYPES, Acc, DType, ElementType, TypeVar, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Op, Operand

SHARED = ("arrays", "builder", "inference", "evaluator", "model", "windows")
"""The modules that are the same in every package but for their first line, and for what `model` says of listed axes."""

_DERIVED = {
    "_backward": "The gradient of {}.",
    "_backward_backward": "The gradient of the gradient of {}.",
    "_sizes": "The sizes of {} that data tells.",
    "_jvp": "The derivative of {} along tangents.",
    "_backward_jvp": "The derivative of the gradient of {} along tangents.",
}


def files(family: Family) -> dict[str, str]:
    """Return the files of the family, by path relative to the package directory."""
    return {
        "onnx/__init__.py": _render("init.py.j2", family),
        "onnx/schema.py": schema_module(family),
        "onnx/function.py": function_module(family),
        "onnx/functions.py": _render("functions.py.j2", family, methods=methods(_used(family))),
        "onnx/reference.py": numpy_module(family),
        "onnx/op_run.py": op_run_module(family),
        **{f"onnx/{name}.py": _render(f"{name}.py.j2", family, **_listing(family), **_dtype_tables()) for name in SHARED},
    }


def summary(family: Family, op: Op) -> str:
    """Return what an op does, as its spec or its derivation says."""
    if op is family.forward:
        return op.doc.strip() or f"The op {op.name}."
    return _DERIVED[op.name.removeprefix(family.name)].format(family.forward.class_name)


def _dtype_tables() -> dict[str, str]:
    """Return the tables of dtypes that shared modules have: what inference, and what the builder knows."""
    known = [(d, f"TensorProto.{TENSOR_TYPE[d]}") for d in DTYPES if d in TENSOR_TYPE]
    narrow = [(d, name) for d, name in known if d.row.minifloat is not None]
    beyond = {"ieee": "np.inf", "nan": "np.nan", "finite": "np.nan"}
    formats = [(name, d.bits, m) for d, name in narrow if d.bits == 8 and (m := d.row.minifloat)]
    eight = [f"{name}: ({m.overflow(bits)}, {beyond[m.top]})" for name, bits, m in formats]
    return {
        "dtypes": Bracket("DTYPES = {", [f"{name}: {quoted(d.value)}" for d, name in known], "}").render(),
        "narrow": Bracket("NARROW = {", [f"{quoted(d.value)}: {name}" for d, name in narrow], "}").render(),
        "small": Bracket("SMALL = {", [f"{quoted(d.value)}: {name}" for d, name in known if d.is_small], "}").render(),
        "wide": ", ".join(quoted(d.value) for d in DTYPES if d.accumulator is d),
        "bytes": Bracket("BYTES = {", eight, "}").render(),
    }


def _render(template: str, family: Family, **values: object) -> str:
    return templates.render(template, family, **values)


templates = Templates("opc.backends.onnx")


# ---- schemas -------------------------------------------------------------------------------------------------------------


def schema_module(family: Family) -> str:
    """Return the text of `onnx/schema.py`."""
    sets = _type_sets(family)
    told = family.forward.told
    attributes = [_told(a) if a.name in told else _attribute(a) for a in family.forward.attributes]
    ops = [_schema(family, op, sets) for op in family.ops]
    return _render(
        "schema.py.j2",
        family,
        domain=quoted(family.forward.domain),
        version=family.forward.version,
        type_sets=[_constant(name, dtypes) for dtypes, name in sets.items()],
        attributes=Bracket("    return [", attributes, "]").render(4) if attributes else "",
        has_default=any(not a.required or a.name in told for a in family.forward.attributes),
        imports=", ".join(_imports(family)),
        ops=ops,
        schemas=Bracket("SCHEMAS = {", [f"{quoted(op.class_name)}: {op.name}_schema()" for op in family.ops], "}").render(),
    )


def _imports(family: Family) -> Iterator[str]:
    attributes = [a for a in family.forward.attributes if not a.required]
    if any(a.default == () for a in attributes):
        yield "AttributeProto"
    if any(a.kind is AttributeKind.DTYPE for a in attributes):
        yield "TensorProto"
    yield "defs"
    if attributes or family.forward.told:
        yield "helper"


def _type_sets(family: Family) -> dict[tuple[DType, ...], str]:
    """Return a constant's name for each set of dtypes that a type variable stands for."""
    names: dict[tuple[DType, ...], str] = {}
    for variable in (v for op in family.ops for v in used_variables(op)):
        if variable.dtypes not in names:
            name = f"{variable.name.upper()}_TYPES"
            names[variable.dtypes] = name if name not in names.values() else f"{name}_{len(names) + 1}"
    return names


def _constant(name: str, dtypes: tuple[DType, ...]) -> str:
    return Bracket(f"{name} = [", [quoted(TYPE_STRING[d]) for d in dtypes], "]").render()


def _type_text(t: ElementType) -> str:
    """Return how a schema writes an element type: a type parameter, or a tensor type."""
    variable = type_variable(t)
    if variable is None:
        return TYPE_STRING[candidates(t)[0]]
    return variable.name if isinstance(t, TypeVar) else f"acc_{variable.name}"


def _schema(family: Family, op: Op, sets: dict[tuple[DType, ...], str]) -> dict[str, str]:
    constraints: list[str | Bracket] = []
    for variable in used_variables(op):
        constraints.append(tuple_of([quoted(variable.name), sets[variable.dtypes], quoted("Element type.")]))
    accumulators = dict.fromkeys(o.type for o in (*op.inputs, *op.outputs) if isinstance(o.type, Acc))
    for t in accumulators:
        types = Bracket("[", [quoted(TYPE_STRING[d]) for d in candidates(t)], "]")
        constraints.append(tuple_of([quoted(_type_text(t)), types, quoted(f"What sums of {t.of} are held in.")]))
    arguments: list[str | Bracket] = [
        quoted(op.class_name),
        "DOMAIN",
        "VERSION",
        f"cleandoc({op.name}_schema.__doc__)",
        Bracket("inputs=[", [_parameter(o) for o in op.inputs], "]"),
        Bracket("outputs=[", [_parameter(o) for o in op.outputs], "]"),
        Bracket("type_constraints=[", constraints, "]"),
        *(["attributes=attributes()"] if op.attributes else []),
    ]
    names = [quoted(a.name) for a in op.attributes]
    dtypes = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.DTYPE]
    inference: list[str | Bracket] = [f"shape.infer_shapes_{op.name}", f"shape.infer_types_{op.name}", str(len(op.inputs))]
    if names:
        inference.append(tuple_of(names))
    if dtypes:
        inference.append(tuple_of(dtypes))
    if op.told:
        inference.append(Bracket("told=(", [quoted(name) for name in op.told], ")", single=True))
    return {
        "name": op.name,
        "type": op.class_name,
        "doc": docstring(summary(family, op), 4),
        "schema": Bracket("    schema = OpSchema(", arguments, ")").render(4),
        "inference": Bracket("    infer = inference(", inference, ")").render(4),
    }


def _parameter(o: Operand) -> Bracket:
    arguments = [quoted(o.name), quoted(_type_text(o.type))]
    arguments += [literal(o.doc)] if o.doc else []
    arguments += ["optional=True"] if o.optional else []
    return Bracket("parameter(", arguments, ")")


def _attribute(a: Attribute) -> Bracket:
    doc = literal(" ".join(a.doc.split()))
    if a.required:
        kind = f"OpSchema.AttrType.{attribute_type(a)}"
        return Bracket("OpSchema.Attribute(", [quoted(a.name), kind, doc, "required=True"], ")")
    value = _default(a)
    keyword = [f"attr_type=AttributeProto.{attribute_type(a)}"] if a.default == () else []
    return Bracket("default(", [quoted(a.name), value, doc, *keyword], ")")


def _told(a: Attribute) -> Bracket:
    """Return an attribute that data tells where it is -1, as by default: a model has no optional value."""
    doc = f"{' '.join(a.doc.split())} By default, -1, as many as data tells.".strip()
    return Bracket("default(", [quoted(a.name), "-1", literal(doc)], ")")


def _default(a: Attribute) -> str:
    """Return the text of an attribute's default as ONNX holds it."""
    value = a.default
    if a.kind is AttributeKind.DTYPE:
        return f"TensorProto.{TENSOR_TYPE[DType(str(value))]}"
    if a.kind is AttributeKind.BOOL:
        value = tuple(int(v) for v in value) if isinstance(value, tuple) else int(bool(value))
    if a.kind is AttributeKind.FLOAT:
        value = tuple(float(v) for v in value) if isinstance(value, tuple) else float(value)  # type: ignore[arg-type]  # a number, by its kind
    return f"[{', '.join(literal(v) for v in value)}]" if isinstance(value, tuple) else literal(value)


# ---- functions -----------------------------------------------------------------------------------------------------------


def _used(family: Family) -> frozenset[str]:
    """Return what the functions of a family's bodies name."""
    bodies = (function_body(op) for op in family.ops)
    return frozenset[str]().union(*(b.uses for b in bodies if isinstance(b, FunctionBody)))


def _listed(family: Family) -> tuple[str, ...]:
    """Return the attributes that list axes, or place single ones among those of a group."""
    how = arrangement(family.forward)
    return () if how is None else how.attributes


def _listing(family: Family) -> dict[str, str]:
    """Return what the module `model` says of attributes of axes: a tuple of them, and the one that is a list."""
    listed = _listed(family)
    lists = [a.name for a in family.forward.attributes if a.picks is not None or a.permutes is not None]
    return {"listed": tuple_of([quoted(n) for n in listed]).render() if listed else "", "lists": "".join(lists)}


def _is_static(a: Attribute) -> bool:
    """Whether a function is made for one value of an attribute."""
    says_axes = a.picks is not None or a.among is not None or a.permutes is not None
    return says_axes or (a.kind in (AttributeKind.STR, AttributeKind.BOOL) and a.length is None)


def function_module(family: Family) -> str:
    """Return the text of `onnx/function.py`."""
    bodies = {op: function_body(op) for op in family.ops}
    written = [b.source.rstrip() for b in bodies.values() if isinstance(b, FunctionBody)]
    static = [a for a in family.forward.attributes if _is_static(a)]
    listed = _listed(family)
    parameters = ["op_type", "dtypes=None", "absent=()", "wanted=None"]
    parameters += [*(["ranks=None"] if listed else []), *(["**attributes"] if static else [])]
    defaults = [f"{quoted(a.name)}: {literal(a.default)}" for a in static if not a.required]
    writers = [f"{quoted(op.class_name)}: {body_name(op)}" for op, b in bodies.items() if isinstance(b, FunctionBody)]
    refused = [f"{quoted(op.class_name)}: {literal(b.reason)}" for op, b in bodies.items() if isinstance(b, NoBody)]
    used = _used(family)
    return _render(
        "function.py.j2",
        family,
        bodies=written,
        definition=bracketed("def make_function(", parameters, "):", 0),
        listed=listed,
        chosen=f"the {'attributes of axes, ' if listed else ''}string and bool attributes",
        uses_types="TensorProto" in used,
        uses_first="first" in used,
        writers=Bracket("WRITERS = {", writers, "}").render(),
        refused=Bracket("REFUSED = {", refused, "}").render() if refused else "",
        static=Bracket("STATIC = {", defaults, "}").render() if static else "",
        has_choice=any(o.optional for op in family.ops for o in op.outputs),
        told=tuple_of([quoted(name) for name in family.forward.told]).render(),
        forward=quoted(family.forward.class_name),
        sizes=quoted(family.forward.sizes.class_name) if family.forward.sizes is not None else "",
    )


# ---- reference evaluator -------------------------------------------------------------------------------------------------


def op_run_module(family: Family) -> str:
    """Return the text of `onnx/op_run.py`."""
    defaults = [f"{quoted(a.name)}: {literal(a.default)}" for a in family.forward.attributes if not a.required]
    return _render(
        "op_run.py.j2",
        family,
        defaults=Bracket("DEFAULTS = {", defaults, "}").render() if defaults else "",
        ops=[_op_run(family, op) for op in family.ops],
        classes=Bracket("OPS = [", [op.class_name for op in family.ops], "]").render(),
    )


def _op_run(family: Family, op: Op) -> dict[str, object]:
    return {
        "type": op.class_name,
        "doc": docstring(summary(family, op), 4),
        "name": op.name,
        "lines": list(_op_run_lines(family, op)),
    }


def _op_run_lines(family: Family, op: Op) -> Iterator[str]:
    """Yield the class attributes that describe an op."""
    optional = [quoted(o.name) for o in op.outputs if o.optional]
    dtypes = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.DTYPE]
    flags = [quoted(a.name) for a in op.attributes if a.kind is AttributeKind.BOOL]
    for name, function in (
        ("evaluate", f"reference.{function_name(op)}"),
        ("infer_shapes", f"shape.infer_shapes_{op.name}"),
        ("infer_types", f"shape.infer_types_{op.name}"),
    ):
        yield bracketed(f"{name} = staticmethod(", [function]).lstrip()
    for name, items in (
        ("inputs", [quoted(o.name) for o in op.inputs]),
        ("outputs", [quoted(o.name) for o in op.outputs]),
        ("optional_outputs", optional),
        ("dtypes", dtypes),
        ("flags", flags),
    ):
        if items:
            yield Bracket(f"{name} = (", items, ")", single=True).render(4)
    if op.sizes is not None:
        yield bracketed("compute_sizes = staticmethod(", [f"reference.{function_name(op.sizes)}"]).lstrip()
        yield Bracket("told_sizes = (", [quoted(name) for name in op.told], ")", single=True).render(4)
    if any(not a.required for a in family.forward.attributes):
        yield "defaults = DEFAULTS"
