"""Edits that mend a mistake: what a hint says, tried.

Hints are written for people, and many show the code that should stand where the mistake does. That code is put there and the spec
checked again: an edit that mends the mistake and makes no other is a fix, whatever the hint is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from opc.diagnostics import Diagnostic, Severity
from opc.editor.checks import Checked, check
from opc.records import dataclass
from opc.spec.loader import loads

_LONGEST = 200
_NAMED = re.compile(r"did you mean '([^']+)'\?")
_QUOTED = re.compile(r"write '([^']*)' in quotes(?: for the text)?(?:, (?:or )?(\w+))?")
_SHOWN = re.compile(
    r"(?:write|convert it:|convert with|convert one side with|compare it:) (?:`([^`]+)`|([^;]+?))(?=;| where |, or |$)"
)
_HOLE = re.compile(r"(?<=[(\s])\.\.\.(?=[,)\s]|$)")


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit of a spec's text: `new` in place of the characters `start` to `end` (exclusive)."""

    title: str
    start: int
    end: int
    new: str

    def apply(self, text: str) -> str:
        """Return the text with the edit."""
        return text[: self.start] + self.new + text[self.end :]


def fixes(diagnostic: Diagnostic, checked: Checked) -> list[Fix]:
    """Return the edits that mend a mistake of `checked`, each tried: without it fewer are left, and none is new."""
    source = diagnostic.span.source
    if source is None or not diagnostic.hint:
        return []
    start, end = _extent(diagnostic)
    found = []
    for title, new in _proposed(diagnostic.hint, source.text[start:end]):
        fix = Fix(title, start, end, new)
        if fix not in found and new != source.text[start:end] and _mends(fix, diagnostic, checked):
            found.append(fix)
    return found


def _proposed(hint: str, old: str) -> Iterator[tuple[str, str]]:
    """Yield what a hint would have in place of a text, and what that is called."""
    if named := _NAMED.search(hint):
        yield f"Change to '{named[1]}'", named[1] + ("?" if old.endswith("?") else "")
        return
    if quoted := _QUOTED.search(hint):
        yield f"Write '{quoted[1]}' in quotes", f"'{quoted[1]}'"
        if quoted[2]:
            yield f"Write {quoted[2]}", quoted[2]
        return
    if "write it in quotes" in hint:
        yield f"Write '{old}' in quotes", f"'{old}'"
        return
    for shown in _SHOWN.finditer(hint):
        code = shown[1] or shown[2]
        if len(code) <= _LONGEST and len(_HOLE.findall(code)) <= 1:
            new = _HOLE.sub(lambda _: old, code)
            yield f"Write {new}", new


def _extent(diagnostic: Diagnostic) -> tuple[int, int]:
    span = diagnostic.span
    assert span.source is not None
    rows = span.source.text.split("\n")
    before = [sum(len(row) + 1 for row in rows[: line - 1]) for line in (span.line, span.end_line)]
    return before[0] + span.column - 1, before[1] + span.end_column - 1


def _mends(fix: Fix, diagnostic: Diagnostic, checked: Checked) -> bool:
    source = diagnostic.span.source
    assert source is not None
    # Where the body is good, what is wrong shows in a derivative alone.
    after = check(lambda: loads(fix.apply(source.text), source.name, whole=False), derive=checked.op is not None)
    before = {d.message for d in checked.diagnostics}
    return len(_errors(after)) < len(_errors(checked)) and all(d.message in before for d in _errors(after))


def _errors(checked: Checked) -> list[Diagnostic]:
    return [d for d in checked.diagnostics if d.severity is Severity.ERROR]
