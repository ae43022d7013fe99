"""docs/commands.md names every command and every option, and none that is not there."""

import re

import typer.main

from opc.cli.main import app
from tests.docs.pages import ROOT

ROWS = re.findall(r"^\| (`opc [^|]*) \| ([^|]*) \|$", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)
# Options that many commands have in common.
COMMON = {"--help", "--out", "--backend", "--jobs", "--json", "--output"}


def commands() -> dict[str, set[str]]:
    """Return the long options of every command by its name, such as `env create`."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():
        inner = getattr(command, "commands", None)
        for key, one in {name: command}.items() if inner is None else {f"{name} {n}": c for n, c in inner.items()}.items():
            found[key] = {option for parameter in one.params for option in parameter.opts if option.startswith("--")}
    return found


def documented() -> dict[str, set[str]]:
    """Return the long options that the page names for each command."""
    found: dict[str, set[str]] = {}
    for usage, text in ROWS:
        named = {*re.findall(r"--[a-z][a-z-]*", usage + text)}
        for words in re.findall(r"`opc ([a-z]+(?: [a-z]+)?)", usage):
            first, _, second = words.partition(" ")
            name = words if first in ("env", "cache") and second else first
            found.setdefault(name, set()).update(named)
    return found


def test_every_command_is_documented_and_every_documented_one_is_there() -> None:
    assert documented().keys() == commands().keys()


def test_every_option_is_documented_and_every_documented_one_is_there() -> None:
    real = commands()
    for name, named in documented().items():
        assert named <= real[name] | {"--backend"}, name
        assert real[name] - COMMON <= named, name
