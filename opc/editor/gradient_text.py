"""A gradient as a spec says it, for `opc show` and for editors."""

from __future__ import annotations

from textwrap import indent

from opc.analysis.cost import saved
from opc.ir.op import Op, Role
from opc.ir.printer import format_body, format_op


def gradient_text(backward: Op) -> str:
    """Return a gradient as the spec's own `gradient` key would say it, or as an op where the language has no words for it."""
    try:
        body = format_body(backward)
    except ValueError:
        return format_op(backward)
    names = [name for name, role, _ in saved(backward) if role is Role.OUTPUT]
    kept = f"  saves: [{', '.join(names)}]\n" if names else ""
    return f"gradient:\n{kept}  body: |\n{indent(body, '    ')}"
