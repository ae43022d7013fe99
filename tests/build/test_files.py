"""Folders for what is built, and paths inside a package, in whatever state a folder is found."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.build import files
from opc.diagnostics import SpecError


@pytest.mark.parametrize("left", ["", "*", "**\n"])
def test_a_list_that_was_not_written_whole_is_written_anew(tmp_path: Path, left: str) -> None:
    folder = tmp_path / "made"
    folder.mkdir()
    (folder / ".gitignore").write_text(left)
    files.make_folder(folder)
    assert (folder / ".gitignore").read_text() == "*\n"


def test_a_list_of_ones_own_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("kernel/\n")
    files.make_folder(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "kernel/\n"


@pytest.mark.parametrize("place", ["out/one/kernel", "elsewhere/circle"])
def test_a_link_in_a_circle_is_refused_by_name(tmp_path: Path, place: str) -> None:
    package, circle = tmp_path / "out/one", tmp_path / place
    for folder in (package, circle.parent):
        folder.mkdir(parents=True, exist_ok=True)
    circle.symlink_to(circle)
    if circle.parent != package:
        (package / "kernel").symlink_to(circle)
    with pytest.raises(SpecError) as refused:
        files.read(files.inside(package, ["kernel/one.cpp"])["kernel/one.cpp"])
    assert str(package / "kernel") in str(refused.value)
