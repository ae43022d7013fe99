"""How large an op may grow: what passes make of a spec is bounded, so that each ends, and the user is told what grows.

Every pass takes a time that is a polynomial of the nodes it is given. Only from pass to pass, and from an op to its gradient and
on to the gradient of that, can these grow without end. The count is of nodes as often as they stand in a body, which is what is
written in the end; it is the same on every machine.
"""

from __future__ import annotations

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from opc.diagnostics import NO_SPAN, Diagnostic, Span, SpecError
from opc.ir.expr import Expr, children, size

if TYPE_CHECKING:
    from opc.ir.op import Assign

_P = ParamSpec("_P")
_R = TypeVar("_R")

MOST_DEPTH = 10_000
"""The number of Python's frames that a pass may take: a body of some hundreds of statements is one expression as deep as it is
long once temporaries are put into their uses. The stack of a thread has room for several times as many."""

MOST_NODES = 30_000
"""The number of nodes of a body beyond which an op is refused. Those of large ops, such as grid_sample in all its modes with
the gradient of its gradient, have some 5,000 on the way."""


def within_depth(compute: Callable[_P, _R], body: Span = NO_SPAN) -> Callable[_P, _R]:
    """Have a function that runs passes refuse an op that nests deeper than these can follow; `body` is where its body begins.

    Raises:
        SpecError: in place of a RecursionError.
    """

    @functools.wraps(compute)
    def run(*args: _P.args, **named: _P.kwargs) -> _R:
        # It is never lowered again, since other threads may be inside passes.
        sys.setrecursionlimit(max(sys.getrecursionlimit(), MOST_DEPTH))
        try:
            return compute(*args, **named)
        except RecursionError as error:
            message = "the body is nested too deeply: it has too many steps that are made of one another"
            hint = "make it of fewer steps, or several ops; or give the gradient (gradient: {body: ...}), or say gradient: none"
            raise SpecError([Diagnostic(message, body, hint=hint)]) from error

    return run


def check_size(name: str, body: Sequence[Assign]) -> None:
    """Refuse an op whose body has more nodes than any pass should be given.

    Raises:
        SpecError: with the line of the spec that most of them come from.
    """
    if sum(size(s.value) for s in body) > MOST_NODES:
        message = f"'{name}' grows beyond {MOST_NODES:,} terms, and most of them come from here"
        hint = "make it of fewer steps, or several ops; or give the gradient (gradient: {body: ...}), or say gradient: none"
        raise SpecError([Diagnostic(message, _source(body), hint=hint)])


def _source(body: Sequence[Assign]) -> Span:
    """Return where the line of the spec starts that most nodes come from."""
    counts: Counter[int] = Counter()
    first: dict[int, Span] = {s.span.line: s.span for s in reversed(body) if s.span.source is not None}
    for node, times in _occurrences(s.value for s in body):
        if node.span.source is not None and children(node):
            counts[node.span.line] += times
            first.setdefault(node.span.line, node.span)
    if not counts:
        return next(iter(first.values()), NO_SPAN)
    return first[min(counts, key=lambda line: (-counts[line], line))]


def _occurrences(values: Iterable[Expr]) -> Iterable[tuple[Expr, int]]:
    """Yield every node and how often it stands in the values: each is visited once, however often that is."""
    nodes: dict[int, Expr] = {}
    times: Counter[int] = Counter()
    waiting = list(values)
    for e in waiting:
        times[id(e)] += 1
    while waiting:
        e = waiting.pop()
        if id(e) not in nodes:
            nodes[id(e)] = e
            waiting += children(e)
    # A node is larger than those in it.
    for e in sorted(nodes.values(), key=size, reverse=True):
        yield e, times[id(e)]
        for c in children(e):
            times[id(c)] += times[id(e)]
