"""What tells that something else is installed, and what does not."""

import os
from pathlib import Path

import pytest

from opc.backends import environments
from opc.build import stamp


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that packages are installed in, the only one."""
    (tmp_path / "torch-2.13.0.dist-info").mkdir()
    (tmp_path / "six.py").write_text("")
    monkeypatch.setattr(environments, "installed", lambda: [str(tmp_path), str(tmp_path / "none"), str(tmp_path / "six.py")])
    return tmp_path


def test_byte_code_of_a_first_import_changes_nothing(place: Path) -> None:
    before = stamp.settings()
    (place / "__pycache__").mkdir()
    assert stamp.settings() == before


def test_what_is_installed_removed_or_installed_again_counts(place: Path) -> None:
    told = [stamp.settings()]
    (place / "onnx-1.23.2.dist-info").mkdir()
    told.append(stamp.settings())
    os.utime(place / "torch-2.13.0.dist-info", ns=(1, 1))
    told.append(stamp.settings())
    (place / "onnx-1.23.2.dist-info").rmdir()
    told.append(stamp.settings())
    (place / "six.py").write_text("changed")
    told.append(stamp.settings())
    (place / "none").mkdir()
    told.append(stamp.settings())
    assert len(set(told)) == 6
