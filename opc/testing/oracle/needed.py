"""Which statements of an op the outputs that are wanted need, and which of these only on sides that a call rules out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from opc.analysis.patterns import is_uniform
from opc.ir.expr import Call, Expr, Read, Select, children, reads
from opc.ir.op import Op

Decided = Callable[[Expr], bool | None]
"""What a condition that is the same at every point is in a call; None where rounding may decide it."""


def needed(op: Op, outputs: Collection[str], decided: Decided | None = None) -> set[str]:
    """Return the operands that statements read for some outputs; if `decided` gives the conditions that are the same in a whole
    call, but for what these rule out."""
    found, waiting = set(outputs), list(outputs)
    while waiting:
        statement = op.assignments.get(waiting.pop())
        if statement is not None:
            value = statement.value
            new = {r.operand for r in (reads(value) if decided is None else _counting(value, decided))} - found
            found |= new
            waiting += new
    return found


def _counting(e: Expr, decided: Decided) -> Iterator[Read]:
    match e:
        case Select() if (held := _held(e.cond, decided)) is not None:
            yield from _counting(e.cond, decided)
            yield from _counting(e.then if held else e.other, decided)
        case Call(fn="and" | "or", args=(first, _)) if _held(first, decided) is (e.fn == "or"):
            yield from _counting(first, decided)
        case _:
            if isinstance(e, Read):
                yield e
            for part in children(e):
                yield from _counting(part, decided)


def _held(e: Expr, decided: Decided) -> bool | None:
    """Return what a condition is at every point, None where that is not known."""
    if is_uniform(e):
        return decided(e)
    match e:
        case Call(fn="not", args=(inner,)):
            held = _held(inner, decided)
            return None if held is None else not held
        case Call(fn="and" | "or", args=args):
            ends = e.fn == "or"
            parts = [_held(a, decided) for a in args]
            return ends if ends in parts else None if None in parts else not ends
        case _:
            return None
