"""The Python source of a family's sharding rules for DTensor."""

from __future__ import annotations

from opc.analysis.sharding import Sharding, shardings
from opc.backends.batching import needs_batch_axes
from opc.backends.cuts import listing, permuting, placing, shape_words, way_items
from opc.backends.torch.library import templates
from opc.emit.python.layout import bracketed
from opc.emit.python.text import WIDTH, quoted
from opc.ir.op import AttributeKind, Family, Op


def sharding_source(family: Family) -> str:
    """Return the text of `torch/sharding.py`."""
    batched = needs_batch_axes(family)
    rules = "\n".join(_rule(op, batched) for op in family.ops)
    return templates.render("sharding.py.j2", family, rules=f"RULES = (\n{rules}\n)")


def _rule(op: Op, batched: bool) -> str:
    """Return the entry of one op, indented by four."""
    names = [o.name for o in op.inputs]
    parts = [f"operators.{op.name},", _tuple("inputs", [shape_words(o, op) for o in op.inputs])]
    parts.append(_tuple("outputs", [shape_words(o, op) for o in op.outputs]))
    ways = [_way(s, names) for s in shardings(op)]
    if len(ways) == 1 and len(ways[0].strip()) + len("        ways=(),") <= WIDTH:
        parts.append(f"ways=({ways[0].strip()}),")
    elif ways:
        parts.append("ways=(\n" + "".join(f"{way}\n" for way in ways) + "        ),")
    if op.broadcast:
        parts.append("broadcast=True,")
    axes = [(len(names) + n, a.dim) for n, a in enumerate(op.attributes) if a.kind is AttributeKind.AXIS and a.among is None]
    if axes:
        pairs = [f"({n}, {quoted(str(dim))})" for n, dim in axes]
        parts.append(f"axes=({', '.join(pairs)}{',' if len(pairs) == 1 else ''}),")
    positions = {a.name: str(len(names) + n) for n, a in enumerate(op.attributes)}
    if listed := listing(op, positions.__getitem__):
        parts.append(f"listed=({', '.join(listed)}),")
    if placed := placing(op, positions.__getitem__):
        parts.append(f"placed=({', '.join(placed)}),")
    if permuted := permuting(op, positions.__getitem__):
        parts.append(f"permuted=({', '.join(permuted)}),")
    if batched:
        parts.append(f"batch_axes={len(names) + len(op.attributes)},")
    return "    Rule(\n" + "".join(f"        {part}\n" for part in parts) + "    ),"


def _way(s: Sharding, names: list[str]) -> str:
    """Return one way to cut an op, indented by twelve."""
    return bracketed("Way(", way_items(s, names), "),", 12)


def _tuple(name: str, items: list[str]) -> str:
    """Return an argument that is a tuple of strings, for a line indented by eight."""
    texts = [quoted(item) for item in items]
    line = f"{name}=({', '.join(texts)}{',' if len(texts) == 1 else ''}),"
    if len(line) + 8 <= WIDTH:
        return line
    return f"{name}=(\n" + "".join(f"            {text},\n" for text in texts) + "        ),"
