"""Writes a spec of several ranks or counts out for one of its ops, before anything looks at a name or a formula.

Of ranks, `*S` becomes the axes of the group, and `*(S*stride - 1)` the expression once for each of them; of counts, `x: T[N]`
becomes the operands `x0: T[N0]` and `x1: T[N1]`, `*x` both. Where there are several lists of numbers, that is done for one list
after the other. All that stands behind sees an op of fixed rank with single operands, and every character keeps its place in the
file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from opc.diagnostics import Diagnostics
from opc.records import dataclass, replace
from opc.spec.copies import Copies, words
from opc.spec.expansion import Texts, count_axes
from opc.spec.files import KEYS, RANKS, Numbers, suffix
from opc.spec.instances import Instances, entry, kind_of
from opc.spec.text import SourceText
from opc.spec.yaml_tree import MappingNode, Node, Scalar, SequenceNode


def instantiate(root: MappingNode, instances: Sequence[Instances], numbers: Numbers, found: Diagnostics) -> MappingNode:
    """Return a spec written out for some ranks and a count, one of each list.

    Mistakes are recorded: a name that a group, an axis, its index or one of several operands has, native code, a group where no
    axes can stand, several operands where one is meant.
    """
    every = _copies(root, instances, numbers)
    for copies in every:
        _check_names(root, copies, found)
    native = next((key for key, _ in root.entries if key.text.value == "native"), None)
    if native is not None:
        key = instances[0].key
        found.error(f"native code is of one {key.removesuffix('s')}", native.span, f"write a spec without `{key}`")
    before = len(found.items)
    for own, copies in zip(instances, every):
        if len(found.items) > before:
            break  # what is told of one list, the next would tell again
        root = _Written(own.key, copies, Texts(copies, found), root).spec()
    return root


def _copies(root: MappingNode, instances: Sequence[Instances], numbers: Numbers) -> list[Copies]:
    """Return for each list of numbers what there is one of for each axis or operand, beside what the others tell."""
    made = []
    for own, number in zip(instances, numbers, strict=True):
        beside = {name: n for i, n in zip(instances, numbers) if i is not own and i.key == RANKS for name in i.names}
        names = [name for i in instances if i is not own for name in i.names]
        others, lists = frozenset([*names, *_lists(root, names)]), frozenset(_lists(root, own.names))
        if own.key == RANKS:
            made.append(Copies(number, groups=own.names, owner=own.names[0], lists=lists, ranks=beside, others=others))
        else:
            packs = frozenset([*own.names, *(f"d_{name}" for name in own.names)])
            made.append(Copies(number, packs=packs, owner=own.names[0], lists=lists, ranks=beside, others=others))
    return made


def _lists(root: MappingNode, names: Sequence[str]) -> Iterator[str]:
    """Yield the attributes that are lists of one element for each axis of a group, or each operand of several."""
    attributes = entry(root, "attributes")
    for key, value in attributes.entries if isinstance(attributes, MappingNode) else ():
        if _length_of(kind_of(value) or "") in names:
            yield key.text.value


def _length_of(kind: str) -> str | None:
    """Return the name that a list of type `int[*S]` has an element for each of."""
    element, bracket, rest = kind.partition("[")
    inside = rest.strip().removesuffix("]").strip()
    return inside[1:].strip() if element and bracket and inside.startswith("*") else None


def _check_names(root: MappingNode, copies: Copies, found: Diagnostics) -> None:
    """Record what is declared by the name of a group, and each first use of a name that a copy has."""
    for section in ("types", "inputs", "attributes", "outputs"):
        declared = entry(root, section)
        for key, _ in declared.entries if isinstance(declared, MappingNode) else ():
            if key.text.value.removesuffix("?") in copies.groups:
                found.error(f"'{key.text.value.removesuffix('?')}' is a group of axes", key.span, "take another name")
    taken = {n: f"the size of an axis of '*{g}'" for g in copies.groups for n in copies.sizes(g)}
    taken |= {n: f"the index of an axis of '*{g}'" for g in copies.groups for n in copies.indices(g)}
    taken |= {n: f"one of several '{name}'" for name in copies.packs for n in copies.each(name)}
    for key, node in root.entries:
        if key.text.value in ("doc", "reference", "examples", *KEYS):
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
class Operand:
    """An input of a spec of several ranks or counts, as a caller gives it.

    `several` says whether it is a list of operands, and `axes` how many axes it has: None for any number, and for one that is the
    same at all ranks.
    """

    name: str
    several: bool
    axes: int | None


@dataclass(frozen=True, slots=True)
class _Written:
    """Writes the parts of a spec out for one rank or count."""

    key: str
    copies: Copies
    texts: Texts
    root: MappingNode

    def spec(self) -> MappingNode:
        return replace(self.root, entries=tuple((key, self.section(key.text.value, node)) for key, node in self.root.entries))

    def section(self, section: str, node: Node) -> Node:
        """Return what stands under a key of the spec, written out."""
        match section, node:
            case "op" | "onnx_name", Scalar():
                return self.suffixed(node)
            case "names", MappingNode():
                return _values(node, self.suffixed)
            case "doc", Scalar():
                return self.numbered(node)
            case "reference", _:
                return _each(node, lambda n: self.text(self.numbered(n), self.texts.reference))
            case "kernel", Scalar():
                return self.text(node, self.body)
            case "gradient", MappingNode():
                return _under(node, {"body": partial(self.text, how=self.body), "saves": self.listed})
            case "inputs" | "outputs", MappingNode():
                return self.entries(node, self.operands)
            case "inplace", MappingNode():
                return self.entries(node, self.shared)
            case "attributes", MappingNode():
                return _values(node, self.attribute)
            case "shape", MappingNode():
                return self.entries(node, self.sizes)
            case "require", SequenceNode():
                return replace(node, items=tuple(n for item in node.items for n in self.conditions(item)))
            case "examples", SequenceNode():
                return replace(node, items=tuple(self.example(item) for item in node.items if self.is_example(item)))
            case _:
                return node

    def entries(self, node: MappingNode, change: Callable[[Scalar, Node], Iterator[tuple[Scalar, Node]]]) -> MappingNode:
        """Return a mapping in which entries are made of each entry."""
        return replace(node, entries=tuple(made for key, value in node.entries for made in change(key, value)))

    def text(self, node: Node, how: Callable[..., SourceText]) -> Node:
        """Return a scalar with its text written out; anything else as it is."""
        return replace(node, text=how(node.text)) if isinstance(node, Scalar) else node

    def body(self, text: SourceText) -> SourceText:
        """Return a body, of the op or its gradient."""
        outputs = [name for name, _ in self.declared("outputs")]
        return self.texts.body(text, [*outputs, *(f"d_{name}" for name, _ in self.declared("inputs"))])

    def suffixed(self, node: Node) -> Node:
        """Return the name of an op with its rank or count."""
        if not isinstance(node, Scalar) or not node.text.value:
            return node
        last = len(node.text.value) - 1
        named = node.text.value[-1] + suffix([self.key], (self.copies.number,))
        return replace(node, text=node.text.replace(last, last + 1, named))

    def numbered(self, node: Node) -> Node:
        """Return a text in which `{S}` is the number of axes of a group, `{x}` that of operands."""
        if isinstance(node, Scalar):
            for name in (*self.copies.groups, *sorted(self.copies.packs)):
                while (start := node.text.value.find("{" + name + "}")) >= 0:
                    node = replace(node, text=node.text.replace(start, start + len(name) + 2, str(self.copies.number)))
        return node

    def copied(self, key: Scalar) -> list[Scalar]:
        """Return the keys of the copies of what a key names; it is one of several."""
        name = key.text.value.removesuffix("?")
        return [replace(key, text=key.text.replace(0, len(name), copy)) for copy in self.copies.each(name)]

    def is_pack(self, key: Scalar) -> bool:
        return key.text.value.removesuffix("?") in self.copies.packs

    def operands(self, key: Scalar, value: Node) -> Iterator[tuple[Scalar, Node]]:
        """Yield an operand, or each of several."""
        if not self.is_pack(key):
            yield key, self.operand(value, of=key.text.value.removesuffix("?"))
            return
        for i, copy in enumerate(self.copied(key)):
            yield copy, self.operand(value, i)

    def operand(self, node: Node, copy: int | None = None, of: str = "") -> Node:
        if isinstance(node, MappingNode):
            return _under(node, {"type": partial(self.operand, copy=copy, of=of), "doc": self.numbered})
        return self.text(node, partial(self.texts.shape, copy=copy, of=of))

    def shared(self, key: Scalar, value: Node) -> Iterator[tuple[Scalar, Node]]:
        """Yield an output and the input whose memory it has, or each of several outputs with the input of the same copy."""
        if not isinstance(value, Scalar) or not (self.is_pack(key) or self.is_pack(value)):
            yield key, value
        elif self.is_pack(key) and self.is_pack(value):
            yield from zip(self.copied(key), self.copied(value), strict=True)
        else:
            several, one = (key, value) if self.is_pack(key) else (value, key)
            hint = f"one output has the memory of one input: {self.copies.for_each(one.text.value)}"
            self.texts.found.error(f"there are several '{several.text.value}'", several.span, hint)

    def listed(self, node: Node) -> Node:
        """Return a list of names, with all of several."""
        if not isinstance(node, SequenceNode):
            return node
        items = (self.copied(n) if isinstance(n, Scalar) and self.is_pack(n) else [n] for n in node.items)
        return replace(node, items=tuple(n for made in items for n in made))

    def attribute(self, node: Node) -> Node:
        if isinstance(node, Scalar):
            return self.text(node, self.texts.list_type)
        if not isinstance(node, MappingNode):
            return node
        listed = self.copies.counts(_length_of(kind_of(node) or "") or "")
        default = self.repeated if listed else (lambda n: n)
        return _under(node, {"type": self.attribute, "default": default, "dim": self.first, "doc": self.numbered})

    def first(self, node: Node) -> Node:
        """Return the dimension that an attribute places: that of the first operand, where each of several has one."""
        return self.copied(node)[0] if isinstance(node, Scalar) and self.is_pack(node) else node

    def repeated(self, node: Node) -> Node:
        """Return the default of a list: a number stands for as many as there are axes or operands."""
        return SequenceNode((node,) * self.copies.number, node.span) if isinstance(node, Scalar) else node

    def sizes(self, key: Scalar, value: Node) -> Iterator[tuple[Scalar, Node]]:
        """Yield what stands under `shape` for a dimension, for each axis of a group, or for that of each operand."""
        if not self.copies.counts(key.text.value):
            listed = self.texts.listed(value.text.value) if isinstance(value, Scalar) else None
            if key.text.value in self.copies.others:  # one of each in turn
                listed = None
            if listed is not None:
                name, of = key.text.value, self.copies.owner
                message = f"'{name}' is one size, and '{listed}' has another value for each {self.copies.of}"
                hint = f"for a size of each write {'ranks' if self.copies.groups else 'counts'}: {{{name.upper()}: {of}}}"
                self.texts.found.error(message, value.span, hint)
            quiet = self.texts if listed is None else Texts(self.copies, Diagnostics())
            yield key, self.text(value, quiet.sizes)
            return
        for i, copy in enumerate(self.copied(key)):
            yield copy, self.text(value, partial(self.texts.size, copy=i))

    def conditions(self, node: Node) -> Iterator[Node]:
        """Yield a condition, once for each axis or operand where it is one of each."""
        if isinstance(node, Scalar) and self.texts.is_several(node.text.value):
            for i in range(self.copies.number):
                yield self.text(node, partial(self.texts.size, copy=i))
        else:
            yield self.text(node, self.texts.sizes)

    def is_example(self, node: Node) -> bool:
        """Whether an example is one of this rank or count: by the lists in it, the operands, or the axes of one."""
        if not isinstance(node, MappingNode):
            return True
        for key, value in node.entries:
            several = key.text.value in self.copies.lists or self.is_pack(key)
            if several and isinstance(value, SequenceNode):
                return len(value.items) == self.copies.number
        declared = {name: text for section in ("inputs", "outputs") for name, text in self.declared(section)}
        for key, value in node.entries:
            expected = self.texts.count_axes(declared.get(key.text.value, ""))
            if expected is not None:
                return _depth(value) == expected
        return True

    def example(self, node: Node) -> Node:
        """Return an example, in which a list of values stands for several operands."""
        return self.entries(node, self.values) if isinstance(node, MappingNode) else node

    def values(self, key: Scalar, value: Node) -> Iterator[tuple[Scalar, Node]]:
        """Yield the value of an operand in an example, or that of each of several."""
        if not self.is_pack(key):
            yield key, value
        elif isinstance(value, SequenceNode):
            yield from zip(self.copied(key), value.items)
        else:
            self.texts.found.error(f"there are several '{key.text.value}'", value.span, "write a list of their values")

    def declared(self, section: str) -> Iterator[tuple[str, str]]:
        return declared(self.root, section)


def inputs_of(root: MappingNode, instances: Sequence[Instances], numbers: Numbers) -> list[Operand]:
    """Return the inputs of a spec as a caller gives them, in order, for some of its ranks and a count."""
    found: list[Operand] = []
    for name, kind in declared(root, "inputs"):
        text, ranked, several = kind, False, False
        for copies in _copies(root, instances, numbers):
            ranked |= copies.names_group(text)
            several |= name in copies.packs
            text = Texts(copies, Diagnostics()).shape(SourceText.of(text, ""), 0 if name in copies.packs else None).value
        found.append(Operand(name, several, count_axes(text) if ranked else None))
    return found


def lengths_of(root: MappingNode, instances: Sequence[Instances], numbers: Numbers) -> dict[str, int]:
    """Return how many elements the lists have of which ranks and counts tell it, by the attribute's name."""
    return {name: n for own, n in zip(instances, numbers, strict=True) for name in _lists(root, own.names)}


def declared(root: MappingNode, section: str) -> Iterator[tuple[str, str]]:
    """Yield the operands of a section with their types."""
    node = entry(root, section)
    for key, value in node.entries if isinstance(node, MappingNode) else ():
        kind = kind_of(value)
        if kind is not None:
            yield key.text.value.removesuffix("?"), kind


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
