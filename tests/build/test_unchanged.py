"""`opc generate` with nothing to do: told without compiling, and never where a file is not what it should be."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from opc.backends.package import MANIFEST
from opc.build import locks, stamp, unchanged
from opc.build.generate import generate, prepare
from opc.build.unchanged import NAME, Records
from opc.diagnostics import Diagnostic
from tests.build.fakes import FakeBackend, make_family

TEXT = b"op: one\n"


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "one.yaml"
    path.write_bytes(TEXT)
    return path


@pytest.fixture
def out(tmp_path: Path, fake: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stamp, "registered", lambda: ("fake",))
    return tmp_path / "out"


def write(spec: Path, out: Path) -> Path:
    """Generate the package of the fake op as if it came from the spec's text."""
    family = replace(make_family(), source_hash=stamp.digest(str(spec)))
    prepared = prepare(family, out)
    with locks.hold(out / locks.FOLDER):
        made = generate(family, out, None, prepared)
        Records(out).keep(prepared, made)
    return made.package


def test_nothing_to_do_is_seen_with_and_without_what_files_status_says(
    spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert Records(out).find(spec, None) is None
    package = write(spec, out)
    monkeypatch.setattr(unchanged, "_SETTLED", 0)
    found = Records(out).find(spec, None)
    assert found is not None
    assert (found.package, found.files) == (package, 7)
    assert len(json.loads((package / NAME).read_text())["status"]) == 7
    # From now on no file is read.
    monkeypatch.setattr(stamp, "digest", lambda path: "")
    assert Records(out).find(spec, None) == found


def test_a_file_written_a_moment_ago_is_read_again(spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write(spec, out)
    monkeypatch.setattr(unchanged, "_SETTLED", 10**18)
    assert Records(out).find(spec, None) is not None
    assert json.loads((package / NAME).read_text())["status"] == {}


@pytest.mark.parametrize("path", ["shape.py", "kernel/answer.cpp", MANIFEST])
@pytest.mark.parametrize("known", [False, True], ids=["once read", "known by status"])
def test_an_edited_file_is_seen_even_with_its_size_and_its_time_as_before(
    spec: Path, out: Path, path: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = write(spec, out)
    if known:
        monkeypatch.setattr(unchanged, "_SETTLED", 0)
        assert Records(out).find(spec, None) is not None
    place = package / path
    before, text = place.stat(), place.read_bytes()
    place.write_bytes(text[:-2] + b"#\n")
    os.utime(place, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert place.stat().st_size == before.st_size
    assert Records(out).find(spec, None) is None
    place.write_bytes(text)
    assert Records(out).find(spec, None) is not None


@pytest.mark.parametrize("path", ["shape.py", MANIFEST, NAME])
def test_a_file_that_is_gone_is_seen(spec: Path, out: Path, path: str) -> None:
    package = write(spec, out)
    (package / path).unlink()
    assert Records(out).find(spec, None) is None


def test_a_changed_or_renamed_spec_is_seen(spec: Path, out: Path) -> None:
    write(spec, out)
    other = spec.with_name("other.yaml")
    other.write_bytes(TEXT)
    assert Records(out).find(other, None) is None
    spec.write_bytes(TEXT + b"# more\n")
    assert Records(out).find(spec, None) is None
    spec.write_bytes(b"- no spec\n")
    assert Records(out).find(spec, None) is None


def test_a_changed_compiler_or_backend_is_seen(spec: Path, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "backend.py"
    source.write_text("one = 1\n")
    monkeypatch.setattr(stamp, "foreign_files", lambda backends: [str(source)])
    write(spec, out)
    assert Records(out).find(spec, None) is not None
    source.write_text("another = 1\n")
    assert Records(out).find(spec, None) is None
    write(spec, out)
    assert Records(out).find(spec, None) is not None
    monkeypatch.setattr(stamp, "own_files", lambda: [str(source)])
    assert Records(out).find(spec, None) is None


def test_a_backend_that_is_asked_for_and_not_there_is_something_to_do(
    spec: Path, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(spec, out)
    assert Records(out).find(spec, ["fake"]) is not None
    assert Records(out).find(spec, ["another"]) is None
    monkeypatch.setattr(stamp, "registered", lambda: ("another", "fake"))
    assert Records(out).find(spec, None) is None


def test_backends_left_out_are_told_again_and_refused_again_by_name(spec: Path, out: Path, fake: FakeBackend) -> None:
    fake.refuses = (Diagnostic("no such tensors"),)
    write(spec, out)
    found = Records(out).find(spec, None)
    assert found is not None
    assert found.skipped == {"fake": [["error", "error: no such tensors"]]}
    assert Records(out).find(spec, ["fake"]) is None


def test_a_record_that_cannot_be_read_is_none(spec: Path, out: Path) -> None:
    package = write(spec, out)
    for text in ("", "[]", '{"spec": 1}'):
        (package / NAME).write_text(text)
        assert Records(out).find(spec, None) is None
