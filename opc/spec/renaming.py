"""Names that the targets can't have, spelled as they can: the tree of a spec with other names and the same places.

It is done once, before anything looks at a name, so that nothing behind has to. See `opc.names`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from opc.names import KEYWORDS, MEMBERS, PARAMETERS, mangled, op_name
from opc.records import dataclass, replace
from opc.spec.text import STRING, SourceText
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode

_DECLARING = ("types", "inputs", "attributes", "outputs", "shape")
# Texts in quotes stay; a name behind a dot or before a parenthesis or a single `=` is a member, a function or a keyword argument.
_TOKEN = re.compile(STRING + r"""|(?<![\w.])([A-Za-z]\w*)(?!\w)(?![ \t]*(?:\(|=(?!=)))""")
_ASSIGNED = re.compile(STRING + r"""|(?<![\w.])([A-Za-z]\w*)(?!\w)(?![ \t]*\()""")


def renamed(root: MappingNode) -> MappingNode:
    """Return a spec's tree in which names are spelled as the targets can have them."""
    spell = _spelling(root)
    if all(spell(name) == op_name(name) == name for name in _words(root)):
        return root
    return replace(root, entries=tuple((key, _Renaming(spell).section(key.text.value, node)) for key, node in root.entries))


def _spelling(root: MappingNode) -> Callable[[str], str]:
    """Return what spells a name of a spec as the targets do."""
    names = {section: {_plain(key) for key in _keys(node)} for section, node in _sections(root) if section in _DECLARING}
    declared = set[str]().union(*names.values())
    operands = set[str]().union(*(names.get(section, ()) for section in ("inputs", "attributes", "outputs")))
    taken = (operands & PARAMETERS) | (names.get("attributes", set()) & MEMBERS)

    def spell(name: str) -> str:
        # A word of Python in a formula means what it does there, unless it is declared.
        known = name not in KEYWORDS or name in declared or name[2:] in declared
        return mangled(name, taken) if known else name

    return spell


def _words(node: Node) -> set[str]:
    match node:
        case Scalar():
            return set(re.findall(r"[A-Za-z]\w*", node.text.value))
        case SequenceNode():
            return set[str]().union(*(_words(item) for item in node.items))
        case MappingNode():
            return set[str]().union(*(_words(key) | _words(value) for key, value in node.entries))


def _sections(root: MappingNode) -> list[tuple[str, Node]]:
    return [(key.text.value, node) for key, node in root.entries]


def _keys(node: Node) -> list[Scalar]:
    return [key for key, _ in node.entries] if isinstance(node, MappingNode) else []


def _plain(key: Scalar) -> str:
    return key.text.value.removesuffix("?")


@dataclass(frozen=True, slots=True)
class _Renaming:
    """Renames the names in the parts of a spec."""

    spell: Callable[[str], str]

    def section(self, section: str, node: Node) -> Node:
        """Return what stands under a key of the spec with its names and formulas renamed."""
        match section, node:
            case "op", Scalar():
                return _Renaming(op_name).name(node)
            case "kernel", Scalar():
                return self.formula(node, body=True)
            case "require", _:
                return self.formulas(node)
            case "gradient", MappingNode():
                return self.entries(node, {"body": partial(self.formulas, body=True), "saves": self.names})
            case "reference", MappingNode():
                return self.entries(node, {"onnx": self.formulas, "torch": self.formulas})
            case "examples", SequenceNode():
                return replace(node, items=tuple(self.named(item, lambda n: n) for item in node.items))
            case "inplace", _:
                return self.named(node, self.names)
            case "types", _:
                return self.named(node, lambda n: n)
            case "attributes", _:
                own = {"check": self.formulas, **dict.fromkeys(("dim", "binds", "group", "of", "keeps"), self.names)}
                return self.named(node, lambda n: self.entries(n, own))
            case "inputs" | "outputs", _:
                typed = {"type": self.formulas}
                return self.named(node, lambda n: self.formula(n) if isinstance(n, Scalar) else self.entries(n, typed))
            case "shape", _:
                return self.named(node, self.formulas)
            case _:
                return node

    def named(self, node: Node, change: Callable[[Node], Node]) -> Node:
        """Return a mapping with its keys, which are names, renamed, and its values changed."""
        if not isinstance(node, MappingNode):
            return node
        return replace(node, entries=tuple((self.name(key), change(value)) for key, value in node.entries))

    def entries(self, node: Node, change: Mapping[str, Callable[[Node], Node]]) -> Node:
        """Return a mapping of which some values are changed, by key."""
        if not isinstance(node, MappingNode):
            return node
        entries = ((key, change[key.text.value](value) if key.text.value in change else value) for key, value in node.entries)
        return replace(node, entries=tuple(entries))

    def names(self, node: Node) -> Node:
        """Return a name, or a list of names, renamed."""
        if isinstance(node, SequenceNode):
            return replace(node, items=tuple(self.names(item) for item in node.items))
        return self.name(node) if isinstance(node, Scalar) else node

    def name(self, key: Scalar) -> Scalar:
        """Return a name renamed."""
        name = _plain(key)
        return key if self.spell(name) == name else replace(key, text=self.put(key.text, [(0, len(name))]))

    def formulas(self, node: Node, body: bool = False) -> Node:
        """Return an expression, or a list of them, with the names in it renamed."""
        if isinstance(node, SequenceNode):
            return replace(node, items=tuple(self.formulas(item, body) for item in node.items))
        return self.formula(node, body) if isinstance(node, Scalar) else node

    def formula(self, node: Scalar, body: bool = False) -> Scalar:
        """Return an expression or body with the names in it renamed; the target of a statement is a name too."""
        value = node.text.value
        found = [m.span(1) for m in (_ASSIGNED if body else _TOKEN).finditer(value) if m[1] is not None]
        places = [(start, end) for start, end in found if self.spell(value[start:end]) != value[start:end]]
        return replace(node, text=self.put(node.text, places)) if places else node

    def put(self, text: SourceText, places: Sequence[tuple[int, int]]) -> SourceText:
        """Return a text with the names at these places renamed."""
        for start, end in reversed(places):
            text = text.replace(start, end, self.spell(text.value[start:end]))
        return text
