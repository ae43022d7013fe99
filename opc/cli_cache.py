"""`opc cache`: what `opc.load` has built and kept."""

from __future__ import annotations

import json
import time

from opc.cli_console import FAILED, OK, note, say, shown


def list_all(as_json: bool) -> int:
    """List the entries, the last used first, and their size."""
    from opc.build import cache

    found = cache.entries()
    if as_json:
        data = [{"spec": e.spec, "bytes": e.size, "used": e.used, "folder": str(e.folder)} for e in found]
        say(json.dumps({"folder": str(cache.folder()), "limit": cache.limit(), "entries": data}, indent=2))
        return OK
    for entry in found:
        say(f"{_mebibytes(entry.size):>10}  used {_ago(time.time() - entry.used):<12} {entry.folder.name}")
    count = "1 entry" if len(found) == 1 else f"{len(found)} entries"
    most = _mebibytes(cache.limit())
    say(f"{count}, {_mebibytes(sum(e.size for e in found))} of at most {most}, in {shown(str(cache.folder()))}")
    return OK


def verify() -> int:
    """Compare every built file with what the compiler made; entries with other ones are removed, so that they are built again."""
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


def prune(most: str | None, days: float | None) -> int:
    """Remove entries: all, those beyond a size, or those that were not used for some days."""
    from opc.build import cache

    all_of_them = most is None and days is None
    room = 0 if all_of_them else None if most is None else cache.size(most, "--max-size")
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
