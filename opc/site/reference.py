"""Pages of a reference: the public names of Python modules, and the commands of a command line.

Modules are read by griffe, which parses them and runs nothing. Docstrings are Markdown, with sections in Google's style.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from opc.diagnostics import Diagnostic, SpecError
from opc.site import texts

if TYPE_CHECKING:
    import griffe

FOLDER = PurePosixPath("api")
"""Where the pages of a reference are among those of a site."""

_LINE = 100
"""How long a signature may be before its parameters stand on lines of their own."""


def path_of(name: str) -> str:
    """Return the path of the page of a module or a program."""
    return str(FOLDER / f"{name.partition(':')[0]}.md")


def module_page(name: str) -> str:
    """Return the page of a module: what `__all__` has, else every name with a docstring that no underscore begins.

    Raises:
        SpecError: when there is no such module in Python.
    """
    module = _read(name)
    parts = [f"# {name}", "", *_docstring(module), ""]
    exported = [n for n in module.exports or () if isinstance(n, str)]
    for member in exported or [n for n, m in module.members.items() if not m.is_alias and not n.startswith("_")]:
        found = _resolved(module, member)
        if found is not None and (found.docstring is not None or exported):
            parts += _described(found, member, "##")
    return "\n".join(parts) + "\n"


def _read(name: str) -> griffe.Module:
    import griffe

    try:
        spec = find_spec(name)
    except ImportError:
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise SpecError([Diagnostic(f"there is no Python module {name}")])
    path = Path(spec.origin)
    module: griffe.Module = griffe.visit(
        name, path, path.read_text(encoding="utf-8"), docstring_parser=griffe.Parser.google, docstring_options={"warnings": False}
    )
    return module


def _resolved(module: griffe.Module, name: str) -> Any:
    """Return a member of a module, where it is imported from elsewhere the one there; None of what has no source."""
    member: Any = module.members.get(name)
    if member is None or not member.is_alias:
        return member
    home, _, own = member.target_path.rpartition(".")
    return _resolved(_read(home), own)


def _described(found: Any, name: str, level: str) -> Iterator[str]:
    """Yield what stands under a name: its signature, its docstring, its own members."""
    signature = _signature(found, name)
    yield f"{level} `{name}`"
    yield ""
    if signature:
        yield texts.in_fence(signature, "python")
        yield ""
    yield from _docstring(found)
    yield ""
    if found.is_class:
        for inner, member in found.members.items():
            if not member.is_alias and not inner.startswith("_") and member.docstring is not None:
                yield from _described(member, inner, f"{level}#")


def _signature(found: Any, name: str) -> str:
    """Return how something is called or declared, as Python would have it."""
    if found.is_function:
        returns = f" -> {found.returns}" if found.returns is not None else ""
        inside = list(_parameters([p for p in found.parameters if p.name not in ("self", "cls")]))
        line = f"{name}({', '.join(inside)}){returns}"
        return line if len(line) <= _LINE else f"{name}(\n{''.join(f'    {p},{chr(10)}' for p in inside)}){returns}"
    if found.is_class:
        bases = f"({', '.join(map(str, found.bases))})" if found.bases else ""
        return "\n".join([f"class {name}{bases}", *(f"    {field}" for field in _fields(found))])
    annotation = f": {found.annotation}" if found.annotation is not None else ""
    value = f" = {found.value}" if found.value is not None and len(str(found.value)) <= _LINE else ""
    return f"{name}{annotation}{value}"


def _fields(found: Any) -> Iterator[str]:
    """Yield the fields of a dataclass that have no docstring of their own: the class's tells of them."""
    if any(re.search(r"\bdataclass\b", str(d.value)) for d in found.decorators):
        for name, member in found.members.items():
            if member.is_attribute and member.annotation is not None and member.docstring is None:
                yield _signature(member, name)


def _parameters(given: Sequence[griffe.Parameter]) -> Iterator[str]:
    """Yield parameters as they are written, with the marks of those that are given by name or position alone."""
    import griffe

    kinds = griffe.ParameterKind
    before = None
    for p in given:
        if before is kinds.positional_only and p.kind is not before:
            yield "/"
        if p.kind is kinds.keyword_only and before not in (kinds.keyword_only, kinds.var_positional):
            yield "*"
        stars = {kinds.var_positional: "*", kinds.var_keyword: "**"}.get(p.kind or kinds.positional_or_keyword, "")
        annotation = f": {p.annotation}" if p.annotation is not None else ""
        equals = " = " if p.annotation is not None else "="
        default = f"{equals}{p.default}" if p.default is not None and not stars else ""
        yield f"{stars}{p.name}{annotation}{default}"
        before = p.kind


def _docstring(found: Any) -> Iterator[str]:
    """Yield a docstring as Markdown, its sections as tables."""
    for section in found.docstring.parsed if found.docstring is not None else ():
        match section.kind.value:
            case "text":
                yield _markdown(section.value)
            case "raises":
                yield from _table("raises", [(e.annotation, e.description) for e in section.value])
            case "parameters" | "attributes":
                yield from _table(section.kind.value[:-1], [(e.name, e.description) for e in section.value])
            case "returns" | "yields":
                yield f"{section.kind.value.capitalize()}: {' '.join(_markdown(e.description) for e in section.value)}"
            case "examples":
                yield "\n\n".join(texts.in_fence(t, "pycon") if k.value == "examples" else _markdown(t) for k, t in section.value)
            case "admonition":
                yield _markdown(f"{section.value.kind.capitalize()}: {section.value.contents}")
        yield ""


def _table(title: str, rows: Sequence[tuple[Any, str]]) -> Iterator[str]:
    yield f"| {title} | |"
    yield "|---|---|"
    for name, text in rows:
        yield f"| {texts.code(name)} | {' '.join(_markdown(text).split()).replace('|', '&#124;')} |"


def _markdown(text: str) -> str:
    """Return Markdown in which no tag of HTML is left; code stays as it is."""
    parts = re.split(r"(`+[^`]*`+|^ {4}.*$)", text, flags=re.MULTILINE)
    return "".join(part if k % 2 else part.replace("&", "&amp;").replace("<", "&lt;") for k, part in enumerate(parts))


def program_page(name: str, program: Any) -> str:
    """Return the page of a command of click, or of Typer's own copy of it: each command's usage, arguments and options."""
    parts = [f"# The command {texts.prose(name)}", ""]
    for title, command in _commands(name, program):
        context = command.context_class(command, info_name=title)
        parts += [f"## {texts.prose(title)}", "", *(_markdown(p) + "\n" for p in _paragraphs(command.help or ""))]
        parts += [texts.in_fence(f"{title} {' '.join(command.collect_usage_pieces(context))}", "text"), ""]
        rows = [r for p in command.get_params(context) if (r := p.get_help_record(context)) is not None]
        if rows:
            parts += ["| argument or option | |", "|---|---|"]
            parts += [f"| {texts.code(names)} | {texts.prose(about)} |" for names, about in rows]
        parts.append("")
    return "\n".join(parts)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text.strip())]


def _commands(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """Yield the commands that do something, with the words they are called by."""
    inner: Mapping[str, Any] | None = getattr(command, "commands", None)
    if inner is None:
        yield name, command
        return
    for word, below in inner.items():
        yield from _commands(f"{name} {word}", below)


__all__ = ["FOLDER", "module_page", "path_of", "program_page"]
