"""Which compiler is used, and what is said where there is none."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from opc import config
from opc.backends.kernel.exact import EXACT_FLAGS
from opc.backends.kernel.target import PLATFORM
from opc.build import toolchain
from opc.config import Config
from opc.diagnostics import SpecError


def script(place: Path, text: str) -> str:
    place.write_text(f"#!/bin/sh\n{text}\n")
    place.chmod(0o755)
    return str(place)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CXX", "CXXFLAGS", "LDFLAGS"):
        monkeypatch.delenv(name, raising=False)


def test_finds_a_compiler_on_the_search_path() -> None:
    found = toolchain.find(Config())
    assert Path(found.command[0]).is_absolute()
    assert found.command[0] in found.identity
    assert "-std=c++17" in found.cxx_flags


def test_no_compiler_tells_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SpecError) as caught:
        toolchain.find(Config())
    text = str(caught.value)
    assert "no C++ compiler was found" in text
    for line in ("sudo apt install g++", "sudo dnf install gcc-c++", "xcode-select --install"):
        assert line in text


def test_environment_wins_over_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mine = script(tmp_path / "my compiler", 'exec c++ "$@"')
    monkeypatch.setenv("CXX", f"'{mine}' -O1")
    monkeypatch.setenv("CXXFLAGS", "-DA='b c'")
    found = toolchain.find(Config(cxx="no-such-compiler", cxxflags=("-DMORE",)))
    assert found.command == (mine, "-O1")
    behind = (*toolchain.SILENT_FLAGS, *EXACT_FLAGS)
    assert found.cxx_flags[-2 - len(behind) :] == ("-DA=b c", "-DMORE", *behind)


RELAXED = {
    "-ffast-math", "-Ofast", "-funsafe-math-optimizations", "-ffinite-math-only", "-fassociative-math -fno-signed-zeros",
    "-freciprocal-math", "-fno-signed-zeros",
}  # fmt: skip
MACROS = ("__FAST_MATH__", "__FINITE_MATH_ONLY__ 1", "__ASSOCIATIVE_MATH__", "__RECIPROCAL_MATH__", "__NO_SIGNED_ZEROS__")


@pytest.mark.parametrize("flags", sorted(RELAXED))
@pytest.mark.parametrize("where", ["CXX", "CXXFLAGS", "settings"])
def test_flags_of_a_user_relax_no_arithmetic(flags: str, where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if where != "settings":
        monkeypatch.setenv(where, f"g++ {flags}" if where == "CXX" else flags)
    found = toolchain.find(Config(cxxflags=tuple(flags.split())) if where == "settings" else Config())
    # Kernels are compiled at the levels that their own flags name.
    asked = [*found.command, *found.cxx_flags, "-O2", "-dM", "-E", "-x", "c++", "/dev/null"]
    defined = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert [m for m in MACROS if f"#define {m}" in defined] == []
    assert "#define __NO_TRAPPING_MATH__ 1" in defined
    assert "#define __NO_MATH_ERRNO__ 1" in defined


@pytest.mark.parametrize("flags", ["-Wall -Wextra -Werror", "-Wpedantic", "-pedantic-errors", "-Werror=unused-parameter -Wextra"])
def test_warnings_that_a_user_asks_for_refuse_nothing(flags: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """JAX's header is refused by g++ under -Wpedantic: members of a struct are called like their types."""
    monkeypatch.setenv("CXXFLAGS", flags)
    found = toolchain.find(Config())
    (tmp_path / "header.h").write_text('extern "C" {\ntypedef int *Get(void *);\nstruct Api { Get *Get; };\n}\n')
    source = "#include <header.h>\nstatic int unused(int a, Api *) { int b; return 0; }\n"
    made = [*found.command, *found.cxx_flags, "-isystem", str(tmp_path), "-fsyntax-only", "-x", "c++", "-"]
    subprocess.run(made, input=source, text=True, check=True)


@pytest.mark.parametrize("flags", ["-ffast-math", "-funsafe-math-optimizations"])
@pytest.mark.parametrize("where", ["CXX", "LDFLAGS"])
def test_flags_of_a_user_flush_no_small_numbers(flags: str, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(where, f"g++ {flags}" if where == "CXX" else flags)
    found = toolchain.find(Config())
    (tmp_path / "a.cpp").write_text("int a;\n")
    made = [*found.command, *found.cxx_flags, str(tmp_path / "a.cpp"), *found.link_flags, "-o", str(tmp_path / "a.so")]
    subprocess.run(made, check=True)
    assert "set_fast_math" not in subprocess.run(["nm", tmp_path / "a.so"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", ["CXX", "CXXFLAGS", "LDFLAGS"])
def test_quotes_that_are_not_closed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "-DA='b")
    with pytest.raises(SpecError, match=rf"\${name} is .*, which is no .*: No closing quotation"):
        toolchain.find(Config())


def test_flags_at_fault_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXXFLAGS", "-march=nonsense")
    with pytest.raises(SpecError, match=r"hint: it was called with '-march=nonsense' of \$CXXFLAGS"):
        toolchain.find(Config())
    monkeypatch.delenv("CXXFLAGS")
    with pytest.raises(SpecError, match=r"hint: it was called with '-std=c\+\+98' of \[tool\.opc\] cxxflags in a\.toml"):
        toolchain.find(Config(path=Path("a.toml"), cxxflags=("-std=c++98",)))


@pytest.mark.parametrize("name", ["no-such-compiler", "/no/such/compiler"])
def test_named_compiler_that_is_missing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    with pytest.raises(SpecError, match=r"of \[tool\.opc\] cxx in .* was not found"):
        toolchain.find(Config(path=Path("pyproject.toml"), cxx=name))
    monkeypatch.setenv("CXX", name)
    with pytest.raises(SpecError, match=r"of \$CXX was not found"):
        toolchain.find(Config())


def test_named_compiler_that_cannot_is_not_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CXX", script(tmp_path / "old", "echo 'error: unknown option -std=c++17' >&2; exit 1"))
    with pytest.raises(SpecError, match=r"of \$CXX cannot compile C\+\+17: error: unknown option"):
        toolchain.find(Config())


def test_compiler_without_cpp17_is_passed_over(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import shutil

    real = shutil.which("c++")
    assert real is not None
    script(tmp_path / "g++", "echo 'error: too old' >&2; exit 1")
    script(tmp_path / "clang++-15", f'PATH=/usr/bin:/bin exec {real} "$@"')
    monkeypatch.setenv("PATH", str(tmp_path))
    assert toolchain.find(Config()).command == (str(tmp_path / "clang++-15"),)
    (tmp_path / "clang++-15").unlink()
    with pytest.raises(SpecError, match="too old"):
        toolchain.find(Config())


def test_runtime_headers_are_found() -> None:
    assert (toolchain.runtime_include() / "opc/abi.h").is_file()


def test_settings_come_from_the_nearest_pyproject(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.opc]\ncxx = "outer"\n')
    (tmp_path / "a/pyproject.toml").write_text('[tool.opc]\ncxx = "inner"\n[tool.opc.python]\ntorch = "/opt/python"\n')
    found = config.load(tmp_path / "a/b")
    assert (found.cxx, dict(found.python)) == ("inner", {"torch": "/opt/python"})
    assert config.load(tmp_path).cxx == "outer"
    (tmp_path / "a/pyproject.toml").write_text('[tool.opc.cuda]\narchitectures = ["sm_80", "sm_120"]\n')
    assert config.load(tmp_path / "a").architectures == ("sm_80", "sm_120")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.opc", "cannot read"),
        ("[tool]\nopc = 1\n", r"\[tool\.opc\] must be a table"),
        ('[tool.opc.popart]\nsdk = "1.0"\n', r"is no version that opc generates for\n  hint: the versions are 2\.5, "),
        ('[tool.opc.cuda]\narchitectures = "sm_90"\n', r"\[tool\.opc\.cuda\] has one key, architectures, a list"),
        ('[tool.opc.cuda]\narchitectures = ["sm_90", "sm_70"]\n', r"'sm_70' in .*\n  hint: the architectures are sm_75, "),
        ('[tool.opc]\npopart = "3.2"\n', r"\[tool\.opc\.popart\] has one key, sdk"),
        ('[tool.opc]\ncxxflag = "-g"\n', r"unknown key 'cxxflag' in \[tool\.opc\]\n  hint: did you mean 'cxxflags'\?"),
        ("[tool.opc]\ncxx = 1\n", "cxx in .* must be a string"),
        ('[tool.opc]\ncxxflags = "-g"\n', "cxxflags in .* must be a list of strings"),
        ("[tool.opc]\npython = 3\n", "must map backends to interpreters"),
    ],
)
def test_mistakes_in_settings(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(SpecError, match=message):
        config.load(tmp_path)


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("g++ (Debian 12.2.0-14) 12.2.0", False), ("Debian clang version 14.0.6", True), ("clang version 22.1.8", True),
        ("clang version 11.1.0", False),
    ],
)  # fmt: skip
def test_clang_is_told_of_vector_functions_when_it_knows_them(version: str, known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PLATFORM, "linux-x86_64")
    monkeypatch.setattr("platform.libc_ver", lambda: ("glibc", "2.36"))
    assert toolchain.vector_math(version) == (("-fveclib=libmvec",) if known else ())
    monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
    assert toolchain.vector_math(version) == ()
