"""Interned nodes: one object for each value, from all threads, for as long as somebody holds it."""

from __future__ import annotations

import copy
import gc
import pickle
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from opc.ir import node
from opc.ir.affine import Affine, AttrInt, Dim, Index
from opc.ir.dtypes import Weak
from opc.ir.expr import NUMBER, Call, Const, IndexValue, free_indices, traits


def test_equal_values_are_one_object() -> None:
    one = Affine.of(Index("i")) * 2 + Dim("N")
    other = Affine.of(Dim("N")) + Affine.of(Index("i")) * 2
    assert one is other
    assert AttrInt("s") is AttrInt("s", -1, flag=False) is AttrInt(name="s")
    assert AttrInt("s", 0) is not AttrInt("s", 1)


def test_copies_and_unpickled_nodes_are_the_same_object() -> None:
    e = (Affine.of(Index("i")) + 3) // Dim("N")
    assert pickle.loads(pickle.dumps(e)) is e
    assert copy.deepcopy(e) is e
    assert copy.copy(e) is e


def test_what_nobody_holds_is_gone() -> None:
    gone = weakref.ref(Dim("held by nobody"))
    gc.collect()
    assert gone() is None
    assert Dim("held by nobody").name == "held by nobody"


def test_wrong_arguments_are_refused() -> None:
    for args, named in (((), {}), (("a", 1, False, "b", 0), {}), (("a",), {"name": "b"}), (("a",), {"size": 1})):
        with pytest.raises(TypeError, match="AttrInt takes name, element, flag, text"):
            AttrInt(*args, **named)


def test_threads_make_one_object() -> None:
    def made(_: int) -> list[Affine]:
        return [Affine.of(Index(f"i{n}")) * n + Dim(f"N{n % 7}") for n in range(2000)]

    with ThreadPoolExecutor(8) as pool:
        first, *others = pool.map(made, range(8))
    assert all(a is b for other in others for a, b in zip(first, other, strict=True))


def test_the_last_instances_go_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the interpreter ends, a module's names are taken from it before what others hold is gone."""
    reported: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", reported.append)
    last = Index("the_last_one")
    gone = weakref.ref(last)
    for name in ("_Entry", "_INTERNING"):
        monkeypatch.setattr(node, name, None)
    del last
    gc.collect()
    assert gone() is None
    assert reported == []


@pytest.mark.parametrize("often", [False, True])
def test_an_answer_is_computed_once_for_each_node(often: bool) -> None:
    asked: list[str] = []

    @node.remembered("_text", often=often)
    def shout(of: Dim) -> str:
        asked.append(of.name)
        return of.name.upper()

    n, m = Dim(f"n{often}"), Dim(f"m{often}")
    assert [shout(n), shout(m), shout(n)] == [n.name.upper(), m.name.upper(), n.name.upper()]
    assert asked == [n.name, m.name]


@pytest.mark.parametrize("often", [False, True])
def test_a_mistake_in_an_answer_is_raised_and_not_remembered(often: bool) -> None:
    field = "field"

    @node.remembered("_text", often=often)
    def wrong(of: Dim) -> str:
        return str(getattr(of, f"no_such_{field}"))

    held = Dim(f"wrong {often}")
    for _ in range(2):
        with pytest.raises(AttributeError, match="no_such_field"):
            wrong(held)


def test_what_is_asked_of_an_object_is_found_by_identity() -> None:
    asked: list[list[int]] = []

    @node.cached_by_identity()
    def length(of: list[int]) -> int:
        asked.append(of)
        return len(of)

    one, other = [1, 2], [1, 2]
    assert length(one) == length(other) == length(one) == 2
    assert [known is one for known in asked] == [True, False]


def test_copies_of_expressions_are_asked_anew() -> None:
    e = Call("add", (IndexValue(Affine.of(Index("i"))), Const(1, Weak.INT)), Weak.INT)
    assert free_indices(e) == {"i"}
    assert traits(e) & NUMBER
    for other in (copy.copy(e), copy.deepcopy(e), pickle.loads(pickle.dumps(e))):
        assert other is not e
        assert other == e
        assert hash(other) == hash(e)
        assert free_indices(other) == {"i"}
        assert traits(other) == traits(e)
