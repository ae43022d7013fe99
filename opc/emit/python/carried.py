"""Functions whose source generated modules carry along: those of `opc.ir.scalar_functions`, and others of a target's own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import opc.ir


def sources_of(path: Path) -> dict[str, str]:
    """Return the source of every function of a module by name. It is read, not imported: what it imports may be slow to load."""
    text = path.read_text(encoding="utf-8")
    # A function ends where a line is not indented. Parsing the file instead takes longer than importing the caller.
    return {found["name"]: found[0] for found in re.finditer(r"^def (?P<name>\w+)\(.*(?:\n*\n[ \t].*)*", text, re.MULTILINE)}


SCALAR_FUNCTIONS: Mapping[str, str] = sources_of(Path(opc.ir.__path__[0]) / "scalar_functions.py")
"""The plain Python functions that the function table names: name to source."""


def carried(texts: Iterable[str], sources: Mapping[str, str]) -> list[str]:
    """Return the names of `sources` that the texts call or hand on, those that these call included, in order of definition."""
    used: set[str] = set()
    waiting = list(texts)
    while waiting:
        found = sources.keys() & set(re.findall(r"(?<![\w.])(?:_\w+(?=,)|\w+(?=\())", waiting.pop())) - used
        used |= found
        waiting += [sources[name].split("\n", 1)[1] for name in found]
    return [name for name in sources if name in used]
