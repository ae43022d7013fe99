"""Hostile settings of projects, and hostile words in what is made for people and for package indexes: a site, a distribution."""

from __future__ import annotations

import csv
import io
import json
import os
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import markdown
import yaml

from opc.backends import registry
from opc.build.wheels import archive, make, sdist
from opc.build.wheels import settings as wheel_settings
from opc.compiler import Stage, compile_spec
from opc.diagnostics import Diagnostics, SpecError
from opc.editor import checks
from opc.editor.hover import hover
from opc.editor.occurrences import Kind, outline
from opc.site.gallery import Shown, gallery
from opc.site.project import project_files
from opc.spec.loader import loads
from tests.faults import hostile
from tests.faults.skeletons import html, skeleton
from tests.faults.words import CANARY, FILES, WORDS

Outcome = tuple[str, list[str]]
PLAIN = """op: named
domain: tests.faults
version: 1
doc: Twice.
types: {T: floating}
inputs: {x: "T[...]"}
outputs: {y: "T[...]"}
kernel: y = 2 * x
"""
COMMAND = f"touch {CANARY}"

TABLES: dict[str, str] = {
    "flags of a shell": f'cxxflags = ["-DA=$({COMMAND})", "`{COMMAND}`", ";{COMMAND};", "-DB=\'; {COMMAND}; \'"]',
    "flags over lines": f'cxxflags = ["-DA=1\\nbuild x: phony\\n", "-DB\\n  command = {COMMAND}\\n"]',
    "flags of ninja": 'cxxflags = ["-DA=$in", "-DB=${out}", "-DC=$$", "-DD=$ ", "-DE=$:"]',
    "a flag with NUL": 'cxxflags = ["-DA=\\u0000"]',
    "flags of other types": "cxxflags = [1, [], {}]",
    "a compiler of a shell": f'cxx = "g++; {COMMAND}"',
    "a compiler that is quoted by half": "cxx = 'g++ \"x'",
    "a compiler with NUL": 'cxx = "g++\\u0000x"',
    "a compiler over lines": f'cxx = "g++\\n{COMMAND}"',
    "an empty compiler": 'cxx = " "',
    "a compiler that is a folder": 'cxx = "/"',
    "no table": "opc = 1",
    "interpreters": f'python = {{torch = "{COMMAND}", "../x" = "y", numpy = ""}}',
    "interpreters of other types": "python = {torch = 1}",
    "architectures": f'cuda = {{architectures = ["sm_90; {COMMAND}", 1, []]}}',
    "architectures of no list": 'cuda = {architectures = "sm_90"}',
    "a version": 'popart = {sdk = ["3.2"]}',
    "specs above": 'package = {specs = ["../../../../etc", "/etc/passwd", "\\u0000"]}',
    "a proof above": 'package = {proof = "/etc/passwd"}',
}
"""What `[tool.opc]` might say."""


def project(table: str, build: bool = False) -> Outcome:
    """Check, generate and, where asked for, build an op in a project with such a table; also ask what its wheel would hold."""
    from opc.build import builder

    with hostile.fenced() as fence:
        name = "[tool]" if table.startswith("opc") else "[tool.opc]"
        (fence.work / "pyproject.toml").write_text(f'[project]\nname = "p"\nversion = "1"\n{name}\n{table}\n', encoding="utf-8")
        spec = fence.work / "named.yaml"
        spec.write_text(PLAIN)
        wrong: list[str] = []
        try:
            wheel_settings.load(fence.work)
            (built,) = builder.build_specs([spec], fence.work / "out", ["numpy"])
            said = "built" if built.ok else "refused"
        except SpecError:
            said = "refused"
        return said, wrong + fence.crossed()


@cache
def _page(word: str) -> Mapping[str, object]:
    text = yaml.safe_dump(hostile.wordy(word), sort_keys=False)
    family = compile_spec(loads(text, "plain.yaml"), to=Stage.FAMILY).family
    pages = project_files(word, gallery([Shown(family, text)], registry.select(["numpy", "torch"])))
    # The spec itself is shown in a fence, and is as long as it is.
    return {path: skeleton(path, page) for path, page in pages.items() if not path.endswith("mkdocs.yml")}


def site(word: str) -> Outcome:
    """Make the pages of a site of an op with a word in its texts: they have the tags that plain words get."""
    with hostile.fenced() as fence:
        try:
            found = _page(word)
        except SpecError:
            return "refused", fence.crossed()
        wrong = [f"{path}: words became tags" for path, tags in found.items() if tags != _page(WORDS["plain"])[path]]
        return "the same tags", wrong + fence.crossed()


def _distribution(word: str, work: Path) -> Mapping[str, object]:
    """Return the skeletons of the files of a source distribution with a word in its texts, and its metadata's keys."""
    text = json.dumps(word)
    (work / "pyproject.toml").write_text(
        f'[project]\nname = "p"\nversion = "1"\ndescription = {text}\nkeywords = [{text}]\n'
        f"authors = [{{name = {text}, email = {text}}}]\nurls = {{{text} = {text}}}\nclassifiers = [{text}]\n",
        encoding="utf-8",
    )
    spec = work / "plain.yaml"
    spec.write_text(yaml.safe_dump(hostile.wordy(word), sort_keys=False))
    settings = wheel_settings.load(work)
    assert settings is not None
    held = make.contents(settings.project, [spec], work / "out", ["numpy"], compiled=False)
    found: dict[str, Any] = {}
    with tarfile.open(sdist.write(sdist.portable(held), work / "dist")) as archive:
        for member in archive:
            path = member.name.partition("/")[2]
            if member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                found[path] = content.read().decode()
    return {path: _keys(text) if path == "PKG-INFO" else _skeleton(path, text) for path, text in found.items()}


def _skeleton(path: str, text: str) -> object:
    if path.endswith((".yaml", ".j2")):
        return None
    found: Any = skeleton(path, text)
    if path == "pyproject.toml":  # where a word is what a link is called
        found["project"]["urls"] = [*found["project"]["urls"].values()]
    return found


def _keys(text: str) -> list[str]:
    """Return the names of a distribution's metadata, up to where its description begins."""
    return [line.partition(":")[0] for line in text.partition("\n\n")[0].splitlines() if not line.startswith(" ")]


def distribution(word: str) -> Outcome:
    """Make a source distribution with a word in every text: what is not the word must be as with plain words."""
    with hostile.fenced() as fence:
        try:
            found = _distribution(word, fence.work)
        except SpecError:
            return "refused", fence.crossed()
    with hostile.fenced() as plain:
        wanted = _distribution(WORDS["plain"], plain.work)
    wrong = [f"the files are {sorted(found)}"] if found.keys() != wanted.keys() else []
    wrong += [f"{path}: words got out" for path in found.keys() & wanted.keys() if found[path] != wanted[path]]
    return "the same code", wrong


def archived(name: str) -> Outcome:
    """Put a spec whose file is called so into a wheel: installers find every file below its folder, and in the RECORD."""
    with hostile.fenced() as fence:
        spec = fence.work / name
        spec.write_text(PLAIN)
        (fence.work / "pyproject.toml").write_text('[project]\nname = "p"\nversion = "1"\n', encoding="utf-8")
        settings = wheel_settings.load(fence.work)
        assert settings is not None
        try:
            held = make.contents(settings.project, [spec], fence.work / "out", ["numpy"], compiled=False)
        except SpecError:
            return "refused", fence.crossed()
        wheel = fence.work / "p.whl"
        archive.write_wheel(wheel, "p-1.dist-info", make.python_files(held, {}))
        with zipfile.ZipFile(wheel) as opened:
            names = opened.namelist()
            record = opened.read("p-1.dist-info/RECORD").decode()
        wrong = fence.crossed()
    rows = [row[0] for row in csv.reader(io.StringIO(record, newline=""))]
    wrong += [] if sorted(rows) == sorted(names) else [f"the RECORD has {sorted(set(rows) ^ set(names))}"]
    wrong += [f"the file {n!r} has no plain name" for n in names if not n.isprintable() or ".." in PureWindowsPath(n).parts]
    wrong += [f"the file {n!r} lies elsewhere" for n in names if PureWindowsPath(n).as_posix() != str(PurePosixPath(n))]
    return "held", wrong


def _hovers(word: str) -> list[list[str]]:
    """Return the tags of what an editor shows of each name in the body, which it takes for Markdown."""
    text = yaml.safe_dump(hostile.wordy(word), sort_keys=False)
    checked = checks.check(partial(loads, text, "plain.yaml", whole=False), Diagnostics())
    if checked.op is None:
        raise SpecError(checked.diagnostics)
    names = outline(text)
    shown = {o.name: hover(text, o.start, names, checked) for o in names.occurrences if o.kind in (Kind.INPUT, Kind.ATTRIBUTE)}
    shown |= {key: hover(text, text.index(f"{key}:") + past, names, checked) for key, past in (("op", 4), ("kernel", 0))}
    about = [found[0] for name, found in sorted(shown.items()) if found is not None]
    return [html(markdown.markdown(one, extensions=["pymdownx.superfences"])) for one in about]


def hovered(word: str) -> Outcome:
    """Ask what an editor shows of an op with a word in its texts: it has the tags that plain words get."""
    try:
        found = _hovers(word)
    except SpecError:
        return "refused", []
    return "the same tags", [] if found == _hovers(WORDS["plain"]) else ["words became tags where an editor shows them"]


def runs(word: str) -> Outcome:
    """Build, load and call an op with a word in every text."""
    import numpy as np

    import opc

    with hostile.fenced() as fence:
        path = fence.work / "plain.yaml"
        path.write_text(yaml.safe_dump(hostile.wordy(word), sort_keys=False))
        before = os.environ.get("OPC_CACHE_DIR")
        os.environ["OPC_CACHE_DIR"] = str(fence.work / "cache")
        try:
            op = opc.load(path)
            found = op(np.array([[1.0, 2.0]]), np.array([2.0, 4.0]))
        finally:
            os.environ.pop("OPC_CACHE_DIR") if before is None else os.environ.update(OPC_CACHE_DIR=before)
        wrong = [] if np.array_equal(found, [[1.0, 4.0]]) else [f"computed {found}"]
        return "right", wrong + fence.crossed()


EVERYTHING = "".join(word for name, word in WORDS.items() if name not in ("NUL", "half a character", "long"))

Table = dict[str, tuple[str, Callable[[], Outcome]]]
PROJECTS: Table = {name: ("projects", partial(project, table)) for name, table in TABLES.items()}
SHOWN: Table = {
    **{f"site: {name}": ("sites", partial(site, word)) for name, word in WORDS.items()},
    **{f"sdist: {name}": ("distributions", partial(distribution, word)) for name, word in WORDS.items()},
    **{f"hover: {name}": ("hovers", partial(hovered, word)) for name, word in WORDS.items()},
    **{f"wheel: {name!r}": ("archives", partial(archived, name)) for name in FILES},
    "call: everything": ("calls", partial(runs, EVERYTHING)),
}
