"""Golden tests of the front end: spec in, printed typed IR out.

After a wanted change, `OPC_UPDATE_GOLDEN=1 pytest tests/analysis/test_elaborate.py` writes the expectations anew; read the diff.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opc.analysis.elaborate.typing import elaborate, elaborate_gradient
from opc.analysis.shapes.plan import undetermined
from opc.diagnostics import Diagnostics
from opc.ir.printer import format_op
from opc.ir.verify import verify
from opc.spec.loader import load

GOLDEN = Path(__file__).parent / "golden"
SPECS = sorted(GOLDEN.glob("*.yaml"))


def printed(path: Path) -> str:
    """Return the IR of a spec, and of its explicit gradient."""
    spec = load(path)
    found = Diagnostics()
    op = elaborate(spec, found)
    verify(op)
    text = format_op(op)
    if spec.model.gradient.mode == "body":
        backward = elaborate_gradient(spec, op, found)
        assert not undetermined(backward)
        text += format_op(backward)
    return text + "".join(f"warning: {d.message}\n" for d in found.items)


@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_elaborates_as_before(path: Path) -> None:
    expected = path.with_suffix(".ir")
    if os.environ.get("OPC_UPDATE_GOLDEN"):
        expected.write_text(printed(path))
    assert printed(path) == expected.read_text()


def test_elaboration_is_deterministic() -> None:
    for path in SPECS:
        assert printed(path) == printed(path)
