"""The spec that `opc new` writes: small, whole, and telling what can be changed."""

from __future__ import annotations

from opc.diagnostics import Diagnostic, SpecError
from opc.names import op_name
from opc.spec.schema import EDITOR_LINE
from opc.spec.text import op_name_problem

_TEMPLATE = """\
{editor_line}
op: {name}
domain: {domain}
version: 1
doc: x where x >= 0, alpha * x elsewhere.

# Type variables and the dtypes each may stand for: a list, or floating, integer, any.
types: {{T: floating}}

# name: type[shape]. ... is any number of axes; a name such as D is one axis; `b?: T[D]` may be left out.
inputs:
  x: T[...]

attributes:
  alpha: {{type: float, default: 0.01, check: alpha >= 0, doc: Slope below zero.}}

outputs:
  y: T[...]

# Index notation: y[i] = x[i] + 1; sum[j](x[..., j]); bare names mean all their axes.
kernel: |
  y = x if x >= 0 else alpha * x

# The gradient is derived. Values that must come out, run by `opc test`:
examples:
  - {{x: [1.0, -2.0], y: [1.0, -0.02]}}
"""


def new_spec(name: str, domain: str = "opc.nn") -> str:
    """Return the text of a first spec for an op called `name`.

    Raises:
        SpecError: when nothing can be called that.
    """
    problem = op_name_problem(op_name(name))
    if problem is not None:
        raise SpecError([Diagnostic(f"'{name}' can't name an op: {problem}")])
    return _TEMPLATE.format(editor_line=EDITOR_LINE, name=name, domain=domain)
