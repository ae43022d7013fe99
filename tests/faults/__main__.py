"""`python -m tests.faults`: faults and load. Every part, or those named: mutants, hostile, kills, threads, big.

Prints what was counted, says at once what is wrong and how to see it again, and ends with 1 where anything is. What it counted is
kept in .opc/faults, with the files that show each fault; `page` puts what was last counted into docs/faults.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from math import inf
from pathlib import Path

from tests.faults import big, hostile, kills, mutants, tally, threads
from tests.faults.tally import Tally

KEPT = Path(".opc", "faults")
PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def main() -> int:
    """Run the parts and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("parts", nargs="*", help="mutants, hostile, kills, threads, big, page; by default the first five")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first mutant or build")
    parser.add_argument("--mutants", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=1000, help="how many builds are disturbed")
    parser.add_argument("--seconds", type=float, default=600.0, help="how long threads call an op")
    parser.add_argument("--limit", type=float, default=inf, help="seconds after which mutants and kills end with what was done")
    parser.add_argument("--backends", default=",".join(big.BACKENDS), help="those that hold large tensors")
    parser.add_argument("--elements", type=int, default=big.COUNT)
    parser.add_argument("--only", default="", help="hostile cases whose kind and name hold this")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    given = parser.parse_args()
    parts: dict[str, Callable[[], Tally]] = {
        "mutants": lambda: mutants.run(given.mutants, given.seed, given.jobs, given.first, given.limit),
        "hostile": lambda: hostile.run(given.only),
        "kills": lambda: kills.run(given.kills, given.seed, first=given.first, limit=given.limit),
        "threads": lambda: threads.run(given.seconds),
        "big": lambda: big.run(tuple(given.backends.split(",")), given.elements),
    }
    wanted = given.parts or [*parts]
    if unknown := [name for name in wanted if name not in (*parts, "page")]:
        parser.error(f"there is no part {unknown[0]}")
    tallies = []
    for name in wanted:
        if name in parts:
            tallies.append(parts[name]())
            tallies[-1].keep(KEPT)
    if tallies:
        tally.show(tallies)
    if "page" in wanted:
        tally.write_page(PAGE, KEPT, parts)
    return 1 if any(one.faults for one in tallies) else 0


if __name__ == "__main__":
    sys.exit(main())
