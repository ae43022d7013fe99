"""The process that proves families: `python -m opc.testing.worker`, spoken to in lines of JSON.

A worker takes tasks from standard input and answers on standard output. What it is about to run is written before it runs, so
that whoever started it knows which call crashed a framework. Whatever else the process prints goes to standard error.

Tasks: `{"task": "plan", "spec", "file", "extent"}` makes a family's plan; `{"task": "run", "plan", "backend", "entry", "package",
"skip", "execution"}` runs it on a backend, leaving out the first `skip` steps; `{"task": "import", "modules"}` imports what later
tasks need, and is not answered. Answers: `{"begin": [kind, name]}`,
`{"result": {...}}`, `{"version": text}`, `{"missing": text}` when the framework is not installed, `{"cpu": seconds}` of this
process since the answer before it, and at the end of a task `{"done": ...}` or `{"error": text}`.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import json
import os
import pickle
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from opc.diagnostics import SpecError


def _answer(stream: IO[str], **data: Any) -> None:
    stream.write(json.dumps(data) + "\n")
    stream.flush()


def _plan(task: Mapping[str, Any], out: IO[str]) -> None:
    from opc.pipeline import load_family
    from opc.testing.extent import Extent
    from opc.testing.plan import make_plan

    family = load_family(Path(task["spec"]))
    _answer(out, begin=["plan", family.name])
    # Some plans take long: whoever waits sees how far this one is.
    plan, results = make_plan(family, Extent(task["extent"]), lambda name: _answer(out, begin=["plan", name]))
    for result in results:
        _answer(out, result=result.as_dict())
    Path(task["file"]).write_bytes(pickle.dumps(plan))


def _run(task: Mapping[str, Any], out: IO[str]) -> None:
    from opc.testing.execution import load_plan, run, steps
    from opc.testing.results import Result, Status

    name = task["backend"]
    plan = load_plan(Path(task["plan"]))
    op = plan.family.name
    _answer(out, begin=["load", op])
    module, _, kind = task["entry"].partition(":")
    backend = getattr(importlib.import_module(module), kind)()
    found = backend.probe()
    if not found.available:
        _answer(out, missing="; ".join(t for t in (found.reason, found.install) if t))
        return
    _answer(out, version=found.version or "")
    refusals = backend.requires(plan.family)
    if refusals:
        reason = "; ".join(d.message for d in refusals)
        _answer(out, result=Result(op, name, "build", op, Status.REFUSED, message=reason).as_dict())
        return
    done = Status.EMULATED if task["execution"] == "emulated" else Status.PASSED
    for number, step in enumerate(steps(backend, plan, Path(task["package"]))):
        if number >= task["skip"]:
            _answer(out, begin=[step.kind, step.name])
            _answer(out, result=run(step, op, name, done).as_dict())


def _import(modules: Sequence[str]) -> None:
    """Import modules; where that fails, the task that needs them reports why."""
    for name in modules:
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    # What is there now stays, and need not be looked through for garbage, which torch collects in full as it compiles.
    gc.freeze()


def main() -> None:
    """Serve tasks until standard input ends, and end the process."""
    # As in `opc.__main__`: frameworks make millions of objects as they are imported, and next to none is garbage.
    gc.set_threshold(100_000)
    # Frameworks print to standard output as they like; the answers need a channel of their own.
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    spent = 0.0
    for line in sys.stdin:
        task = json.loads(line)
        if task["task"] == "import":
            _import(task["modules"])
            continue
        last: dict[str, Any] = {"done": True}
        try:
            (_plan if task["task"] == "plan" else _run)(task, out)
        except SpecError as error:
            last = {"error": str(error)}
        except Exception as error:
            import traceback

            traceback.print_exc()
            last = {"error": f"{type(error).__name__}: {error}"}
        before, spent = spent, time.process_time()
        _answer(out, cpu=spent - before)
        _answer(out, **last)
    # What is registered to be done at the end is done, such as removing folders. Python would now take apart each object of the
    # frameworks, for longer than it took to make them, and the system takes back their memory anyway.
    atexit._run_exitfuncs()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
