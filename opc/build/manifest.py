"""The manifest of a generated package: what opc wrote there, from which spec, and the SHA-256 of each file.

`manifest.json` lets opc tell its own files from a user's, find those edited by hand, and remove those it no longer writes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from opc.backends.package import MANIFEST
from opc.build.stamp import UNREADABLE
from opc.records import dataclass


def digest(text: str) -> str:
    """Return the SHA-256 of a text file in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a generated package holds: `files` maps each path, relative to the package, to its SHA-256."""

    version: str = ""
    spec_name: str = ""
    spec_hash: str = ""
    backends: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def dumps(self) -> str:
        """Return the manifest as JSON text with sorted keys."""
        data = {
            "backends": sorted(self.backends),
            "files": dict(self.files),
            "opc": self.version,
            "spec": {"name": self.spec_name, "sha256": self.spec_hash},
        }
        return json.dumps(data, indent=2, sort_keys=True) + "\n"


def read(package: Path) -> Manifest:
    """Return the manifest of a package; an empty one when there is none or it can't be read.

    An unreadable manifest is no error: everything is then written anew, and files that bear opc's header are taken as opc's own.
    """
    try:
        data = json.loads((package / MANIFEST).read_text(encoding="utf-8"))
        spec = data["spec"]
        return Manifest(
            version=str(data["opc"]),
            spec_name=str(spec["name"]),
            spec_hash=str(spec["sha256"]),
            backends=tuple(str(b) for b in data["backends"]),
            files={str(path): str(sha) for path, sha in data["files"].items()},
        )
    except UNREADABLE:
        return Manifest()
