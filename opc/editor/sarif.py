"""Results of checks as SARIF 2.1.0, which code hosts show beside the lines of a change (OASIS, Static Analysis Results
Interchange Format Version 2.1.0, 2020)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from opc import __version__
from opc.diagnostics import Diagnostic, Severity, Span
from opc.editor.checks import RULES, Checked, rule
from opc.editor.fixes import Fix, fixes

_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_RULES = tuple(RULES)


def sarif(every: Sequence[Checked]) -> dict[str, Any]:
    """Return what was found in some specs as the log of one run. Files are named relative to the working directory."""
    return {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "opc",
                        "version": __version__,
                        "rules": [{"id": name, "shortDescription": {"text": about}} for name, about in RULES.items()],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(d, checked) for checked in every for d in checked.diagnostics],
            }
        ],
    }


def _result(diagnostic: Diagnostic, checked: Checked) -> dict[str, Any]:
    name = rule(diagnostic)
    text = diagnostic.message + (f"\nhint: {diagnostic.hint}" if diagnostic.hint else "")
    made: dict[str, Any] = {
        "ruleId": name,
        "ruleIndex": _RULES.index(name),
        "level": _LEVELS[diagnostic.severity],
        "message": {"text": text},
        "locations": [_location(diagnostic.span)] if diagnostic.span.source else [],
    }
    notes = [note for note in diagnostic.notes if note.span.source is not None]
    if notes:
        made["relatedLocations"] = [_location(note.span) | {"message": {"text": note.message}} for note in notes]
    if found := fixes(diagnostic, checked):
        made["fixes"] = [_fix(fix, diagnostic.span) for fix in found]
    return made


def _fix(fix: Fix, span: Span) -> dict[str, Any]:
    replacement = {"deletedRegion": _region(span), "insertedContent": {"text": fix.new}}
    return {
        "description": {"text": fix.title},
        "artifactChanges": [{"artifactLocation": _artifact(span), "replacements": [replacement]}],
    }


def _location(span: Span) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _artifact(span), "region": _region(span)}}


def _artifact(span: Span) -> dict[str, str]:
    assert span.source is not None
    path = os.path.relpath(span.source.name)
    outside = path.startswith("..")
    return {"uri": Path(path).absolute().as_uri() if outside else quote(Path(path).as_posix())}


def _region(span: Span) -> dict[str, int]:
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
