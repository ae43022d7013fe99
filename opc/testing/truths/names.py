"""Whether references name what the frameworks have: checked where the frameworks are installed."""

from __future__ import annotations

from opc.analysis.elaborate.references import onnx_operators
from opc.diagnostics import Diagnostics, did_you_mean
from opc.spec.loader import Spec


def check_operators(spec: Spec, found: Diagnostics) -> None:
    """Record the operators in a spec's ONNX references that ONNX's own domain lacks; none where onnx is not installed."""
    named = onnx_operators(spec)
    if not named:
        return
    try:
        from onnx import defs
    except ImportError:
        return
    for operator, span in named:
        if not defs.has(operator):
            known = {s.name for s in defs.get_all_schemas() if s.domain == ""}
            hint = did_you_mean(operator, known) or "references name operators of ONNX's default domain"
            found.error(f"ONNX has no operator '{operator}'", span, hint)
