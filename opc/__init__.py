"""opc: describe an op once, get a proven kernel, gradient and binding for every framework.

`load` turns a spec into a function; everything else is behind the command `opc`. Importing this package is cheap: what a name
needs is imported when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opc.api import LoadedOp, load
    from opc.diagnostics import Diagnostic, SpecError
    from opc.overloads import RankedOp, VariadicOp

__version__ = "0.1.0"

__all__ = ["Diagnostic", "LoadedOp", "RankedOp", "SpecError", "VariadicOp", "__version__", "load"]

_HOME = {
    "Diagnostic": "opc.diagnostics",
    "LoadedOp": "opc.api",
    "RankedOp": "opc.overloads",
    "SpecError": "opc.diagnostics",
    "VariadicOp": "opc.overloads",
    "load": "opc.api",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'opc' has no attribute '{name}'")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
