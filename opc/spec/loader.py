"""Reads a spec file: YAML with places in, a checked `SpecModel` with the place of every key and value out."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from opc.diagnostics import NO_SPAN, Diagnostic, Diagnostics, Source, Span, SpecError, did_you_mean
from opc.records import dataclass, replace
from opc.spec.files import Numbers, apart, digest, file_of, numbers_at
from opc.spec.instances import copies_of, in_own_words, instances_of
from opc.spec.instantiate import instantiate
from opc.spec.model import (
    AttributeModel,
    GradientModel,
    NativeCodeModel,
    NativeModel,
    OperandModel,
    ReferenceModel,
    SpecModel,
)
from opc.spec.native import check_native
from opc.spec.renaming import renamed
from opc.spec.rest import what_is_left, without_empty_bodies
from opc.spec.text import SourceText, span_at
from opc.spec.yaml_tree import MAX_BYTES, MappingNode, Node, Scalar, SequenceNode, ambiguity, parse_yaml, scalar_value

NodePath: TypeAlias = tuple[str | int, ...]
"""The keys and positions that lead to a value, such as ("attributes", "alpha", "check")."""


@dataclass(frozen=True, slots=True, eq=False)
class Spec:
    """A spec and where everything in it stands. Each is equal to itself only.

    `hash` is the SHA-256 of the file's text, and of the rank or count where it is of several. `mistakes` are those of form, where
    what is left of the spec was asked for; `unread` are the names that what had to be left out declares; `copies` are names
    of what there is one of for each axis or operand, with the one in the file and the number.
    """

    model: SpecModel
    source: Source
    hash: str
    keys: Mapping[NodePath, Scalar] = field(repr=False)
    values: Mapping[NodePath, Node] = field(repr=False)
    mistakes: tuple[Diagnostic, ...] = ()
    unread: frozenset[str] = frozenset()
    copies: Mapping[str, tuple[str, int]] = field(default_factory=dict, repr=False)

    def key_span(self, *path: str | int) -> Span:
        """Return the place of the key at `path`, or of the nearest thing around it that stands in the file."""
        if path in self.keys:
            return self.keys[path].span
        return self.span(*path)

    def span(self, *path: str | int) -> Span:
        """Return the place of the value at `path`, or of the nearest thing around it that stands in the file."""
        if path in self.values:
            return self.values[path].span
        return self.key_span(*path[:-1]) if path else span_at(self.source, 0, 0)

    def text(self, *path: str | int) -> SourceText:
        """Return the scalar at `path` with the position of each character.

        Raises:
            KeyError: when no scalar stands at `path`.
        """
        node = self.values[path]
        if not isinstance(node, Scalar):
            raise KeyError(path)
        return node.text

    def told(self, error: SpecError) -> SpecError:
        """Return mistakes with hints in the names of the file, also where the op is one of several."""
        return SpecError([d if d.hint is None else replace(d, hint=in_own_words(d.hint, self.copies)) for d in error.diagnostics])

    def is_beyond_float64(self, value: object, *path: str | int) -> bool:
        """Whether the number at `path`, which was read as `value`, is one that float64 takes for an infinity."""
        if isinstance(value, int):
            return abs(value) > sys.float_info.max
        if not isinstance(value, float) or not math.isinf(value) or path not in self.values:
            return False
        return "inf" not in self.text(*path).value.lower()


def load(path: Path | str, whole: bool = True) -> Spec:
    """Read the spec in a file. As `loads` otherwise.

    Raises:
        SpecError: with every mistake of form in the file, or when it can't be read.
    """
    file = file_of(Path(path))
    text = read(file)
    numbers = numbers_at(Path(path), text.encode("utf-8", "surrogatepass"))
    spec = loads(text, str(file), whole, numbers)
    key = "ranks" if spec.model.ranks else "counts" if spec.model.counts else None
    if numbers is None and key is not None:
        names = ", ".join(op.name for op in apart(file))
        raise SpecError([Diagnostic(f"the op is of several {key}", spec.key_span(key), hint=f"name one of {names}")])
    return spec


def read(path: Path | str) -> str:
    """Return the text of a spec's file, see `opc.spec.files`.

    Raises:
        SpecError: when the file can't be read or is not UTF-8.
    """
    path = file_of(Path(path))
    name = str(path)
    try:
        with path.open("rb") as file:
            # What is too long is refused by its length: of a device or a pipe there may be no end.
            raw = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        raise SpecError([Diagnostic(f"can't read {name}: {getattr(error, 'strerror', None) or error}")]) from None
    if len(raw) > MAX_BYTES:
        source = Source(name, raw[:1000].decode("utf-8", "replace"))
        raise SpecError([Diagnostic(f"the file is larger than {MAX_BYTES >> 10} KiB", span_at(source, 0, 0))])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        readable = raw[: error.start].decode("utf-8", "replace")
        found = Diagnostics()
        source = Source(name, readable)
        found.error(
            f"the file is not UTF-8: byte 0x{raw[error.start]:02x} after {error.start} bytes",
            span_at(source, len(readable), len(readable)),
            "save it as UTF-8",
        )
        raise SpecError(found.items) from None


def loads(text: str, name: str, whole: bool = True, number: int | Numbers | None = None) -> Spec:
    """Read a spec from a string; `name` is what diagnostics call it. One of several ranks or counts is read at a
    `number` of them, one for each of its lists, by default the greatest.

    Unless it must be `whole`, a spec with mistakes of form is read without the parts that have them, and holds the mistakes: so
    those in the rest are found in the same run.

    Raises:
        SpecError: with every mistake of form in the text.
    """
    source = Source(name, text)
    found = Diagnostics()
    root = parse_yaml(source, found)
    found.raise_errors()
    if not isinstance(root, MappingNode):
        found.error("a spec is a mapping of keys to values", root.span if root else NO_SPAN, "begin with `op: NAME`")
        raise SpecError(found.items)
    instances = instances_of(root, found)
    found.raise_errors()
    numbers = (number,) if isinstance(number, int) else number
    copies: dict[str, tuple[str, int]] = {}
    if instances:
        numbers = tuple(i.numbers[-1] for i in instances) if numbers is None else numbers
        for own, n in zip(instances, numbers, strict=True):
            if n not in own.numbers:
                key = next(key for key, _ in root.entries if key.text.value == own.key)
                hint = f"its {own.key} are {', '.join(map(str, own.numbers))}"
                raise SpecError([Diagnostic(f"the op is not of {own.key.removesuffix('s')} {n}", key.span, hint)])
        copies = copies_of(root, instances, numbers)
        root = instantiate(root, instances, numbers, found)
        found.raise_errors()
    root = renamed(root)
    table = _Table(found)
    data = table.convert(root, ())
    model: SpecModel | None = None
    unread: set[str] = set()
    try:
        model = SpecModel.model_validate(data)
    except ValidationError as error:
        reporter = _Reporter(table, root, found)
        for details in error.errors(include_url=False):
            reporter.report(details)
        model = None if whole else what_is_left(data, unread)
        if model is not None:
            _names_once(model, table, found)
    else:
        _consistency(model, table, found)
    if whole:
        found.raise_errors()
    if model is None:
        raise SpecError(found.items)
    if found.has_errors:
        model = without_empty_bodies(model)
    hashed = digest(text.encode("utf-8", "surrogatepass"), numbers if instances else None)
    return Spec(model, source, hashed, table.keys, table.values, tuple(found.items), frozenset(unread), copies)


class _Table:
    """Turns nodes into plain data and remembers the node of each path."""

    def __init__(self, found: Diagnostics) -> None:
        self.found = found
        self.keys: dict[NodePath, Scalar] = {}
        self.values: dict[NodePath, Node] = {}

    def convert(self, node: Node, path: NodePath) -> Any:
        self.values[path] = node
        match node:
            case Scalar():
                self._refuse_ambiguity(node)
                return scalar_value(node)
            case SequenceNode():
                return [self.convert(item, (*path, i)) for i, item in enumerate(node.items)]
            case MappingNode():
                data: dict[str, Any] = {}
                for key, value in node.entries:
                    self._refuse_ambiguity(key)
                    name = key.text.value
                    if name in data:
                        first = self.keys[(*path, name)].span
                        self.found.error(
                            f"'{name}' stands here twice; first on line {first.line}", key.span, "leave one of them out"
                        )
                        continue
                    self.keys[(*path, name)] = key
                    data[name] = self.convert(value, (*path, name))
                return data

    def _refuse_ambiguity(self, scalar: Scalar) -> None:
        problem = ambiguity(scalar)
        if problem is not None:
            self.found.error(problem[0], scalar.span, problem[1])

    def value_span(self, path: NodePath) -> Span:
        while path not in self.values and path:
            path = path[:-1]
        node = self.values[path]
        nothing = isinstance(node, Scalar) and node.plain and not node.text.value
        return self.keys[path].span if nothing and path in self.keys else node.span

    def key_span(self, path: NodePath) -> Span:
        return self.keys[path].span if path in self.keys else self.value_span(path)


_EXPECTED = {
    "string_type": "a text",
    "dict_type": "a mapping of keys to values",
    "model_type": "a mapping of keys to values",
    "model_attributes_type": "a mapping of keys to values",
    "list_type": "a list",
    "bool_type": "true or false",
    "int_type": "a whole number",
}


class _Reporter:
    """Says what pydantic found in words about the file."""

    def __init__(self, table: _Table, root: MappingNode, found: Diagnostics) -> None:
        self.table = table
        self.root = root
        self.found = found

    def report(self, details: ErrorDetails) -> None:
        kind = details["type"]
        path: NodePath = tuple(details["loc"])
        node = self.table.values.get(path)
        if isinstance(node, Scalar) and ambiguity(node) is not None:
            return  # said already, and in better words
        at_key = path[-1:] == ("[key]",)
        if at_key:
            path = path[:-1]
        key = str(path[-1]) if path else ""
        span = self.table.key_span(path) if at_key else self.table.value_span(path)
        match kind:
            case "missing":
                owner = path[:-1]
                where = f" in '{owner[-1]}'" if owner else ""
                self.found.error(f"the key '{key}' is missing{where}", self._owner_span(owner), f"write {key}: ...")
            case "extra_forbidden":
                model = model_at(path[:-1])
                names = [n for n in model.model_fields if n != "mode"]
                hint = did_you_mean(key, names) or f"the keys here are {', '.join(names)}"
                if model is AttributeModel and key == "value":
                    hint = "did you mean 'default'?"
                self.found.error(f"unknown key '{key}'", self.table.key_span(path), hint)
            case "value_error":
                self.found.error(str(details["ctx"]["error"]), span)
            case "literal_error":
                self.found.error(
                    f"'{key}' is {details['ctx']['expected']}, not {_shown(details['input'])}", span, "write one of these"
                )
            case "greater_than_equal" | "less_than_equal":
                limit = next(iter(details["ctx"].values()))
                word = "at least" if kind == "greater_than_equal" else "at most"
                self.found.error(f"'{key}' must be {word} {limit}", span, f"write {key}: {limit}")
            case _:
                expected = _EXPECTED.get(kind)
                value = details["input"]
                advice: str | None = None
                if kind == "string_type" and isinstance(value, int | float | bool):
                    node = self.table.values.get(path)
                    advice = f"write '{node.text.value}' in quotes" if isinstance(node, Scalar) else None
                if kind == "list_type" and isinstance(value, str) and "'" not in value:
                    advice = f"write ['{value}']"
                if kind in ("dict_type", "model_type") and path[-1:] in (("inputs",), ("outputs",)):
                    advice = f"write {key}: {{x: 'T[...]'}}"
                if kind == "int_type":
                    advice = "such as 1"
                if kind == "bool_type":
                    advice = f"write {key}: true, or false"
                if kind == "string_type" and value is None:
                    advice = f"write {key}: ..., or leave the key out"
                if kind in ("dict_type", "model_type", "model_attributes_type") and isinstance(value, list):
                    advice = advice or f"write {key}: {{name: ...}}"
                if path == ("gradient",) and isinstance(value, bool):
                    advice = "write gradient: auto" if value else "write gradient: none"
                if kind.startswith("model") and len(path) == 2 and path[0] == "attributes":
                    advice = f"write {key}: {{type: float, default: 0.5}}"
                message = f"expected {expected}, found {_shown(value)}" if expected else details["msg"]
                self.found.error(message, span, advice)

    def _owner_span(self, path: NodePath) -> Span:
        if path:
            return self.table.key_span(path)
        return self.root.entries[0][0].span if self.root.entries else self.root.span


def model_at(path: NodePath) -> type[BaseModel]:
    """Return the model whose keys stand at a path of a spec, or below it where the spec names what stands there."""
    match path[:1]:
        case ("inputs",) | ("outputs",):
            return OperandModel
        case ("attributes",):
            return AttributeModel
        case ("gradient",):
            return GradientModel
        case ("native",):
            return NativeModel if len(path) == 1 else NativeCodeModel
        case ("reference",):
            return ReferenceModel
        case _:
            return SpecModel


def _shown(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the text '{value}'" if len(value) <= 40 else "a text"
        case list():
            return "a list"
        case _:
            return "a mapping"


def _consistency(model: SpecModel, table: _Table, found: Diagnostics) -> None:
    """Check what spans several keys but needs no language: empty sections, one name for one thing, a gradient's form."""
    if not model.outputs:
        found.error("an op has at least one output", table.key_span(("outputs",)), "write outputs: {y: 'T[...]'}")
    _names_once(model, table, found)
    gradient = model.gradient
    if gradient.mode == "body" and gradient.body is None:
        found.error(
            "the key 'body' is missing in 'gradient'",
            table.key_span(("gradient",)),
            "write gradient: {body: ...}, or leave saves out",
        )
    if ("gradient", "mode") in table.keys:
        found.error(
            "unknown key 'mode'", table.key_span(("gradient", "mode")), "the keys here are body, saves, ties, scatter, surrogate"
        )
    for key, text in (("kernel", model.kernel), ("gradient", gradient.body)):
        if text is not None and not text.strip():
            path = (key,) if key == "kernel" else ("gradient", "body")
            found.error("the body is empty", table.key_span(path), "write at least `y = x`")
    check_native(model, table.key_span, found)


def _names_once(model: SpecModel, table: _Table, found: Diagnostics) -> None:
    owner: dict[str, tuple[str, Span]] = {}
    sections = (("types", model.types), ("inputs", model.inputs), ("attributes", model.attributes), ("outputs", model.outputs))
    for section, names in sections:
        for key in names:
            span = table.key_span((section, key))
            name = key.removesuffix("?")
            if name == model.op:
                found.error(f"'{name}' is the name of the op", span, "give it another name")
            if name in owner:
                other, first = owner[name]
                found.error(
                    f"'{name}' is already declared under {other}, on line {first.line}", span, "give one of them another name"
                )
            owner.setdefault(name, (section, span))
