"""Texts of a spec in C++: nothing a user writes ends a comment or a string literal early."""

from __future__ import annotations

import subprocess
from pathlib import Path

from opc.emit.cpp.text import comment, string_literal

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


def test_texts_stay_what_they_are(tmp_path: Path) -> None:
    lines = [f"{comment(d)}\nconst char *t{i} = {string_literal(d)};" for i, d in enumerate(HOSTILE)]
    (tmp_path / "t.cpp").write_text("\n".join(lines) + "\n")
    command = ["g++", "-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", str(tmp_path / "t.cpp")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
