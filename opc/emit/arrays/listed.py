"""How many axes there are of which an attribute lists some, in programs over whole arrays; see `opc.ir.arrangement`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from opc.ir.arrangement import Arrangement
from opc.ir.op import Group, Op, Operand


def rank_text(op: Op, how: Arrangement, local: Mapping[str, str], keeps: str, ndim: Callable[[Operand], str]) -> str:
    """Return the Python expression of the number of axes, from an input that tells it.

    `local` has the variables of operands, `keeps` is that of the attribute that keeps axes, and `ndim` returns the expression of
    an operand's number of axes.
    """
    text = ""
    for o in sorted(op.inputs, key=lambda o: (o.optional, how.is_thinned(o))):
        given = f"{local[o.name]} is not None"
        if how.is_mixed(o) and not o.optional:
            return f"{text}{ndim(o)}"
        if how.is_mixed(o):
            text += f"{ndim(o)} if {given} else "
        elif how.is_thinned(o):
            text += f"{ndim(o)} if {keeps}{f' and {given}' if o.optional else ''} else "
    having = [next((o for o in op.inputs if o.dims == (Group(name),)), None) for name in (how.rest, how.picked)]
    ranks = [ndim(o) for o in having if o is not None]
    return text + " + ".join(ranks if len(ranks) == len(having) else ["0"])
