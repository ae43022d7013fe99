"""`opc cache`: what `opc.load` has built and kept."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from opc.cli.console import FAILED, OK, note, say, say_json, shown
from opc.cli.options import Json


def list_all(as_json: Json = False) -> int:
    """List what is kept, the last used first, and its size."""
    from opc.build import cache

    found = cache.entries()
    if as_json:
        data = [{"spec": e.spec, "bytes": e.size, "used": e.used, "folder": str(e.folder)} for e in found]
        say_json({"folder": str(cache.folder()), "limit": cache.limit(), "entries": data})
        return OK
    for entry in found:
        say(f"{_mebibytes(entry.size):>10}  used {_ago(time.time() - entry.used):<12} {entry.folder.name}")
    count = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    most = _mebibytes(cache.limit())
    say(f"{count}, {_mebibytes(sum(e.size for e in found))} of at most {most}, in {shown(str(cache.folder()))}")
    return OK


def verify() -> int:
    """Compare every built file with what the compiler made; what differs is removed, and built again when it is needed."""
    from opc.build import cache

    found = cache.entries()
    wrong = []
    for entry in found:
        places = list(cache.damaged(entry))
        for place in places:
            say(f"damaged: {place.relative_to(cache.folder())}")
        wrong += [entry] if places else []
    cache.remove(wrong, _busy)
    removed = " and removed; they are built again when they are needed" if wrong else ""
    say(f"{len(found)} checked, {len(wrong)} damaged{removed}")
    return FAILED if wrong else OK


def prune(
    max_size: Annotated[str | None, typer.Option("--max-size", metavar="SIZE", help="Keep so much, such as 500M or 2G.")] = None,
    days: Annotated[float | None, typer.Option("--days", min=0, help="Remove what was not used for so many days.")] = None,
) -> int:
    """Remove what is kept: all of it, or by size and age."""
    from opc.build import cache

    all_of_them = max_size is None and days is None
    room = 0 if all_of_them else None if max_size is None else cache.size(max_size, "--max-size")
    chosen = cache.unused(room, days)
    freed = cache.remove(chosen, _busy)
    say(f"{len(chosen)} removed, {_mebibytes(freed)} freed")
    return OK


def _busy(entry: object) -> None:
    note(f"left alone, as it is being built: {getattr(entry, 'folder', entry)}")


def _mebibytes(count: float) -> str:
    return f"{count / (1 << 20):.1f} MiB"


def _ago(seconds: float) -> str:
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return "just now"
