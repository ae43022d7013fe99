"""A project's Markdown pages for a site, with what they link to.

Pages keep their places below the project's folder, so links between them stay as they are. Any other file that a page links to
becomes a page of its own that shows the text: a site has no repository beside it. A link to a folder leads to its README or to
the gallery, where there is one; else its text stays, without the link.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from os.path import normpath, relpath
from pathlib import Path, PurePosixPath

from opc.diagnostics import Diagnostic, SpecError
from opc.site import texts

_CODE = re.compile(r"^(`{3,}).*?^\1`*[ \t]*$|`[^`\n]+`", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(?P<text>\[[^\[\]]*\])\((?P<target>[^()\s#:]*)(?P<anchor>#[^()\s]*)?\)")
_LANGUAGES = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".h": "cpp",
    ".cpp": "cpp",
    ".py": "python",
    ".toml": "toml",
    ".json": "json",
    ".sh": "sh",
}


def pages_of(root: Path, docs: Path, specs: Mapping[Path, str]) -> dict[str, str]:
    """Return the pages by their paths: README.md of `root`, all Markdown of the folder `docs` in it, and what these link to.

    `specs` has the page in the site of each spec file that has one, and of each folder of them.

    Raises:
        SpecError: when a page links to a file that is not there, or that is no text.
    """
    waiting = [p for p in (root / "README.md", *sorted(docs.rglob("*.md"))) if p.is_file()]
    pages: dict[str, str] = {}
    while waiting:
        place = waiting.pop(0)
        path = _page(place, root)
        if path in pages:
            continue
        text = _text(place, root)
        if place.suffix != ".md":
            pages[path] = f"# {place.name}\n\n{texts.in_fence(text, _LANGUAGES.get(place.suffix, 'text'))}\n"
            continue
        pages[path] = _in_prose(text, partial(_link, page=place, root=root, specs=specs, found=waiting))
    return pages


def _in_prose(text: str, change: Callable[[re.Match[str]], str]) -> str:
    """Return a page with its links changed; what looks like one in code is none."""
    codes: list[str] = []

    def kept(m: re.Match[str]) -> str:
        codes.append(m[0])
        return f"\0{len(codes) - 1}\0"

    changed = _LINK.sub(change, _CODE.sub(kept, text))
    return re.sub(r"\0(\d+)\0", lambda m: codes[int(m[1])], changed)


def _link(m: re.Match[str], page: Path, root: Path, specs: Mapping[Path, str], found: list[Path]) -> str:
    """Return a link as it is in the site; `found` gets the file that it leads to."""
    target, anchor = m["target"], m["anchor"] or ""
    if not target:
        return m[0]
    place = Path(normpath(page.parent / target))
    here = PurePosixPath(_page(page, root)).parent
    if place in specs:
        return f"{m['text']}({relpath(specs[place], here)})"
    if place.is_dir():
        place = place / "README.md"
        if not place.is_file():
            return m["text"][1:-1]
    if not place.is_file() or not place.is_relative_to(root):
        raise SpecError([Diagnostic(f"{relpath(page, root)} links to {target}, which is no file of the project")])
    found.append(place)
    return f"{m['text']}({relpath(_page(place, root), here)}{anchor})"


def _page(place: Path, root: Path) -> str:
    """Return the path in the site of the page that a file becomes."""
    relative = place.relative_to(root).as_posix()
    return relative if place.suffix == ".md" else f"{relative}.md"


def _text(place: Path, root: Path) -> str:
    try:
        return place.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SpecError([Diagnostic(f"{relpath(place, root)} is linked to, and is no text")]) from None


def contents(page: str) -> dict[str, list[tuple[str, str]]]:
    """Return the sections of a table of contents, each with the titles and targets of its links; without `##`, none."""
    found: dict[str, list[tuple[str, str]]] = {}
    for part in re.split(r"^## ", page, flags=re.MULTILINE)[1:]:
        title, _, rest = part.partition("\n")
        links = [(m["text"][1:-1], m["target"]) for m in _LINK.finditer(rest) if m["target"]]
        if links:
            found[title.strip()] = links
    return found
