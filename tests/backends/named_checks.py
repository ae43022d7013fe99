"""Runs checks of a script by their names, in the process of the interpreter that has the framework."""

import json
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def run(checks: Mapping[str, Callable[[], Any]], names: Sequence[str]) -> None:
    """Call the named functions, and print as the last line in JSON how those that failed did, by name."""
    failed = {}
    for name in names:
        try:
            checks[name]()
        except Exception:
            failed[name] = traceback.format_exc()
    print(json.dumps(failed))
