"""Specs with fewer element types, and families with fewer derived ops: their kernels take a fraction of the time to compile."""

from __future__ import annotations

import re
from pathlib import Path

from opc.ir.op import Family
from opc.records import replace

SPECS = Path(__file__).parents[1] / "specs"


def narrow(name: str, folder: Path, types: str = "float32") -> Path:
    """Write a copy of a spec whose type variable T has these types alone, and return its path."""
    text, count = re.subn(r"\bT: (\[[^\]]*\]|\w+)", f"T: [{types}]", (SPECS / f"{name}.yaml").read_text(), count=1)
    assert count, name
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"{Path(name).name}.yaml"
    # A package that was built from it stays as it is.
    if not place.exists() or place.read_text() != text:
        place.write_text(text)
    return place


def only(family: Family, *derived: str) -> Family:
    """Return a family with these of its derived ops alone, beside the op: what a test does not call need not be compiled."""
    every = ("backward", "backward_backward", "jvp", "backward_jvp")
    assert all(getattr(family, name) is not None for name in derived), family.name
    return replace(family, **{name: None for name in every if name not in derived})
