"""Specs of several ranks: one text that is an op for each number of axes that its groups may have.

With `ranks: {S: [1, 2, 3], K: S}`, the groups `*S` and `*K` have one, two or three axes. `at_rank` writes the spec out for one of
these numbers, before anything looks at a name or a formula: `*S` becomes its axes, `*(S*stride - 1)` the expression once for
each of them. All that stands behind sees an op of fixed rank, and every character keeps its place in the file.

This is the rank polymorphism of array languages by monomorphisation: an op per rank, as in `max_pool1d` and `max_pool2d`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from opc.diagnostics import Diagnostics, Source
from opc.records import dataclass, replace
from opc.spec.files import KEY, suffix
from opc.spec.per_axis import Axes, Texts, words
from opc.spec.text import SourceText, name_problem
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode, parse_yaml, scalar_value

MAX_RANK = 8
"""How many axes a group may have."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """What a spec says under `ranks`: the numbers of axes, in order, and the groups that have so many."""

    numbers: tuple[int, ...]
    groups: tuple[str, ...]


def ranks_of(root: MappingNode, found: Diagnostics) -> Ranks | None:
    """Return what a spec says of ranks; None where it has the key not, or wrongly, which is recorded."""
    node = _entry(root, KEY)
    if node is None:
        return None
    before = len(found.items)
    if not isinstance(node, MappingNode) or not node.entries:
        found.error("expected a mapping of groups to their ranks", node.span, "write ranks: {S: [1, 2, 3]}")
        return None
    listed = [(key, value) for key, value in node.entries if isinstance(value, SequenceNode)]
    if len(listed) != 1:
        place = listed[1][0].span if listed else node.entries[0][0].span
        found.error("one group lists the ranks, the others name it", place, "write ranks: {S: [1, 2, 3], K: S}")
        return None
    numbers = tuple(_numbers(listed[0][1], found))
    name = listed[0][0].text.value
    lowered: dict[str, str] = {}
    for key, value in node.entries:
        _check_group(key, found)
        other = lowered.setdefault(key.text.value.lower(), key.text.value)
        if other != key.text.value:
            found.error(f"the indices of '*{key.text.value}' would be called as those of '*{other}'", key.span, "rename a group")
        if isinstance(value, Scalar) and value.text.value != name:
            found.error(f"'{value.text.value}' lists no ranks", value.span, f"write {name}")
        elif isinstance(value, MappingNode):
            found.error("expected ranks, or the group that lists them", value.span)
    if len(found.items) > before:
        return None
    return Ranks(numbers, tuple(key.text.value for key, _ in node.entries))


def numbers_of(text: str) -> tuple[int, ...]:
    """Return the ranks of a spec's text; none of one that is of one rank, or can't be read."""
    found = Diagnostics()
    root = parse_yaml(Source("", text), found)
    ranks = ranks_of(root, found) if isinstance(root, MappingNode) else None
    return () if ranks is None else ranks.numbers


def axes_of_inputs(text: str) -> dict[int, list[int | None]]:
    """Return for each rank of a spec's text how many axes its inputs have, in order; None of one that may have any number."""
    found = Diagnostics()
    root = parse_yaml(Source("", text), found)
    ranks = ranks_of(root, found) if isinstance(root, MappingNode) else None
    if ranks is None or not isinstance(root, MappingNode):
        return {}
    made: dict[int, list[int | None]] = {}
    for rank in ranks.numbers:
        axes = Axes(ranks.groups, rank, frozenset())
        texts = Texts(axes, found)
        made[rank] = [texts.count_axes(kind) for _, kind in _Written(axes, texts, root).declared("inputs")]
    return made


def _numbers(node: SequenceNode, found: Diagnostics) -> Iterator[int]:
    last = 0
    if not node.items:
        found.error("there is no rank", node.span, "write [1, 2, 3]")
    for item in node.items:
        value = scalar_value(item) if isinstance(item, Scalar) else None
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_RANK:
            found.error(f"a rank is a whole number from 1 to {MAX_RANK}", item.span)
        elif value <= last:
            found.error("ranks rise", item.span, "list each once, the least first")
        else:
            last = value
            yield value


def _check_group(key: Scalar, found: Diagnostics) -> None:
    name = key.text.value
    problem = name_problem(name)
    if problem is None and name == name.lower():
        problem = "the indices of a group of several ranks have its name in small letters"
    if problem is not None:
        hint = f"write {name.upper()}" if name.isidentifier() and name == name.lower() else None
        found.error(f"'{name}' can't name a group: {problem}", key.span, hint)


def _entry(root: MappingNode, name: str) -> Node | None:
    return next((value for key, value in root.entries if key.text.value == name), None)


def at_rank(root: MappingNode, ranks: Ranks, rank: int, found: Diagnostics) -> MappingNode:
    """Return a spec written out for one of its ranks.

    Mistakes are recorded: a name that a group, an axis or its index has, native code, a group where no axes can stand.
    """
    axes = Axes(ranks.groups, rank, frozenset(_ranked_lists(root, ranks)))
    _check_names(root, axes, found)
    native = next((key for key, _ in root.entries if key.text.value == "native"), None)
    if native is not None:
        found.error("native code is of one rank", native.span, f"write a spec without `{KEY}`")
    return _Written(axes, Texts(axes, found), root).spec()


def _ranked_lists(root: MappingNode, ranks: Ranks) -> Iterator[str]:
    """Yield the attributes that are lists of one element for each axis of a group."""
    attributes = _entry(root, "attributes")
    for key, value in attributes.entries if isinstance(attributes, MappingNode) else ():
        kind = _entry(value, "type") if isinstance(value, MappingNode) else value
        if isinstance(kind, Scalar) and _length_group(kind.text.value) in ranks.groups:
            yield key.text.value


def _length_group(kind: str) -> str | None:
    """Return the group that a list of type `int[*S]` has an element for each axis of."""
    element, bracket, rest = kind.partition("[")
    inside = rest.strip().removesuffix("]").strip()
    return inside[1:].strip() if element and bracket and inside.startswith("*") else None


def _check_names(root: MappingNode, axes: Axes, found: Diagnostics) -> None:
    """Record what is declared by the name of a group, and each first use of a name that an axis of a group has, or its index."""
    for section in ("types", "inputs", "attributes", "outputs"):
        declared = _entry(root, section)
        for key, _ in declared.entries if isinstance(declared, MappingNode) else ():
            if key.text.value.removesuffix("?") in axes.groups:
                found.error(f"'{key.text.value.removesuffix('?')}' is a group of axes", key.span, "take another name")
    taken = {n: f"the size of an axis of '*{g}'" for g in axes.groups for n in axes.sizes(g)}
    taken |= {n: f"the index of an axis of '*{g}'" for g in axes.groups for n in axes.indices(g)}
    for key, node in root.entries:
        if key.text.value in ("doc", "reference", "examples", KEY):
            continue
        for scalar in (key, *_scalars(node)):
            for start, name in words(scalar.text.value):
                if name in taken:
                    place = scalar.text.span(start, start + len(name))
                    found.error(f"'{name}' is {taken.pop(name)}", place, "take another name")


def _scalars(node: Node) -> Iterator[Scalar]:
    match node:
        case Scalar():
            yield node
        case SequenceNode():
            for item in node.items:
                yield from _scalars(item)
        case MappingNode():
            for key, value in node.entries:
                if key.text.value != "doc":
                    yield key
                    yield from _scalars(value)


@dataclass(frozen=True, slots=True)
class _Written:
    """Writes the parts of a spec out for one rank."""

    axes: Axes
    texts: Texts
    root: MappingNode

    def spec(self) -> MappingNode:
        return replace(self.root, entries=tuple((key, self.section(key.text.value, node)) for key, node in self.root.entries))

    def section(self, section: str, node: Node) -> Node:
        """Return what stands under a key of the spec, written out."""
        match section, node:
            case "op", Scalar():
                return self.suffixed(node)
            case "onnx_name", Scalar():
                return self.suffixed(node)
            case "names", MappingNode():
                return _values(node, self.suffixed)
            case "doc", Scalar():
                return self.numbered(node)
            case "reference", _:
                return _each(node, lambda n: self.numbered(self.text(n, self.texts.reference)))
            case "kernel", Scalar():
                return self.text(node, self.body)
            case "gradient", MappingNode():
                return _under(node, {"body": partial(self.text, how=self.body)})
            case "inputs" | "outputs", MappingNode():
                return _values(node, self.operand)
            case "attributes", MappingNode():
                return _values(node, self.attribute)
            case "shape", MappingNode():
                return replace(node, entries=tuple(e for key, value in node.entries for e in self.sizes(key, value)))
            case "require", SequenceNode():
                return replace(node, items=tuple(n for item in node.items for n in self.conditions(item)))
            case "examples", SequenceNode():
                return replace(node, items=tuple(item for item in node.items if self.is_example(item)))
            case _:
                return node

    def text(self, node: Node, how: Callable[..., SourceText]) -> Node:
        """Return a scalar with its text written out; anything else as it is."""
        return replace(node, text=how(node.text)) if isinstance(node, Scalar) else node

    def body(self, text: SourceText) -> SourceText:
        """Return a body, of the op or its gradient."""
        outputs = [name for name, _ in self.declared("outputs")]
        return self.texts.body(text, [*outputs, *(f"d_{name}" for name, _ in self.declared("inputs"))])

    def suffixed(self, node: Node) -> Node:
        """Return the name of an op with its rank."""
        if not isinstance(node, Scalar) or not node.text.value:
            return node
        last = len(node.text.value) - 1
        return replace(node, text=node.text.replace(last, last + 1, node.text.value[-1] + suffix(self.axes.rank)))

    def numbered(self, node: Node) -> Node:
        """Return a text in which `{S}` is the number of axes of a group."""
        if isinstance(node, Scalar):
            for group in self.axes.groups:
                while (start := node.text.value.find("{" + group + "}")) >= 0:
                    node = replace(node, text=node.text.replace(start, start + len(group) + 2, str(self.axes.rank)))
        return node

    def operand(self, node: Node) -> Node:
        if isinstance(node, MappingNode):
            return _under(node, {"type": self.operand, "doc": self.numbered})
        return self.text(node, self.texts.shape)

    def attribute(self, node: Node) -> Node:
        if isinstance(node, Scalar):
            return self.text(node, self.texts.list_type)
        if not isinstance(node, MappingNode):
            return node
        kind = _entry(node, "type")
        listed = isinstance(kind, Scalar) and _length_group(kind.text.value) in self.axes.groups
        default = self.repeated if listed else (lambda n: n)
        return _under(node, {"type": self.attribute, "default": default, "doc": self.numbered})

    def repeated(self, node: Node) -> Node:
        """Return the default of a list: a number stands for as many as there are axes."""
        return SequenceNode((node,) * self.axes.rank, node.span) if isinstance(node, Scalar) else node

    def sizes(self, key: Scalar, value: Node) -> Iterator[tuple[Scalar, Node]]:
        """Yield what stands under `shape` for a dimension, or for each axis of a group."""
        name = key.text.value
        if name not in self.axes.groups:
            yield key, self.text(value, self.texts.sizes)
            return
        for i, size in enumerate(self.axes.sizes(name)):
            yield replace(key, text=key.text.replace(0, len(name), size)), self.text(value, partial(self.texts.size, axis=i))

    def conditions(self, node: Node) -> Iterator[Node]:
        """Yield a condition, once for each axis where it is one of an axis."""
        if isinstance(node, Scalar) and self.texts.is_per_axis(node.text.value):
            for i in range(self.axes.rank):
                yield self.text(node, partial(self.texts.size, axis=i))
        else:
            yield self.text(node, self.texts.sizes)

    def is_example(self, node: Node) -> bool:
        """Whether an example is one of this rank: by the lists of numbers in it, or by the axes of an operand."""
        if not isinstance(node, MappingNode):
            return True
        for key, value in node.entries:
            if key.text.value in self.axes.lists and isinstance(value, SequenceNode):
                return len(value.items) == self.axes.rank
        declared = {name: text for section in ("inputs", "outputs") for name, text in self.declared(section)}
        for key, value in node.entries:
            expected = self.texts.count_axes(declared.get(key.text.value, ""))
            if expected is not None:
                return _depth(value) == expected
        return True

    def declared(self, section: str) -> Iterator[tuple[str, str]]:
        node = _entry(self.root, section)
        for key, value in node.entries if isinstance(node, MappingNode) else ():
            kind = _entry(value, "type") if isinstance(value, MappingNode) else value
            if isinstance(kind, Scalar):
                yield key.text.value.removesuffix("?"), kind.text.value


def _depth(node: Node) -> int:
    depth = 0
    while isinstance(node, SequenceNode):
        depth += 1
        if not node.items:
            break
        node = node.items[0]
    return depth


def _values(node: MappingNode, change: Callable[[Node], Node]) -> MappingNode:
    return replace(node, entries=tuple((key, change(value)) for key, value in node.entries))


def _under(node: MappingNode, change: Mapping[str, Callable[[Node], Node]]) -> MappingNode:
    """Return a mapping of which some values are changed, by key."""
    return replace(node, entries=tuple((k, change[k.text.value](v) if k.text.value in change else v) for k, v in node.entries))


def _each(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with each scalar below it changed."""
    match node:
        case Scalar():
            return change(node)
        case SequenceNode():
            return replace(node, items=tuple(_each(item, change) for item in node.items))
        case MappingNode():
            return _values(node, partial(_each, change=change))
