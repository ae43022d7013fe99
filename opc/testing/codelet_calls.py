"""The process that runs calls whose codelets are compiled with a sanitizer: `python -m opc.testing.codelet_calls FILE`.

It writes what the driver of the kernels writes: on standard output the number of each call and 0, or 1 where the op refused it;
on standard error `@@` and the number before each call, so that a sanitizer's reports are known by the call they came in.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from pathlib import Path

from opc.backends.base import OpError, Unsupported
from opc.backends.popart.session import PopartSession
from opc.backends.poplar.models import Model
from opc.ir.op import Family
from opc.records import dataclass
from opc.testing.call_file import KernelCall

TILES = 4
"""So few that a vertex has several points for its workers."""


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of one family, whose library and codelets are in a folder."""

    family: Family
    folder: Path
    calls: tuple[KernelCall, ...]


def run(tasks: list[Calls], first: int) -> Iterator[tuple[int, int]]:
    """Run the calls from a number on, one after the other; yield the number of each from there, and what became of it."""
    number = 0
    for task in tasks:
        session = None
        for call in task.calls:
            if number >= first:
                session = session or PopartSession(task.family, task.folder)
                print(f"\n@@ {number - first}", file=sys.stderr, flush=True)
                yield number - first, _call(session, call)
            number += 1
    print("\n@@ end", file=sys.stderr, flush=True)


def _call(session: PopartSession, call: KernelCall) -> int:
    try:
        session.call(call.op.name, call.case.arrays(), call.case.attributes, call.case.wanted)
    except (OpError, Unsupported) as error:
        print(f"refused: {error}", file=sys.stderr, flush=True)
        return 1
    return 0


def main() -> None:
    """Run the calls of a file."""
    Model.device = {"tilesPerIPU": TILES}
    tasks = pickle.loads(Path(sys.argv[1]).read_bytes())
    for number, status in run(tasks, int(sys.argv[2])):
        print(number, status, flush=True)


if __name__ == "__main__":
    main()
