"""The files of `.dist-info` but for RECORD: https://packaging.python.org/en/latest/specifications/core-metadata/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from opc import __version__
from opc.build.wheels.project import Project


def metadata(project: Project, always: Sequence[str], extras: Mapping[str, Sequence[str]]) -> str:
    """Return METADATA: what the wheel needs in any case, and for a framework, which is an extra of its name."""
    fields: list[tuple[str, str]] = [("Metadata-Version", "2.4"), ("Name", project.name), ("Version", project.version)]
    fields += [("Summary", project.summary)] if project.summary else []
    names = [name for name, email in project.authors if name and not email]
    mails = [f"{name} <{email}>" if name else email for name, email in project.authors if email]
    fields += [("Author", ", ".join(names))] if names else []
    fields += [("Author-email", ", ".join(mails))] if mails else []
    fields += [("License-Expression", project.license)] if project.license else []
    fields += [("License-File", name) for name in project.licenses]
    fields += [("Keywords", ",".join(project.keywords))] if project.keywords else []
    fields += [("Classifier", text) for text in project.classifiers]
    fields += [("Project-URL", f"{name}, {address}") for name, address in project.urls]
    fields += [("Requires-Python", project.requires_python)]
    fields += [("Requires-Dist", text) for text in (*always, *project.dependencies)]
    for name, needed in sorted(extras.items()):
        fields += [("Provides-Extra", name.replace("_", "-"))]
        fields += [("Requires-Dist", f'{text}; extra == "{name.replace("_", "-")}"') for text in needed]
    text, kind = project.readme
    fields += [("Description-Content-Type", kind)] if kind else []
    head = "".join(f"{key}: {value}\n" for key, value in fields)
    return f"{head}\n{text}" if text else head


def wheel_file(tag: str) -> str:
    """Return WHEEL: the format's version, what wrote it, and the tag of its file name."""
    pythons, abis, platforms = tag.split("-")
    tags = [f"{p}-{a}-{f}" for p in pythons.split(".") for a in abis.split(".") for f in platforms.split(".")]
    lines = ["Wheel-Version: 1.0", f"Generator: opc {__version__}", "Root-Is-Purelib: false", *(f"Tag: {t}" for t in tags)]
    return "\n".join(lines) + "\n"
