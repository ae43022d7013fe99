"""Specs that describe ops of one name, and so would share a folder: all but the last would be lost there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from opc.build.stamp import op_of
from opc.spec.files import content


def refuse(specs: Iterable[Path]) -> None:
    """Refuse specs of which two describe ops of one name. It is read off the texts, before anything is compiled.

    Raises:
        SpecError: which names the two.
    """
    first: dict[str, Path] = {}
    for spec in specs:
        try:
            name = op_of(spec, content(spec))
        except (OSError, ValueError):
            continue  # who compiles the spec says what is wrong with it
        if name is not None and (other := first.setdefault(name, spec)) != spec:
            from opc.diagnostics import Diagnostic, SpecError

            raise SpecError([Diagnostic(f"two specs describe an op '{name}': {other} and {spec}", hint="rename one of the ops")])
