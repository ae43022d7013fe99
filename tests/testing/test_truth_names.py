"""Names in references: ONNX's operators are known without importing onnx."""

from onnx import defs

from opc.testing.references.names import OPERATORS


def test_the_operators_are_those_of_onnx() -> None:
    assert {s.name for s in defs.get_all_schemas() if s.domain == ""} == OPERATORS
