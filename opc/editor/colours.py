"""The colours of kernel bodies: the kind of each word, number, text, operator and comment in them."""

from __future__ import annotations

import re

from lsprotocol.types import SemanticTokensLegend, SemanticTokenTypes

from opc.editor.occurrences import Kind, Outline
from opc.spec.text import STRING

_TYPES = {
    Kind.INPUT: SemanticTokenTypes.Parameter,
    Kind.OUTPUT: SemanticTokenTypes.Variable,
    Kind.TEMPORARY: SemanticTokenTypes.Variable,
    Kind.ATTRIBUTE: SemanticTokenTypes.Property,
    Kind.TYPE: SemanticTokenTypes.TypeParameter,
    Kind.DTYPE: SemanticTokenTypes.Type,
    Kind.DIMENSION: SemanticTokenTypes.EnumMember,
    Kind.GROUP: SemanticTokenTypes.EnumMember,
    Kind.INDEX: SemanticTokenTypes.Variable,
    Kind.FUNCTION: SemanticTokenTypes.Function,
    Kind.REDUCTION: SemanticTokenTypes.Macro,
    Kind.FORM: SemanticTokenTypes.Macro,
    Kind.WORD: SemanticTokenTypes.Keyword,
    Kind.CONSTANT: SemanticTokenTypes.Number,
}
_OTHERS = (SemanticTokenTypes.Comment, SemanticTokenTypes.String, SemanticTokenTypes.Number, SemanticTokenTypes.Operator)
_ORDER = list(dict.fromkeys((*_TYPES.values(), *_OTHERS)))
LEGEND = SemanticTokensLegend(token_types=[t.value for t in _ORDER], token_modifiers=[])
"""What the numbers of `tokens` stand for."""

_WORDLESS = re.compile(
    rf"""(?P<comment>\#[^\r\n]*)|(?P<string>{STRING})|(?P<name>[A-Za-z_]\w*)"""
    r"""|(?P<number>\d[\w.]*(?:(?<=[eE])[-+]\d+)?|\.\d+)|(?P<operator>\*\*|//|<<|>>|[&|^~]|[-+*/%<>=!]=?)"""
)


def tokens(text: str, names: Outline) -> list[tuple[int, int, int]]:
    """Return the coloured stretches of a spec's bodies: characters `start` to `end` (exclusive), and the number of their kind."""
    found = []
    stretches = []
    for body in names.bodies.values():
        if not body.positions:
            continue
        start, end = body.positions[0], body.positions[-1] + 1
        stretches.append((start, end))
        for match in _WORDLESS.finditer(text, start, end):
            kind = match.lastgroup or ""
            if kind != "name":
                found.append((match.start(), match.end(), _ORDER.index(SemanticTokenTypes(kind))))
    for o in names.occurrences:
        if o.kind in _TYPES and any(start <= o.start < end for start, end in stretches):
            found.append((o.start, o.end, _ORDER.index(_TYPES[o.kind])))
    return sorted(found)
