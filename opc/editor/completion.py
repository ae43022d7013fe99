"""What may stand at a place of a spec: keys and values by where they are in the YAML, and names by where they are in a body."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, get_args, get_origin

from opc.analysis.elaborate.attribute_types import ATTRIBUTE_TYPES
from opc.analysis.elaborate.scope import CONSTANTS, DTYPE_NAMES, FORMS
from opc.editor.occurrences import Kind, Outline, outline
from opc.editor.words import ABOUT_FORMS, ABOUT_REDUCTIONS, about_function
from opc.ir.dtypes import TYPE_SETS
from opc.ir.functions import CALLABLE
from opc.records import dataclass
from opc.spec.loader import model_at
from opc.spec.model import SpecModel


@dataclass(frozen=True, slots=True)
class Proposal:
    """What may stand at a place: the text, what it is in a word of LSP's (`key`, `value` or one of Kind's), and about it."""

    text: str
    what: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a cursor is: the keys around it, whether a key is typed or a value, and whether that stands inside of [ ]."""

    path: tuple[str, ...]
    is_key: bool
    in_list: bool = False


_KEY = re.compile(r"""(\s*(?:- +)*)(['"]?)([A-Za-z_][\w.]*\??)\2\s*:(?=\s|$)""")
_NAMED = ("types", "inputs", "attributes", "outputs", "shape", "inplace", "names")
"""The sections whose keys are names that the spec chooses."""
_FORMULAS = ("require", "shape")
_OF_SHAPES = ("minimum", "maximum", "abs")


def place(text: str, offset: int) -> Place:
    """Return where a cursor is. Only the lines above it and its own, as far as it goes, are looked at, by their indentation."""
    *above, line = text[:offset].split("\n")
    found = _KEY.match(line)
    path: list[str] = []
    margin = len(line) - len(line.lstrip(" ")) if line.strip() else len(line)
    is_key, in_list = found is None, False
    if found is not None:
        margin = len(found[1])
        inner, is_key, in_list = _flow(line[found.end() :])
        path = [found[3].removesuffix("?"), *inner]
    elif (start := line.lstrip(" -")).startswith(("{", "[")):
        path, is_key, in_list = _flow(start)
    for earlier in reversed(above):
        bare = earlier.lstrip(" ")
        if not bare or bare.startswith("#"):
            continue
        own = _KEY.match(earlier)
        depth = len(own[1]) if own else len(earlier) - len(bare)
        if depth < margin:
            margin = depth
            if own is not None:
                path.insert(0, own[3].removesuffix("?"))
        if margin == 0:
            break
    return Place(tuple(path), is_key, in_list)


def _flow(text: str) -> tuple[list[str], bool, bool]:
    """Return the keys of open braces in a text, whether its end is at a key, and whether it is inside of [ ]."""
    keys: list[str | None] = []
    brackets = ""
    word = ""
    for part in re.findall(r"""'[^']*'?|"[^"]*"?|[{}\[\],]|:(?=\s|$)|[^{}\[\],:'"]+|:""", text):
        if part in ("{", "["):
            brackets += part
            keys.append(None)
        elif part in ("}", "]"):
            brackets, keys = brackets[:-1], keys[:-1]
        elif part == ",":
            if brackets.endswith("{"):
                keys[-1] = None
        elif part == ":" and brackets.endswith("{") and keys[-1] is None:
            keys[-1] = word.strip(" '\"").removesuffix("?")
        else:
            word = part
    is_key = brackets.endswith("{") and keys[-1] is None
    return [key for key in keys if key], is_key, brackets.endswith("[")


def complete(text: str, offset: int) -> list[Proposal]:
    """Return what may stand at a character of a spec."""
    here = place(text, offset)
    names = outline(text)
    match here.path:
        case ("kernel",) | ("gradient", "body") if here.is_key or not text[:offset].rstrip().endswith(":"):
            found = _body(names, here.path[0], offset)
        case _:
            found = _keys(here, names, text) if here.is_key else _values(here, names)
    return list(dict.fromkeys(found))


def _body(names: Outline, scope: str, offset: int) -> Iterator[Proposal]:
    statement = next((s for s in names.statements if s.start <= offset <= s.end and s.scope.startswith(scope)), None)
    for o in names.occurrences:
        # An output is read only in a gradient; a temporary, an index and a name that is being typed, where they are known.
        ends = o.end == offset and not o.declares
        if o.kind is Kind.INDEX and (statement is None or o.scope != statement.scope or o.start <= offset <= o.end):
            continue
        if o.kind is Kind.TEMPORARY and (o.scope != scope or o.end >= (statement.start if statement else offset)):
            continue
        if o.kind in _READ and not ends:
            yield Proposal(o.name, o.kind.value)
            if scope == "gradient" and o.kind in (Kind.INPUT, Kind.OUTPUT):
                yield Proposal(f"d_{o.name}", o.kind.value, f"The gradient by {o.name}.")
    yield from (Proposal(name, Kind.FUNCTION.value, about_function(name)) for name in CALLABLE)
    yield from (Proposal(name, Kind.REDUCTION.value, about) for name, about in ABOUT_REDUCTIONS.items())
    yield from (Proposal(name, Kind.FORM.value, ABOUT_FORMS[name]) for name in FORMS)
    yield from (Proposal(name, Kind.DTYPE.value) for name in DTYPE_NAMES)
    yield from (Proposal(name, Kind.CONSTANT.value) for name in CONSTANTS)
    yield from (Proposal(name, Kind.WORD.value) for name in ("if", "else", "and", "or", "not", "in"))


_READ = (Kind.INPUT, Kind.OUTPUT, Kind.ATTRIBUTE, Kind.TEMPORARY, Kind.DIMENSION, Kind.INDEX, Kind.TYPE)


def _keys(here: Place, names: Outline, text: str) -> Iterator[Proposal]:
    path = here.path
    if not path:
        there = {m[1] for m in re.finditer(r"^([a-z_]+):", text, re.MULTILINE)}
        fields = {n: f for n, f in SpecModel.model_fields.items() if n not in there}
    elif path[0] == "inplace":
        yield from _named(names, Kind.OUTPUT)
        return
    elif path[0] == "examples":
        yield from _named(names, Kind.INPUT, Kind.ATTRIBUTE, Kind.OUTPUT)
        return
    elif path[0] == "names":
        return
    elif path[0] == "require" or (path[0] in _NAMED and len(path) == 1):
        yield from _values(here, names) if path[0] == "require" else ()
        return
    else:
        fields = {n: f for n, f in model_at(path).model_fields.items() if n != "mode"}
    yield from (Proposal(name, "key", field.description or "") for name, field in fields.items())


def _values(here: Place, names: Outline) -> Iterator[Proposal]:
    path = here.path
    match path:
        case ("broadcast",):
            yield from _words("true", "false")
        case ("gradient",):
            yield from _words("auto", "none")
        case ("types", _):
            yield from (Proposal(name, Kind.DTYPE.value, f"{', '.join(d.value for d in ds)}.") for name, ds in TYPE_SETS.items())
            yield from (Proposal(name, Kind.DTYPE.value) for name in DTYPE_NAMES)
        case ("attributes", _) | ("attributes", _, "type"):
            yield from _words(*ATTRIBUTE_TYPES)
        case ("attributes", _, "dim"):
            yield from _named(names, Kind.DIMENSION)
        case ("attributes", _, "group" | "keeps"):
            yield from _named(names, Kind.GROUP)
        case ("attributes", _, "of"):
            yield from _named(names, Kind.INPUT)
        case ("attributes", _, "binds"):
            yield from _named(names, Kind.TYPE)
        case ("attributes", _, "check"):
            yield from _named(names, Kind.ATTRIBUTE)
        case ("inputs" | "outputs", _) | ("inputs" | "outputs", _, "type"):
            yield from _named(names, Kind.TYPE, Kind.DIMENSION, Kind.GROUP)
            yield from (Proposal(name, Kind.DTYPE.value) for name in DTYPE_NAMES)
        case ("inplace", _):
            yield from _named(names, Kind.INPUT)
        case ("gradient", "saves"):
            yield from _named(names, Kind.OUTPUT)
        case (section, *_) if section in _FORMULAS:
            yield from _named(names, Kind.ATTRIBUTE, Kind.DIMENSION)
            yield from (Proposal(name, Kind.FUNCTION.value, about_function(name)) for name in _OF_SHAPES)
        case ("reference", *_):
            yield from _named(names, Kind.INPUT, Kind.ATTRIBUTE)
        case (*owner, key):
            field = model_at(tuple(owner)).model_fields.get(key)
            if field is not None and get_origin(field.annotation) is Literal:
                yield from _words(*get_args(field.annotation))


def _named(names: Outline, *kinds: Kind) -> Iterator[Proposal]:
    yield from (Proposal(o.name, o.kind.value) for kind in kinds for o in names.occurrences if o.kind is kind)


def _words(*words: str) -> Iterable[Proposal]:
    return (Proposal(word, "value") for word in words)
