"""What the Python files for Graphcore's frameworks have in common: attributes as nodes hold them, dtypes, signatures."""

from __future__ import annotations

from opc.backends.python_api import PythonApi
from opc.emit.python.text import Bracket, quoted
from opc.ir.dtypes import DTYPES, DType, candidates
from opc.ir.op import Attribute, AttributeKind, Family, Op

_CONVERT = {
    AttributeKind.INT: "int({})",
    AttributeKind.AXIS: "int({})",
    AttributeKind.BOOL: "int({})",
    AttributeKind.FLOAT: "float({})",
    AttributeKind.STR: 'f"{{{}}}"',
    AttributeKind.DTYPE: "DTYPES[{}]",
}

_OPTIONS = {AttributeKind.INT: "int", AttributeKind.AXIS: "int", AttributeKind.FLOAT: "float", AttributeKind.STR: "str"}
"""The kinds of attributes that a command takes, and their types."""


def signature_api() -> PythonApi:
    """Return how functions spell attributes: a dtype is a name."""
    return PythonApi("str", lambda d: quoted(d.value), tells=False)


def node_value(a: Attribute) -> str:
    """Return the expression of an attribute's value as a node of a model holds it."""
    convert = _CONVERT[a.kind]
    return convert.format(a.name) if a.length is None else f"[{convert.format('v')} for v in {a.name}]"


def node_attributes(op: Op) -> Bracket:
    """Return the dictionary of an op's attributes for a node."""
    return Bracket("{", [f"{quoted(a.name)}: {node_value(a)}" for a in op.attributes], "}")


def onnx_numbers() -> list[tuple[str, int]]:
    """Return ONNX's number of each dtype that Poplar has."""
    return [(d.value, d.row.onnx[1]) for d in DTYPES if d.row.popart is not None and d.row.onnx is not None]


def option_rows(family: Family) -> list[tuple[str, str]]:
    """Return the attributes that a script takes from the command line, each with its type."""
    return [(a.name, _OPTIONS[a.kind]) for a in family.forward.attributes if a.length is None and a.kind in _OPTIONS]


def test_values(family: Family) -> dict[str, object]:
    """Return what the templates of tests know beside what is the same for every backend."""
    op = family.forward
    rows = [f"{quoted(d.value)}: {quoted(d.row.popart[0])}" for d in DTYPES if d.row.popart is not None]
    return {
        "names": Bracket("NAMES = {", rows, "}").render(),
        "wrong": _wrong_dtype(op),
    }


def _wrong_dtype(op: Op) -> str:
    """Return a dtype that the first input never has, empty where there is none."""
    found = candidates(op.inputs[0].type) if op.inputs else ()
    return next((d.value for d in (DType.BOOL, DType.UINT32, DType.FLOAT32) if op.inputs and d not in found), "")
