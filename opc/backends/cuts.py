"""How generated Python says the ways to cut an op over devices: the shapes of its operands in words, and a way's arguments."""

from __future__ import annotations

from collections.abc import Callable

from opc.analysis.sharding import Sharding
from opc.emit.python.text import quoted, tuple_of
from opc.ir.affine import Affine
from opc.ir.arrangement import arrangement
from opc.ir.op import Group, Op, Operand


def way_items(s: Sharding, names: list[str]) -> list[str]:
    """Return the arguments of a `Way`; `names` are those of the op's inputs."""
    items = [quoted(s.along), quoted(" ".join(p.value for p in s.inputs)), quoted(" ".join(p.value for p in s.outputs))]
    for word, chosen in (("given", s.given), ("absent", s.absent)):
        if chosen:
            places = [str(names.index(n)) for n in chosen]
            items.append(f"{word}=({', '.join(places)}{',' if len(places) == 1 else ''})")
    return items


def listing(op: Op, name: Callable[[str], str]) -> list[str]:
    """Return the elements of the `listed` of a `Rule`, where `name` writes an attribute; none of an op that lists no axes."""
    how = arrangement(op)
    if how is None or how.slots or how.permutes:
        return []
    groups = [quoted(str(Group(g))) for g in (how.rest, how.picked)]
    return [name(how.axes), *groups, "None" if how.keeps is None else name(how.keeps)]


def placing(op: Op, name: Callable[[str], str]) -> list[str]:
    """Return the elements of the `placed` of a `Rule`; none of an op without attributes that place axes of a group."""
    how = arrangement(op)
    if how is None or not how.slots:
        return []
    names = tuple_of([name(a) for a in how.attributes]).render()
    dims = tuple_of([quoted(dim) for _, dim in how.slots]).render()
    return [quoted(str(Group(how.rest))), names, dims]


def permuting(op: Op, name: Callable[[str], str]) -> list[str]:
    """Return the elements of the `permuted` of a `Rule`; none of an op without a permutation."""
    how = arrangement(op)
    return [] if how is None or not how.permutes else [name(how.axes), quoted(str(Group(how.picked)))]


def _with_group(op: Op, group: Group) -> int:
    """Return the position of the first input that has a group of its own like this."""
    return next(n for n, o in enumerate(op.inputs) if group in o.dims)


def shape_words(operand: Operand, op: Op) -> str:
    """Return the entries of a shape, separated by blanks; a size that is computed is written as one word.

    The own group of an input that broadcasts is written `...` for the input, `...@2` where an output has the group of input 2.
    That of a permuted operand is `*R~`.
    """
    words = []
    for d in operand.dims:
        if isinstance(d, Affine):
            words.append(str(d).replace(" ", ""))
        else:
            text = d.name if d.name == "..." else f"*{d.name}"
            text += "~" if operand.permuted else ""
            own = d.of is not None and operand.name not in [o.name for o in op.inputs]
            words.append(f"{text}@{_with_group(op, d)}" if own else text)
    return " ".join(words)
