"""The generated test of an op's ONNX subpackage."""

from __future__ import annotations

from opc.ir.op import Family


def files(family: Family) -> dict[str, str]:
    """Return the test module, by path relative to the package directory; none for a spec without examples."""
    return {}
