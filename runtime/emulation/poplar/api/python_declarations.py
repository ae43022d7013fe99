"""The Python API of the emulation as a table: `python python_declarations.py PACKAGE [--write]`, after `source enable.sh`.

Compares what a package declares with `python/PACKAGE.yaml` and fails where they differ; with `--write` it writes the table anew
and keeps every `since`. Its entries are as those of the libraries' tables, by module instead of header: public names of the
modules listed here, and the public methods and properties of classes, those bound in C++ too.
"""

import argparse
import importlib
import inspect
import re
import sys
from pathlib import Path

import popart_core
import yaml

TABLES = Path(__file__).parent / "python"
MODULES = {
    "popart": ("popart",),
    "popxl": ("popxl", "popxl.context", "popxl.ops", "popxl.ops.utils", "popxl.tensor", "popxl.transforms"),
    "poprt": ("poprt", "poprt.passes"),
}
PACKAGES = (*MODULES, "popart_core")
# Classes that pass on what they don't have to one that is bound in C++.
DELEGATES = {"popart.Builder": ("_BuilderCore",)}
SPECIAL = ("__init__", "__call__", "__enter__", "__exit__")

Entries = dict[tuple[str, str], str]


def declarations(module_name: str) -> list[tuple[str, str]]:
    """The public names of a module with their signatures, in order."""
    module = importlib.import_module(module_name)
    names = getattr(module, "__all__", None)
    if names is None:
        own = (name for name, value in vars(module).items() if getattr(value, "__module__", "") == module_name)
        names = [name for name in own if not name.startswith("_")]
    found = []
    for name in sorted(names):
        value = getattr(module, name)
        if inspect.ismodule(value):
            continue
        found += members(f"{module_name}.{name}", value)
    return found


def members(name: str, value) -> list[tuple[str, str]]:
    """A name and what it has inside, but for what a public base class has."""
    if not inspect.isclass(value):
        return [(name, text) for text in signatures(name, value)]
    found = [(name, f"class {value.__name__}")]
    if hasattr(value, "__members__"):
        return found + [(f"{name}.{member}", member) for member in value.__members__]
    inside: dict = {}
    for part in (value, *value.__mro__[1:], *(getattr(popart_core, other) for other in DELEGATES.get(name, ()))):
        if part is value or (part.__name__.startswith("_") and part.__module__.partition(".")[0] in PACKAGES):
            inside = {**vars(part), **inside}
    for member, found_value in sorted(inside.items()):
        if member in SPECIAL or not member.startswith("_"):
            found += [(f"{name}.{member}", text) for text in signatures(f"{name}.{member}", found_value)]
    return found


def signatures(name: str, value) -> list[str]:
    """The signatures of a function, one an overload, without types, which the interpreter's version has a say in.

    Of a property or a value, it is the name.
    """
    short = name.rpartition(".")[2]
    value = getattr(value, "__func__", value)
    if isinstance(value, property) or not callable(value):
        return [short]
    try:
        arguments = _arguments(inspect.signature(value))
    except ValueError:
        # Bound in C++: the signatures stand at the beginning of the documentation, numbered where there are several.
        lines = [re.sub(r"^\d+\. ", "", line) for line in (value.__doc__ or "").splitlines()]
        texts = [line for line in lines if re.match(rf"{re.escape(short)}\(.*\) -> ", line) and "*args, **kwargs" not in line]
        return [f"{short}({', '.join(_bound_arguments(text))})" for text in texts]
    # A class that is bound without a constructor has this one.
    return [] if short == "__init__" and arguments == ["*args", "**kwargs"] else [f"{short}({', '.join(arguments)})"]


def _arguments(signature: inspect.Signature) -> list[str]:
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values() if p.name != "self"]
    text = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))[1:-1]
    return text.split(", ") if text else []


def _bound_arguments(text: str) -> list[str]:
    """The arguments of a signature that pybind11 wrote, without their types."""
    inside, depth, parts = text[text.index("(") + 1 : text.rindex(") -> ")], 0, [""]
    for character in inside:
        depth += (character in "[(<{") - (character in "])>}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    found = []
    for part in parts:
        name, _, rest = part.strip().partition(":")
        _, default, value = rest.partition(" = ")
        if name and name != "self":
            found.append(f"{name}={'...' if value.startswith('<') else value}" if default else name)
    return found


def differences(package: str) -> list[str]:
    """How a package and its table differ, a line each."""
    written = _table(package)
    lines = []
    for module in MODULES[package]:
        has, says = set(declarations(module)), set(written.get(module, {}))
        lines += [f"{module}: not in the table: {name}: {text}" for name, text in sorted(has - says)]
        lines += [f"{module}: not declared: {name}: {text}" for name, text in sorted(says - has)]
    return lines


def write(package: str) -> None:
    """Writes the table of a package anew."""
    written = _table(package)
    by_name = {name: since for entries in written.values() for (name, _), since in entries.items()}
    lines = [f"# Written by `python python_declarations.py {package} --write`; `since` is entered by hand."]
    lines += [f"package: {package}", "modules:"]
    for module in MODULES[package]:
        lines.append(f"  {module}:")
        for name, text in declarations(module):
            since = written.get(module, {}).get((name, text), by_name.get(name, "unknown"))
            lines.append(f"    - {{name: {_quoted(name)}, signature: {_quoted(text)}, since: {_quoted(since)}}}")
    TABLES.mkdir(exist_ok=True)
    (TABLES / f"{package}.yaml").write_text("\n".join(lines) + "\n")


def _table(package: str) -> dict[str, Entries]:
    path = TABLES / f"{package}.yaml"
    modules = yaml.safe_load(path.read_text())["modules"] if path.exists() else {}
    return {
        module: {(entry["name"], entry["signature"]): entry["since"] for entry in entries} for module, entries in modules.items()
    }


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main() -> int:
    """Compares or writes; returns the exit status."""
    parser = argparse.ArgumentParser(
        description="Holds the Python packages of the emulation and the tables of their API together."
    )
    parser.add_argument("package", choices=sorted(MODULES))
    parser.add_argument("--write", action="store_true", help="write the table anew")
    options = parser.parse_args()
    if options.write:
        write(options.package)
    lines = differences(options.package)
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
