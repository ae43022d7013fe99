"""What a spec says of the ops that it describes: one, or one for each number that is listed under `ranks` or `counts`.

With `ranks: {S: [1, 2, 3], K: S}`, the groups `*S` and `*K` have one, two or three axes; with `counts: {x: [2, 3, 4], N: x}`
there are two, three or four operands `x`, each with a dimension `N` of its own. With two lists, two groups that have one or one
under each key, there is an op for each pair of numbers. `opc.spec.instantiate` writes such a spec out for one of them.

This is polymorphism by monomorphisation: an op per rank, as in `max_pool1d` and `max_pool2d`, or per count, as in `concat2`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from opc.diagnostics import Diagnostics, Source
from opc.records import dataclass
from opc.spec.copies import words
from opc.spec.files import COUNTS, KEYS, RANKS, Numbers
from opc.spec.text import name_problem
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode, parse_yaml, scalar_value

MAX_NUMBER = 8
"""How many axes a group may have, and of how many operands there may be one for each."""


_STATED = re.compile("require: |add the check ")
"""What stands ahead of a condition in a hint that says what to write."""
_COPY = re.compile(r"[A-Za-z_]\w*(?:\[\d+\])?")


@dataclass(frozen=True, slots=True)
class Instances:
    """What a list under `ranks` or `counts`, its `key`, says: the numbers, in order, and what there are so many of, by name."""

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


def in_own_words(hint: str, names: Mapping[str, tuple[str, int]]) -> str:
    """Return a hint in which conditions to write are on what a spec has one of for each axis or operand, by its name.

    `names` has the names of each copy, with the number of the copy. A condition on several copies can't be written so.
    """
    stated = _STATED.search(hint)
    before, condition = (hint[: stated.end()], hint[stated.end() :]) if stated else (hint, "")
    used = {word: names[word] for word in _COPY.findall(condition) if word in names}
    if len({number for _, number in used.values()}) != 1:
        return hint
    return before + _COPY.sub(lambda m: used[m[0]][0] if m[0] in used else m[0], condition)


def copies_of(root: MappingNode, instances: Sequence[Instances], numbers: Numbers) -> dict[str, tuple[str, int]]:
    """Return the names that a spec has of its own once it is written out, each with what it is a copy of, and its number."""
    names = {f"{name}{n}": (name, n) for i, most in zip(instances, numbers) for name in i.names for n in range(most)}
    attributes = entry(root, "attributes")
    for key, value in attributes.entries if isinstance(attributes, MappingNode) else ():
        if "[*" in (kind_of(value) or "").replace(" ", ""):
            names |= {f"{key.text.value}[{n}]": (key.text.value, n) for n in range(MAX_NUMBER)}
    return names


def instances_of(root: MappingNode, found: Diagnostics) -> tuple[Instances, ...]:
    """Return what the lists of numbers of a spec say, those of ranks first; none where it describes one op, or says it wrongly,
    which is recorded."""
    before = len(found.items)
    made = [instances for key in KEYS for instances in _under(root, key, found)]
    return tuple(made) if len(found.items) == before else ()


def _under(root: MappingNode, key: str, found: Diagnostics) -> list[Instances]:
    """Return what the lists under a key say."""
    place = next((k.span for k, _ in root.entries if k.text.value == key), None)
    if place is None:
        return []
    node, said = entry(root, key), _WORDS[key]
    if not isinstance(node, MappingNode) or not node.entries:
        at = place if node is None else node.span
        found.error(f"expected a mapping of {said.named}s to their {key}", at, f"write {said.example}")
        return []
    listed = [(k, value) for k, value in node.entries if isinstance(value, SequenceNode)]
    if not listed:
        found.error(f"one {said.named} lists the {key}, the others name it", node.entries[0][0].span, f"write {said.longer}")
        return []
    if len(listed) > 1 and key == COUNTS:
        found.error("one name lists the counts, the others name it", listed[1][0].span, f"write {said.longer}")
        return []
    numbers = {k.text.value: tuple(_numbers(value, said.number, found)) for k, value in listed}
    names = {name: [name] for name in numbers}
    for k, value in node.entries:
        if isinstance(value, Scalar) and value.text.value in names:
            names[value.text.value].append(k.text.value)
        elif isinstance(value, Scalar):
            found.error(f"'{value.text.value}' lists no {key}", value.span, f"write {' or '.join(numbers)}")
        elif isinstance(value, MappingNode):
            found.error(
                f"expected {key}, or the {said.named} that lists them",
                value.span,
                "write [1, 2, 3], or the name of another entry",
            )
    if key == RANKS:
        _check_groups(node, found)
    else:
        _check_packs(node, root, found)
    return [Instances(key, numbers[name], tuple(names[name])) for name in numbers]


def read_instances(text: str) -> tuple[MappingNode, tuple[Instances, ...]] | None:
    """Return a spec's text as a tree, with what it says of several ops; None of one that describes one op, or can't be read."""
    found = Diagnostics()
    root = parse_yaml(Source("", text), found)
    if not isinstance(root, MappingNode):
        return None
    instances = instances_of(root, found)
    return (root, instances) if instances else None


def numbers_of(text: str) -> tuple[tuple[int, ...], ...]:
    """Return the ranks and counts of each op of a spec's text; none of a text that is one op, or can't be read."""
    made = read_instances(text)
    return () if made is None else tuple(product(*(i.numbers for i in made[1])))


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
            found.error(f"a {word} is a whole number from 1 to {MAX_NUMBER}", item.span, "list numbers such as [1, 2, 3]")
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
