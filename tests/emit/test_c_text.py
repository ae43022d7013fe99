"""Texts of a spec in C++: nothing a user writes ends a comment or a string literal early."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from opc.emit.cpp.text import comment, string_literal

COMPILER = shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
HOSTILE = [
    "*/ #error",
    "a \\",
    "??/",
    "x\n#error y",
    "\\\n#error",
    "*\u200b/ #error",
    "/* nested",
    "\u2028#error\x85#error",
    '"; #error',
    "*" * 200 + "/ #error",
]


@pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")
def test_texts_stay_what_they_are(tmp_path: Path) -> None:
    lines = [f"{comment(d)}\nconst char *t{i} = {string_literal(d)};" for i, d in enumerate(HOSTILE)]
    (tmp_path / "t.cpp").write_text("\n".join(lines) + "\n")
    command = [str(COMPILER), "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", str(tmp_path / "t.cpp")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
