"""The names of Graphcore's API in generated sources, and the first SDK that has each, from the tables of the emulation's API."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path

import yaml

RUNTIME = Path(__file__).parents[3] / "runtime"
TABLES = RUNTIME / "emulation" / "poplar" / "api"
LIBRARIES = r"(?:poplar|popops|poplin|poputil|popart|pe)"

# What generated Python calls the objects that it asks for things.
OBJECTS = {
    "builder": "popart.Builder",
    "session": "popart.InferenceSession",
    "ops": "popxl.ops",
    "ctx": "popxl.context.Context",
}
# What the classes of generated code are derived from.
BASES = ("popart::Op", "popart::popx::Opx", "popart::ParameterizedOp")


@cache
def since() -> Mapping[str, str]:
    """Return the first SDK that has each name or header: of an overloaded name the oldest, for any may be meant."""
    found: dict[str, str] = {}
    for path in sorted(TABLES.rglob("*.yaml")):
        table = yaml.load(path.read_text(), yaml.CSafeLoader)
        for place, entries in (table.get("headers") or table.get("modules")).items():
            versions = [e["since"] for e in entries]
            for name, version in [(place, _oldest(versions)), *((e["name"], e["since"]) for e in entries)]:
                found[name] = _oldest([version, found[name]]) if name in found else version
    return found


def _oldest(versions: list[str]) -> str:
    known = [v for v in versions if v != "unknown"]
    return min(known, key=numbers) if known else "unknown"


def numbers(version: str) -> tuple[int, ...]:
    """Return a version for comparing; what nobody could look up is as old as can be."""
    return (0,) if version == "unknown" else tuple(map(int, version.split(".")))


@lru_cache(maxsize=1000)
def names(path: str, text: str) -> tuple[str, ...]:
    """Return the names of the API that a generated file, or a header that such files include, has."""
    if path.endswith(".py"):
        return tuple(_python(text))
    if path.endswith((".cpp", ".hpp", ".h")):
        return tuple(_cpp(re.sub(r"//[^\n]*|/\*.*?\*/", "", text, flags=re.S)))
    return ()


def _cpp(text: str) -> Iterator[str]:
    yield from re.findall(r"#include <((?:poplar|popops|poplin|poputil|popart)/\S+)>", text)
    text = re.sub(r"\bnamespace \w+ = [\w:]+;", "", text)
    for name in re.findall(rf"(?<![\w:]){LIBRARIES}(?:::\w+)+", text):
        yield re.sub(r"^pe::", "popops::expr::", name)
    # Methods that are overridden, which the bases must have.
    for method in re.findall(r"\b(\w++)\([^(){};]*(?:\([^()]*\))?[^(){};]*\)(?: const)? (?:final|override)\b", text):
        yield next((f"{base}::{method}" for base in BASES if f"{base}::{method}" in since()), f"popart::Op::{method}")


def _python(text: str) -> Iterator[str]:
    text = re.sub(r'"""[^"]*"""|#[^\n]*', "", text)
    for module, listed in re.findall(r"^from ((?:popart|popxl|poprt)[\w.]*) import (.*)$", text, re.M):
        yield from (f"{module}.{name.partition(' as ')[0].strip()}" for name in listed.split(","))
    yield from re.findall(r"(?<![\w.])(?:popart|popxl)(?:\.\w+)+(?=[(),\s])", text)
    for thing, kind in OBJECTS.items():
        yield from (f"{kind}.{name}" for name in re.findall(rf"(?<![\w.]){thing}\.(\w+)", text))


@cache
def shared(backend: str) -> frozenset[str]:
    """Return the names in the headers that every generated source of a backend includes."""
    patterns = ("poplar/*.h", "adapters/popart.h", *(["adapters/popxl.h"] if backend == "popxl" else []))
    paths = [path for pattern in patterns for path in (RUNTIME / "include" / "opc").glob(pattern)]
    return frozenset(name for path in paths for name in names(path.name, path.read_text()))
