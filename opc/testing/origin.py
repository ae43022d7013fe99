"""Where a report comes from: the version of opc, the commit, the machine and the time."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import opc


@dataclass(frozen=True, slots=True)
class Origin:
    """What a report was made with, in words; `commit` is empty outside a git repository."""

    version: str
    commit: str
    machine: str
    date: str


def origin(folder: Path) -> Origin:
    """Return where a report that is made now in `folder` comes from.

    The time is that of SOURCE_DATE_EPOCH where that is set, so that the same report can be made again.
    """
    from opc.testing.bench.benchmark import machine

    told = machine()
    cores = "1 core" if told["cores"] == "1" else f"{told['cores']} cores"
    parts = [told["processor"], cores, told["system"], f"Python {told['python']}"]
    return Origin(opc.__version__, commit(folder), ", ".join(parts), now().strftime("%Y-%m-%d %H:%M UTC"))


def now() -> datetime:
    """Return the time, or that of SOURCE_DATE_EPOCH, in seconds since 1970."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    return datetime.fromtimestamp(int(epoch), UTC) if epoch.isdecimal() else datetime.now(UTC)


def commit(folder: Path) -> str:
    """Return the commit that a folder is at, and whether files differ from it; empty outside a git repository."""
    head = git(folder, "rev-parse", "HEAD")
    if head is None:
        return ""
    return f"{head}, with changes" if git(folder, "status", "--porcelain", "--untracked-files=no") else head


def git(folder: Path, *arguments: str) -> str | None:
    """Return what git answers in a folder; None where it fails, or is not there."""
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


__all__ = ["Origin", "commit", "git", "now", "origin"]
