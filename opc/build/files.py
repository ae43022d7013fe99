"""Writing generated files: each whole or not at all, never outside the package, never over a user's own file."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable
from pathlib import Path

from opc.diagnostics import Diagnostic, SpecError


def inside(package: Path, relatives: Iterable[str]) -> dict[str, Path]:
    """Return the place of each of a package's files by its path in the package.

    Raises:
        SpecError: when a path is absolute, climbs out by `..`, or leads out of the package through a symbolic link.
    """
    root = _resolved(package.parent) / package.name
    found: dict[str, Path] = {}
    # Of a package that is not there yet, nothing can be a link.
    is_there, folders = os.path.lexists(package), set[str]()
    for relative in relatives:
        parts = relative.split("/")
        if not relative.strip("./") or not parts[0] or ".." in parts or "\\" in relative or "\0" in relative:
            raise SpecError([Diagnostic(f"refusing to write '{relative}': it is no path inside the package")])
        place = found[relative] = package / relative
        folder = relative.rpartition("/")[0]
        if is_there and folder not in folders and not _resolved(place.parent).is_relative_to(root):
            raise SpecError([Diagnostic(f"refusing to write '{place}': a symbolic link leads out of {package}")])
        folders.add(folder)
    return found


def _resolved(folder: Path) -> Path:
    """Return a folder without symbolic links; one in a circle stays, and is refused by whoever opens what is behind it.

    `Path.resolve` raises RuntimeError there until Python 3.13.
    """
    return Path(os.path.realpath(folder))


def read(place: Path) -> str | None:
    """Return the text of a file, or None when there is none; undecodable bytes are replaced, so that it differs from any text.

    Raises:
        SpecError: when the file exists and can't be read.
    """
    try:
        return place.read_bytes().decode("utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise failure("read", place, error) from error


def write(place: Path, text: str, scratch: Path) -> None:
    """Write a file so that a reader sees the old text or the new one and never a part, also when this process is killed.

    `scratch` is a folder of the same file system for the text while it is unfinished; callers hold the lock of the output folder.

    Raises:
        SpecError: when the file system refuses, a full disk included.
    """
    # Always the same name, so that the next run overwrites what a killed one left.
    temporary = os.path.join(scratch, ".unfinished")
    try:
        try:
            _put(text, temporary, place)
        except FileNotFoundError:
            # Mostly the folders are there.
            make_folder(scratch)
            place.parent.mkdir(parents=True, exist_ok=True)
            _put(text, temporary, place)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise failure("write", place, error) from error


def _put(text: str, temporary: str, place: Path) -> None:
    with open(temporary, "wb", opener=_not_through_a_link) as file:
        file.write(text.encode())
    os.replace(temporary, place)


def _not_through_a_link(path: str, flags: int) -> int:
    """Open a file as `open` does, but not the one that a symbolic link leads to, which may be anybody's."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def make_folder(folder: Path) -> None:
    """Make a folder for files that are built or kept between runs, with a .gitignore of its own that leaves them out of git."""
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    everything = "*\n"
    # Another one of these signs is what a full disk, or a limit of files, left.
    if not ignore.exists() or (ignore.read_bytes().strip(b"*\n") == b"" and ignore.read_bytes() != everything.encode()):
        with open(ignore, "w", encoding="utf-8", opener=_not_through_a_link) as file:
            file.write(everything)


def refuse_link(folder: Path) -> None:
    """Refuse a folder inside of an output folder that a symbolic link stands for; the output folder itself may be one.

    Raises:
        OSError: as the operating system says it of a file.
    """
    if folder.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(folder))


def make_folders(package: Path, relatives: Iterable[str]) -> None:
    """Make the folders of files by their paths in a package, once for all files in each; what stands in the way `write` tells."""
    with contextlib.suppress(OSError):
        for folder in dict.fromkeys(os.path.dirname(os.path.join(package, relative)) for relative in relatives):
            os.makedirs(folder, exist_ok=True)


def remove(package: Path, place: Path) -> None:
    """Remove a generated file, and its folder when that is left empty.

    Raises:
        SpecError: when the file system refuses.
    """
    try:
        place.unlink(missing_ok=True)
        for folder in place.parents:
            if folder == package or any(p.name != "__pycache__" for p in folder.iterdir()):
                break
            remove_tree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise failure("remove", place, error) from error


def remove_tree(folder: Path) -> None:
    """Remove a folder that holds nothing but Python's byte code."""
    import shutil

    shutil.rmtree(folder)


OTHER_FOLDER = "choose another output folder with -o"
"""What to do where packages can't be written: the beginning of the hint. `opc.load` says it of its cache."""


def failure(verb: str, place: Path, error: OSError) -> SpecError:
    """Return an operating system's refusal as a diagnostic: about what the user named, where that stands in the way."""
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        stands = next((p for p in reversed((place, *place.parents)) if p.exists() and not p.is_dir()), None)
        if stands is not None:
            message = f"cannot {verb} below {stands}, which is a file and not a folder"
            return SpecError([Diagnostic(message, hint=OTHER_FOLDER)])
    if error.errno == errno.ENOENT:
        lacking = next((p for p in reversed(place.parents) if not p.exists()), None)
        if lacking is not None:
            message = f"cannot make the folder {lacking}: {error.strerror or error}"
            return SpecError([Diagnostic(message, hint=OTHER_FOLDER)])
    hint = None
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        hint = "free some space and run the command again; what is already written stays valid"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        hint = f"{OTHER_FOLDER}, or make this one writable"
    elif error.errno == errno.ELOOP:
        hint = "a symbolic link stands there: remove it, or choose another output folder with -o"
    return SpecError([Diagnostic(f"cannot {verb} {place}: {error.strerror or error}", hint=hint)])
