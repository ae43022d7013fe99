"""The modules that are the same in every package: they rest on nothing that only some packages have."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "generated" / "leaky_relu" / "onnx"


def test_they_call_no_function_of_the_table() -> None:
    """A package has those methods of the table's functions that its op calls, so that the shared ones can't call any."""
    text = "".join((PACKAGE / f"{name}.py").read_text() for name in ("arrays", "builder", "windows"))
    called = set(re.findall(r"self\.([a-z]\w*)\(", text))
    assert len(called) > 10
    assert called <= set(re.findall(r"    def (\w+)\(\n?\s*self", text))
