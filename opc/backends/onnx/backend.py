"""ONNX: schemas for its checker, functions for every runtime, and ops for its reference evaluator."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from opc.backends.base import Availability, BuildStep, Session
from opc.backends.onnx import emit, generated_tests
from opc.diagnostics import Diagnostic
from opc.distribution import install_extra
from opc.ir.op import Family


class OnnxBackend:
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
        """Return why ONNX can't carry the family: native code without a body."""
        if family.forward.opaque:
            return (Diagnostic(f"{family.name} has native code only, and ONNX's reference ops are made from a body"),)
        return ()

    def emit(self, family: Family) -> dict[str, str]:
        """Return the subpackage `onnx` and its tests."""
        return {**emit.files(family), **generated_tests.files(family)}

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return nothing: the subpackage is plain Python."""
        return ()

    def session(self, family: Family, package: Path) -> Session:
        """Load the reference ops."""
        from opc.backends.onnx.session import OnnxSession

        return OnnxSession(family, package)
