"""Kernels compile for systems and machines that are not here: for those with clang++ and no more than their own headers."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.pipeline import load_family
from tests.narrow import narrow
from tests.systems import SYSTEMS, compiled

# Products, and rows with reductions: what the others are made of too.
FORMS = ("linear", "layer_norm")


@pytest.mark.rotating
@pytest.mark.parametrize("system", SYSTEMS)
def test_kernels_compile_for(system: str, tmp_path: Path) -> None:
    for name in FORMS:
        compiled(load_family(narrow(name, tmp_path / "specs")), tmp_path / name, system)
