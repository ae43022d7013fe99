"""How many axes there are of which an attribute lists some, in programs over whole arrays; see `opc.ir.arrangement`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from opc.ir.arrangement import Arrangement
from opc.ir.op import Group, Op, Operand


def rank_text(op: Op, how: Arrangement, local: Mapping[str, str], keeps: str, axes: str, ndim: Callable[[Operand], str]) -> str:
    """Return the Python expression of the number of axes, from an input that tells it; of None where none that is given does.

    `local` has the variables of operands, `keeps` and `axes` are those of the attributes that keep axes and list them, and `ndim`
    returns the expression of an operand's number of axes.
    """
    if how.slots:
        having = sorted((o for o in op.inputs if Group(how.rest) in o.dims), key=lambda o: o.optional)
        more = [len(how.slots) + 1 - len(o.dims) for o in having]
        return _first_told(having, [f"{ndim(o)} + {n}" if n else ndim(o) for o, n in zip(having, more)], local)
    if how.permutes:
        having = sorted((o for o in op.inputs if Group(how.picked) in o.dims), key=lambda o: o.optional)
        more = [1 - len(o.dims) for o in having]
        return _first_told(having, [f"{ndim(o)} - {-n}" if n else ndim(o) for o, n in zip(having, more)], local)
    text = ""
    for o in sorted(op.inputs, key=lambda o: (o.optional, how.is_thinned(o))):
        given = f"{local[o.name]} is not None"
        if how.is_mixed(o) and not o.optional:
            return f"{text}{ndim(o)}"
        if how.is_mixed(o):
            text += f"{ndim(o)} if {given} else "
        elif how.is_thinned(o):
            text += f"{ndim(o)} if {keeps}{f' and {given}' if o.optional else ''} else "
    given_first = sorted(op.inputs, key=lambda o: o.optional)
    rest, picked = (next((o for o in given_first if o.dims == (Group(name),)), None) for name in (how.rest, how.picked))
    if rest is None or picked is None:
        return f"{text}None"
    # Without it there are the axes that are listed.
    listed = f"({ndim(picked)} if {local[picked.name]} is not None else len({axes}))" if picked.optional else ndim(picked)
    return f"{text}{ndim(rest)} + {listed}"


def _first_told(having: Sequence[Operand], ranks: Sequence[str], local: Mapping[str, str]) -> str:
    """Return the rank that the first operand tells which is given, of operands with the optional ones last."""
    told = [f"{rank} if {local[o.name]} is not None else " if o.optional else rank for o, rank in zip(having, ranks)]
    sure = next((n for n, o in enumerate(having) if not o.optional), None)
    return "".join([*told, "None"] if sure is None else told[: sure + 1])
