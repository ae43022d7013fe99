"""CI runs exactly what the README tells a reader to run."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_ci_runs_the_test_command_of_the_readme() -> None:
    section = (ROOT / "README.md").read_text().split("## Two commands")[1].split("\n## ")[0]
    commands = re.findall(r"^```sh\n(.*?)\n```$", section, re.MULTILINE | re.DOTALL)
    assert len(commands) == 2
    assert (ROOT / ".ci" / "run").read_text().splitlines()[-1] == commands[1]
