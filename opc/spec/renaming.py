"""Names that the targets can't have, spelled as they can: the tree of a spec with other names and the same places.

It is done once, before anything looks at a name, so that nothing behind has to. See `opc.names`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from opc.names import KEYWORDS, mangled
from opc.spec.text import Text
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode

_DECLARING = ("types", "inputs", "attributes", "outputs", "shape")
_NAMED = (*_DECLARING, "inplace")
# Texts in quotes stay; a name behind a dot or before a parenthesis or a single `=` is a member, a function or a keyword argument.
_TOKEN = re.compile(r"""'[^'\n]*'|"[^"\n]*"|(?<![\w.])([A-Za-z]\w*)(?!\w)(?![ \t]*(?:\(|=(?!=)))""")
_ASSIGNED = re.compile(r"""'[^'\n]*'|"[^"\n]*"|(?<![\w.])([A-Za-z]\w*)(?!\w)(?![ \t]*\()""")


def renamed(root: MappingNode) -> MappingNode:
    """Return a spec's tree in which names are spelled as the targets can have them."""
    declared = {_plain(key) for section, node in _sections(root) if section in _DECLARING for key in _keys(node)}
    if all(mangled(name) == name for name in _words(root)):
        return root

    def known(name: str) -> bool:
        return name not in KEYWORDS or name in declared or name[2:] in declared

    return replace(root, entries=tuple((key, _section(key.text.value, node, known)) for key, node in root.entries))


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


def _section(section: str, node: Node, known: Callable[[str], bool]) -> Node:
    """Return what stands under a key of the spec with its names and formulas renamed."""
    match section, node:
        case "kernel", Scalar():
            return _formula(node, known, body=True)
        case "require", _:
            return _formulas(node, known)
        case "gradient", MappingNode():
            change = {"body": lambda n: _formulas(n, known, body=True), "saves": _names}
            return _entries(node, change)
        case "reference", MappingNode():
            change = {"onnx": lambda n: _formulas(n, known), "torch": lambda n: _formulas(n, known)}
            return _entries(node, change)
        case "examples", SequenceNode():
            return replace(node, items=tuple(_named(item, lambda n: n) for item in node.items))
        case "inplace", _:
            return _named(node, _names)
        case "types", _:
            return _named(node, lambda n: n)
        case "attributes", _:
            own = {"check": lambda n: _formulas(n, known), "dim": _names, "binds": _names}
            return _named(node, lambda n: _entries(n, own))
        case "inputs" | "outputs", _:
            own = {"type": lambda n: _formulas(n, known)}
            return _named(node, lambda n: _formula(n, known) if isinstance(n, Scalar) else _entries(n, own))
        case "shape", _:
            return _named(node, lambda n: _formulas(n, known))
        case _:
            return node


def _named(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a mapping with its keys, which are names, renamed, and its values changed."""
    if not isinstance(node, MappingNode):
        return node
    return replace(node, entries=tuple((_name(key), change(value)) for key, value in node.entries))


def _entries(node: Node, change: dict[str, Callable[[Node], Node]]) -> Node:
    """Return a mapping of which some values are changed, by key."""
    if not isinstance(node, MappingNode):
        return node
    entries = ((key, change[key.text.value](value) if key.text.value in change else value) for key, value in node.entries)
    return replace(node, entries=tuple(entries))


def _names(node: Node) -> Node:
    """Return a name, or a list of names, renamed."""
    if isinstance(node, SequenceNode):
        return replace(node, items=tuple(_names(item) for item in node.items))
    return _name(node) if isinstance(node, Scalar) else node


def _name(key: Scalar) -> Scalar:
    name = _plain(key)
    return key if mangled(name) == name else replace(key, text=_put(key.text, [(0, len(name))]))


def _formulas(node: Node, known: Callable[[str], bool], body: bool = False) -> Node:
    if isinstance(node, SequenceNode):
        return replace(node, items=tuple(_formulas(item, known, body) for item in node.items))
    return _formula(node, known, body) if isinstance(node, Scalar) else node


def _formula(node: Scalar, known: Callable[[str], bool], body: bool = False) -> Scalar:
    """Return an expression or body with the names in it renamed; the target of a statement is a name too."""
    found = [m.span(1) for m in (_ASSIGNED if body else _TOKEN).finditer(node.text.value) if m[1] is not None and known(m[1])]
    places = [(start, end) for start, end in found if mangled(node.text.value[start:end]) != node.text.value[start:end]]
    return replace(node, text=_put(node.text, places)) if places else node


def _put(text: Text, places: list[tuple[int, int]]) -> Text:
    for start, end in reversed(places):
        text = text.replace(start, end, mangled(text.value[start:end]))
    return text
