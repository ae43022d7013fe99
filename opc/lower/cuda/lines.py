"""Points along one entry of the target that a thread goes through: what is the same for all of them is found once."""

from __future__ import annotations

from collections.abc import Sequence

from opc.ir.expr import Expr
from opc.loops.nodes import Accumulate, Body, Do, How, Let, Loop, Statement, Store, Var, statements, values_of
from opc.loops.values import Local, call, number, variable, variables
from opc.lower.build.context import NEST
from opc.records import replace


def along_entry(places: Sequence[Let], entry: int, body: Body, first: str) -> Body:
    """Return the body of a point, behind the places of it, as one for several points along an entry, of which `first` is one."""
    own = places[entry]
    ahead, each = _parted(body, own.name)
    loop = Loop(How.ROLLED, own.name, variable(first), call("end_of_line", NEST, variable(first), number(entry)), each)
    return (*(replace(p, name=first) if p is own else p for p in places), *ahead, loop)


def _parted(body: Body, index: str) -> tuple[Body, Body]:
    """Return the statements of a body that do the same whatever an index is, and the others."""
    varies = {index}
    while True:
        before, later = len(varies), set[str]()
        for s in body:
            changed, used = _changed(s), _used(s)
            # What stays in the loop may not find changed what was to be changed behind it.
            if varies & (changed | used) or later & changed:
                varies |= changed
                later |= used
        if len(varies) == before:
            break
    each = tuple(s for s in body if varies & (_changed(s) | _used(s)))
    ahead = tuple(s for s in body if s not in each and isinstance(s, Let | Var | Do | Accumulate))
    return ahead, tuple(s for s in body if s not in ahead)


def _used(s: Statement) -> set[str]:
    return {name for v in values_of((s,)) for name in variables(v)}


def _changed(s: Statement) -> set[str]:
    """Return the variables that a statement declares, or writes."""
    found = set[str]()
    for each in statements((s,)):
        match each:
            case Let(name=name) | Var(name=name) | Loop(index=name):
                found.add(name)
            case Store(target=target) | Accumulate(target=target):
                found |= _named(target)
            case Do(call=made):
                found |= {name for a in made.args if isinstance(a, Local) and a.index is None for name in _named(a)}
    return found


def _named(e: Expr) -> set[str]:
    return {e.name} if isinstance(e, Local) else set(variables(e))
