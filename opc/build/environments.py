"""`opc env create`: virtual environments for backends whose frameworks can't live together.

What goes into one is pinned by an extra of the distribution that registers the backend, and read from its metadata. With it come
the requirements of opc itself, which the proof needs there; opc is not installed, workers take it from where it is run. An
environment is made under a lock, and its record is written last, so that a creation that is killed leaves none that is taken for
whole: the next one begins anew. While nothing has changed there is nothing to do.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path

from opc.backends import environments, registry
from opc.backends.base import Backend, Environment
from opc.backends.environments import RECORD, Record
from opc.build import files, imports, locks, stamp
from opc.build.installer import Command, installers
from opc.diagnostics import Diagnostic, Severity, SpecError
from opc.distribution import NAME as OPC
from opc.distribution import install
from opc.records import dataclass

Progress = Callable[[int, int, str], None]
"""Called with the number of finished stages, their total, and what is being done."""

TRIAL = "import opc.testing.worker, opc.testing.execution"
"""What must work in an environment: the code of the proof."""

_STEPS = ("Collecting ", "  Downloading ", "Processing ", "Installing ", "Building ", "Resolved ", "Prepared ")
"""How the progress lines of an installer begin."""

_MOST_LINES = 25
"""How many of the last lines of a failed command are shown."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An environment as it should be: its name, the backends it is for, and what is installed.

    The requirements `alone` are installed without what they ask for. `program` is run in the end, where there is one.
    """

    name: str
    backends: tuple[str, ...]
    requirements: tuple[str, ...]
    alone: tuple[str, ...]
    program: str = ""

    @property
    def identity(self) -> str:
        """The key of this environment: requirements and interpreter."""
        parts = (sys.version, sys.base_prefix, *self.requirements, "alone", *self.alone)
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    @property
    def made(self) -> str:
        """The key of what the program makes: all that lies beside it; empty without one."""
        if not self.program:
            return ""
        total = hashlib.sha256()
        for path in sorted(stamp.files_below(Path(self.program).parent)):
            name = os.path.relpath(path, Path(self.program).parent)
            total.update(f"{name}\0{stamp.digest(path)}\0".encode())
        return total.hexdigest()


@dataclass(frozen=True, slots=True)
class Made:
    """A finished environment, whether it was there already, and how long making it took."""

    record: Record
    fresh: bool
    seconds: float = 0.0


def create(backend: str, progress: Progress | None = None, say: Callable[[str], None] | None = None) -> Made:
    """Make the environment of a backend, or find that it is there and nothing has changed.

    Raises:
        SpecError: when there is no such backend, it needs no environment, or the installation fails.
    """
    start = time.monotonic()
    want = wanted(backend)
    folder = environments.root() / want.name
    with locks.hold(folder, say) as lock:
        known = next((r for r in environments.records() if r.folder == folder), None)
        if known is not None and known.identity == want.identity and known.python.exists():
            if known.made == want.made:
                if known.backends != want.backends:
                    _record(folder, want)
                return Made(_recorded(folder), fresh=True)
            _carry_out(_program(folder, want), want, lock, progress or _quiet)
        else:
            _clear(folder)
            try:
                _carry_out([*_installation(folder, want), *_program(folder, want)], want, lock, progress or _quiet)
            except BaseException:
                with contextlib.suppress(SpecError):
                    _clear(folder)
                raise
        _record(folder, want)
    return Made(_recorded(folder), fresh=False, seconds=time.monotonic() - start)


def remove(name: str, say: Callable[[str], None] | None = None) -> None:
    """Remove an environment, finished or not.

    Raises:
        SpecError: when there is none of that name, or the file system refuses.
    """
    folder = environments.root() / name
    if name not in names():
        hint = f"there are {', '.join(names()) or 'none'} in {environments.root()}"
        raise SpecError([Diagnostic(f"there is no environment '{name}'", hint=hint)])
    with locks.hold(folder, say):
        _clear(folder)
    _remove_tree(folder)


def names() -> tuple[str, ...]:
    """Return the names of the environments, those that were never finished too."""
    return tuple(sorted(p.parent.name for p in environments.root().glob("*/lock")))


def wanted(name: str) -> Wanted:
    """Return what the environment of a backend should be.

    Raises:
        SpecError: when there is no such backend, or it needs no environment.
    """
    backend = registry.load(name)
    environment = backend.environment
    if environment is None:
        found = backend.probe()
        hint = None if found.available or not found.install else f"to install its framework: {found.install}"
        message = f"backend '{name}' needs no environment of its own: it runs in the one that opc runs in"
        raise SpecError([Diagnostic(message, hint=hint)])
    distribution = registry.distribution(name)
    pinned = requirements(distribution, environment.extra)
    if not pinned:
        message = f"{distribution} has no extra '{environment.extra}', which the environment of backend '{name}' is made from"
        raise SpecError([Diagnostic(message, hint=f"reinstall {distribution}")])
    alone = tuple(r for r in pinned if _name(r) in environment.alone)
    own = tuple(r for r in requirements(OPC) if _name(r) not in {_name(p) for p in pinned})
    beside = () if distribution == OPC else requirements(distribution)
    rest = dict.fromkeys(r for r in (*pinned, *beside, *own) if r not in alone and _name(r) != OPC)
    sharing = [b for b in registry.select() if _shares(b, distribution, environment)]
    folder = environment.extra if distribution == OPC else f"{distribution}-{environment.extra}"
    return Wanted(folder, tuple(b.name for b in sharing), tuple(rest), alone, environment.program)


def requirements(distribution: str, extra: str = "") -> tuple[str, ...]:
    """Return the requirements of a distribution here: in all cases, or, with `extra`, what that extra adds.

    An extra that names others of the same distribution includes what those add.

    Raises:
        SpecError: when the distribution is not installed.
    """
    from packaging.requirements import Requirement

    try:
        texts = metadata.requires(distribution) or ()
    except metadata.PackageNotFoundError as error:
        message = f"the metadata of {distribution} is missing"
        raise SpecError([Diagnostic(message, hint=f"install it: {install(distribution)}")]) from error
    found: dict[str, None] = {}
    for requirement in map(Requirement, texts):
        marker = requirement.marker
        if extra and (marker is None or marker.evaluate({"extra": ""}) or not marker.evaluate({"extra": extra})):
            continue
        if not extra and marker is not None and not marker.evaluate({"extra": ""}):
            continue
        if extra and _same(requirement.name, distribution):
            found |= dict.fromkeys(r for other in sorted(requirement.extras) for r in requirements(distribution, other))
            continue
        requirement.marker = None
        found[str(requirement)] = None
    return tuple(found)


def _shares(backend: Backend, distribution: str, environment: Environment) -> bool:
    return backend.environment == environment and registry.distribution(backend.name) == distribution


def _name(requirement: str) -> str:
    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    return canonicalize_name(Requirement(requirement).name)


def _same(one: str, other: str) -> bool:
    from packaging.utils import canonicalize_name

    return canonicalize_name(one) == canonicalize_name(other)


_Stage = tuple[Sequence[Command], str]
"""Commands of which one is to do what the text says."""


def _installation(folder: Path, want: Wanted) -> list[_Stage]:
    """Return how the virtual environment is made and installed into."""
    python = str(environments.python_of(folder))
    ways = installers(python)
    bare = () if ways[-1].arguments[0] == python else ("--without-pip",)
    stages: list[_Stage] = [
        ([Command((sys.executable, "-m", "venv", *bare, str(folder / "venv")))], "making the virtual environment"),
        ([way.of(*want.requirements) for way in ways], "installing what is pinned"),
    ]
    if want.alone:
        stages.append(([way.of("--no-deps", *want.alone) for way in ways], f"installing {' '.join(want.alone)} alone"))
    return stages


def _program(folder: Path, want: Wanted) -> list[_Stage]:
    """Return how the program is run, if there is one."""
    if not want.program:
        return []
    command = Command((str(environments.python_of(folder)), want.program, str(folder / environments.MADE)))
    return [([command], f"running {Path(want.program).name}, which compiles for a minute or so")]


def _carry_out(stages: Sequence[_Stage], want: Wanted, lock: int, progress: Progress) -> None:
    """Carry out stages, and try the environment.

    Raises:
        SpecError: when a step fails, with what it said.
    """
    python = str(environments.python_of(environments.root() / want.name))
    with imports.links() as path:
        # What opc needs and is missing is found now, and not in the first proof.
        trial: _Stage = ([Command((python, "-c", f"import sys; sys.path.append({str(path)!r}); {TRIAL}"))], "trying it")
        every = [*stages, trial]
        for number, (commands, what) in enumerate(every):
            label = f"{want.name}: {what}"
            progress(number, len(every), label)
            for line in _run_first(commands, lock):
                locks.touch(lock)
                if line.startswith(_STEPS):
                    progress(number, len(every), f"{label}: {line.strip()}")
    progress(len(every), len(every), want.name)


def _run_first(commands: Sequence[Command], lock: int) -> Iterator[str]:
    """Run the first of some commands that does what each of them is to do, and yield what they print.

    Raises:
        SpecError: when the last of them fails too, with what that said.
    """
    for command in commands:
        said: list[str] = []
        try:
            yield from _run(command, lock, said)
        except SpecError:
            if command is commands[-1]:
                raise
        else:
            return


def _run(command: Command, lock: int, said: list[str]) -> Iterator[str]:
    """Run a command and yield what it prints, line by line; it holds the lock for as long as it lives.

    Raises:
        SpecError: when it fails.
    """
    try:
        process = subprocess.Popen(
            command.arguments, pass_fds=(lock,), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, encoding="utf-8", errors="replace", env={**os.environ, **command.variables},
        )  # fmt: skip
    except OSError as error:
        raise SpecError([Diagnostic(f"cannot run {command.arguments[0]}: {error.strerror}")]) from error
    assert process.stdout is not None
    try:
        for line in process.stdout:
            said.append(line.rstrip("\n"))
            yield said[-1]
        code = process.wait()
    except BaseException:
        process.terminate()
        process.wait()
        raise
    if code != 0:
        raise SpecError([_failed(command.arguments, code, said)])


def _failed(command: Sequence[str], code: int, said: Sequence[str]) -> Diagnostic:
    """Return what a failed command said as a diagnostic: its errors, and its last lines as a note."""
    lines = [line for line in said if line.strip() and not line.startswith("WARNING: ")]
    errors = [line.removeprefix("ERROR: ").strip() for line in lines if line.startswith("ERROR: ")]
    why = (errors[:1] or lines[-1:] or [f"exit status {code}"])[0]
    text = "\n".join(("the command was: " + shlex.join(command), *lines[-_MOST_LINES:]))
    hint = None
    if any(
        word in " ".join(lines) for word in ("No matching distribution", "Connection", "Temporary failure in name resolution")
    ):
        hint = "is the package index reachable? pip reads its address from its own settings (pip config list)"
    elif any("No space left" in line for line in lines):
        hint = "free some space, or name another folder in $OPC_ENVIRONMENTS, and run the command again"
    elif any("ensurepip" in line for line in lines):
        hint = "install Python's venv module: Debian, Ubuntu: sudo apt install python3-venv"
    note = Diagnostic(text, severity=Severity.NOTE)
    return Diagnostic(f"the environment was not made: {why}", hint=hint, notes=(note,))


def _record(folder: Path, want: Wanted) -> None:
    data = {
        "backends": want.backends,
        "requirements": (*want.requirements, *want.alone),
        "identity": want.identity,
        "made": want.made,
    }
    files.write(folder / RECORD, environments.as_json(data), folder)


def _recorded(folder: Path) -> Record:
    """Return the record just written.

    Raises:
        SpecError: when it can't be read.
    """
    found = next((r for r in environments.records() if r.folder == folder), None)
    if found is None:
        raise SpecError([Diagnostic(f"cannot read {folder / RECORD}")])
    return found


def _clear(folder: Path) -> None:
    """Remove what is in an environment but its lock; the record first, so that nothing half is taken for whole."""
    try:
        (folder / RECORD).unlink(missing_ok=True)
    except OSError as error:
        raise files.failure("remove", folder / RECORD, error) from error
    _remove_tree(folder / "venv")
    _remove_tree(folder / environments.MADE)
    _remove_tree(folder / environments.HEADERS)


def _remove_tree(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise files.failure("remove", folder, error) from error


def _quiet(done: int, total: int, what: str) -> None:
    pass
