"""The custom-op library of a family as the proof calls it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import package as packages
from opc.backends.base import Check, OpError, Unsupported, WithoutAutograd
from opc.backends.node_call import NodeCall
from opc.backends.onnxruntime.values import from_value, quiet, to_value
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.base import Array


class OnnxRuntimeSession(WithoutAutograd):
    """Runs single-node models on ONNX Runtime's CPU provider with the library registered."""

    no_autograd = "ONNX Runtime has no autograd; the gradients are ops of their own"

    def __init__(self, family: Family, package: Path) -> None:
        """Import the package's modules and find its library.

        Raises:
            ImportError: when the package is not built, or onnxruntime is not installed.
        """
        import onnxruntime

        onnxruntime.set_default_logger_severity(4)
        self.family, self.package = family, package
        self.ops = {op.name: op for op in family.ops}
        self.runtime = packages.load(package, "onnxruntime")
        self._sessions: dict[Any, Any] = {}
        if not self.runtime.library_path().is_file():
            raise ImportError(f"{self.runtime.library_path()} is not built")

    def call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op of the family; see `opc.backends.base.Session`."""
        call = NodeCall(self.ops[op], inputs, attributes, only)
        if call.key not in self._sessions:
            self._sessions[call.key] = self._load(call)
        session = self._sessions[call.key]
        return call.run(lambda feeds: self._run(session, feeds))

    def function_call(
        self,
        op: str,
        inputs: Mapping[str, Array | None],
        attributes: Mapping[str, Any],
        only: Sequence[str] | None = None,
    ) -> dict[str, Array]:
        """Run one op by its body in standard operators, without the library; Unsupported where the package holds no such body."""
        import onnxruntime

        if not (self.package / "onnx").is_dir():
            raise Unsupported("the package has no part for ONNX, which holds the body in standard operators")
        call = NodeCall(self.ops[op], inputs, attributes, only)
        key = call.function_key
        if key not in self._sessions:
            options = quiet(onnxruntime.SessionOptions(), threads=1)
            model = call.function_model(packages.load(self.package, "onnx")).SerializeToString()
            try:
                self._sessions[key] = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
            except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented as reason:
                # The operator is standard, and this runtime has no kernel of it for an element type.
                raise Unsupported(str(reason).split(" : ")[-1]) from reason
        session = self._sessions[key]
        return call.run(lambda feeds: self._run(session, feeds))

    def _load(self, call: NodeCall) -> Any:
        import onnxruntime

        options = quiet(self.runtime.session_options())
        try:
            return onnxruntime.InferenceSession(call.model().SerializeToString(), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise OpError(str(error)) from error

    def _run(self, session: Any, feeds: Mapping[str, Array]) -> list[Array]:
        names = [o.name for o in session.get_outputs()]
        values = session.run_with_ort_values(names, {n: to_value(a) for n, a in feeds.items()})
        return [from_value(v) for v in values]

    def checks(self) -> Sequence[Check]:
        """Return what ONNX Runtime users expect beyond values."""
        from opc.backends.onnxruntime.checks import OnnxRuntimeChecks

        return OnnxRuntimeChecks(self.family, self.package, self.runtime).all()
