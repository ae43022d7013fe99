"""What nvcc makes of the kernels of every op, see tests/gpu/gates.py: `nox` asks it of an eighth of them by turns."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.backends.cuda import toolkit
from opc.emit.cuda.files import refused
from opc.pipeline import load_family
from tests.gpu import gates

SPECS = sorted((gates.ROOT / "specs").glob("*.yaml"))


@pytest.mark.rotating(seconds=6)
@pytest.mark.skipif(toolkit.nvcc() is None, reason="there is no nvcc")
@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_nothing_is_amiss_but_what_is_known(spec: Path, tmp_path: Path) -> None:
    if not refused(load_family(spec)):
        assert [text for text in gates.mistakes(spec.stem, tmp_path) if gates.known(text) is None] == []
