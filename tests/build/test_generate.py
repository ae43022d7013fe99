"""Generated packages: what is written, left alone, removed, refused and compared."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from opc.build.generate import check, generate
from opc.diagnostics import Diagnostic, SpecError
from tests.build.fakes import HEADER, FakeBackend, make_family

FAMILY = make_family()
ALL = (
    "__init__.py",
    "fake/more.cpp",
    "kernel/answer.cpp",
    "kernel/answer.h",
    "shape.py",
    "tests/__init__.py",
    "tests/test_shape.py",
)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_writes_every_file_and_a_manifest_of_hashes(fake: FakeBackend, tmp_path: Path) -> None:
    made = generate(FAMILY, tmp_path)
    assert made.package == tmp_path / "one"
    assert (made.written, made.unchanged, made.removed, made.edited) == (ALL, (), (), ())
    manifest = json.loads((tmp_path / "one/manifest.json").read_text())
    assert manifest["spec"] == {"name": "one.yaml", "sha256": "0" * 64}
    assert manifest["backends"] == ["fake"]
    assert tuple(manifest["files"]) == ALL
    assert all(len(sha) == 64 for sha in manifest["files"].values())


def test_same_input_gives_same_bytes(fake: FakeBackend, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        generate(FAMILY, tmp_path / folder)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_unchanged_files_are_not_written(fake: FakeBackend, tmp_path: Path) -> None:
    generate(FAMILY, tmp_path)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()}
    made = generate(FAMILY, tmp_path)
    assert (made.written, made.unchanged) == ((), ALL)
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*") if p.is_file()} == before


def test_stale_files_go_and_a_users_files_stay(fake: FakeBackend, tmp_path: Path) -> None:
    fake.files["fake/deep/old.cpp"] = HEADER
    fake.files["mixed/old.cpp"] = HEADER
    generate(FAMILY, tmp_path)
    mine = tmp_path / "one/mixed/mine.cpp"
    mine.write_text("int mine;\n")
    del fake.files["fake/deep/old.cpp"], fake.files["mixed/old.cpp"]
    assert generate(FAMILY, tmp_path).removed == ("fake/deep/old.cpp", "mixed/old.cpp")
    assert not (tmp_path / "one/fake/deep").exists()
    assert mine.read_text() == "int mine;\n"


def test_file_of_a_user_in_the_way_is_refused_and_kept(fake: FakeBackend, tmp_path: Path) -> None:
    mine = tmp_path / "one/shape.py"
    mine.parent.mkdir()
    mine.write_text("mine = True\n")
    with pytest.raises(SpecError, match=r"shape\.py exists and was not made by opc"):
        generate(FAMILY, tmp_path)
    assert contents(tmp_path) == {"one/shape.py": b"mine = True\n"}


def test_lost_manifest_is_made_anew(fake: FakeBackend, tmp_path: Path) -> None:
    generate(FAMILY, tmp_path)
    before = contents(tmp_path)
    for damage in (lambda p: p.unlink(), lambda p: p.write_text("{"), lambda p: p.write_text('{"files": []}')):
        damage(tmp_path / "one/manifest.json")
        generate(FAMILY, tmp_path)
        assert contents(tmp_path) == before


def test_edited_file_is_told_and_overwritten(fake: FakeBackend, tmp_path: Path) -> None:
    generate(FAMILY, tmp_path)
    edited = tmp_path / "one/shape.py"
    text = edited.read_text()
    edited.write_text("mine = True\n")
    assert generate(FAMILY, tmp_path).edited == ("shape.py",)
    assert edited.read_text() == text


@pytest.mark.parametrize("path", ["../out.txt", "/tmp/out.txt", "a/../../out.txt", "", "a\\b"])
def test_path_out_of_the_package_is_refused(fake: FakeBackend, tmp_path: Path, path: str) -> None:
    fake.files[path] = HEADER
    with pytest.raises(SpecError, match="no path inside the package"):
        generate(FAMILY, tmp_path / "out")
    assert contents(tmp_path) == {}


def test_symbolic_link_out_of_the_package_is_refused(fake: FakeBackend, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out/one").mkdir(parents=True)
    (tmp_path / "out/one/fake").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SpecError, match="symbolic link leads out"):
        generate(FAMILY, tmp_path / "out")
    assert contents(tmp_path / "elsewhere") == {}


def test_op_name_that_is_a_path_is_refused(fake: FakeBackend, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="must be an identifier"):
        generate(make_family("../one"), tmp_path / "out")
    assert contents(tmp_path) == {}


@pytest.mark.parametrize("path", ["shape.py", "kernel/answer.h", "manifest.json", "build/x.o"])
def test_file_that_another_part_makes_is_refused(fake: FakeBackend, tmp_path: Path, path: str) -> None:
    fake.files[path] = HEADER
    with pytest.raises(SpecError, match="backend 'fake' makes the file"):
        generate(FAMILY, tmp_path)


def test_op_that_a_backend_cannot_carry_is_skipped(fake: FakeBackend, tmp_path: Path) -> None:
    fake.refuses = (Diagnostic("no complex numbers"),)
    made = generate(FAMILY, tmp_path)
    assert made.skipped == {"fake": fake.refuses}
    assert "fake/more.cpp" not in made.written


def test_backend_generated_once_is_generated_again(fake: FakeBackend, tmp_path: Path) -> None:
    generate(FAMILY, tmp_path)
    made = generate(FAMILY, tmp_path, backends=[])
    assert [b.name for b in made.backends] == ["fake"]
    assert made.removed == ()


def test_check_tells_differences_and_writes_nothing(fake: FakeBackend, tmp_path: Path) -> None:
    assert {d.kind for d in check(FAMILY, tmp_path)} == {"missing"}
    assert contents(tmp_path) == {}
    fake.files["fake/old.cpp"] = HEADER
    generate(FAMILY, tmp_path)
    assert check(FAMILY, tmp_path) == ()
    del fake.files["fake/old.cpp"]
    (tmp_path / "one/shape.py").write_text("mine = True\n")
    (tmp_path / "one/__init__.py").unlink()
    before = contents(tmp_path)
    found = {d.path: d for d in check(FAMILY, tmp_path)}
    assert {path: d.kind for path, d in found.items()} == {
        "__init__.py": "missing",
        "fake/old.cpp": "stale",
        "manifest.json": "changed",
        "shape.py": "changed",
    }
    assert found["shape.py"].diff == (
        "--- shape.py (on disk)\n+++ shape.py (generated)\n@@ -1 +1 @@\n-mine = True\n+# Generated by opc from one.yaml\n"
    )
    assert contents(tmp_path) == before


def test_folder_that_cannot_be_made_is_a_diagnostic(fake: FakeBackend, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file\n")
    with pytest.raises(SpecError, match="cannot"):
        generate(FAMILY, tmp_path / "out")


def test_full_disk_is_a_diagnostic_and_the_next_run_succeeds(fake: FakeBackend, tmp_path: Path) -> None:
    fake.files["fake/large.txt"] = HEADER + "x" * 100_000
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        with pytest.raises(SpecError, match=r"cannot write .*large\.txt") as caught:
            generate(FAMILY, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert "free some space" in str(caught.value)
    assert not (tmp_path / "one/fake/large.txt").exists()
    generate(FAMILY, tmp_path)
    assert check(FAMILY, tmp_path) == ()


KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from tests.build.fakes import HEADER, install, make_family
backend = install(setattr)
backend.files |= {{f"fake/{{i}}.txt": HEADER + sys.argv[3] * 20_000 for i in range(40)}}
from pathlib import Path
from opc.build.generate import generate
print("ready", flush=True)
generate(make_family(), Path(sys.argv[2]))
""".replace("{{", "{").replace("}}", "}")


@pytest.mark.rotating
def test_killed_run_leaves_whole_files(fake: FakeBackend, tmp_path: Path) -> None:
    here = str(Path(__file__).parents[2])
    old, new = HEADER + "a" * 20_000, HEADER + "b" * 20_000
    for attempt in range(6):
        letter = "ab"[attempt % 2]
        process = subprocess.Popen([sys.executable, "-c", KILLED, here, str(tmp_path), letter], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        try:
            process.wait(timeout=0.002 * attempt)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert {p.read_text() for p in tmp_path.glob("one/fake/*.txt")} <= {old, new}
    fake.files |= {f"fake/{i}.txt": new for i in range(40)}
    generate(FAMILY, tmp_path)
    assert check(FAMILY, tmp_path) == ()
