"""What a change touched: specs, and ops that opc writes otherwise than before."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opc.build import stamp
from opc.testing import touched
from opc.testing.touched import changed, joining

ROOT = Path(__file__).parents[2]


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_what_a_change_touched(tmp_path: Path) -> None:
    names = ("one", "two", "three", "four")
    specs = [tmp_path / f"{name}.yaml" for name in names]
    for spec in specs[:3]:
        spec.write_text("op: x\n")
    assert changed(specs) == ()
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    assert changed(specs[:3]) == ()
    specs[0].write_text("op: y\n")
    git(tmp_path, "commit", "-am", "second")
    assert changed(specs) == (specs[0],)
    git(tmp_path, "checkout", "-b", "work")
    specs[1].write_text("op: z\n")
    git(tmp_path, "commit", "-am", "third")
    git(tmp_path, "commit", "--allow-empty", "-m", "fourth")
    specs[3].write_text("op: new\n")
    assert changed(specs) == (specs[1], specs[3])


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.rotating
def test_ops_that_opc_writes_otherwise_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repository, out = tmp_path / "repository", tmp_path / "out"
    for name in ("opc", "runtime"):
        shutil.copytree(ROOT / name, repository / name)  # with what Python has compiled
    (repository / ".gitignore").write_text("__pycache__\n")
    specs = [repository / "specs" / f"{name}.yaml" for name in ("add", "elu", "gather")]
    specs[0].parent.mkdir()
    for spec in specs:
        shutil.copy(ROOT / "specs" / spec.name, spec)
    git(repository, "init", "-b", "main")
    git(repository, "add", ".")
    git(repository, "commit", "-m", "first")
    monkeypatch.setattr(stamp, "__file__", str(repository / "opc" / "build" / "stamp.py"))
    monkeypatch.setattr(touched, "MOST", 1)
    git(repository, "checkout", "-b", "work")
    git(repository, "commit", "--allow-empty", "-m", "second")
    assert joining(specs, specs[:1], out) == ()
    # What packages are not made of touches no op. Few ops join if only few are written otherwise, or include what has changed.
    edit(repository / "opc" / "testing" / "tiers.py", "quick tier", "short tier")
    edit(repository / "runtime" / "include" / "opc" / "nests" / "scatter.h", "#include", "/* changed */\n#include")
    assert joining(specs, specs[:1], out) == (specs[2],)
    # The answer is kept, spec by spec.
    with monkeypatch.context() as patch:
        patch.setattr(touched, "_differences", None)
        assert joining(specs, specs[:1], out) == (specs[2],)
        assert joining(specs[1:], specs[1:2], out) == (specs[2],)
        assert joining(specs[:2], specs[:1], out) == ()
    # So does one that is chosen anyway, and others are left out where these show as much.
    assert joining(specs, specs, out) == (specs[2],)
    # What all packages have is shown by one that has all of it.
    git(repository, "checkout", "runtime")
    edit(repository / "opc" / "backends" / "numpy" / "templates" / "binding.h.j2", "edits are lost.", "edits are all lost.")
    assert joining(specs, specs[:1], out) == (specs[0],)
    assert joining(specs, specs[1:2], out) == (specs[1],)
    # A spec that changed is run as a whole anyway.
    specs[1].write_text(specs[1].read_text() + "# changed\n")
    assert specs[1] not in joining(specs, specs[:1], out)
    assert changed(specs) == (specs[1],)


def test_only_where_opc_lies_in_the_repository(tmp_path: Path) -> None:
    spec = tmp_path / "one.yaml"
    spec.write_text("op: x\n")
    assert joining([], [], tmp_path) == ()
    assert joining([spec], [], tmp_path) == ()
    git(tmp_path, "init", "-b", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    git(tmp_path, "commit", "--allow-empty", "-m", "second")
    assert joining([spec], [], tmp_path) == ()
