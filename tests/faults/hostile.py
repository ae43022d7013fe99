"""Specs and folders that mean harm: nothing is written outside of the package, run, or let into code as anything but text.

Every case has a fenced folder of its own: `work`, where things run; `elsewhere` and `victim`, which must stay as they are.
Commands that the words hold would make a file (`CANARY`), which must not be there afterwards.
"""

from __future__ import annotations

import os
import tempfile
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import yaml

from opc.backends import registry
from opc.build.generate import generate
from opc.compiler import compile_spec
from opc.diagnostics import Diagnostics, SpecError
from opc.editor import checks
from opc.spec.loader import load, loads
from tests.faults.mutants import misplaced
from tests.faults.skeletons import skeleton
from tests.faults.tally import Fault, Tally
from tests.faults.words import CANARY, FILES, NAMES, WORDS

Wrong = list[str]


@dataclass(frozen=True)
class Fence:
    """A folder with what may change in it, `work`, and what may not."""

    root: Path

    @property
    def work(self) -> Path:
        return self.root / "work"

    @property
    def elsewhere(self) -> Path:
        return self.root / "elsewhere"

    @property
    def victim(self) -> Path:
        return self.root / "victim"

    def crossed(self) -> Wrong:
        """Return what was changed or run that must not have been."""
        there = sorted(os.path.relpath(p, self.root) for p in self.root.rglob("*") if not p.is_relative_to(self.work))
        found = [] if there == ["elsewhere", "elsewhere/kept", "victim"] else [f"outside of the folder lies {there}"]
        found += [f"{p} was written to" for p in (self.victim, self.elsewhere / "kept") if not _is(p, "mine\n")]
        return found + [f"a command made {p}" for p in self.root.rglob(CANARY)]


def _is(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text() == text


@contextmanager
def fenced() -> Iterator[Fence]:
    """Make a fence and work in it."""
    with tempfile.TemporaryDirectory() as name:
        fence = Fence(Path(name).resolve())
        fence.work.mkdir()
        fence.elsewhere.mkdir()
        for kept in (fence.victim, fence.elsewhere / "kept"):
            kept.write_text("mine\n")
        with chdir(fence.work):
            yield fence


def wordy(word: str) -> dict[str, object]:
    """Return a spec with a word wherever free text may stand: docs, values of an attribute, a literal and a comment."""
    text = f"{'text ' * 14}{word}"  # as long as what is not laid out on one line
    body = (
        f"# {''.join(c for c in word if c.isascii() and c.isprintable())}\n"
        f"y[..., i] = (alpha * x[..., i] if mode == {text!r} else x[..., i]) * (w[i] if present(w) else 1)"
    )
    return {
        "op": "hostile",
        "domain": "tests.faults",
        "version": 1,
        "doc": f"Doc {word}",
        "types": {"T": "floating"},
        "inputs": {"x": {"type": "T[..., D]", "doc": f"In {word}"}, "w?": {"type": "T[D]", "doc": word}},
        "attributes": {
            "alpha": {"type": "float", "default": 0.5, "doc": word},
            "mode": {"type": "str", "values": ["a", text], "default": text, "doc": word},
        },
        "outputs": {"y": {"type": "T[..., D]", "doc": word}},
        "kernel": body,
    }


def _files(spec: Mapping[str, object], backends: Sequence[str] | None = None) -> Mapping[str, str]:
    text = yaml.safe_dump(spec, sort_keys=False)
    return compile_spec(loads(text, "plain.yaml"), registry.select(backends)).package.files


@cache
def _plain(backends: Sequence[str] | None = None) -> dict[str, object]:
    return {path: skeleton(path, text) for path, text in _files(wordy(WORDS["plain"]), backends).items()}


def _same(found: Mapping[str, str], wanted: Mapping[str, object]) -> Wrong:
    """Return which files of a package are not what they are with plain words, but for words."""
    wrong = [f"the files are {sorted(found)}"] if found.keys() != wanted.keys() else []
    for path in found.keys() & wanted.keys():
        try:
            found[path].encode()
            if skeleton(path, found[path]) != wanted[path]:
                wrong.append(f"{path}: words got out of their comment or string")
        except ValueError as error:
            wrong.append(f"{path}: {error}")
    return wrong


def words(word: str) -> tuple[str, Wrong]:
    """Write the package of a spec with a word in every text; what is not the word must be as with plain words."""
    with fenced() as fence:
        try:
            found = _files(wordy(word))
        except SpecError as error:
            return "refused", _placed(error)
        return "the same code", _same(found, _plain()) + fence.crossed()


def _placed(error: SpecError) -> Wrong:
    return [f"not placed: {d.message}" for d in error.diagnostics if d.span.source is None]


def file_name(name: str, backends: Sequence[str] | None = None) -> tuple[str, Wrong]:
    """Write the package of a spec whose file is called so, for some backends or all."""
    with fenced() as fence:
        path = fence.work / name
        path.write_text(yaml.safe_dump(wordy("plain words"), sort_keys=False))
        found = compile_spec(path, registry.select(backends))
        made = generate(found.family, fence.work / "out", registry.select(["numpy"]))
        wrong = [] if all((made.package / place).read_text(encoding="utf-8") for place in made.written) else ["an empty file"]
        return "the same code", wrong + _same(found.package.files, _plain(backends)) + fence.crossed()


def _named(key: str, name: str) -> dict[str, object]:
    """Return a spec in which something is called so."""
    spec = wordy("plain words")
    spec["kernel"] = "y = x"
    spec |= {"inputs": {"x": "T[..., D]"}, "outputs": {"y": "T[..., D]"}, "attributes": {}}
    match key:
        case "op" | "domain" | "onnx_name":
            spec[key] = name
        case "input":
            spec |= {"inputs": {name: "T[..., D]"}, "kernel": f"y = {name}"}
        case "output":
            spec |= {"outputs": {name: "T[..., D]"}, "kernel": f"{name} = x"}
        case "attribute":
            spec["attributes"] = {name: {"type": "float", "default": 1.0}}
        case "type":
            spec |= {"types": {name: "floating"}, "inputs": {"x": f"{name}[...]"}, "outputs": {"y": f"{name}[...]"}}
        case "size":
            spec |= {"inputs": {"x": f"T[..., {name}]"}, "outputs": {"y": f"T[..., {name}]"}}
        case "index":
            spec["kernel"] = f"y[..., {name}] = x[..., {name}]"
        case "key":
            spec[name] = name
        case "header" | "library":
            part = {"include": [name]} if key == "header" else {"link": [name]}
            spec["native"] = {"cpp": {**part, "code": "y = x;"}}
        case _:
            spec["names"] = {key: name}
    return spec


NAMED = (
    *("op", "domain", "onnx_name", "input", "output", "attribute", "type", "size", "index", "key", "header", "library"),
    *("torch", "onnx", "rknn"),
)


def naming(key: str, name: str) -> tuple[str, Wrong]:
    """Check a spec in which something has a hostile name, and generate what is accepted."""
    with fenced() as fence:
        path = fence.work / "named.yaml"
        path.write_text(yaml.safe_dump(_named(key, name), sort_keys=False, allow_unicode=True, width=10_000), encoding="utf-8")
        checked = checks.check(partial(load, path, whole=False), Diagnostics())
        text = path.read_text(encoding="utf-8")
        wrong = [f"{why}: {d.message}" for d in checked.diagnostics if (why := misplaced(d, text))]
        if not checked.is_good or checked.family is None:
            return "refused", wrong + fence.crossed()
        try:
            made = generate(checked.family, fence.work / "out", registry.select(["numpy", "onnx", "torch"]))
            for place in made.written:
                skeleton(place, (made.package / place).read_text(encoding="utf-8"))
        except SpecError:
            return "refused", wrong + fence.crossed()
        except ValueError as error:
            wrong.append(str(error))
        return "accepted", wrong + fence.crossed()


def reading(data: bytes) -> tuple[str, Wrong]:
    """Check a file that no reader should believe."""
    with fenced() as fence:
        path = fence.work / "bomb.yaml"
        path.write_bytes(data)
        checked = checks.check(partial(load, path, whole=False), Diagnostics())
        text = data.decode("utf-8-sig", "replace")
        wrong = [f"{why}: {d.message}" for d in checked.diagnostics if (why := misplaced(d, text))]
        return "accepted" if checked.is_good else "refused", wrong + fence.crossed()


def _laughs() -> str:
    names = "abcdefghijklmnop"
    return "a: &a [x, x]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise(names))


_GOOD = yaml.safe_dump(
    {**wordy("plain words"), "attributes": {}, "inputs": {"x": "T[..., D]"}, "kernel": "y = x"}, sort_keys=False
)
BOMBS: dict[str, bytes] = {
    "billion laughs": _laughs().encode(),
    "laughs in a spec": (_GOOD + "examples: &a [*a, *a]\n").encode(),
    "object": f"{_GOOD}doc2: !!python/object/apply:os.system ['touch {CANARY}']\n".encode(),
    "module": f"!!python/module:{CANARY}\n".encode(),
    "tag": _GOOD.replace("op:", "op: !!binary aGk= #").encode(),
    "local tag": _GOOD.replace("version: 1", "version: !x 1").encode(),
    "tag handle": f"%TAG ! tag:x,2000:\n---\n{_GOOD}".encode(),
    "merge key": f"x: &x {{op: y}}\n<<: *x\n{_GOOD}".encode(),
    "complex key": f"? {{a: b}}\n: c\n{_GOOD}".encode(),
    "two documents": f"{_GOOD}---\n{_GOOD}".encode(),
    "other version": f"%YAML 9.9\n---\n{_GOOD}".encode(),
    "deep list": b"[" * 100_000,
    "deep mapping": ("".join(f"{' ' * n}a:\n" for n in range(3000))).encode(),
    "deep flow": b"op: " + b"{a: " * 5000 + b"}" * 5000,
    "long line": _GOOD.encode() + b"doc2: " + b"x" * 900_000,
    "large file": _GOOD.encode() + b"#" * (64 << 20),
    "many keys": _GOOD.encode() + b"".join(b"k%d: v\n" % n for n in range(90_000)),
    "large number": _GOOD.replace("version: 1", f"version: {'9' * 100_000}").encode(),
    "long name": _GOOD.replace("hostile", "h" * 500_000).encode(),
    "deep body": _GOOD.replace("y = x", f"y = {'(' * 5000}x{')' * 5000}").encode(),
    "long body": _GOOD.replace("y = x", f"y = {' + '.join(['x'] * 100_000)}").encode(),
    "power tower": _GOOD.replace("y = x", f"y = x * {'9**' * 30}9").encode(),
    "unary tower": _GOOD.replace("y = x", f"y = {'-' * 50_000}x").encode(),
    "UTF-16": _GOOD.encode("utf-16"),
    "UTF-32": _GOOD.encode("utf-32"),
    "byte order mark twice": b"\xef\xbb\xbf\xef\xbb\xbf" + _GOOD.encode(),
    "NUL bytes": _GOOD.encode().replace(b"hostile", b"host\0ile"),
    "all zero": bytes(1 << 20),
    "control codes": _GOOD.replace("Doc", "\x1b]0;x\x07\x1b[2J\x9b").encode(),
    "half characters": _GOOD.encode().replace(b"hostile", b"h\xed\xa0\x80"),
    "empty": b"",
}
"""Files that make readers explode, construct objects or take one text for another."""


def links(name: str) -> tuple[str, Wrong]:
    """Generate and build into a folder in which something leads elsewhere."""
    from tests.faults.folders import FOLDERS, build

    with fenced() as fence:
        FOLDERS[name](fence)
        outcome, wrong = build(fence)
        return outcome, wrong + fence.crossed()


def _cases() -> Iterator[tuple[str, str, Callable[[], tuple[str, Wrong]]]]:
    from tests.faults.folders import FOLDERS
    from tests.faults.projects import PROJECTS, SHOWN

    for name, word in WORDS.items():
        yield "words", name, partial(words, word)
    for name in FILES:
        yield "names of files", repr(name), partial(file_name, name)
    for key in NAMED:
        for name in NAMES:
            yield "names", f"{key} {name[:80]!r}", partial(naming, key, name)
    for name, data in BOMBS.items():
        yield "YAML", name, partial(reading, data)
    for name in FOLDERS:
        yield "folders", name, partial(links, name)
    for table in (PROJECTS, SHOWN):
        for name, (kind, case) in table.items():
            yield kind, name, case


def outcome(case: Callable[[], tuple[str, Wrong]]) -> tuple[str, Wrong]:
    """Run a case; a traceback is what is wrong with it."""
    try:
        return case()
    except Exception:
        lines = traceback.format_exc().splitlines()
        return "a traceback", ["\n".join((lines[-1], *lines[-9:]))]


def run(only: str = "") -> Tally:
    """Run every case, or those whose kind and name hold a text."""
    tally = Tally("hostile")
    for kind, name, case in _cases():
        if only in f"{kind}: {name}":
            what, wrong = outcome(case)
            tally.counts[f"{kind}: {what}"] += 1
            command = f"python -m tests.faults hostile --only '{kind}: {name}'"
            for one in wrong:
                tally.add(Fault(f"{kind}, {name}: {one.splitlines()[0][:100]}", one, command))
    return tally
