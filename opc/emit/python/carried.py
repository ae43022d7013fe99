"""Functions whose source generated modules carry along: those of `opc.ir.scalar_functions`, and others of a target's own."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import opc.ir


def sources_of(path: Path) -> dict[str, str]:
    """Return the source of every function of a module by name. It is read, not imported: what it imports may be slow to load."""
    text = path.read_text(encoding="utf-8")
    # A function ends where a line is not indented. Parsing the file instead takes longer than importing the caller.
    return {found["name"]: found[0] for found in re.finditer(r"^def (?P<name>\w+)\(.*(?:\n*\n[ \t].*)*", text, re.MULTILINE)}


SCALAR_FUNCTIONS: Mapping[str, str] = sources_of(Path(opc.ir.__path__[0]) / "scalar_functions.py")
"""The plain Python functions that the function table names: name to source."""


def carried(names: Iterable[str], sources: Mapping[str, str]) -> list[str]:
    """Return those of the `names` that have a source, and what their sources name in turn, in order of definition."""
    used: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in sources and name not in used:
            used.add(name)
            waiting += names_in(sources[name])
    return [name for name in sources if name in used]


_ARGUMENTS = ("x", "y", "z")


def names_in_row(text: str) -> frozenset[str]:
    """Return the functions and modules that a text of the function table names."""
    return _free_names(text.format(*_ARGUMENTS)).difference(_ARGUMENTS)


def names_in(source: str) -> frozenset[str]:
    """Return the functions and modules that the source of a function names, annotations included."""
    return _free_names(source)


@cache
def _free_names(source: str) -> frozenset[str]:
    """Return the names in a source that it does not define itself."""
    named: set[str] = set()
    own: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                named.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.alias(name=name):
                own.add(name)
    return frozenset(named - own)
