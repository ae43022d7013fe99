"""The pages of the docs are followed as a reader would: each file they show is written, each command of a `console` block is run.

What a command prints must be what stands there. Times and measured errors differ from run to run: those figures are compared as
"some number". A code block is a file when the line before it is `<!-- file: PATH -->`; one behind `<!-- needs: PROGRAM -->` is
run where there is such a program.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, README, ROOT, page_id

BLOCK = re.compile(r"(?:^<!-- (?:file: (\S+)|needs: (?P<needs>\S+)) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A measured figure: seconds, milliseconds, a ratio of error over bound.
MEASURED = re.compile(r"\b\d+(\.\d+)?(e[-+]?\d+)?( ?(s|ms|us|ns|x|MiB|GB/s))\b|\b\d\.\d+\b")

# Pages that take long, with how long in seconds.
LONG = {
    "README.md": 7,
    "docs/first_op.md": 22,
    "docs/max_pool2d.md": 7,
    "docs/mindspore.md": 18,
    "docs/paddle.md": 15,
    "docs/popart.md": 18,
    "docs/rknn.md": 7,
}


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Yield (command, expected output) for every command of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def normalised(text: str) -> list[str]:
    """Return the lines with measured figures, padding and rules of tables taken out."""
    lines = [re.sub(r"\s+", " ", MEASURED.sub("#", re.sub(r"[─━]+", "─", line))).strip() for line in text.splitlines()]
    return [re.sub(r"(# ?)+", "# ", line) for line in lines if line]


def steps(page: Path) -> list[re.Match[str]]:
    """Return the blocks of a page that are files or console sessions, in order."""
    return [m for m in BLOCK.finditer(page.read_text()) if m[1] or m[3] == "console"]


FOLLOWED = [
    pytest.param(page, id=page_id(page), marks=pytest.mark.rotating(seconds=LONG.get(page_id(page), 0)))
    for page in PAGES
    if steps(page)
]


def test_those_that_take_long_are_pages() -> None:
    assert LONG.keys() <= {page.id for page in FOLLOWED}


def test_the_first_pages_show_real_output() -> None:
    shown = {page: sum(m[3] == "console" for m in steps(page)) for page in PAGES}
    assert shown[README] >= 1
    assert shown[ROOT / "docs/first_op.md"] >= 5


def test_a_project_is_an_installed_wheel_after_five_commands() -> None:
    section = (ROOT / "docs/wheels.md").read_text().partition("\n## A project\n")[2].partition("\n## ")[0]
    typed = [command for m in BLOCK.finditer(section) if m[3] == "console" for command, _ in commands(m[4])]
    assert len(typed) == 5
    assert (typed[0], typed[3].split()[:2]) == ("opc init my-ops", ["pip", "install"])
    assert "import my_ops" in typed[4]


@pytest.mark.parametrize("page", FOLLOWED)
def test_page_can_be_followed(page: Path, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "specs", tmp_path / "specs")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = dict(os.environ, PATH=path, COLUMNS="110", NO_COLOR="1", OMP_WAIT_POLICY="passive")
    if re.search(r"^\$ opc test (?!.*--cover)", page.read_text(), re.MULTILINE):
        # A whole proof takes longer to run on kernels without optimization than to compile others.
        env.pop("OPC_OPTIMIZE", None)
    # The reader's project has made its environments.
    env.setdefault("OPC_ENVIRONMENTS", str(ROOT / ".opc" / "env"))
    for match in steps(page):
        file, needs, _, text = match.groups()
        if needs and shutil.which(needs) is None:
            continue
        if file:
            (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / file).write_text(text)
            continue
        for command, expected in commands(text):
            done = subprocess.run(
                command,
                shell=True,
                cwd=tmp_path,
                env=env,
                text=True,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
            )
            # Tests compile kernels for this machine alone.
            printed = re.sub(r"^warning: the wheel runs on processors of .*\n  hint: .*\n", "", done.stdout, flags=re.MULTILINE)
            assert normalised(printed) == normalised(expected), f"{page.name}: $ {command}\n{done.stdout}"
