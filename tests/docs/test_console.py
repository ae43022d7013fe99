"""Every `console` block of README and docs is run, and prints what stands there.

Times and measured errors differ from run to run: numbers with a unit or an exponent are compared as "some number".
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A measured figure: seconds, milliseconds, a ratio of error over bound.
MEASURED = re.compile(r"\b\d+(\.\d+)?(e[-+]?\d+)?( ?(s|ms|us|ns|x|MiB|GB/s))\b|\b0\.\d+\b")


def sessions() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return (page:line, [(command, expected output)]) for every console block."""
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = page.read_text()
        for match in BLOCK.finditer(text):
            steps: list[tuple[str, str]] = []
            for line in match[1].splitlines():
                if line.startswith("$ "):
                    steps.append((line[2:], ""))
                else:
                    command, output = steps[-1]
                    steps[-1] = (command, output + line + "\n")
            found.append((f"{page.name}:{text[: match.start()].count(chr(10)) + 1}", steps))
    return found


def normalised(text: str) -> list[str]:
    """Return the lines with measured figures, padding and rules of tables taken out."""
    lines = [re.sub(r"\s+", " ", MEASURED.sub("#", re.sub(r"[─━]+", "─", line))).strip() for line in text.splitlines()]
    return [line for line in lines if line]


SESSIONS = sessions()


def test_the_readme_shows_real_output() -> None:
    assert sum(place.startswith("README") for place, _ in SESSIONS) >= 3


@pytest.mark.parametrize(("place", "steps"), SESSIONS, ids=[p for p, _ in SESSIONS])
def test_console_block(place: str, steps: list[tuple[str, str]], tmp_path: Path) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    env = dict(os.environ, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", COLUMNS="120", NO_COLOR="1")
    for command, expected in steps:
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        assert normalised(done.stdout) == normalised(expected), f"{place}: $ {command}\n{done.stdout}"
