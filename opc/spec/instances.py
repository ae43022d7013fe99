"""What a spec says of the ops that it describes: one, or one for each number that stands under `ranks` or `counts`.

With `ranks: {S: [1, 2, 3], K: S}`, the groups `*S` and `*K` have one, two or three axes; with `counts: {x: [2, 3, 4], N: x}`
there are two, three or four operands `x`, each with a dimension `N` of its own. `opc.spec.instantiate` writes such a spec out for
one of the numbers.

This is polymorphism by monomorphisation: an op per rank, as in `max_pool1d` and `max_pool2d`, or per count, as in `concat2`.
"""

from __future__ import annotations

from collections.abc import Iterator

from opc.diagnostics import Diagnostics, Source
from opc.records import dataclass
from opc.spec.copies import words
from opc.spec.files import COUNTS, RANKS
from opc.spec.text import name_problem
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode, parse_yaml, scalar_value

MAX_NUMBER = 8
"""How many axes a group may have, and of how many operands there may be one for each."""


@dataclass(frozen=True, slots=True)
class Instances:
    """What a spec says under `ranks` or `counts`, its `key`: the numbers, in order, and what there are so many of, by name."""

    key: str
    numbers: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """How messages speak of a key."""

    number: str
    named: str
    example: str
    longer: str


_WORDS = {
    RANKS: _Words("rank", "group", "ranks: {S: [1, 2, 3]}", "ranks: {S: [1, 2, 3], K: S}"),
    COUNTS: _Words("count", "name", "counts: {x: [2, 3, 4]}", "counts: {x: [2, 3, 4], N: x}"),
}


def instances_of(root: MappingNode, found: Diagnostics) -> Instances | None:
    """Return what a spec says of several ops; None where it describes one, or says it wrongly, which is recorded."""
    keys = [key for key, _ in root.entries if key.text.value in _WORDS]
    if not keys:
        return None
    key = keys[0].text.value
    other = next((k for k in keys if k.text.value != key), None)
    if other is not None:
        found.error("an op is of several ranks or of several counts, not of both", other.span, "write two specs")
        return None
    node, said = entry(root, key), _WORDS[key]
    before = len(found.items)
    if not isinstance(node, MappingNode) or not node.entries:
        place = keys[0].span if node is None else node.span
        found.error(f"expected a mapping of {said.named}s to their {key}", place, f"write {said.example}")
        return None
    listed = [(k, value) for k, value in node.entries if isinstance(value, SequenceNode)]
    if len(listed) != 1:
        place = listed[1][0].span if listed else node.entries[0][0].span
        found.error(f"one {said.named} lists the {key}, the others name it", place, f"write {said.longer}")
        return None
    numbers = tuple(_numbers(listed[0][1], said.number, found))
    name = listed[0][0].text.value
    for _, value in node.entries:
        if isinstance(value, Scalar) and value.text.value != name:
            found.error(f"'{value.text.value}' lists no {key}", value.span, f"write {name}")
        elif isinstance(value, MappingNode):
            found.error(f"expected {key}, or the {said.named} that lists them", value.span)
    if key == RANKS:
        _check_groups(node, found)
    else:
        _check_packs(node, root, found)
    if len(found.items) > before:
        return None
    return Instances(key, numbers, tuple(k.text.value for k, _ in node.entries))


def read_instances(text: str) -> tuple[MappingNode, Instances] | None:
    """Return a spec's text as a tree, with what it says of several ops; None of one that describes one op, or can't be read."""
    found = Diagnostics()
    root = parse_yaml(Source("", text), found)
    if not isinstance(root, MappingNode):
        return None
    instances = instances_of(root, found)
    return None if instances is None else (root, instances)


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the numbers for which a spec's text describes an op; none of one that describes one op, or can't be read."""
    made = read_instances(text)
    return () if made is None else made[1].numbers


def entry(node: Node, name: str) -> Node | None:
    """Return what stands under a key; None where nothing does."""
    entries = node.entries if isinstance(node, MappingNode) else ()
    return next((value for key, value in entries if key.text.value == name), None)


def kind_of(value: Node) -> str | None:
    """Return the type that a declaration says, which is all of it or stands under `type`."""
    kind = entry(value, "type") if isinstance(value, MappingNode) else value
    return kind.text.value if isinstance(kind, Scalar) else None


def _numbers(node: SequenceNode, word: str, found: Diagnostics) -> Iterator[int]:
    last = 0
    if not node.items:
        found.error(f"there is no {word}", node.span, "write [1, 2, 3]")
    for item in node.items:
        value = scalar_value(item) if isinstance(item, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_NUMBER:
            found.error(f"a {word} is a whole number from 1 to {MAX_NUMBER}", item.span)
        elif value <= last:
            found.error(f"{word}s rise", item.span, "list each once, the least first")
        else:
            last = value
            yield value


def _check_groups(node: MappingNode, found: Diagnostics) -> None:
    """Record names under `ranks` that no group can have, or two together."""
    lowered: dict[str, str] = {}
    for key, _ in node.entries:
        name = key.text.value
        problem = name_problem(name)
        if problem is None and name == name.lower():
            problem = "the indices of a group of several ranks have its name in small letters"
        if problem is not None:
            hint = f"write {name.upper()}" if name.isidentifier() and name == name.lower() else None
            found.error(f"'{name}' can't name a group: {problem}", key.span, hint)
        other = lowered.setdefault(name.lower(), name)
        if other != name:
            found.error(f"the indices of '*{name}' would be called as those of '*{other}'", key.span, "rename a group")


def _check_packs(node: MappingNode, root: MappingNode, found: Diagnostics) -> None:
    """Record names under `counts` that neither an operand nor a dimension has."""
    operands, dimensions = set[str](), set[str]()
    for section in ("inputs", "outputs"):
        declared = entry(root, section)
        for key, value in declared.entries if isinstance(declared, MappingNode) else ():
            operands.add(key.text.value.removesuffix("?"))
            dimensions.update(name for _, name in words((kind_of(value) or "").partition("[")[2]))
    for key, _ in node.entries:
        name = key.text.value
        if name not in operands | dimensions:
            found.error(f"no operand or dimension is called '{name}'", key.span, "name what there are several of")
