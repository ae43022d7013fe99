"""Installs distributions into a Python: by uv where it is installed, else by pip; where uv fails, by pip too.

uv takes less time, and what several environments hold lies on disk once. It is given pip's own settings, so that both
look in the same places: `python -m opc.build.installer REQUIREMENT...` installs into the Python that runs it.
"""

from __future__ import annotations

import ast
import functools
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import field
from importlib.machinery import PathFinder

from opc.records import dataclass, replace

SETTINGS = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "no-index": ("UV_NO_INDEX", " "),
    "constraint": ("UV_CONSTRAINT", " "),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "cert": ("SSL_CERT_FILE", " "),
}
"""For each setting of pip, uv's variable for the same, and the separator of its values."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command, and the environment variables it has beside this process's."""

    arguments: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    def of(self, *more: str) -> Command:
        """Return the command with more arguments."""
        return replace(self, arguments=(*self.arguments, *more))


def _installed(name: str) -> bool:
    """Return whether a module is on the path.

    `importlib.util.find_spec` would ask setuptools' finder first. Asked for pip, that one takes this process for pip, and from
    then on neither setuptools nor what imports it, such as Paddle, can be imported here.
    """
    return PathFinder.find_spec(name) is not None


def installers(python: str) -> tuple[Command, ...]:
    """Return the commands that install into a Python what is put behind them, the best first.

    Byte code is compiled when a module is first imported.
    """
    found = []
    program = shutil.which("uv")
    uv = (sys.executable, "-m", "uv") if _installed("uv") else () if program is None else (program,)
    if uv:
        # As pip does, uv is to take the best version of all places that offer one.
        variables = {"UV_INDEX_STRATEGY": "unsafe-best-match", "UV_NO_PROGRESS": "1", **_settings()}
        own = {n: v for n, v in variables.items() if n not in os.environ}
        found.append(Command((*uv, "pip", "install", "--python", python), own))
    # Ours can install there; giving the environment one of its own takes longer than all the rest of making it.
    pip = (sys.executable, "-m", "pip", "--python", python) if _installed("pip") else (python, "-m", "pip")
    options = ("install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", "--no-compile")
    return *found, Command((*pip, *options))


@functools.cache
def _settings() -> dict[str, str]:
    """Return pip's settings, from its files and from its environment, as variables for uv."""
    if not _installed("pip"):
        return {}
    asked = subprocess.run((sys.executable, "-m", "pip", "config", "list"), capture_output=True, text=True, check=False)
    return read_settings(asked.stdout)


def read_settings(listed: str) -> dict[str, str]:
    """Return what `pip config list` says as variables for uv; what the environment says goes before what a file does."""
    found: dict[str, tuple[int, str]] = {}
    for line in listed.splitlines():
        key, _, text = line.partition("=")
        section, _, name = key.rpartition(".")
        rank = {":env:": 0, "install": 1}.get(section, 2)
        if name not in SETTINGS or (section not in (":env:", "install", "global")) or not text:
            continue
        variable, separator = SETTINGS[name]
        if variable not in found or rank < found[variable][0]:
            found[variable] = rank, separator.join(str(ast.literal_eval(text)).split())
    return {variable: value for variable, (_, value) in found.items()}


def main() -> int:
    """Install what the command line names and return the exit status of the last attempt."""
    code = 1
    for installer in installers(sys.executable):
        command = installer.of(*sys.argv[1:])
        code = subprocess.run(command.arguments, env={**os.environ, **command.variables}, check=False).returncode
        if code == 0:
            break
    return code


__all__ = ["SETTINGS", "Command", "installers", "read_settings"]


if __name__ == "__main__":
    sys.exit(main())
