"""Folders that somebody else has prepared: links that lead out of them, and lists that name files which are not theirs.

What is built there is the make-believe op of tests/build/fakes.py, in a process of its own, since it takes the backends' place.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.faults.hostile import Fence

ROOT = Path(__file__).parents[2]
SECONDS = 120
PROGRAM = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.build import fakes
fakes.install(setattr)
from opc.build import builder, cache, files, locks
from opc.diagnostics import SpecError
try:
    built = builder.build_families([fakes.make_family()], Path("out"), say=print)
    mistakes = [d for b in built for d in b.diagnostics]
except SpecError as error:
    mistakes = error.diagnostics
for mistake in mistakes:
    print(mistake.render())
if not mistakes:
    assert fakes.call(Path("out/one/build/libfake.so").resolve(), 1) == 42
print("refused" if mistakes else "built")
"""


def build(fence: Fence) -> tuple[str, list[str]]:
    """Build the op in the folder `out` of a fence; return what came of it and what is wrong with that."""
    call = [sys.executable, "-c", PROGRAM, str(ROOT)]
    try:
        done = subprocess.run(call, cwd=fence.work, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "a hang", [f"not done in {SECONDS} s"]
    outcome = done.stdout.strip().rpartition("\n")[2]
    if done.returncode or outcome not in ("built", "refused"):
        return "a traceback", ["\n".join((*done.stderr.splitlines()[-1:], *done.stderr.splitlines()[-9:]))]
    return outcome, []


def _linked(inside: str, to: str) -> Callable[[Fence], None]:
    """Return what puts a link at a path of `out`, to what lies beside the fence's work."""

    def make(fence: Fence) -> None:
        place = fence.work / "out" / inside
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(fence.root / to)

    return make


def _made(then: Callable[[Fence], None]) -> Callable[[Fence], None]:
    """Return what builds the package first, without the stamp that would spare the next build its work, and then changes it."""

    def make(fence: Fence) -> None:
        build(fence)
        then(fence)

    return make


def _replaced(inside: str, to: str) -> Callable[[Fence], None]:
    def change(fence: Fence) -> None:
        place = fence.work / "out" / inside
        subprocess.run(("rm", "-rf", str(place)), check=True)
        place.symlink_to(fence.root / to)

    return _made(change)


def _manifest(*listed: str) -> Callable[[Fence], None]:
    """Return what has the manifest of a built package list files of others."""

    def change(fence: Fence) -> None:
        place = fence.work / "out/one/manifest.json"
        data = json.loads(place.read_text())
        data["files"] |= {path.format(root=fence.root): "0" * 64 for path in listed}
        place.write_text(json.dumps(data))

    return _made(change)


def _stamp(*listed: str) -> Callable[[Fence], None]:
    """Return what has the stamp of a built package list files of others as made by it, and changed since."""

    def change(fence: Fence) -> None:
        place = fence.work / "out/one/build/stamp.json"
        data = json.loads(place.read_text())
        for path in listed:
            named = path.format(root=fence.root, work=fence.work)
            data["digests"][named] = data["files"][named] = "0:0"
        place.write_text(json.dumps(data))

    return _made(change)


def _text(inside: str, text: str) -> Callable[[Fence], None]:
    def change(fence: Fence) -> None:
        (fence.work / "out" / inside).write_text(text)

    return _made(change)


FOLDERS: dict[str, Callable[[Fence], None]] = {
    "nothing": lambda fence: None,
    "a package elsewhere": _linked("one", "elsewhere"),
    "a part elsewhere": _linked("one/fake", "elsewhere"),
    "tests elsewhere": _linked("one/tests", "elsewhere"),
    "built files elsewhere": _linked("one/build", "elsewhere"),
    "what is kept elsewhere": _linked(".opc", "elsewhere"),
    "the lock is another's file": _linked(".opc/lock", "victim"),
    "the list to ignore is another's file": _linked(".opc/.gitignore", "victim"),
    "an unfinished file is another's": _linked("one/build/.unfinished", "victim"),
    "an unfinished file of ninja is another's": _linked(".opc/.unfinished", "victim"),
    "a source is another's file": _replaced("one/kernel/answer.cpp", "victim"),
    "a source leads to nothing": _replaced("one/kernel/answer.cpp", "elsewhere/new"),
    "a manifest is another's file": _replaced("one/manifest.json", "victim"),
    "a stamp is another's file": _replaced("one/build/stamp.json", "victim"),
    "a library is another's file": _replaced("one/build/libfake.so", "victim"),
    "an object is another's file": _replaced("one/build/answer.o", "victim"),
    "an unfinished library is another's": _replaced("one/build/libfake.so.tmp", "victim"),
    "ninja's file is another's": _replaced(".opc/build.ninja", "victim"),
    "ninja's log is another's": _replaced(".opc/.ninja_log", "victim"),
    "a folder in a link to itself": _replaced("one/kernel", "work/out/one/kernel"),
    "a manifest of files above": _manifest("../../../victim", "../../../elsewhere/kept"),
    "a manifest of absolute files": _manifest("{root}/victim"),
    "a manifest of odd files": _manifest("", ".", "a\0b", "x\ny", "fake/../../../../victim"),
    "a stamp of others' files": _stamp("{root}/victim", "{root}/elsewhere/kept"),
    "a stamp that climbs": _stamp("{work}/out/one/build/../../../../victim"),
    "a manifest of lists": _text("one/manifest.json", '{"backends": [[]], "files": {"x": []}, "opc": {}, "spec": []}'),
    "a manifest without end": _text("one/manifest.json", "[" * 200_000),
    "a stamp without end": _text("one/build/stamp.json", "[" * 200_000),
    "a stamp of numbers": _text("one/build/stamp.json", '{"digests": {"x": 1}, "files": 3}'),
    "ninja's log is not one": _text(".opc/.ninja_log", "\0" * 100),
    "ninja's dependencies are not some": _text(".opc/.ninja_deps", "\0" * 100),
}
"""What is prepared in the folder `out` of a fence, by name."""
