"""How torch's two ONNX exporters learn of a family's op."""

from __future__ import annotations

from opc.backends.batching import needs_batch_axes
from opc.backends.own import Own
from opc.backends.torch.api import API
from opc.backends.torch.library import templates
from opc.backends.torch.schema import namespace
from opc.emit.onnx.types import TYPE_STRING, attribute_type
from opc.emit.python.layout import bracketed
from opc.emit.python.text import quoted
from opc.ir.dtypes import ElementType, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Op
from opc.names import registered
from opc.records import dataclass

_PARSER = {
    AttributeKind.INT: "i",
    AttributeKind.AXIS: "i",
    AttributeKind.FLOAT: "f",
    AttributeKind.BOOL: "b",
    AttributeKind.STR: "s",
    AttributeKind.DTYPE: "i",
}
"""What `torch.onnx.symbolic_helper.parse_args` calls the values of each kind."""


@dataclass(frozen=True, slots=True)
class _Attribute:
    """One attribute for the exporters: its ONNX type, how the old exporter parses and names it, and the value a node gets."""

    name: str
    onnx_type: str
    parser: str
    suffix: str
    value: str


def onnx_source(family: Family) -> str:
    """Return the text of `torch/onnx.py`."""
    op = family.forward
    batched = needs_batch_axes(family)
    attributes = [_attribute(a) for a in op.attributes]
    names = [x.name for x in op.inputs]
    count = len(op.outputs)
    alike = [i for i, o in enumerate(op.outputs) if (o.type, o.dims) == (op.inputs[0].type, op.inputs[0].dims)]
    batch = ["batch_axes: int = 0"] if batched else []
    translate = [(f"{x.name}: Any", "None" if x.optional else None) for x in op.inputs]
    translate += [(f"{a.name}: {API.annotation(a)}", API.default(a)) for a in op.attributes]
    translate += [("batch_axes: int", "0")] * batched
    symbolic = ["graph: Any", *(f"{n}: Any" for n in (*names, *(a.name for a in attributes))), *(b.split(" =")[0] for b in batch)]
    node = [quoted(f"{op.domain}::{op.class_name}"), *names, *(f"{a.name}_{a.suffix}={a.value}" for a in attributes)]
    node += [f"outputs={count}"] if count > 1 else []
    results = Own(op)["results"]
    parsers = ["v"] * len(names) + [a.parser for a in attributes] + ["i"] * batched
    return templates.render(
        "onnx.py.j2",
        family,
        forward=registered(op.name),
        namespace=namespace(family),
        domain=op.domain,
        version=op.version,
        class_name=op.class_name,
        inputs=[(x.name, str(x.type), x.optional) for x in op.inputs],
        outputs=[(o.name, str(o.type)) for o in op.outputs],
        types=[(name, [quoted(TYPE_STRING[d]) for d in candidates(t)]) for name, t in _types(op).items()],
        attributes=attributes,
        batched=batched,
        translate=bracketed("def translate(", _defaulted(translate), ") -> Any:", 4),
        call=bracketed("return node(", [*names, *(f"{a.name}={a.value}" for a in attributes)], ")", 8),
        parse=bracketed("@symbolic_helper.parse_args(", [quoted(p) for p in parsers], ")", 4),
        symbolic=bracketed("def symbolic(", symbolic, ") -> Any:", 4),
        results=results,
        node=bracketed(f"{results} = graph.op(", node, ")", 8),
        several=count > 1,
        alike=alike,
        like=names[0],
        lists=any(a.length is not None for a in op.attributes),
        dtypes=any(a.kind is AttributeKind.DTYPE for a in op.attributes),
    )


def _defaulted(parameters: list[tuple[str, str | None]]) -> list[str]:
    """Return parameters with their defaults, as far as nothing without one follows: all are passed by position."""
    last = max((i for i, (_, default) in enumerate(parameters) if default is None), default=-1)
    return [text if i <= last else f"{text} = {default}" for i, (text, default) in enumerate(parameters)]


def _attribute(attribute: Attribute) -> _Attribute:
    listed = attribute.length is not None
    name, kind = attribute.name, attribute.kind
    value = f"[*{name}]" if listed else name
    if kind is AttributeKind.BOOL:
        value = f"[int(v) for v in {name}]" if listed else f"int({name})"
    suffix = {AttributeKind.FLOAT: "f", AttributeKind.STR: "s"}.get(kind, "i")
    return _Attribute(name, attribute_type(attribute), _PARSER[kind] + ("s" if listed else ""), suffix, value)


def _types(op: Op) -> dict[str, ElementType]:
    """Return the operands' types by the names that the ONNX schema calls them by."""
    return {str(o.type): o.type for o in (*op.inputs, *op.outputs)}
