"""What every command shares: diagnostics on stderr, in colour on a terminal, and the exit codes.

Nothing here imports rich: most runs print a few lines, and importing it costs more than they do.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from opc.diagnostics import Diagnostic

OK, FAILED, WRONG_USE, INTERRUPTED = 0, 1, 2, 130

_COLOURS = {"error": "\033[1;31m", "warning": "\033[1;33m", "note": "\033[1;36m", "hint": "\033[1;32m", "place": "\033[1m"}
_RESET = "\033[0m"
_PAINTED = re.compile(f"({'|'.join(map(re.escape, (*_COLOURS.values(), _RESET)))})")


class WrongUse(Exception):
    """The command was called wrongly; the message says how, or diagnostics do. Exit code 2."""

    def __init__(self, *said: str | Diagnostic) -> None:
        super().__init__(*said)
        self.said = said


def is_coloured(stream: TextIO) -> bool:
    """Whether to colour what goes to `stream`: it is a terminal, and NO_COLOR is not set (https://no-color.org)."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def paint(text: str, colour: str, stream: TextIO) -> str:
    """Return `text` in a colour of the table, or as it is where the stream shows none."""
    return f"{_COLOURS[colour]}{text}{_RESET}" if is_coloured(stream) else text


def say(text: str = "") -> None:
    """Print lines on stdout. What a terminal would obey is shown as a mark, but for colours of `paint`."""
    print(_safe(text, sys.stdout))


def say_json(data: Any) -> None:
    """Print data on stdout, for scripts."""
    import json

    say(json.dumps(data, indent=2))


def note(text: str) -> None:
    """Print lines for people on stderr. What a terminal would obey is shown as a mark, but for colours of `paint`."""
    print(_safe(text, sys.stderr), file=sys.stderr)


def _safe(text: str, stream: TextIO) -> str:
    from opc.diagnostics import printable

    if text.isascii() and text.isprintable():
        return text
    parts = _PAINTED.split(text) if is_coloured(stream) else [text]
    return "".join(part if i % 2 else printable(part) for i, part in enumerate(parts))


def show_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print diagnostics on stderr."""
    for diagnostic in diagnostics:
        show_rendered(diagnostic.severity.value, diagnostic.render())


def show_rendered(severity: str, text: str) -> None:
    """Print a diagnostic that is text already."""
    if is_coloured(sys.stderr):
        head, _, rest = text.partition("\n")
        place, found, message = head.partition(f"{severity}: ")
        if found:
            head = f"{paint(place, 'place', sys.stderr)}{paint(severity + ':', severity, sys.stderr)} {message}"
        rest = rest.replace("\n  hint:", f"\n  {paint('hint:', 'hint', sys.stderr)}")
        text = f"{head}\n{rest}" if rest else head
    print(text, file=sys.stderr)


def fail(message: str, hint: str | None = None) -> int:
    """Print an error without a place in a file and return the exit code for it."""
    from opc.diagnostics import Diagnostic

    show_diagnostics([Diagnostic(message, hint=hint)])
    return FAILED


def guarded(command: Callable[[], Any]) -> int:
    """Run a command and return its exit code; mistakes of the user end in diagnostics."""
    try:
        try:
            command()
        finally:
            # A language server closes it.
            if not sys.stdout.closed:
                sys.stdout.flush()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            note("interrupted")
        return end.code if isinstance(end.code, int) else OK if end.code is None else FAILED
    except WrongUse as error:
        for said in error.said:
            if isinstance(said, str):
                fail(said)
            else:
                show_diagnostics([said])
        return WRONG_USE
    except KeyboardInterrupt:
        note("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output is gone; keep the interpreter from complaining when it closes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        from opc.diagnostics import SpecError

        if isinstance(error, SpecError):
            show_diagnostics(error.diagnostics)
            return FAILED
        if isinstance(error, OSError) and error.filename is not None:
            return fail(f"{shown(error.filename)}: {error.strerror}")
        if isinstance(error, FileNotFoundError) and not _has_working_folder():
            return fail("the working directory is gone", "change to a folder that exists")
        note("opc has met a bug of its own; please report it with the spec and what follows")
        raise
    return OK


def _has_working_folder() -> bool:
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def shown(path: Path | str) -> str:
    """Return a path as people see it, in a line: as `near` does, with a mark for what a terminal would obey."""
    from opc.diagnostics import in_line

    return in_line(near(path))


def near(path: Path | str) -> str:
    """Return a path relative to the working directory where it lies below."""
    text = os.fspath(path)
    if not _has_working_folder():
        return text
    relative = os.path.relpath(text)
    return text if relative.startswith("..") else relative


def need(command: str, extra: str, *packages: str) -> None:
    """Refuse to go on without packages that opc itself does without, and an extra of it brings.

    Raises:
        SpecError: which says how to install what is missing.
    """
    missing = [name for name in packages if not _is_installed(name)]
    if missing:
        from opc.diagnostics import Diagnostic, SpecError
        from opc.distribution import install_extra

        several = "the packages" if len(missing) > 1 else "the package"
        raise SpecError([Diagnostic(f"{command} needs {several} {' and '.join(missing)}: run `{install_extra(extra)}`")])


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False


def find_specs(given: Sequence[Path] | None, files: bool = False) -> list[Path]:
    """Return the specs that a command was given: files as they are, and the specs in each folder. One of several ranks goes by
    the path of each of its ops, see `opc.spec.files`; where `files` are asked for, by its own.

    Raises:
        WrongUse: when a path does not exist or a folder holds no specs.
    """
    if not given:
        if not Path("specs").is_dir():
            raise WrongUse("there is no folder specs here: name the spec files, or a folder of them")
        given = [Path("specs")]
    from opc.spec.files import each, file_of, files_in

    found: list[Path] = []
    for path in given:
        if files:
            path = file_of(path)
        if path.is_dir():
            inside = files_in(path)
            if not inside:
                raise WrongUse(f"there are no specs (*.yaml) in the folder {shown(path)}")
            found += inside
        elif not file_of(path).exists():
            raise WrongUse(f"there is no file {shown(path)}")
        else:
            found.append(path)
    return list(dict.fromkeys(found if files else each(found)))


@contextmanager
def progress_line() -> Iterator[Callable[[int, int, str], None]]:
    """Yield a callback that keeps one line on stderr up to date, where that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total, path: None
        return
    import shutil

    clear = "\r\033[K"

    def show(done: int, total: int, path: str) -> None:
        count = f"[{done}/{total}]"
        room = shutil.get_terminal_size().columns - len(count) - 2
        print(f"{clear}{paint(count, 'note', sys.stderr)} {path[:room]}", end="", file=sys.stderr, flush=True)

    try:
        yield show
    finally:
        print(clear, end="", file=sys.stderr, flush=True)
