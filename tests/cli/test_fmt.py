"""`opc fmt`: what it writes, what it says, and what it leaves alone."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import SPECS, Outcome, spec, write

Opc = Callable[..., Outcome]
MESSY = "doc: x\nop:  a\n"


def test_the_project_s_specs_stay_as_they_are(opc: Opc) -> None:
    one = opc("fmt", "--check", SPECS / "native")
    assert (one.code, one.out, one.err) == (0, "2 specs: 2 as they should be\n", "")


def test_a_messy_spec_is_written_once(opc: Opc, tmp_path: Path) -> None:
    path = write(tmp_path / "a.yaml", MESSY)
    spec(tmp_path)
    path.chmod(0o640)
    checked = opc("fmt", "--check", "a.yaml")
    assert (checked.code, checked.out, checked.err) == (1, "1 spec: 1 to write\n", "would write a.yaml\n")
    shown = opc("fmt", "--diff", "a.yaml")
    assert shown.code == 1
    assert shown.out == "--- a.yaml\n+++ a.yaml\n@@ -1,2 +1,2 @@\n+op: a\n doc: x\n-op:  a\n1 spec: 1 to write\n"
    assert path.read_text() == MESSY
    wrote = opc("fmt", ".")
    assert (wrote.code, wrote.out, wrote.err) == (0, "2 specs: 1 written, 1 as they should be\n", "wrote a.yaml\n")
    assert path.read_text() == "op: a\ndoc: x\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["a.yaml", "leaky_relu.yaml"]
    assert opc("fmt", ".").out == "2 specs: 2 as they should be\n"


def test_a_link_stays_one(opc: Opc, tmp_path: Path) -> None:
    path = write(tmp_path / "real" / "a.yaml", MESSY)
    (tmp_path / "link.yaml").symlink_to(path)
    assert opc("fmt", "link.yaml").code == 0
    assert (tmp_path / "link.yaml").is_symlink()
    assert path.read_text() == "op: a\ndoc: x\n"


def test_what_is_refused_stays_and_the_others_are_written(opc: Opc, tmp_path: Path) -> None:
    write(tmp_path / "a.yaml", MESSY)
    bad = write(tmp_path / "b.yaml", "inputs: {x:\n  # x\n  T}\n")
    write(tmp_path / "c.yaml", "op: [\n")
    done = opc("fmt", ".")
    assert (done.code, done.out) == (1, "3 specs: 1 written, 2 refused\n")
    assert "b.yaml:2:1: error: the file is left as it is: this comment would be lost\n" in done.err
    assert "c.yaml:2:1: error: not valid YAML" in done.err
    assert bad.read_text() == "inputs: {x:\n  # x\n  T}\n"


def test_the_extra_that_brings_what_it_needs(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec(tmp_path)
    real = importlib.util.find_spec
    monkeypatch.setattr("opc.cli.console.find_spec", lambda name: None if name == "ruamel.yaml" else real(name))
    done = opc("fmt", "leaky_relu.yaml")
    assert done.code == 1
    assert "opc fmt needs the package ruamel.yaml: run `" in done.err
    assert "opc-compiler[fmt]" in done.err
