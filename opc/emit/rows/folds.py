"""The C++ types of reductions along a row."""

from __future__ import annotations

from opc.emit.cpp.expressions import c_compute
from opc.ir.dtypes import is_floating
from opc.ir.expr import Call, Const, Expr
from opc.lower.loop_ir import Fold
from opc.lower.rows.passes import EXPENSIVE


def is_slow(e: Expr) -> bool:
    """Whether an operation takes longer than adding up; a power by a literal is a few products."""
    return isinstance(e, Call) and e.fn in EXPENSIVE and not (e.fn == "pow" and isinstance(e.args[1], Const))


def partial(f: Fold) -> str:
    """Return the C++ type of a fold's partial results."""
    kind = c_compute(f.type)
    return f"opc::key<{kind}>" if f.kind in ("max", "min") and not is_extreme(f) else kind


def is_extreme(f: Fold) -> bool:
    """Whether a fold is a maximum or minimum that looks for NaNs beside."""
    return f.kind in ("max", "min") and is_floating(f.type)


def parameter(f: Fold) -> str:
    """Return a fold's partial result as a parameter of a step."""
    extreme = f"const opc::extreme<opc::joins_{f.kind}, {partial(f)}> {f.name}"
    return extreme if is_extreme(f) else f"{partial(f)} &{f.name}"


def fold_type(f: Fold, lanes: str) -> str:
    """Return the C++ type of a fold with `lanes` partial results."""
    return f"opc::{'row_extreme' if is_extreme(f) else 'row_fold'}<opc::joins_{f.kind}, {partial(f)}, {lanes}>"


def lanes(folds: list[Fold]) -> str:
    """Return how many partial results each fold of a loop has."""
    return f"opc::count_lanes<{', '.join(dict.fromkeys(map(partial, folds)))}>()"
