"""Immutable nodes: hash-consed, and with what was once computed of them kept in them.

Expressions are built once and asked often: for their hash by every table they stand in, for their free indices by every pass.
What is computed of a node is computed once, from what its parts remember, so that a question costs the same however large it is.
Of an interned class there is one instance for each value, so that to compare two is to compare their addresses.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from threading import RLock
from typing import Any, ClassVar, Concatenate, ParamSpec, TypeVar, cast

_A = TypeVar("_A")
_C = TypeVar("_C", bound="type[Node]")
_D = TypeVar("_D", bound="type[Any]")
_F = TypeVar("_F", bound=Callable[..., Any])
_N = TypeVar("_N")
_P = ParamSpec("_P")
_R = TypeVar("_R")


class Node:
    """The base of frozen dataclasses whose instances remember; none of it takes part in comparison, printing or copying.

    What is asked of one kind of nodes alone has its slots in the base of that kind: there are many more nodes than questions.
    """

    __slots__ = ("__weakref__", "_hash", "_indices")

    BLANK: ClassVar[tuple[str, ...]] = ("_hash",)
    """The slots of what is asked of most nodes: they hold None at first. To find that a slot holds nothing takes long."""


class AffineNode(Node):
    """The base of affine expressions and their atoms."""

    __slots__ = (
        "_atoms",
        "_factors",
        "_minima",
        "_order",
        "_text",
    )


class ExprNode(Node):
    """The base of expressions."""

    BLANK = ("_hash", "_indices", "_offsets", "_reads", "_size", "_traits", "_variables")

    __slots__ = (
        "_asked",
        "_attributes",
        "_bound",
        "_canonical",
        "_children",
        "_decided",
        "_form",
        "_format",
        "_groups",
        "_literals",
        "_offsets",
        "_operands",
        "_reads",
        "_reductions",
        "_settled",
        "_simpler",
        "_size",
        "_sizes",
        "_symbols",
        "_touched",
        "_traits",
        "_types",
        "_variables",
    )


class OpNode(Node):
    """The base of ops."""

    __slots__ = (
        "_alone",
        "_arrangement",
        "_assignments",
        "_batching",
        "_broadcast",
        "_carried",
        "_circles",
        "_declared",
        "_knowledge",
        "_names",
        "_numpy",
        "_onnx",
        "_ordered",
        "_orderings",
        "_places",
        "_plan",
        "_positive",
        "_prepared",
        "_recurrences",
        "_segments",
        "_shape_calls",
        "_shardings",
        "_simplified",
        "_spec_names",
        "_splits",
        "_sunken",
        "_verified",
    )


_PUTS: Mapping[str, Callable[[Any, Any], None]] = {
    slot: cls.__dict__[slot].__set__ for cls in (Node, AffineNode, ExprNode, OpNode) for slot in cls.__slots__
}
"""What fills each slot."""

_UNKNOWN: Any = object()
"""What stands for an answer that a node has not been asked for: to test for it takes half the time of catching an error."""


def remembered(slot: str, often: bool = False, blank: bool = False) -> Callable[[Callable[[_N], _R]], Callable[[_N], _R]]:
    """Have a function of a node compute its answer once for each node, kept in a slot of the base of its kind.

    Of one that is asked `often` of each node, to be told again takes a third of the time, and to be told first twice as long.
    Where the slot is `blank` at first, both take a third; the answer is never None then.
    """
    put = _PUTS[slot]

    def decorate(compute: Callable[[_N], _R]) -> Callable[[_N], _R]:
        if often or blank:
            return functools.wraps(compute)(_by_name(_OFTEN if often else _BLANK, slot, compute, put))

        @functools.wraps(compute)
        def ask(node: _N) -> _R:
            found: _R = getattr(node, slot, _UNKNOWN)
            if found is _UNKNOWN:
                found = compute(node)
                put(node, found)
            return found

        return ask

    return decorate


_OFTEN = """
def ask(node):
    try:
        return node.{slot}
    except AttributeError:
        pass
    found = compute(node)
    put(node, found)
    return found
"""
_BLANK = """
def ask(node):
    found = node.{slot}
    if found is None:
        found = node.{slot} = compute(node)
    return found
"""


def _by_name(text: str, slot: str, compute: Callable[[_N], _R], put: Callable[[_N, _R], None]) -> Callable[[_N], _R]:
    """Return `compute` as a function that finds its answer by the name of the slot, which the interpreter looks up fastest."""
    scope: dict[str, Any] = {"compute": compute, "put": put}
    exec(text.format(slot=slot), scope)
    ask: Callable[[_N], _R] = scope["ask"]
    return ask


def remembered_each(slot: str) -> Callable[[Callable[[_N, _A], _R]], Callable[[_N, _A], _R]]:
    """As `remembered`, of a question about a node and one thing more: the answers are kept in a table in the node."""
    put = _PUTS[slot]

    def decorate(compute: Callable[[_N, _A], _R]) -> Callable[[_N, _A], _R]:
        @functools.wraps(compute)
        def ask(node: _N, about: _A) -> _R:
            table: dict[_A, _R] = getattr(node, slot, _UNKNOWN)
            if table is _UNKNOWN:
                table = {}
                put(node, table)
            found: _R = table.get(about, _UNKNOWN)
            if found is _UNKNOWN:
                found = table[about] = compute(node, about)
            return found

        return ask

    return decorate


def remembering(cls: _C) -> _C:
    """Have the instances of a frozen dataclass hash their parts once, and compare unequal by these hashes."""
    by_fields: Callable[[Any, object], bool] = cls.__eq__
    by_hash: Callable[[Any], int] = cls.__hash__
    own_hash = remembered("_hash", blank=True)(by_hash)

    def equal(self: Any, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return False
        # What has not been hashed yet is mostly as quick to compare.
        mine, its = self._hash, other._hash  # type: ignore[attr-defined]  # it is of the same class
        return (mine is None or its is None or mine == its) and by_fields(self, other)

    for name, method in (("__hash__", own_hash), ("__eq__", equal)):
        setattr(cls, name, method)
    return cls


_MOST_KEPT = 1 << 15
"""How many answers a memoised function keeps: more than one spec asks for, few enough for a process that compiles thousands."""


def memoised(compute: _F) -> _F:
    """Have a pure function of interned nodes, numbers and strings keep its latest answers, found by identity."""
    return cast(_F, functools.lru_cache(maxsize=_MOST_KEPT)(compute))


class _Identity:
    """An object by what it is, not by what it says."""

    __slots__ = ("of",)

    def __init__(self, of: object) -> None:
        self.of = of

    def __hash__(self) -> int:
        return id(self.of)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.of is other.of


def cached_by_identity(maxsize: int = 8) -> Callable[[Callable[Concatenate[_N, _P], _R]], Callable[Concatenate[_N, _P], _R]]:
    """Have a function of an object that takes long to compare, such as an op or a family, keep its latest answers.

    The object is found by identity, the arguments after it by equality. What works on one object asks for it again and again.
    """

    def decorate(compute: Callable[Concatenate[_N, _P], _R]) -> Callable[Concatenate[_N, _P], _R]:
        kept: Any = functools.lru_cache(maxsize)(lambda about, *args, **named: compute(about.of, *args, **named))

        @functools.wraps(compute)
        def ask(about: _N, /, *args: _P.args, **named: _P.kwargs) -> _R:
            answer: _R = kept(_Identity(about), *args, **named)
            return answer

        return ask

    return decorate


_INTERNING = RLock()
"""Held while an instance is entered or removed. Reentrant: the collector may run, and remove others, while one is entered."""


class _Entry(weakref.ref[Any]):
    """A weak reference to an instance, with the key it is found by."""

    __slots__ = ("key",)
    key: tuple[Any, ...]


def interned(cls: _D) -> _D:
    """Hash-cons the instances of a frozen dataclass: of equal ones there is one object at a time, from all threads.

    Equality and hash are those of the object, which takes no call of a Python function. The table is weak: what nobody holds is
    gone. Copies and unpickled instances are the same object again. The dataclass needs a slot for weak references: that of
    `Node`, or one of its own (`weakref_slot=True`).
    """
    fill: Callable[..., None] = cls.__init__  # the one that `dataclass` made
    parameters = [f for f in fields(cast(Any, cls)) if f.init]
    names, count = tuple(f.name for f in parameters), len(parameters)
    table: dict[tuple[Any, ...], _Entry] = {}

    # The lock is bound here: when the interpreter ends, modules lose their names before the last instances go.
    def remove(entry: Any, lock: Any = _INTERNING) -> None:
        with lock:
            key = entry.key
            if table.get(key) is entry:
                del table[key]

    def enter(key: tuple[Any, ...]) -> Any:
        with _INTERNING:
            entry = table.get(key)
            found = None if entry is None else entry()
            if found is None:
                found = object.__new__(cls)
                fill(found, *key)
                added = _Entry(found, remove)
                added.key = key
                table[key] = added
            return found

    def bound(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        given = {**dict(zip(names, args)), **named}
        if len(args) > count or len(given) != len(args) + len(named) or not given.keys() <= set(names):
            raise TypeError(f"{cls.__name__} takes {', '.join(names)}")
        values = tuple(given.get(f.name, f.default) for f in parameters)
        if any(value is MISSING for value in values):
            raise TypeError(f"{cls.__name__} takes {', '.join(names)}")
        return values

    def new(_: type[Any], *args: Any, **named: Any) -> Any:
        if named or len(args) != count:
            args = bound(args, named)
        entry = table.get(args)
        if entry is not None:
            found = entry()
            if found is not None:
                return found
        return enter(args)

    def reduce(self: Any) -> tuple[_D, tuple[Any, ...]]:
        return cls, tuple(getattr(self, name) for name in names)

    for name in ("__init__", "__eq__", "__hash__"):
        delattr(cls, name)
    for name, method in (("__new__", new), ("__reduce__", reduce)):
        setattr(cls, name, method)
    return cls
