"""Folders and names that a command is given: what is wrong with them is told in the words of who gave them."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.backends.package import MANIFEST, MARK
from tests.cli.conftest import Outcome, spec

Opc = Callable[..., Outcome]


def test_the_line_that_is_told_mends_what_check_found(opc: Opc, tmp_path: Path) -> None:
    one = spec(tmp_path)
    options = ("-o", "o ü t", "--backend", "numpy", "-b", "onnx")
    assert opc("generate", one, *options).code == 0
    (tmp_path / "o ü t/leaky_relu/shape.py").write_text("mine = True\n")
    done = opc("generate", one, *options, "--check")
    assert done.code == 1
    (line,) = re.findall(r"not fresh: run opc (.*)", done.err)
    assert opc(*shlex.split(line)).code == 0
    assert opc("generate", one, *options, "--check").code == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["leaky_relu.yaml", "o ü t"]


@pytest.mark.parametrize("command", ["generate", "build", "package", "test"])
@pytest.mark.parametrize("out", ["file", "file/below", os.devnull, "/proc/nope"])
def test_out_names_no_folder(opc: Opc, tmp_path: Path, command: str, out: str) -> None:
    (tmp_path / "file").write_text("mine")
    one = spec(tmp_path)
    name = ("--name", "my-ops") if command == "package" else ()
    done = opc(command, one, "-b", "numpy", *name, "-o", out)
    assert done.code == 1
    assert "-o" in done.err
    assert re.search(rf"below \S*file,|{out}[ ,:]", done.err), done.err
    assert ".opc" not in done.err
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize("command", [("check",), ("generate",), ("build", "-b", "numpy")])
def test_a_link_that_leads_nowhere_is_told(opc: Opc, tmp_path: Path, command: tuple[str, ...]) -> None:
    (tmp_path / "specs").mkdir()
    spec(tmp_path / "specs")
    (tmp_path / "specs/broken.yaml").symlink_to(tmp_path / "nothing.yaml")
    (tmp_path / "specs/folder.yaml").mkdir()
    done = opc(*command, "specs")
    assert done.code == 1
    assert "broken.yaml" in done.err
    assert "folder.yaml" not in done.err


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("my ops", "letters and digits"),
        ("Ünï", "letters and digits"),
        ("1x", "no name of a module"),
        ("class", "no name of a module"),
        ("torch", "a module of PyTorch"),
        ("json", "a module of Python"),
        ("opc", "a module of opc"),
        ("std", "a word of C++"),
        ("a" * 300, "can't be called"),
    ],
)
def test_a_project_of_a_bad_name_is_told_of_the_name(opc: Opc, tmp_path: Path, name: str, why: str) -> None:
    done = opc("init", name)
    assert (done.code, done.out) == (1, "")
    assert f"'{name}'" in done.err
    assert why in done.err
    assert "hint: " in done.err
    assert "yaml" not in done.err
    assert [*tmp_path.iterdir()] == []


def test_every_file_says_where_it_comes_from(opc: Opc, tmp_path: Path) -> None:
    """So a package whose list of files is lost is known as opc's own."""
    assert opc("generate", spec(tmp_path), "-o", "out").code == 0
    package = tmp_path / "out/leaky_relu"
    files = {p.relative_to(package).as_posix(): p for p in package.rglob("*") if p.is_file() and "build" not in p.parts}
    assert len(files) > 50
    unmarked = [name for name, path in files.items() if MARK not in "".join(path.read_text().splitlines(keepends=True)[:2])]
    assert unmarked == [MANIFEST]
    (package / MANIFEST).unlink()
    assert opc("generate", spec(tmp_path), "-o", "out").code == 0


def test_a_name_for_a_backend_that_is_not_here_is_told(opc: Opc, tmp_path: Path) -> None:
    one = spec(tmp_path)
    text = one.read_text()
    one.write_text(text + "names: {elsewhere: my::Op, torch: mine}\n")
    done = opc("check", one)
    assert done.code == 1
    assert "warning: there is no backend 'elsewhere' here" in done.err
    assert "error: the backend 'torch' has no name of its own for an op" in done.err
    one.write_text(text + "names: {rkn: LeakyThing}\n")
    done = opc("check", one)
    assert done.code == 1
    assert "error: there is no backend 'rkn'" in done.err
    assert "did you mean 'rknn'?" in done.err
    one.write_text(text + "names: {elsewhere: my::Op}\n")
    assert opc("check", one).code == 0
