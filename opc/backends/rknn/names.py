"""What an op is called in RKNN."""

from __future__ import annotations

from dataclasses import dataclass

from opc.ir.op import Family

DOMAIN = "rknn_cst"
"""The domain of an op whose spec names none for RKNN."""


@dataclass(frozen=True, slots=True)
class Name:
    """The domain and operator type of a node in the ONNX model that the toolkit reads."""

    domain: str
    op_type: str


def rknn_name(family: Family) -> Name:
    """Return what RKNN calls the op.

    The toolkit looks an op up by its type alone, and takes no type that ONNX has too, so the type begins with `cst`.
    """
    return Name(DOMAIN, f"cst{family.forward.class_name}")
