"""Index variables: fresh names, capture-avoiding substitution, and the loops around an expression."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from opc.ir.affine import Affine, Dim, Index, Symbol
from opc.ir.expr import (
    Axis,
    Expr,
    GroupRef,
    Present,
    Read,
    Reduce,
    ReduceAxis,
    children,
    free_indices,
    map_affine,
    rewrite,
    walk,
    with_children,
)
from opc.ir.op import Assign, Group, Op, Operand

INDEX_NAMES = "ijklmnpqrstuvw"
"""Short names for index variables that a transformation introduces."""


class Namer:
    """Hands out names that nothing else in the op has."""

    def __init__(self, taken: Iterable[str]) -> None:
        self.taken = set(taken)

    def fresh(self, *wanted: str) -> str:
        """Return the first wanted name that is free, else the last one with a number, and take it."""
        for name in wanted:
            if name not in self.taken:
                self.taken.add(name)
                return name
        n = 2
        while f"{wanted[-1]}{n}" in self.taken:
            n += 1
        self.taken.add(f"{wanted[-1]}{n}")
        return f"{wanted[-1]}{n}"


def op_names(op: Op) -> set[str]:
    """Return every name an index variable or a new operand must keep clear of: operands, attributes, dimensions, types."""
    names = {o.name for o in (*op.inputs, *op.outputs, *op.temporaries)}
    names |= {a.name for a in op.attributes} | {t.name for t in op.types} | {name for name, _ in op.dims}
    for o in (*op.inputs, *op.outputs, *op.temporaries):
        for d in o.dims:
            if isinstance(d, Group):
                names.add(d.name)
            else:
                names |= {a.name for a in d.atoms() if isinstance(a, Dim)}
    return names


def bound_indices(e: Expr) -> set[str]:
    """Return the index variables that reductions in `e` bind."""
    return {a.index for node in walk(e) if isinstance(node, Reduce) for a in node.axes if isinstance(a, Axis)}


def statement_indices(s: Assign) -> set[str]:
    """Return every index variable of a statement, bound by the target or by a reduction."""
    return {i for i in s.indices if isinstance(i, str)} | bound_indices(s.value)


def index_names(op: Op) -> set[str]:
    """Return every index variable of the op's body."""
    return set().union(*(statement_indices(s) for s in op.body))


def substitute(e: Expr, values: Mapping[str, Affine]) -> Expr:
    """Return `e` with free index variables replaced by affine expressions; what would capture them is renamed."""
    values = {name: v for name, v in values.items() if v.index != name}
    if not values or not values.keys() & free_indices(e):
        return e
    if isinstance(e, Reduce):
        inner = dict(values)
        incoming: set[str] = set().union(*(v.indices() for v in values.values()))
        namer = Namer(incoming | bound_indices(e) | free_indices(e) | values.keys())
        axes: list[ReduceAxis] = []
        for a in e.axes:
            if not isinstance(a, Axis):
                axes.append(a)
                continue
            inner.pop(a.index, None)
            name = namer.fresh(*INDEX_NAMES) if a.index in incoming else a.index
            if name != a.index:
                inner[a.index] = Affine.of(Index(name))
            # The extent may use variables bound outside, and axes of the same reduction before this one.
            axes.append(Axis(name, _replace(a.extent, inner)))
        return replace(e, axes=tuple(axes), body=substitute(e.body, inner))
    if not children(e):
        return map_affine(e, lambda a: _replace(a, values))
    rebuilt = with_children(e, tuple(substitute(c, values) for c in children(e)))
    if isinstance(rebuilt, Read):
        indices = tuple(_replace(i, values) if isinstance(i, Affine) else i for i in rebuilt.indices)
        return replace(rebuilt, indices=indices)
    return rebuilt


def _replace(a: Affine, values: Mapping[str, Affine]) -> Affine:
    def value(symbol: Symbol) -> Affine | None:
        return values.get(symbol.name) if isinstance(symbol, Index) else None

    return a.substitute(value)


def rename(e: Expr, names: Mapping[str, str]) -> Expr:
    """Return `e` with free index variables renamed."""
    return substitute(e, {old: Affine.of(Index(new)) for old, new in names.items()})


def rename_bound(e: Expr, namer: Namer) -> Expr:
    """Return `e` with every index variable that a reduction binds given a name `namer` has not handed out yet."""
    free = free_indices(e)
    namer.taken |= free
    return _renamed(e, namer, free | bound_indices(e))


def _renamed(e: Expr, namer: Namer, used: set[str]) -> Expr:
    """As `rename_bound`; a new name must not be one of `used` either, since a reduction around `e` may bind that."""
    new = with_children(e, tuple(_renamed(c, namer, used) for c in children(e)))
    if not isinstance(new, Reduce):
        return new
    names: dict[str, str] = {}
    for a in new.axes:
        if isinstance(a, Axis):
            wanted = a.index if a.index not in namer.taken else Namer(namer.taken | used).fresh(*INDEX_NAMES)
            namer.taken.add(wanted)
            names[a.index] = wanted
    values = {old: Affine.of(Index(n)) for old, n in names.items()}
    axes = tuple(Axis(names[a.index], _replace(a.extent, values)) if isinstance(a, Axis) else a for a in new.axes)
    return replace(new, axes=axes, body=substitute(new.body, values))


def rename_operands(op: Op, names: Mapping[str, str]) -> Op:
    """Return the op with operands renamed in declarations and in the body; no new name may be in use."""
    if not names:
        return op

    def rule(e: Expr) -> Expr:
        match e:
            case Read() | Present():
                return replace(e, operand=names.get(e.operand, e.operand))
            case _:
                return e

    def operands(group: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(replace(o, name=names.get(o.name, o.name)) for o in group)

    body = tuple(replace(s, target=names.get(s.target, s.target), value=rewrite(s.value, rule)) for s in op.body)
    return replace(op, inputs=operands(op.inputs), outputs=operands(op.outputs), temporaries=operands(op.temporaries), body=body)


def bare(indices: Iterable[str | GroupRef]) -> tuple[Affine | GroupRef, ...]:
    """Return the indices of an assignment's target as the indices of a read."""
    return tuple(Affine.of(Index(i)) if isinstance(i, str) else i for i in indices)
