"""The Python source of a family's sharding rules for DTensor."""

from __future__ import annotations

from opc.analysis.sharding import Sharding, shardings
from opc.backends.batching import needs_batch_axes
from opc.backends.torch.library import templates
from opc.emit.python.layout import bracketed
from opc.emit.python.text import WIDTH, quoted
from opc.ir.affine import Affine
from opc.ir.op import AttributeKind, Family, Group, Op, Operand


def sharding_source(family: Family) -> str:
    """Return the text of `torch/sharding.py`."""
    batched = needs_batch_axes(family)
    rules = "\n".join(_rule(op, batched) for op in family.ops)
    return templates.render("sharding.py.j2", family, rules=f"RULES = (\n{rules}\n)")


def _rule(op: Op, batched: bool) -> str:
    """Return the entry of one op, indented by four."""
    names = [o.name for o in op.inputs]
    parts = [f"operators.{op.name},", _tuple("inputs", [_shape(o, op) for o in op.inputs])]
    parts.append(_tuple("outputs", [_shape(o, op) for o in op.outputs]))
    ways = [_way(s, names) for s in shardings(op)]
    if len(ways) == 1 and len(ways[0].strip()) + len("        ways=(),") <= WIDTH:
        parts.append(f"ways=({ways[0].strip()}),")
    elif ways:
        parts.append("ways=(\n" + "".join(f"{way}\n" for way in ways) + "        ),")
    if op.broadcast:
        parts.append("broadcast=True,")
    axes = [(len(names) + n, a.dim) for n, a in enumerate(op.attributes) if a.kind is AttributeKind.AXIS]
    if axes:
        pairs = [f"({n}, {quoted(str(dim))})" for n, dim in axes]
        parts.append(f"axes=({', '.join(pairs)}{',' if len(pairs) == 1 else ''}),")
    if batched:
        parts.append(f"batch_axes={len(names) + len(op.attributes)},")
    return "    Rule(\n" + "".join(f"        {part}\n" for part in parts) + "    ),"


def _way(s: Sharding, names: list[str]) -> str:
    """Return one way to cut an op, indented by twelve."""
    items = [quoted(s.along), quoted(" ".join(p.value for p in s.inputs)), quoted(" ".join(p.value for p in s.outputs))]
    for word, chosen in (("given", s.given), ("absent", s.absent)):
        if chosen:
            places = [str(names.index(n)) for n in chosen]
            items.append(f"{word}=({', '.join(places)}{',' if len(places) == 1 else ''})")
    return bracketed("Way(", items, "),", 12)


def _tuple(name: str, items: list[str]) -> str:
    """Return an argument that is a tuple of strings, for a line indented by eight."""
    texts = [quoted(item) for item in items]
    line = f"{name}=({', '.join(texts)}{',' if len(texts) == 1 else ''}),"
    if len(line) + 8 <= WIDTH:
        return line
    return f"{name}=(\n" + "".join(f"            {text},\n" for text in texts) + "        ),"


def _with_group(op: Op, group: Group) -> int:
    """Return the position of the first input that has a group of its own like this."""
    return next(n for n, o in enumerate(op.inputs) if group in o.dims)


def _shape(operand: Operand, op: Op) -> str:
    """Return the entries of a shape, separated by blanks; a size that is computed is written as one word.

    The own group of an input that broadcasts is written `...` for the input, `...@2` where an output has the group of input 2.
    """
    words = []
    for d in operand.dims:
        if isinstance(d, Affine):
            words.append(str(d).replace(" ", ""))
        else:
            text = d.name if d.name == "..." else f"*{d.name}"
            own = d.of is not None and operand.name not in [o.name for o in op.inputs]
            words.append(f"{text}@{_with_group(op, d)}" if own else text)
    return " ".join(words)
