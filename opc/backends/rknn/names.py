"""What an op is called in RKNN."""

from __future__ import annotations

from opc.ir.op import Family
from opc.records import dataclass

DOMAIN = "rknn_cst"
"""The domain of an op whose spec gives RKNN none."""


@dataclass(frozen=True, slots=True)
class OperatorName:
    """The domain and operator type of a node in the ONNX model that the toolkit reads."""

    domain: str
    op_type: str


def rknn_name(family: Family) -> OperatorName:
    """Return what RKNN calls the op: `names: {rknn: ...}` of its spec, else its op type behind `cst`.

    The toolkit looks an op up by its type alone, and takes no type that ONNX has too.
    """
    own = family.name_for("rknn")
    if own is None:
        op_type = family.forward.class_name
        return OperatorName(DOMAIN, op_type if op_type.startswith("cst") else f"cst{op_type}")
    domain, _, op_type = own.rpartition("::")
    return OperatorName(domain or DOMAIN, op_type)
