"""Immutable nodes that remember what was once computed of them.

Expressions are built once and asked often: for their hash by every table they stand in, for their free indices by every pass.
What is computed of a node is computed once, from what its parts remember, so that a question costs the same however large it is.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

_A = TypeVar("_A")
_C = TypeVar("_C", bound="type[Node]")
_N = TypeVar("_N")
_R = TypeVar("_R")


class Node:
    """The base of frozen dataclasses whose instances remember; none of it takes part in comparison, printing or copying."""

    __slots__ = (
        "_alone",
        "_asked",
        "_assignments",
        "_atoms",
        "_attributes",
        "_bound",
        "_canonical",
        "_chooses",
        "_form",
        "_groups",
        "_hash",
        "_indices",
        "_knowledge",
        "_literals",
        "_minima",
        "_names",
        "_operands",
        "_order",
        "_positive",
        "_reads",
        "_reduces",
        "_settled",
        "_simpler",
        "_size",
        "_text",
    )


def remembered(slot: str) -> Callable[[Callable[[_N], _R]], Callable[[_N], _R]]:
    """Have a function of a node compute its answer once for each node, kept in a slot of `Node`."""
    place = Node.__dict__[slot]
    get, put = place.__get__, place.__set__

    def decorate(compute: Callable[[_N], _R]) -> Callable[[_N], _R]:
        @functools.wraps(compute)
        def ask(node: _N) -> _R:
            try:
                found: _R = get(node)
            except AttributeError:
                found = compute(node)
                put(node, found)
            return found

        return ask

    return decorate


def remembered_each(slot: str) -> Callable[[Callable[[_N, _A], _R]], Callable[[_N, _A], _R]]:
    """As `remembered`, of a question about a node and one thing more: the answers are kept in a table in the node."""
    place = Node.__dict__[slot]
    get, put = place.__get__, place.__set__

    def decorate(compute: Callable[[_N, _A], _R]) -> Callable[[_N, _A], _R]:
        @functools.wraps(compute)
        def ask(node: _N, about: _A) -> _R:
            try:
                table: dict[_A, _R] = get(node)
            except AttributeError:
                table = {}
                put(node, table)
            if about not in table:
                table[about] = compute(node, about)
            return table[about]

        return ask

    return decorate


def remembering(cls: _C) -> _C:
    """Have the instances of a frozen dataclass hash their parts once, and compare unequal by these hashes."""
    by_fields: Callable[[Any, object], bool] = cls.__eq__
    by_hash: Callable[[Any], int] = cls.__hash__
    own_hash = remembered("_hash")(by_hash)
    known_hash = Node.__dict__["_hash"].__get__

    def equal(self: Any, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return False
        try:
            differ = known_hash(self) != known_hash(other)
        except AttributeError:
            differ = own_hash(self) != own_hash(other)
        return not differ and by_fields(self, other)

    for name, method in (("__hash__", own_hash), ("__eq__", equal)):
        setattr(cls, name, method)
    return cls
