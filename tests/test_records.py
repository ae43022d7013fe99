"""Records are what the standard decorator makes of a dataclass with slots."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import Any

import pytest

from opc import records
from opc.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class Point:
    """A place with a name."""

    x: int
    y: int = 2
    name: str = field(default="", compare=False, repr=False)
    tags: list[str] = field(default_factory=list, compare=False)
    total: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", self.x + self.y)


@dataclass(frozen=True, slots=True)
class Named(Point):
    """A record with the fields of another."""

    kind: str = "named"

    def __repr__(self) -> str:
        return self.kind


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """A record that is equal to itself alone."""

    x: int


class Asked:
    """What remembers an answer in a slot that holds None at first."""

    __slots__ = ("_answer",)
    BLANK = ("_answer",)


@dataclass(frozen=True, slots=True)
class Asking(Asked):
    """A record with such a slot."""

    x: int


@dataclass(slots=True)
class Plain:
    """A record that may change."""

    x: int
    seen: list[int] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class PlainOwn:
    """One that is equal to itself alone, whatever it holds."""

    x: int


def test_a_record_has_the_fields_defaults_and_text_of_a_dataclass() -> None:
    p = Point(1)
    assert (p.x, p.y, p.name, p.tags, p.total) == (1, 2, "", [], 3)
    assert p.tags is not Point(1).tags
    assert repr(p) == "Point(x=1, y=2, tags=[], total=3)"
    assert repr(Named(1)) == "named"
    assert [f.name for f in dataclasses.fields(Named)] == ["x", "y", "name", "tags", "total", "kind"]
    assert dataclasses.asdict(p) == {"x": 1, "y": 2, "name": "", "tags": [], "total": 3}
    assert Point.__match_args__ == ("x", "y", "name", "tags")
    assert not hasattr(p, "__dict__")


def test_records_compare_and_hash_by_their_fields_and_class() -> None:
    assert Point(1, name="a") == Point(1, 2, "b")
    assert hash(Point(1, name="a")) == hash(Point(1, 2, "b"))
    assert Point(1) != Point(2)
    assert Point(1) != Named(1)
    assert Named(1) != Named(1, kind="other")
    own = Own(1)
    assert own == own  # that is the question
    assert own != Own(1)
    assert len({own, Own(1)}) == 2


def test_a_field_without_a_default_stands_behind_none_that_has_one() -> None:
    class Wrong:
        x: int = 1
        y: int

    with pytest.raises(TypeError, match=r"Wrong\.y has no default"):
        dataclass(frozen=True, slots=True)(Wrong)


def test_records_of_as_many_fields_have_names_of_their_own() -> None:
    assert Point.__init__.__qualname__ == "Point.__init__"
    assert Own.__init__.__code__.co_varnames == ("self", "x")
    assert Own(x=3).x == 3
    make: Any = Own
    with pytest.raises(TypeError, match=r"Own\.__init__.*: 'x'"):
        make()


def test_what_replaces_nothing_returns_the_record() -> None:
    p = Point(1, tags=[])
    assert replace(p, x=p.x, tags=p.tags) is p
    assert replace(p, tags=[]) is not p


def test_a_tuple_of_the_same_objects_replaces_nothing() -> None:
    some, p = ["a"], Point(1)
    held = replace(p, name=(some, p))
    assert replace(held, name=(*held.name,)) is held
    assert replace(held, name=(["a"], p)) is not held
    assert replace(held, name=(some,)).name == (some,)


def test_records_that_may_change_are_compared_and_copied_as_they_are_now() -> None:
    p = Plain(1)
    same = replace(p)
    assert same == p
    assert same is not p
    p.x = 2
    assert (p.x, same.x) == (2, 1)
    assert p != same
    assert repr(p) == "Plain(x=2, seen=[])"
    assert Plain.__hash__ is None
    assert not hasattr(p, "__dict__")
    assert pickle.loads(pickle.dumps(p)) == p
    one, other = PlainOwn(1), PlainOwn(1)
    assert len({one, other}) == 2


def test_wrong_arguments_are_refused() -> None:
    make: Any = Point
    with pytest.raises(TypeError, match=r"Point\.__init__\(\) missing 1 required positional argument: 'x'"):
        make()
    with pytest.raises(TypeError, match="Point takes x, y, name, tags"):
        replace(make(1), total=4)


def test_what_is_replaced_is_computed_from_again() -> None:
    p = Point(1, name="a")
    changed = replace(p, x=5)
    assert (changed.x, changed.y, changed.name, changed.total) == (5, 2, "a", 7)
    assert replace(Own(1), x=2).x == 2
    assert replace(Plain(1), x=2).x == 2
    assert dataclasses.replace(Own(1), x=3).x == 3


def test_copies_and_unpickled_records_are_equal() -> None:
    p = Named(1, tags=["a"])
    for other in (copy.copy(p), copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert other == p
        assert (other.tags, other.total, other.kind) == (["a"], 3, "named")


def test_what_a_record_is_not_made_for_is_left_to_the_standard_decorator() -> None:
    @records.dataclass(frozen=True, slots=True, order=True)
    class Ordered:
        x: int

    assert Ordered(1) < Ordered(2)
    assert replace(Ordered(1), x=3) == Ordered(3)


def test_slots_that_are_blank_hold_none_at_first() -> None:
    one = Asking(1)
    assert one._answer is None
    object.__setattr__(one, "_answer", 2)
    for other in (copy.copy(one), pickle.loads(pickle.dumps(one)), replace(one, x=3)):
        assert other._answer is None
    assert replace(one, x=one.x)._answer == 2
    assert one == Asking(1)
