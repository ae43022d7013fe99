"""uv looks where pip is told to look, and pip does what uv can't."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from opc.build import environments as making
from opc.build import installer
from opc.build.installer import Command, installers, read_settings

LISTED = """\
:env:.find-links='/here /there'
:env:.no-input='1'
global.extra-index-url='one\\ntwo'
global.find-links='/elsewhere'
global.index-url='three'
install.constraint='pinned.txt'
download.constraint='other.txt'
"""


def test_the_settings_of_pip_are_told_to_uv() -> None:
    assert read_settings(LISTED) == {
        "UV_FIND_LINKS": "/here,/there",
        "UV_INDEX": "one two",
        "UV_DEFAULT_INDEX": "three",
        "UV_CONSTRAINT": "pinned.txt",
    }
    assert read_settings("") == {}


def test_what_pip_itself_says_is_understood(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "pip.conf").write_text("[global]\nfind-links =\n    /a\n    /b\n[install]\nconstraint = c.txt\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "d e")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    asked = subprocess.run((sys.executable, "-m", "pip", "config", "list"), capture_output=True, text=True, check=True)
    found = read_settings(asked.stdout)
    assert {n: found[n] for n in ("UV_FIND_LINKS", "UV_INDEX", "UV_CONSTRAINT")} == {
        "UV_FIND_LINKS": "/a,/b", "UV_INDEX": "d e", "UV_CONSTRAINT": "c.txt"
    }  # fmt: skip


def test_uv_goes_first_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_INDEX_STRATEGY", "first-index")
    uv, pip = installers("other")
    assert uv.arguments == (sys.executable, "-m", "uv", "pip", "install", "--python", "other")
    assert "UV_INDEX_STRATEGY" not in uv.variables, "what the user sets stands"
    assert pip.arguments[:6] == (sys.executable, "-m", "pip", "--python", "other", "install")
    monkeypatch.setattr(installer, "_installed", lambda name: name != "uv")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert installers("other") == (pip,)
    monkeypatch.setattr(installer, "_installed", lambda name: False)
    assert installers("other")[0].arguments[:3] == ("other", "-m", "pip")


def test_setuptools_can_be_imported_by_a_process_that_has_installed() -> None:
    """Paddle imports it; setuptools' own finder, once asked for pip, keeps it from being imported."""
    program = "from opc.build.installer import installers; installers('other'); import setuptools"
    subprocess.run((sys.executable, "-c", program), check=True)


def test_the_next_does_what_one_can_not() -> None:
    fails = Command((sys.executable, "-c", "print('no'); raise SystemExit(2)"))
    works = Command((sys.executable, "-c", "import os; print('yes', os.environ['SAID'])"), {"SAID": "so"})
    assert [*making._run_first([fails, works], 0)] == ["no", "yes so"]
    with pytest.raises(making.SpecError, match="the environment was not made: no"):
        list(making._run_first([works.of(), fails][1:], 0))


@pytest.mark.parametrize("better", [False, True])
def test_the_module_installs(better: bool, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def say(code: int) -> Command:
        return Command((sys.executable, "-c", f"import sys; print({code}, *sys.argv[1:]); sys.exit({code})"))

    monkeypatch.setattr(installer, "installers", lambda python: (say(0 if better else 3), say(1)))
    monkeypatch.setattr(sys, "argv", ["installer", "-q", "this"])
    assert installer.main() == (0 if better else 1)
    assert capfd.readouterr().out == ("0 -q this\n" if better else "3 -q this\n1 -q this\n")
