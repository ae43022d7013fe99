"""What a shell completes beside commands and options: specs, backends, sections of the benchmark, environments.

`opc --install-completion` tells the shell to ask. What is asked for is found then, so that no other command pays for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

_SPECS = (".yaml", ".yml")


def specs(incomplete: str) -> list[str]:
    """Return the spec files and folders that a path may go on to; of the only folder, what is in there too."""
    folder, _, start = incomplete.rpartition("/")
    before = f"{folder}/" if "/" in incomplete else ""
    try:
        entries = sorted(os.scandir(before or "."), key=lambda e: e.name)
    except OSError:
        return []
    shown = [e for e in entries if e.name.startswith(start) and (start.startswith(".") or not e.name.startswith("."))]
    files = [before + e.name for e in shown if e.name.endswith(_SPECS)]
    folders = [before + e.name for e in shown if e.is_dir()]
    # A shell puts a blank behind the only answer: what is inside of a folder is shown with it.
    return folders + specs(f"{folders[0]}/") if folders and not files and len(folders) == 1 else files + folders


def backends(incomplete: str) -> list[str]:
    """Return the registered backends whose names begin so."""
    from opc.backends import registry
    from opc.diagnostics import SpecError

    try:
        return _beginning(incomplete, registry.names())
    except SpecError:
        return []


def sections(incomplete: str) -> list[tuple[str, str]]:
    """Return the sections of the benchmark whose names begin so, with their titles."""
    from opc.testing.bench.benchmark import SECTIONS

    return [(name, SECTIONS[name]) for name in _beginning(incomplete, SECTIONS)]


def environments(incomplete: str) -> list[str]:
    """Return the environments of this project whose names begin so."""
    from opc.build.environments import names

    return _beginning(incomplete, names())


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]
