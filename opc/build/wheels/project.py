"""What a wheel says of itself: name, version and the rest of `[project]` in the user's pyproject.toml."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from opc.config import control_character
from opc.diagnostics import Diagnostic, SpecError, did_you_mean, in_line
from opc.records import dataclass

FIELDS = (
    "name", "version", "description", "readme", "license", "license-files", "authors", "keywords", "classifiers", "urls",
    "requires-python", "dependencies",
)  # fmt: skip
"""The keys of `[project]` that a wheel of ops has a use for."""

LOWEST_PYTHON = "3.11"
"""The Python that generated modules are written for."""


@dataclass(frozen=True, slots=True)
class Project:
    """The distribution: `licenses` holds the text of each license file by its path, `readme` a text and its content type."""

    name: str
    version: str
    summary: str = ""
    readme: tuple[str, str] = ("", "")
    license: str = ""
    licenses: Mapping[str, str] = field(default_factory=dict)
    authors: tuple[tuple[str, str], ...] = ()
    keywords: tuple[str, ...] = ()
    classifiers: tuple[str, ...] = ()
    urls: tuple[tuple[str, str], ...] = ()
    dependencies: tuple[str, ...] = ()
    requires_python: str = f">={LOWEST_PYTHON}"

    @property
    def module(self) -> str:
        """The name of the module that users import, which is the distribution's in a wheel's file name too."""
        return re.sub(r"[-_.]+", "_", self.name).lower()

    @property
    def stem(self) -> str:
        """What the names of the wheel, of the sdist and of `.dist-info` begin with."""
        return f"{self.module}-{self.version}"


def checked(project: Project, taken: Mapping[str, str]) -> Project:
    """Return a project with its version in normal form; `taken` are modules that frameworks have, and whose they are.

    Raises:
        SpecError: when no distribution can be called so, or its module could not be imported.
    """
    from packaging.version import InvalidVersion, Version

    from opc.records import replace

    if not re.fullmatch(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?", project.name):
        hint = "a name is ASCII letters and digits, with - _ . between them, such as my-ops"
        raise SpecError([Diagnostic(f"'{in_line(project.name)}' can't name a distribution", hint=hint)])
    module = project.module
    owner = {"opc": "opc", **taken}.get(module) or ("Python" if module in sys.stdlib_module_names else "")
    if not module.isidentifier() or keyword.iskeyword(module) or owner:
        reason = f"is a module of {owner}" if owner else "is no name of a module"
        message = f"'{module}' {reason}, so no wheel of ops can be called '{project.name}'"
        raise SpecError([Diagnostic(message, hint="choose another name, such as my-ops")])
    try:
        return replace(project, version=str(Version(project.version)))
    except InvalidVersion:
        hint = "as in 0.1.0 or 2.0rc1"
        raise SpecError([Diagnostic(f"'{project.version}' is no version of a distribution", hint=hint)]) from None


def read(path: Path) -> Project | None:
    """Return the project of a pyproject.toml, None where it has no table `[project]`.

    Raises:
        SpecError: with every mistake in the table, or what is wrong with the file.
    """
    import tomllib

    try:
        data = tomllib.loads(path.read_text(encoding="utf-8")).get("project")
    except (OSError, ValueError) as error:
        raise SpecError([Diagnostic(f"cannot read {path}: {error}")]) from error
    if data is None:
        return None
    reader = _Reader(path, data)
    found = reader.project() if isinstance(data, dict) else None
    if found is None or reader.mistakes:
        raise SpecError(reader.mistakes or [Diagnostic(f"{path}: [project] must be a table")])
    return found


class _Reader:
    """Reads `[project]`, and records each mistake."""

    def __init__(self, path: Path, data: Mapping[str, Any]) -> None:
        self.path, self.data = path, data
        self.mistakes: list[Diagnostic] = []

    def project(self) -> Project:
        if (control := control_character(self.data)) is not None:
            self._wrong(f"a text in [project] can't hold the character #x{ord(control):02x}")
        for key in self.data:
            if key not in FIELDS:
                hint = did_you_mean(key, FIELDS) or f"a wheel of ops takes {', '.join(FIELDS)}"
                self._wrong(f"'{key}' in [project] is nothing that opc package can carry", hint)
        for key in ("name", "version"):
            if key not in self.data:
                self._wrong(f"[project] has no {key}")
        people = self._list("authors", dict)
        urls = self.data.get("urls", {})
        if not isinstance(urls, dict) or not all(isinstance(u, str) for u in urls.values()):
            self._wrong("urls in [project] must map names to addresses")
            urls = {}
        license = self.data.get("license", "")
        if not isinstance(license, str):
            self._wrong("license in [project] must be an SPDX expression", 'as in license = "Apache-2.0"')
            license = ""
        return Project(
            name=self._text("name"),
            version=self._text("version"),
            summary=self._text("description"),
            readme=self._readme(),
            license=license,
            licenses=self._licenses(),
            authors=tuple((str(p.get("name", "")), str(p.get("email", ""))) for p in people),
            keywords=tuple(self._list("keywords", str)),
            classifiers=tuple(self._list("classifiers", str)),
            urls=tuple(urls.items()),
            dependencies=tuple(self._list("dependencies", str)),
            requires_python=self._text("requires-python") or f">={LOWEST_PYTHON}",
        )

    def _wrong(self, message: str, hint: str | None = None) -> None:
        self.mistakes.append(Diagnostic(f"{self.path}: {message}", hint=hint))

    def _text(self, key: str) -> str:
        value = self.data.get(key, "")
        if not isinstance(value, str) or "\n" in value:
            self._wrong(f"{key} in [project] must be a line of text")
            return ""
        return value

    def _list(self, key: str, kind: type) -> list[Any]:
        value = self.data.get(key, [])
        if not isinstance(value, list) or not all(isinstance(v, kind) for v in value):
            self._wrong(f"{key} in [project] must be a list of {'tables' if kind is dict else 'texts'}")
            return []
        return value

    def _readme(self) -> tuple[str, str]:
        """Return the text of the file that `readme` names, and what kind of text it is."""
        name = self._text("readme")
        if not name:
            return "", ""
        if Path(name).is_absolute() or ".." in Path(name).parts:
            self._wrong(f"readme in [project] is '{name}', which leads out of the project")
            return "", ""
        kinds = {".md": "text/markdown", ".rst": "text/x-rst", ".txt": "text/plain"}
        kind = kinds.get(Path(name).suffix.lower())
        if kind is None:
            self._wrong(f"readme in [project] is '{name}'", f"its file ends in {', '.join(kinds)}")
            return "", ""
        return self._file(name), kind

    def _licenses(self) -> dict[str, str]:
        folder = self.path.parent
        found: dict[str, str] = {}
        for pattern in self._list("license-files", str):
            if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
                self._wrong(f"license-files in [project] has '{pattern}', which leads out of the project")
                continue
            names = sorted(p.relative_to(folder).as_posix() for p in folder.glob(pattern) if p.is_file())
            if not names:
                self._wrong(f"license-files in [project] has '{pattern}', which no file is called")
            found |= {name: self._file(name) for name in names}
        return found

    def _file(self, name: str) -> str:
        try:
            return (self.path.parent / name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            self._wrong(f"cannot read {name}: {error}")
            return ""
