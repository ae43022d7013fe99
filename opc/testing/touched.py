"""What a change touched: specs that differ from where the branch began, and ops whose packages opc now writes otherwise.

Which packages differ is found out by writing them twice, with opc as it was there and as it is now. A change of what all packages
have touches all ops, so of many only as few count as together have every kind of difference: each function that changed lines
call, in each part of a package, and each changed header of the runtime.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from opc.build import files, locks, manifest, stamp
from opc.build.locks import FOLDER
from opc.spec.files import content, file_of
from opc.testing.cover import cover, digest
from opc.testing.origin import git as run_git

MOST = 4
"""How many ops join the covering set at most for what opc now writes otherwise."""

MAINS = ("origin/main", "main", "origin/master", "master")
"""What a branch leaves, if it is there."""

_CALLED = re.compile(r"[A-Za-z_][\w:.]*(?=[(<\[])")
_INCLUDED = re.compile(r'#include "(opc/[\w./]+)"')


@dataclass(frozen=True, slots=True)
class _Begin:
    """The repository of some specs, and the commit that a change began at: where the branch left main, or the one before."""

    root: Path
    commit: str | None


def _begin(folder: Path) -> _Begin | None:
    git = partial(run_git, folder)
    root, head = git("rev-parse", "--show-toplevel"), git("rev-parse", "HEAD")
    if root is None or head is None:
        return None
    bases = (git("merge-base", "HEAD", name) for name in MAINS)
    base = next((b for b in bases if b is not None and b != head), None) or git("rev-parse", "--verify", "-q", "HEAD~1")
    return _Begin(Path(root).absolute(), base)


def changed(specs: Sequence[Path]) -> tuple[Path, ...]:
    """Return the specs that a change touched: of the branch since it left main, or of the last commit, and what is not committed.

    Outside a git repository, or where history ends before, nothing is known to have changed.
    """
    folder = specs[0].absolute().parent if specs else Path.cwd()
    begin = _begin(folder)
    if begin is None:
        return ()
    touched = _touched(begin, folder)
    files_of = {spec: file_of(spec) for spec in specs}
    return tuple(spec for spec, file in files_of.items() if file.absolute() in touched or file.resolve() in touched)


def changed_files(folder: Path) -> tuple[str, frozenset[Path]] | None:
    """Return the commit that a change began at, and the files that it touched; None where git does not know where that is."""
    begin = _begin(folder)
    return None if begin is None or begin.commit is None else (begin.commit, frozenset(_touched(begin, begin.root)))


def _touched(begin: _Begin, folder: Path) -> set[Path]:
    """Return the files that differ from where a change began, and those below a folder that git does not know yet."""
    names = (run_git(begin.root, "diff", "--name-only", begin.commit or "HEAD") or "").splitlines()
    others = (run_git(folder, "ls-files", "--others", "--exclude-standard") or "").splitlines()
    # Paths of `diff` begin at the root, those of `ls-files` at the folder.
    return {begin.root / name for name in names} | {folder / name for name in others}


def joining(specs: Sequence[Path], chosen: Collection[Path], out: Path) -> tuple[Path, ...]:
    """Return few specs whose packages opc writes otherwise than where the change began, `chosen` ones where these show as much.

    Of specs that did not change themselves, and only where opc lies in their repository.
    """
    own = Path(stamp.__file__).absolute().parents[2]
    begin = _begin(specs[0].absolute().parent) if specs else None
    if begin is None or begin.commit is None or not own.is_relative_to(begin.root):
        return ()
    places = [(own / name).relative_to(begin.root).as_posix() for name in ("opc", "runtime")]
    if not run_git(begin.root, "diff", "--name-only", begin.commit, "--", *places):
        return ()
    others = sorted({*specs} - {*changed(specs)})
    if not others:  # `opc generate` without specs would write those of the folder that it runs in
        return ()
    every = _kept_differences(begin.root, begin.commit, own, places, others, out)
    found = {spec: kinds for spec, kinds in every.items() if kinds}
    # The chosen ones run anyway, if not on all backends.
    cost = {str(spec): 0.5 if spec in chosen else 1.0 for spec in others}
    joined = found if len(found) <= MOST else [*cover(found, cost)][:MOST]
    return tuple(spec for spec in others if str(spec) in joined)


def _kept_differences(
    root: Path, commit: str, own: Path, places: Sequence[str], specs: Sequence[Path], out: Path
) -> dict[str, frozenset[str]]:
    """Return the kinds of differences of each spec's package. What was found out is kept below `out`, spec by spec."""
    known = out / FOLDER / "touched.json"
    told = "\0".join((commit, digest(stamp.own_files())))
    keys = {spec: hashlib.sha256(f"{told}\0{spec}\0{digest([str(file_of(spec))])}".encode()).hexdigest() for spec in specs}
    kept: dict[str, list[str]] = {}
    with contextlib.suppress(OSError, ValueError):
        kept = json.loads(known.read_text(encoding="utf-8"))
    if missing := [spec for spec, key in keys.items() if key not in kept]:
        found = _differences(root, commit, own, places, missing)
        kept = {key: kept[key] for key in keys.values() if key in kept}
        kept |= {keys[spec]: sorted(found.get(str(spec), ())) for spec in missing}
        with locks.hold(known.parent):
            files.write(known, json.dumps(kept), known.parent)
    return {str(spec): frozenset(kept[key]) for spec, key in keys.items()}


def _differences(root: Path, commit: str, own: Path, places: Sequence[str], specs: Sequence[Path]) -> dict[str, frozenset[str]]:
    """Return the kinds of differences of each spec's package, for those that have any; none where a package can't be written."""
    with tempfile.TemporaryDirectory(prefix="opc-touched-") as name:
        folder = Path(name)
        archive, then = folder / "then.zip", folder / "then" / own.relative_to(root)
        if run_git(root, "archive", "-o", str(archive), commit, "--", *places) is None:
            return {}
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(folder / "then")
        written = {source: _generate(source, specs, folder / str(i)) for i, source in enumerate((then, own))}
        for process in written.values():
            process.wait()
        headers = _changed_headers(*(source / "runtime" / "include" for source in written))
        old, new = ({p.parent.name: p.parent for p in (folder / i).glob("*/manifest.json")} for i in "01")
        named = {spec: stamp.op_of(spec, content(spec)) for spec in specs}
        both = {spec: name for spec, name in named.items() if name in old and name in new}
        kinds = {str(spec): frozenset(_kinds(old[name], new[name], headers)) for spec, name in both.items()}
        return {spec: found for spec, found in kinds.items() if found}


def _generate(source: Path, specs: Sequence[Path], out: Path) -> subprocess.Popen[bytes]:
    """Start writing the packages of specs with the opc that lies in a folder."""
    search = os.pathsep.join(p for p in (str(source), os.environ.get("PYTHONPATH")) if p)
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "opc", "generate", *dict.fromkeys(str(file_of(spec)) for spec in specs), "-o", str(out)],
        env={**os.environ, "PYTHONPATH": search},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _kinds(old: Path, new: Path, headers: Collection[str]) -> Iterator[str]:
    """Yield the kinds of differences between two packages of an op; their tests are no part of the proof."""
    before, after = manifest.read(old).files, manifest.read(new).files
    for path in {*before, *after}:
        part = path.partition("/")[0]
        if part == "tests":
            continue
        texts = [files.read(package / path) or "" for package in (old, new)]
        yield from (f"{part} {name}" for name in _INCLUDED.findall(texts[1]) if name in headers)
        if before.get(path) != after.get(path):
            lines = [{*text.replace(new.name, "op").splitlines()} for text in texts]
            yield part
            yield from (f"{part} {name}" for line in lines[0] ^ lines[1] for name in _CALLED.findall(line))


def _changed_headers(old: Path, new: Path) -> frozenset[str]:
    """Return the headers of the runtime that differ, and those that include one of these."""
    texts = [{p.relative_to(root).as_posix(): p.read_text() for p in root.rglob("*.h")} for root in (old, new)]
    found = {name for name, text in texts[1].items() if texts[0].get(name) != text}
    while more := {n for n, text in texts[1].items() if n not in found and found & {*_INCLUDED.findall(text)}}:
        found |= more
    return frozenset(found)


__all__ = ["changed", "changed_files", "joining"]
