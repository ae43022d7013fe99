"""Rename: one name of a spec, wherever it stands, where the new one may stand and takes no other's place."""

from __future__ import annotations

from opc.analysis.elaborate.scope import WORDS
from opc.editor.checks import check
from opc.editor.occurrences import OWN, Kind, Occurrence, Outline
from opc.spec.loader import loads
from opc.spec.text import name_problem


class CannotRename(Exception):
    """Why a name stays as it is, in words for people."""


def renamable(names: Outline, offset: int) -> Occurrence:
    """Return the name at a character of a spec.

    Raises:
        CannotRename: when none stands there, or one that the spec does not choose.
    """
    found = names.at(offset)
    if found is None:
        raise CannotRename("there is no name here")
    if found.kind not in OWN:
        raise CannotRename(f"'{found.name}' is no name of this spec, but a {found.kind.value}")
    return found


def renamed(text: str, names: Outline, offset: int, new: str, good: bool) -> list[Occurrence]:
    """Return the places at which the name at a character is to be replaced by `new`.

    `names` are those of the text; `good` says that the spec has no mistakes.

    Raises:
        CannotRename: when `new` is no name, or taken, or a good spec would have mistakes.
    """
    found = renamable(names, offset)
    if new == found.name:
        return []
    if problem := name_problem(new):
        raise CannotRename(f"'{new}' can't be a name: {problem}")
    if new in WORDS and found.kind is not Kind.INDEX:
        raise CannotRename(f"'{new}' is a word of the language")
    for other in names.occurrences:
        clashes = other.name == new and (
            other.kind is not Kind.INDEX or found.kind is not Kind.INDEX or other.scope == found.scope
        )
        if clashes:
            line = text.count("\n", 0, other.start) + 1
            raise CannotRename(f"'{new}' is the name of the {other.kind.value} on line {line}")
    places = names.same(found)
    made = text
    for place in reversed(places):
        made = made[: place.start] + new + made[place.end :]
    after = check(lambda: loads(made, "", whole=False), derive=False) if good else None
    if after is not None and not after.is_good:
        raise CannotRename(f"the spec would have a mistake: {after.diagnostics[0].message}")
    return places
