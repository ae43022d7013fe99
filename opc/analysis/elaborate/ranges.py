"""The range of each index variable, from where it is used bare.

An index takes its range from a bare use `x[i]`, from the declared output it indexes, or from `p:extent`; nothing is guessed
beyond that. Uses that disagree are an error naming both, but for an axis of the output that is known to be no longer than the
axes that are read: the output says how far its index runs. A bare use inside `pad`, on a side of a conditional or behind `and` or
`or` counts only when there is no other: such a read is meant to fall outside, or stands only where its condition holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from opc.analysis.elaborate.scope import Scope
from opc.diagnostics import Diagnostic, Diagnostics, Severity, Span
from opc.ir.affine import Affine, Dim
from opc.lang.tree import (
    Apply,
    AxisRange,
    Conditional,
    Dots,
    Item,
    Literal,
    Name,
    Operation,
    ReductionCall,
    Star,
    Statement,
    Subscript,
    parts,
)
from opc.records import dataclass


@dataclass(frozen=True, slots=True)
class Use:
    """A bare use of an index on an axis of size `extent`; `loose` when it stands in `pad` or only where a condition holds."""

    extent: Affine
    span: Span
    loose: bool


def bare_uses(name: str, tree: Item, scope: Scope, loose: bool = False, padded: bool = False) -> Iterator[Use]:
    """Yield every bare use of the index `name` in `tree`, in the order written; `padded` where it is the read of a `pad`."""
    if isinstance(tree, Apply) and tree.fn.id == "pad" and tree.args and isinstance(tree.args[0], Subscript):
        yield from bare_uses(name, tree.args[0], scope, loose, True)
        for other in tree.args[1:]:
            yield from bare_uses(name, other, scope, loose)
        return
    if isinstance(tree, Conditional):
        yield from bare_uses(name, tree.then, scope, True)
        yield from bare_uses(name, tree.cond, scope, loose)
        yield from bare_uses(name, tree.other, scope, True)
        return
    if isinstance(tree, Operation) and tree.op in ("and", "or"):
        first, *others = tree.args
        yield from bare_uses(name, first, scope, loose)
        for other in others:
            yield from bare_uses(name, other, scope, True)
        return
    if isinstance(tree, Subscript):
        operand = scope.operands.get(tree.base.id) if isinstance(tree.base, Name) else None
        if operand is not None and len(operand.dims) == len(tree.items):
            for item, dim in zip(tree.items, operand.dims):
                if isinstance(item, Name) and item.id == name and isinstance(dim, Affine):
                    yield Use(dim, tree.span, loose or padded)
        if isinstance(tree.base, ReductionCall):
            size = _ordered_size(tree.base, scope)
            if size is not None and any(isinstance(item, Name) and item.id == name for item in tree.items):
                yield Use(size, tree.span, loose or padded)
            yield from bare_uses(name, tree.base, scope, loose)
        for item in tree.items:
            # A read inside an index is a read of its own: it is not the padded one, but as loose as what it stands in.
            yield from bare_uses(name, item, scope, loose)
        return
    for part in parts(tree):
        if not isinstance(part, Dots | Star):
            yield from bare_uses(name, part, scope, loose)


def _ordered_size(tree: ReductionCall, scope: Scope) -> Affine | None:
    """Return the size of the axis that is ordered: that of a bare use of its index, or that which is stated as one dimension."""
    match tree.axes:
        case (Name(id=index),):
            return next((use.extent for use in bare_uses(index, tree.body, scope)), None)
        case (AxisRange(extent=Name(id=size)),) if size in scope.dims:
            return Affine.of(Dim(size))
        case _:
            return None


def _size_to_show(name: str, trees: Iterable[Item], scope: Scope) -> str:
    """Return the size that a hint proposes for the range of an index.

    It is that of an axis that is read at an expression of the index, best of it alone; else of one on which an index of this name
    stands elsewhere in the body, best of one that is called like the index; else the one that is called so, else any.
    """
    along = [found for tree in trees for found in _axes_along(name, tree, scope)]
    candidates = [
        *(size for size, others in along if not others),
        *(size for size, _ in along),
        *sorted(scope.usual(name), key=lambda size: str(size) != name.upper()),
        *([name.upper()] if name.upper() in scope.dims else scope.dims),
    ]
    return str(next(iter(candidates), 3))


def _axes_along(name: str, tree: Item, scope: Scope) -> Iterator[tuple[Affine, set[str]]]:
    """Yield the sizes of axes that are read at an expression of the index `name`, each with its other indices, as written."""
    if isinstance(tree, Subscript):
        operand = scope.operands.get(tree.base.id) if isinstance(tree.base, Name) else None
        if operand is not None and len(operand.dims) == len(tree.items):
            for item, dim in zip(tree.items, operand.dims):
                if isinstance(dim, Affine) and name in (found := _indices(item, scope)):
                    yield dim, found - {name}
    for part in parts(tree):
        yield from _axes_along(name, part, scope)


def _indices(tree: Item, scope: Scope) -> set[str]:
    """Return the names in an index that may be index variables, without those that only tell where another operand is read."""
    if isinstance(tree, Name):
        return set() if tree.id in scope.dims or tree.id in scope.attributes or tree.id in scope.bound else {tree.id}
    return set() if isinstance(tree, Subscript) else set().union(*(_indices(part, scope) for part in parts(tree)))


def _reads_poisoned(tree: Item, scope: Scope) -> bool:
    """Whether an operand is read that a mistake which was reported hides: it may tell how far an index runs."""
    return (isinstance(tree, Name) and tree.id in scope.poisoned) or any(_reads_poisoned(part, scope) for part in parts(tree))


def _names_element(name: str, tree: Item, scope: Scope) -> bool:
    """Whether an index stands for the number of a list attribute's element, which is a mistake of its own."""
    if isinstance(tree, Subscript) and isinstance(tree.base, Name) and tree.base.id in scope.attributes:
        return any(name in _indices(item, scope) for item in tree.items)
    return any(_names_element(name, part, scope) for part in parts(tree))


def infer_ranges(
    index: Name,
    trees: Iterable[Item],
    scope: Scope,
    found: Diagnostics,
    stated: str,
    declared: tuple[Affine, Span] | None = None,
) -> Affine | None:
    """Return the extent of an index variable; None, recorded, when there is none or uses disagree.

    `stated` is how the index is written with a range of its own, with `{}` for it: `sum[{}](...)`. `declared` is the axis of the
    declared output that the index stands on, and where that is.
    """
    trees = tuple(trees)
    uses = [u for tree in trees for u in bare_uses(index.id, tree, scope)]
    firm = [u for u in uses if not u.loose]
    if declared is not None:
        firm.insert(0, Use(declared[0], declared[1], False))
    if not firm:
        firm = [u for u in uses if u.loose]
    if not firm and (
        scope.lenient or any(_reads_poisoned(tree, scope) or _names_element(index.id, tree, scope) for tree in trees)
    ):
        return None
    if not firm:
        which = stated.format(f"{index.id}:{_size_to_show(index.id, trees, scope)}")
        hint = f"say how far it runs: {which}, or use it bare, as in x[{index.id}]"
        found.error(f"the index '{index.id}' has no range", index.span, hint)
        return None
    first = firm[0]
    for use in firm[1:]:
        if declared is not None and scope.at_most(first.extent, use.extent):
            continue
        if scope.expand(use.extent) != scope.expand(first.extent):
            if scope.broken_dims & {a.name for e in (first.extent, use.extent) for a in e.atoms() if isinstance(a, Dim)}:
                return None
            # A size of 1 that is read bare stays an error too: broadcasting is never implied for named axes.
            note = Diagnostic(f"'{index.id}' runs over {first.extent} here", first.span, severity=Severity.NOTE)
            message = f"the index '{index.id}' runs over {first.extent} and over {use.extent}"
            if use.extent == Affine.of(1):
                hint = f"an axis of size 1 is read at its one place: 0 in place of {index.id}"
            elif declared is not None:
                known = f"require: [{first.extent} <= {use.extent}] where that is so"
                hint = f"use two indices, pad(...) where the read may fall outside, or {known}"
            else:
                which = stated.format(f"{index.id}:{first.extent}")
                hint = f"use two indices, or say which of the two it is: {which}; what is longer is read as far as that"
            found.error(message, use.span, hint, [note])
            return None
    return first.extent


def as_stated(s: Statement, index: Name) -> str:
    """Return the target of a statement as an example, with `{}` for one of its indices."""
    items = ("{}" if item is index else _shown(item) for item in s.items or ())
    return f"{s.target.id}[{', '.join(items)}] = ..."


def _shown(item: Item) -> str:
    match item:
        case Name():
            return item.id
        case Star():
            return f"*{item.name}"
        case AxisRange(name, Name(extent) | Literal(extent)):
            return f"{name.id}:{extent}"
        case AxisRange(name):
            return f"{name.id}:..."
        case _:
            return "..."
