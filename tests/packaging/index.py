"""A package index in a folder: the project's own wheels, and of everything they name an empty wheel of each version asked for."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from email.parser import Parser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def requirements(wheel: Path) -> list[Requirement]:
    """Return what a wheel asks for, with and without extras."""
    with zipfile.ZipFile(wheel) as held:
        name = next(n for n in held.namelist() if n.endswith(".dist-info/METADATA"))
        return [Requirement(text) for text in Parser().parsestr(held.read(name).decode()).get_all("Requires-Dist", [])]


def without_files(wheel: Path, folder: Path) -> Path:
    """Write a wheel that says what another says, and holds no files: unpacking them takes longer than what pip finds out."""
    with zipfile.ZipFile(wheel) as held, zipfile.ZipFile(folder / wheel.name, "w") as made:
        told = [name for name in held.namelist() if ".dist-info/" in name]
        for name in told:
            record = "".join(f"{path},,\n" for path in told).encode()
            made.writestr(name, record if name.endswith(".dist-info/RECORD") else held.read(name))
    return folder / wheel.name


def make_index(folder: Path, wheels: Iterable[Path]) -> str:
    """Fill a folder and return its URL, in the form of the simple repository API."""
    own = {canonicalize_name(w.name.partition("-")[0]): w for w in wheels}
    for name, wheel in own.items():
        _offer(folder, name, wheel.name, wheel.read_bytes())
        for requirement in requirements(wheel):
            needed = canonicalize_name(requirement.name)
            if needed not in own:
                version = _version(requirement)
                file = f"{needed.replace('-', '_')}-{version}-py3-none-any.whl"
                _offer(folder, needed, file, _empty_wheel(needed.replace("-", "_"), version))
    for place in folder.iterdir():
        links = "".join(f'<a href="{file.name}">{file.name}</a>\n' for file in sorted(place.glob("*.whl")))
        (place / "index.html").write_text(f"<!DOCTYPE html>\n<html><body>\n{links}</body></html>\n")
    return folder.as_uri()


def _version(requirement: Requirement) -> str:
    """Return the version that a requirement pins or begins with."""
    versions = {s.version for s in requirement.specifier if s.operator in ("==", ">=")}
    assert len(versions) <= 1, requirement
    version = versions.pop() if versions else "1.0"
    assert requirement.specifier.contains(version), requirement
    return version


def _offer(folder: Path, name: str, file: str, content: bytes) -> None:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / file).write_bytes(content)


def _empty_wheel(name: str, version: str) -> bytes:
    import io

    folder = f"{name}-{version}.dist-info"
    files = {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: opc\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    files[f"{folder}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{folder}/RECORD"])
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return made.getvalue()
