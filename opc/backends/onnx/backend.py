"""ONNX: schemas for its checker, functions for every runtime, and ops for its reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends.base import Availability, Backend, Check
from opc.backends.dtypes import lacking
from opc.backends.example_text import test_file
from opc.backends.onnx import emit
from opc.diagnostics import Diagnostic
from opc.distribution import install_extra
from opc.emit.numpy.reference import inexpressible
from opc.emit.onnx.function import FunctionBody, function_body
from opc.emit.onnx.types import TENSOR_TYPE
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.onnx.session import OnnxSession


class OnnxBackend(Backend):
    """Operator schemas, FunctionProto bodies and reference ops."""

    name = "onnx"
    title = "ONNX"

    def probe(self) -> Availability:
        """Say whether onnx is installed."""
        try:
            return Availability(True, version("onnx"))
        except PackageNotFoundError:
            return Availability(False, reason="onnx is not installed", install=install_extra("onnx"))

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why ONNX can't carry the family: native code without a body, dtypes that it lacks, what NumPy can't express."""
        found = list(lacking(family.ops, self.title, TENSOR_TYPE.__contains__))
        if family.forward.opaque:
            found.append(Diagnostic(f"{family.name} has native code only, and ONNX's reference ops are made from a body"))
        return (*found, *inexpressible(*family.ops))

    def emit(self, family: Family) -> dict[str, str]:
        """Return the subpackage `onnx` and its tests."""
        function = isinstance(function_body(family.forward), FunctionBody)
        return {**emit.files(family), **test_file(family, emit.templates, "onnx", function=function)}

    def session(self, family: Family, package: Path) -> OnnxSession:
        """Load the reference ops."""
        from opc.backends.onnx.session import OnnxSession

        return OnnxSession(family, package)

    def checks(self, session: OnnxSession) -> Sequence[Check]:
        """Return what ONNX's tools promise of the op: checker, inference, function, inliner, text."""
        from opc.backends.onnx.checks import OnnxChecks

        return OnnxChecks(session).all()
