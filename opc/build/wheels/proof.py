"""The proof that a wheel holds: what `opc test --results` wrote, of the very specs in it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from opc.diagnostics import Diagnostic, SpecError


def read(path: Path, sources: Mapping[str, str]) -> str:
    """Return the text of a proof of ops; `sources` has the SHA-256 of each op's spec by the op's name.

    Raises:
        SpecError: when it can't be read, something in it failed, or it is not of these specs.
    """
    again = "opc test SPEC... --results FILE.json proves them anew"
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
        proved = dict(data["sources"])
        failed = sorted({str(r["op"]) for r in data["results"] if r["status"] == "failed"} | {*data["mistakes"]})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        why = str(error) if isinstance(error, OSError) else "opc test --results did not write it"
        raise SpecError([Diagnostic(f"{path} can't be read as a proof: {why}", hint=again)]) from error
    mistakes = [Diagnostic(f"{path}: the proof of {name} failed", hint="opc report shows where") for name in failed]
    for name, source in sources.items():
        if name not in proved:
            mistakes.append(Diagnostic(f"{path} has no proof of {name}", hint=again))
        elif proved[name] != source:
            mistakes.append(Diagnostic(f"{path} has the proof of another spec of {name}", hint=again))
    if mistakes:
        raise SpecError(mistakes)
    return text
