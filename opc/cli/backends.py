"""`opc backends`: what is registered, what can be used and where, how to get the rest, and which ops each can't carry."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opc.cli import completion
from opc.cli.console import FAILED, OK, find_specs, say, say_json, show_diagnostics, shown
from opc.cli.options import Json

if TYPE_CHECKING:
    from opc.backends.base import Backend
    from opc.diagnostics import Diagnostic
    from opc.ir.op import Family

Refusals = dict[str, tuple["Diagnostic", ...]]
"""Why a backend can't carry an op, by the op's name."""


def backends(
    specs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SPEC", help="List which of these ops each can't carry.", show_default=False, autocompletion=completion.specs
        ),
    ] = None,
    as_json: Json = False,
) -> int:
    """List the backends, and how to get those that are missing."""
    from dataclasses import asdict

    from opc.backends import environments, registry

    usable, broken = registry.load_all()
    families, ok = _families(specs or ())
    rows = [(b, b.probe(), str(environments.interpreter(b.name)), _refusals(b, families)) for b in usable]
    if as_json:
        data = [
            {
                "name": backend.name,
                "title": backend.title,
                **asdict(probe),
                "interpreter": python,
                "refused": {op: [d.as_dict() for d in reasons] for op, reasons in refused.items()},
            }
            for backend, probe, python, refused in rows
        ]
        data += [{"name": b.name, "title": b.name, "available": False, "reason": b.diagnostic.message} for b in broken]
        say_json(data)
        return OK if ok else FAILED
    width = max((len(b.name) for b, *_ in rows), default=0)
    titles = max((len(b.title) for b, *_ in rows), default=0)
    versions = max((len(probe.version or "") for _, probe, *_ in rows if probe.available), default=0)
    for backend, probe, python, refused in rows:
        state = f"{probe.version or '':<{versions}}  {shown(python)}" if probe.available else f"not available: {probe.reason}"
        say(f"{backend.name:<{width}}  {backend.title:<{titles}}  {state}")
        if not probe.available and probe.install:
            say(f"{'':<{width}}  install it: {probe.install}")
        for op, reasons in refused.items():
            say(f"{'':<{width}}  refuses {op}: {'; '.join(d.message for d in reasons)}")
        if families:
            say(f"{'':<{width}}  carries {len(families) - len(refused)} of {len(families)} ops")
    show_diagnostics(b.diagnostic for b in broken)
    return OK if ok else FAILED


def _families(given: Sequence[Path]) -> tuple[list[Family], bool]:
    """Return the families of specs, and whether all could be read; mistakes are printed."""
    if not given:
        return [], True
    from opc.diagnostics import SpecError, Told
    from opc.pipeline import load_family

    told = Told()
    found, ok = [], True
    for spec in find_specs(given):
        try:
            found.append(load_family(spec))
        except SpecError as error:
            show_diagnostics(told.new(error.diagnostics))
            ok = False
    return found, ok


def _refusals(backend: Backend, families: Sequence[Family]) -> Refusals:
    return {family.name: reasons for family in families if (reasons := backend.requires(family))}
