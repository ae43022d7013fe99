"""What editors show of the thing under the cursor: types, shapes, ranges, derivatives, and what a key is for. It is Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterator

from opc.analysis.elaborate.typing import elaborate
from opc.diagnostics import SpecError
from opc.editor.checks import Checked
from opc.editor.completion import place
from opc.editor.gradient_text import gradient_text
from opc.editor.occurrences import Kind, Occurrence, Outline
from opc.editor.words import ABOUT_FORMS, ABOUT_REDUCTIONS, about_function
from opc.ir.dtypes import TYPE_SETS
from opc.ir.expr_nodes import Axis, Reduce, walk
from opc.ir.op import Op
from opc.ir.printer import format_attribute, format_op, format_operand
from opc.names import spelled
from opc.records import replace
from opc.spec.loader import model_at
from opc.spec.model import SpecModel


def hover(text: str, offset: int, names: Outline, checked: Checked) -> tuple[str, int, int] | None:
    """Return what is shown at a character, in Markdown, and the characters that it is of; None where nothing is known.

    `checked` may be of an earlier text of the same spec: types and shapes are those of then.
    """
    found = names.at(offset)
    if found is not None:
        about = _about(found, text, names, _typed(checked))
        return (about, found.start, found.end) if about else None
    start, end = _word(text, offset)
    word = text[start:end]
    here = place(text, start)
    if not word or not here.is_key or not text[end:].lstrip("'\" ").startswith(":"):
        return _op(text, offset, checked)
    model = model_at(here.path) if here.path else SpecModel
    field = model.model_fields.get(word)
    if field is None:
        return None
    about = field.description or ""
    if not here.path and word in ("kernel", "gradient", "op"):
        about = f"{about}\n\n{_derived(checked)}".strip()
    return about, start, end


def _op(text: str, offset: int, checked: Checked) -> tuple[str, int, int] | None:
    """Return what is shown of the op itself, at its name."""
    if checked.spec is None or checked.op is None or ("op",) not in checked.spec.values:
        return None
    positions = checked.spec.text("op").positions
    if not positions or not positions[0] <= offset <= positions[-1] + 1:
        return None
    return (
        f"```\n{format_op(_typed(checked) or checked.op).rstrip()}\n```\n\n{_derived(checked)}",
        positions[0],
        positions[-1] + 1,
    )


def _derived(checked: Checked) -> str:
    if checked.family is None:
        return ""
    if checked.family.backward is None:
        return "It has no gradient."
    return f"The gradient is {checked.family.gradient_origin}:\n\n```yaml\n{gradient_text(checked.family.backward).rstrip()}\n```"


def _word(text: str, offset: int) -> tuple[int, int]:
    start = end = offset
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    return start, end


def _typed(checked: Checked) -> Op | None:
    """Return the op as it is written, before it is simplified."""
    if checked.spec is None or checked.op is None:
        return None
    try:
        return elaborate(checked.spec)
    except SpecError:  # pragma: no cover - it was elaborated for the check
        return checked.op


def _about(found: Occurrence, text: str, names: Outline, op: Op | None) -> str | None:
    match found.kind:
        case Kind.INPUT | Kind.OUTPUT | Kind.TEMPORARY:
            return _operand(found, op)
        case Kind.ATTRIBUTE:
            return _attribute(found, op)
        case Kind.INDEX:
            return _index(found, text, names, op)
        case Kind.DIMENSION | Kind.GROUP:
            return _dimension(found, op)
        case Kind.TYPE:
            types = [t for t in op.types if spelled(t.name) == found.name] if op else []
            return (
                f"```\n{found.name}: {', '.join(d.value for d in types[0].dtypes)}\n```\ntype variable"
                if types
                else found.kind.value
            )
        case Kind.FUNCTION:
            return about_function(found.name)
        case Kind.REDUCTION:
            return ABOUT_REDUCTIONS[found.name]
        case Kind.FORM:
            return ABOUT_FORMS[found.name]
        case Kind.DTYPE if found.name in TYPE_SETS:
            return f"`{found.name}`: {', '.join(d.value for d in TYPE_SETS[found.name])}"
        case _:
            return None


def _code(text: str, about: str, doc: str = "") -> str:
    return f"```\n{text}\n```\n{_plain(about)}" + (f"\n\n{_plain(doc)}" if doc else "")


_LAYOUT = re.compile(
    r"""^(?:[-+=>#:]|\d+[.)])"""  # what makes a list, a heading, a quotation
    r"""|[\\`\[~]|\*(?!\s)|(?<!\s)\*|_(?![^\W_])|(?<![^\W_])_|<(?=[\w/!?])|&(?=\#?\w+;)"""
)


def _plain(text: str) -> str:
    """Return a text on one line in which no sign is taken for layout; those that are none stay as they are."""
    return _LAYOUT.sub(lambda m: _ENTITIES.get(m[0]) or f"{m[0][:-1]}\\{m[0][-1]}", " ".join(text.split()))


_ENTITIES = {"<": "&lt;", "&": "&amp;"}


def _operand(found: Occurrence, op: Op | None) -> str:
    every = {spelled(o.name): o for o in op.operands} if op else {}
    operand = every.get(found.name)
    if operand is None:
        return found.kind.value
    optional = "optional " if operand.optional and found.kind is Kind.INPUT else ""
    return _code(format_operand(replace(operand, name=found.name)), f"{optional}{found.kind.value}", operand.doc)


def _attribute(found: Occurrence, op: Op | None) -> str:
    attribute = next((a for a in op.attributes if spelled(a.name) == found.name), None) if op else None
    if attribute is None:
        return found.kind.value
    check = f", where {attribute.check_text}" if attribute.check_text else ""
    values = f", one of {', '.join(attribute.values)}" if attribute.values else ""
    return _code(format_attribute(replace(attribute, name=found.name)), f"attribute{check}{values}", attribute.doc)


def _dimension(found: Occurrence, op: Op | None) -> str:
    derived = next((value for name, value in op.dims if spelled(name) == found.name), None) if op else None
    if derived is not None:
        return _code(f"{found.name} = {derived}", "derived dimension")
    of = [spelled(o.name) for o in op.inputs if found.name in _entries(o.dims)] if op else []
    return _code(found.name, f"{found.kind.value} of {', '.join(of)}" if of else found.kind.value)


def _entries(dims: tuple[object, ...]) -> list[str]:
    return [str(dim).lstrip("*").partition("@")[0] for dim in dims]


def _index(found: Occurrence, text: str, names: Outline, op: Op | None) -> str:
    statement = next((s for s in names.statements if s.scope == found.scope), None)
    extents = list(dict.fromkeys(_extents(found.name, statement.target, op))) if statement and op else []
    ranges = "\n".join(f"0 <= {found.name} < {extent}" for extent in extents)
    return _code(ranges, "index") if ranges else "index"


def _extents(index: str, target: str, op: Op) -> Iterator[str]:
    """Yield the extents of an index in the statements that assign a name: that of the target's axis, and of reductions."""
    operands = {o.name: o for o in (*op.outputs, *op.temporaries)}
    for assign in op.body:
        if spelled(assign.target) != target:
            continue
        for own, dim in zip(assign.indices, operands[assign.target].dims, strict=True):
            if isinstance(own, str) and spelled(own) == index:
                yield str(dim)
        for node in walk(assign.value):
            if isinstance(node, Reduce):
                yield from (str(a.extent) for a in node.axes if isinstance(a, Axis) and spelled(a.index) == index)
