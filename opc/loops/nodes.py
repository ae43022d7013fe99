"""The loop IR's statements, of which `statements` has the nodes, and how passes walk and rebuild them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any

from opc.ir.expr import STATEMENTS, Expr, is_same, traits, walk
from opc.loops.statements import (
    Accumulate,
    Alias,
    Body,
    Buffer,
    CallWithBody,
    Comment,
    Continue,
    Do,
    Form,
    GroupPoints,
    How,
    If,
    Kernel,
    Let,
    LocalFunction,
    Loop,
    PassGroup,
    Refuse,
    Return,
    Search,
    Statement,
    Store,
    Var,
    View,
    While,
    Yield,
)
from opc.loops.value_nodes import Block
from opc.records import replace

__all__ = [
    "Accumulate",
    "Alias",
    "Body",
    "Buffer",
    "CallWithBody",
    "Comment",
    "Continue",
    "Do",
    "Form",
    "GroupPoints",
    "How",
    "If",
    "Kernel",
    "Let",
    "LocalFunction",
    "Loop",
    "PassGroup",
    "Refuse",
    "Return",
    "Search",
    "Statement",
    "Store",
    "Var",
    "View",
    "While",
    "Yield",
    "bodies",
    "declared_in",
    "map_values",
    "outline",
    "own_values",
    "statements",
    "values_of",
    "with_bodies",
    "with_own_values",
    "with_values",
    "without_comments",
]

_VALUES: Mapping[type, Callable[[Any], tuple[Expr, ...]]] = {
    Let: lambda s: (s.value,),
    Var: lambda s: () if s.value is None else (s.value,),
    Yield: lambda s: (s.value,),
    Store: attrgetter("target", "value"),
    Accumulate: attrgetter("target", "value"),
    Search: lambda s: (s.best, *s.positions, *s.numbers, s.value),
    Loop: lambda s: (s.low, s.high) if s.step is None else (s.low, s.high, s.step),
    GroupPoints: attrgetter("over"),
    While: lambda s: (s.cond,),
    If: lambda s: (s.cond,),
    Do: lambda s: (s.call,),
    CallWithBody: lambda s: (s.call,),
    Refuse: attrgetter("cond", "report"),
    LocalFunction: lambda s: () if s.result is None else (s.result,),
}
"""What returns the values that a statement of each class computes itself: asked of every statement by every pass."""

_WITH_VALUES: Mapping[type, Callable[[Any, Sequence[Any]], Statement]] = {
    Let: lambda s, new: Let(s.name, s.kind, new[0]),
    Var: lambda s, new: Var(s.name, s.kind, new[0]),
    Yield: lambda s, new: Yield(new[0]),
    Store: lambda s, new: Store(new[0], new[1]),
    Accumulate: lambda s, new: Accumulate(new[0], s.kind, new[1], s.by),
    Search: lambda s, new: _search_with(s, new),
    Loop: lambda s, new: replace(s, **dict(zip(("low", "high", "step"), new))),
    GroupPoints: lambda s, new: GroupPoints(s.name, tuple(new), s.body),
    While: lambda s, new: While(new[0], s.body),
    If: lambda s, new: If(new[0], s.then, s.other, s.static),
    Do: lambda s, new: Do(new[0]),
    CallWithBody: lambda s, new: replace(s, call=new[0]),
    Refuse: lambda s, new: Refuse(new[0], new[1]),
    LocalFunction: lambda s, new: replace(s, result=new[0]),
}
"""What returns a statement of each class with other values."""


def _search_with(s: Search, new: Sequence[Any]) -> Search:
    count = len(s.positions)
    return Search(s.kind, new[0], tuple(new[1 : 1 + count]), tuple(new[1 + count : -1]), new[-1])


_BODIES: Mapping[type, Callable[[Any], tuple[Body, ...]]] = {
    Loop: lambda s: (s.body,),
    PassGroup: lambda s: (s.body,),
    GroupPoints: lambda s: (s.body,),
    While: lambda s: (s.body,),
    CallWithBody: lambda s: (s.body,),
    LocalFunction: lambda s: (s.body,),
    If: attrgetter("then", "other"),
}
"""What returns the bodies inside a statement of each class."""


def bodies(s: Statement) -> tuple[Body, ...]:
    """Return the bodies inside a statement."""
    get = _BODIES.get(s.__class__)
    return () if get is None else get(s)


def with_bodies(s: Statement, new: tuple[Body, ...]) -> Statement:
    """Return a statement with other bodies, in the order of `bodies`."""
    if not new:
        return s
    if isinstance(s, If):
        then, other = new
        same = _is_same_body(s.then, then) and _is_same_body(s.other, other)
        return s if same else If(s.cond, then, other, s.static)
    (body,) = new
    return s if _is_same_body(s.body, body) else replace(s, body=body)  # type: ignore[union-attr, arg-type]  # `_BODIES` has one of it


def _is_same_body(old: Body, new: Body) -> bool:
    return len(old) == len(new) and is_same(old, new)


def own_values(s: Statement) -> tuple[Expr, ...]:
    """Return the values that a statement computes itself, those in its bodies aside."""
    get = _VALUES.get(s.__class__)
    return () if get is None else get(s)


def with_own_values(s: Statement, new: tuple[Any, ...]) -> Statement:
    """Return a statement with other values, in the order of `own_values`."""
    if not new or is_same(new, _VALUES[s.__class__](s)):
        return s
    return _WITH_VALUES[s.__class__](s, new)


def values_of(body: Body) -> tuple[Expr, ...]:
    """Return every value in a body, in the order in which they stand."""
    found: list[Expr] = []
    _collect(body, found)
    return tuple(found)


def _collect(body: Body, found: list[Expr]) -> None:
    for s in body:
        cls = s.__class__
        get = _VALUES.get(cls)
        if get is not None:
            found += get(s)
        inside = _BODIES.get(cls)
        if inside is not None:
            for inner in inside(s):
                _collect(inner, found)


def with_values(body: Body, new: tuple[Expr, ...]) -> Body:
    """Return a body with other values, in the order of `values_of`."""
    rest = iter(new)
    return map_values(body, lambda _: next(rest))


def statements(body: Body) -> Iterator[Statement]:
    """Yield every statement of a body, outer ones first."""
    waiting = list(body[::-1])
    while waiting:
        s = waiting.pop()
        yield s
        inside = _BODIES.get(s.__class__)
        if inside is not None:
            for inner in inside(s)[::-1]:
                waiting += inner[::-1]


_DECLARED: Mapping[type, Callable[[Any], tuple[str, ...]]] = {
    **dict.fromkeys((Let, Var, Buffer, GroupPoints), lambda s: (s.name,)),
    Loop: lambda s: (s.index,),
    LocalFunction: lambda s: (s.name, *(name for _, name in s.params)),
    CallWithBody: lambda s: tuple([name for _, name in s.params]),
}
"""What returns the variables that a statement of each class declares, for itself or the bodies in it."""


def declared_in(body: Body) -> list[str]:
    """Return the variables that are declared in a body, those of values' own statements among them."""
    found: list[str] = []
    _collect_declared(body, found)
    return found


def _collect_declared(body: Body, found: list[str]) -> None:
    for s in body:
        cls = s.__class__
        names, values, inside = _DECLARED.get(cls), _VALUES.get(cls), _BODIES.get(cls)
        if names is not None:
            found += names(s)
        if values is not None:
            for v in values(s):
                if traits(v) & STATEMENTS:
                    for e in walk(v):
                        if isinstance(e, Block):
                            _collect_declared(e.body, found)
        if inside is not None:
            for inner in inside(s):
                _collect_declared(inner, found)


def outline(body: Body) -> tuple[type, ...]:
    """Return the classes of a body's statements but comments, outer ones first, each before those of its values: bodies that
    differ mostly differ in these."""
    found: list[type] = []
    _collect_classes(body, found)
    return tuple(found)


def _collect_classes(body: Body, found: list[type]) -> None:
    for s in body:
        cls = s.__class__
        if cls is Comment:
            continue
        found.append(cls)
        values, inside = _VALUES.get(cls), _BODIES.get(cls)
        if values is not None:
            found += [v.__class__ for v in values(s)]
        if inside is not None:
            for inner in inside(s):
                _collect_classes(inner, found)


def map_values(body: Body, change: Callable[[Expr], Expr]) -> Body:
    """Return a body with `change` applied to every value that a statement computes, in the order of `values_of`."""
    found: list[Statement] = []
    for s in body:
        cls = s.__class__
        get = _VALUES.get(cls)
        if get is not None:
            old = get(s)
            new = [change(v) for v in old]
            if not is_same(old, new):
                s = _WITH_VALUES[cls](s, new)
        inside = _BODIES.get(cls)
        if inside is not None:
            s = with_bodies(s, tuple([map_values(b, change) for b in inside(s)]))
        found.append(s)
    return tuple(found)


def without_comments(kernel: Kernel) -> Kernel:
    """Return a function without what does not change how it computes: comments, and what its target is called."""

    def plain(body: Body) -> Body:
        return tuple(with_bodies(s, tuple(map(plain, bodies(s)))) for s in body if not isinstance(s, Comment))

    forms = tuple(replace(f, kernel=without_comments(f.kernel)) for f in kernel.forms)
    named = ("",) * len(kernel.operands) if kernel.form == "tile" else (*kernel.operands[:-1], "")
    return replace(kernel, body=plain(kernel.body), operands=named, forms=forms)
