"""Builds that are killed, starved, crowded or undermined at random moments; the next run is right each time.

One small op in two versions is built over and over below one folder. After each blow an undisturbed build follows. It is right
when it succeeds, when the files are those of a build that nothing ever disturbed, byte for byte and none more, when the op
computes what it says, and when nobody holds the lock.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import inf
from pathlib import Path
from random import Random

from opc.backends import package as packages
from opc.build import builder, locks
from opc.build.generate import generate
from opc.diagnostics import SpecError
from opc.pipeline import load_family
from tests.faults.tally import Fault, Tally

ROOT = Path(__file__).parents[2]
SHIM = Path(__file__).with_name("shim.c")
PATIENCE = 300.0
"""Seconds after which a run counts as one that hangs."""

SPEC = """op: scaled
domain: tests.faults
version: 1
doc: Numbers times {factor}.
types: {{T: [float32]}}
inputs: {{x: 'T[N]'}}
outputs: {{y: 'T[N]'}}
kernel: y[n] = {factor} * x[n]
gradient: none
"""
FACTORS = (3, 7)
BLOWS = (
    "killed",
    "killed alone",
    "file too large",
    "full disk",
    "read-only",
    "out of memory",
    "clock",
    "times",
    "deleted",
    "crowd",
)
"""What befalls a build: SIGKILL to all of its processes or to opc alone; RLIMIT_FSIZE; ENOSPC and EROFS by a preloaded library;
RLIMIT_AS; a clock that jumps; files of the past and the future; a folder that goes; two to eight runs at once."""

# What says when it was made, or in which order.
_PASSING = ("build/stamp.json", ".ninja_log", ".ninja_deps", ".opc/lock")


@dataclass
class Place:
    """The folder of the specs and of what is built, and what each version is when nothing disturbs it."""

    root: Path
    shim: Path
    whole: dict[int, dict[str, bytes]] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.root / "out"

    def spec(self, factor: int) -> Path:
        return self.root / f"{factor}" / "scaled.yaml"


def files_of(out: Path) -> dict[str, bytes]:
    """Return what lies in the output folder, but for what tells times."""
    found = {p.relative_to(out).as_posix(): p for p in out.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    return {path: b"" if path.endswith(_PASSING) else place.read_bytes() for path, place in found.items()}


def _build(place: Place, factor: int) -> None:
    (built,) = builder.build_specs([place.spec(factor)], place.out, ["numpy"])
    if not built.ok:
        raise SpecError(built.diagnostics)


def _generate(place: Place, factor: int) -> None:
    from opc.backends import registry

    with locks.hold(place.out / locks.FOLDER):
        generate(load_family(place.spec(factor)), place.out, registry.select(["numpy"]))


def _load(place: Place, factor: int) -> None:
    import numpy as np

    import opc

    found = opc.load(place.spec(factor))(np.ones(3, np.float32))
    assert found.tolist() == [factor] * 3


def _child(what: Callable[[], object]) -> None:
    """Run something in this forked process and end: with 0 when it went well, 1 with diagnostics, 3 with a traceback."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    try:
        what()
    except SpecError:
        os._exit(1)
    except MemoryError:
        os._exit(2)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        os._exit(3)
    os._exit(0)


def _fork(what: Callable[[], object], limits: tuple[tuple[int, int], ...] = ()) -> int:
    pid = os.fork()
    if pid == 0:
        for kind, value in limits:
            resource.setrlimit(kind, (value, value))
        _child(what)
    return pid


def _status(pid: int, seconds: float = PATIENCE) -> int | None:
    """Return the exit code of a child, or None when it had to be killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    _kill(pid, everything=True)
    return None


def _kill(pid: int, everything: bool) -> None:
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if everything else os.kill)(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def _preloaded(place: Place, factor: int, **settings: str) -> int:
    """Build in a process that the shim is loaded into; return its exit code."""
    call = [sys.executable, "-m", "opc", "build", str(place.spec(factor)), "-o", str(place.out), "--backend", "numpy"]
    env = {**os.environ, "LD_PRELOAD": str(place.shim), **settings}
    done = subprocess.run(call, env=env, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return 3 if "Traceback" in done.stderr else done.returncode


def strike(blow: str, place: Place, factor: int, random: Random, seconds: float) -> int | None:
    """Build under a blow; return the exit code, None where it was killed. `seconds` are what a whole build takes."""
    build = partial(_build, place, factor)
    match blow:
        case "killed" | "killed alone":
            pid = _fork(build)
            time.sleep(random.uniform(0, seconds))
            _kill(pid, everything=blow == "killed")
            return None
        case "file too large":
            return _status(_fork(build, ((resource.RLIMIT_FSIZE, int(10 ** random.uniform(0, 5.5))),)))
        case "out of memory":
            own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            return _status(_fork(build, ((resource.RLIMIT_AS, random.randrange(24 << 20, own + (64 << 20))),)))
        case "full disk" | "read-only":
            error = errno.ENOSPC if blow == "full disk" else errno.EROFS
            after = random.randrange(60) if blow == "full disk" else 0
            root = {"OPC_SHIM_ROOT": str(place.out), "OPC_SHIM_AFTER": str(after), "OPC_SHIM_ERROR": str(error)}
            return _preloaded(place, factor, **root)
        case "clock":
            return _preloaded(place, factor, OPC_SHIM_JUMP=str(random.choice((1, 3600, 10**6, 10**9))))
        case "times":
            for path in [*place.out.rglob("*")]:
                if random.random() < 0.3:
                    when = time.time() + random.choice((-1e9, -3600, 3600, 1e9))
                    os.utime(path, (when, when))
            return _status(_fork(build))
        case "deleted":
            pid = _fork(build)
            time.sleep(random.uniform(0, seconds))
            parts = ("", "scaled", "scaled/build", ".opc", "scaled/kernel", "scaled/numpy")
            shutil.rmtree(place.out / random.choice(parts), ignore_errors=True)
            return _status(pid)
        case _:
            runs = [random.choice((_build, _build, _generate, _load)) for _ in range(random.randint(2, 8))]
            codes = [_status(pid) for pid in [_fork(lambda run=run: run(place, factor)) for run in runs]]
            return max(-1 if code is None else code for code in codes) if None not in codes else -1


_RIGHT, _TOLD = frozenset({0}), frozenset({0, 1})
ALLOWED = {
    **dict.fromkeys(("clock", "times", "crowd"), _RIGHT),
    **dict.fromkeys(("file too large", "full disk", "read-only", "deleted"), _TOLD),
    "out of memory": _TOLD | {2, 3, 134, -6, -11},
}
"""The exit codes of a build under a blow: right, or a diagnostic. Python itself may end in any way for want of memory."""


def wrong(place: Place, factor: int) -> list[str]:
    """Build once more, undisturbed, and return what is not as it must be."""
    if (code := _status(_fork(lambda: _build(place, factor)))) != 0:
        return [f"the next build ends with {code}"]
    found, whole = files_of(place.out), place.whole.get(factor)
    faults = []
    if whole is not None:
        # Where it went after the last file was built, nothing is to be built, and so nothing is written of how.
        gone = not (place.out / locks.FOLDER).exists()
        whole = {path: data for path, data in whole.items() if not gone or not path.startswith(f"{locks.FOLDER}/")}
        faults += [f"left behind: {path}" for path in sorted(found.keys() - whole.keys())]
        faults += [f"missing: {path}" for path in sorted(whole.keys() - found.keys())]
        faults += [f"differs: {path}" for path in sorted(found.keys() & whole.keys()) if found[path] != whole[path]]
    with locks.hold_now(place.out / locks.FOLDER) as free:
        faults += [] if free else ["somebody holds the lock"]
    if (code := _status(_fork(lambda: _computed(place, factor)))) != 0:
        faults.append(f"the op ends with {code}")
    return faults


def _computed(place: Place, factor: int) -> None:
    import numpy as np

    function = packages.load(place.out / "scaled", "numpy").scaled
    assert function(np.arange(5, dtype=np.float32)).tolist() == [factor * n for n in range(5)]


@contextmanager
def prepared(folder: str | None) -> Iterator[Place]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Place(Path(name).resolve(), Path(name).resolve() / "shim.so")
        subprocess.run(("gcc", "-shared", "-fPIC", "-w", "-o", str(place.shim), str(SHIM), "-ldl"), check=True)
        os.environ["OPC_CACHE_DIR"] = str(place.root / "cache")
        for factor in FACTORS:
            place.spec(factor).parent.mkdir()
            place.spec(factor).write_text(SPEC.format(factor=factor))
        yield place


def run(count: int, seed: str, folder: str | None = None, first: int = 0, limit: float = inf) -> Tally:
    """Strike `count` builds, the blows in turns, and look at what follows each; end after `limit` seconds with what was done."""
    end = time.monotonic() + limit
    tally = Tally("kills")
    with prepared(folder) as place:
        took = []
        for factor in FACTORS:
            shutil.rmtree(place.out, ignore_errors=True)
            begin = time.monotonic()
            if faults := wrong(place, factor):
                tally.add(Fault(f"undisturbed: {faults[0]}", faults[0], ""))
            took.append(time.monotonic() - begin)
            place.whole[factor] = files_of(place.out)
        done = 0
        for number in range(first, first + count):
            if time.monotonic() > end:
                break
            done += 1
            random, blow = Random(f"{seed}/{number}"), BLOWS[number % len(BLOWS)]
            factor = random.choice(FACTORS)
            if random.random() < 0.4:
                shutil.rmtree(place.out, ignore_errors=True)
            code = strike(blow, place, factor, random, min(took))
            tally.counts[f"{blow}: {_outcome(code)}"] += 1
            after = random.choice(FACTORS) if blow not in ("times",) else factor
            faults = wrong(place, after)
            if code is not None and code not in ALLOWED[blow]:
                faults.append(f"the build itself ends with {code}")
            command = f"python -m tests.faults kills --seed {seed} --from {number} --kills 1"
            listing = json.dumps(sorted(files_of(place.out)), indent=1).encode()
            for f in faults:
                tally.add(Fault(f"{blow}: {f}", f"{f}, after {blow} of {factor}, then {after}", command, {"files.json": listing}))
            if faults:
                shutil.rmtree(place.out, ignore_errors=True)
    tally.counts = type(tally.counts)(dict(sorted(tally.counts.items())))
    tally.counts["all"] = done
    return tally


def _outcome(code: int | None) -> str:
    return "killed" if code is None else "built" if code == 0 else "refused" if code == 1 else "ended for want of memory"
