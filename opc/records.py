"""Records: `dataclass(frozen=True, slots=True)` as the standard library has it, in a fraction of the time.

A command imports a few hundred of them. For each, the standard decorator compiles six functions from text one by one; here one
text does for the three that depend on the fields, and the others are the same for all. Type checkers see the standard decorator,
and refuse to change a record; as the program runs nothing does, which makes a record in less than half the time, of more than a
million in a run. `dataclasses.fields`, `asdict` and pickling work as they do for what the standard decorator makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(**options: bool) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, which it calls for whatever is no record."""
        if not (options.get("frozen") and options.get("slots")) or not options.keys() <= _OF_RECORDS:
            return dataclasses.dataclass(**options)
        return lambda cls: _record(cls, options.get("eq", True), options.get("weakref_slot", False))

    def replace(record: Any, /, **changes: Any) -> Any:
        """As `dataclasses.replace`."""
        cls = record.__class__
        values_of = _VALUES.get(cls)
        if values_of is None:
            return dataclasses.replace(record, **changes)
        places, found = _PLACES[cls], values_of(record)
        for name, value in changes.items():
            place = places.get(name)
            if place is None:
                raise TypeError(f"{cls.__name__} takes {', '.join(places)}")
            found[place] = value
        return cls(*found)


_OF_RECORDS = frozenset(("frozen", "slots", "eq", "weakref_slot"))

_VALUES: dict[type, Callable[[Any], list[Any]]] = {}
"""What returns the values that a record of each class is made of."""

_PLACES: dict[type, dict[str, int]] = {}
"""The position of each of these values, by the name of the field."""


def _record(cls: type, eq: bool, weakref_slot: bool) -> type:
    """Return a class with slots for its fields, and with what is particular to them."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else the decorator writes the signature there, which takes long
    made: type = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, weakref_slot=weakref_slot)(cls)
    methods = {**_SHARED, **_compiled(made, eq)}
    for name, method in methods.items():
        # Who defines `__eq__` alone has None for `__hash__`.
        if made.__dict__.get(name) is None:
            setattr(made, name, method)
    names: tuple[str, ...] = made.__match_args__  # type: ignore[attr-defined]  # the decorator has run
    _VALUES[made], _PLACES[made] = _values(names), {name: n for n, name in enumerate(names)}
    return made


def _values(names: tuple[str, ...]) -> Callable[[Any], list[Any]]:
    """Return a function that returns attributes of these names."""
    if len(names) < 2:
        return lambda record: [getattr(record, name) for name in names]
    get = attrgetter(*names)
    return lambda record: [*get(record)]


def _compiled(cls: type, eq: bool) -> dict[str, Callable[..., Any]]:
    """Return the methods that name the fields."""
    fields: tuple[Field[Any], ...] = dataclasses.fields(cls)
    scope: dict[str, Any] = {"MISSING": MISSING}
    parameters, lines = ["self"], []
    for f in fields:
        scope[f"default_{f.name}"], scope[f"make_{f.name}"] = f.default, f.default_factory
        made, given = f.default_factory is not MISSING, f.default is not MISSING
        if f.init:
            parameters.append(f"{f.name}=default_{f.name}" if made or given else f.name)
            value = f"make_{f.name}() if {f.name} is MISSING else {f.name}" if made else f.name
            lines.append(f"self.{f.name} = {value}")
        elif made or given:
            lines.append(f"self.{f.name} = {f'make_{f.name}()' if made else f'default_{f.name}'}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(lines or ["pass"])
    names = ["__init__"]
    if eq:
        own = "".join(f"self.{f.name}, " for f in fields if f.compare)
        same = f"({own}) == ({own.replace('self.', 'other.')})"
        text += f"\ndef __eq__(self, other):\n    return {same} if other.__class__ is self.__class__ else NotImplemented"
        text += f"\ndef __hash__(self):\n    return hash(({own}))"
        names += ["__eq__", "__hash__"]
    exec(text, scope)  # as the standard decorator does, of names that the source gives
    for name in names:
        scope[name].__qualname__ = f"{cls.__qualname__}.{name}"
    return {name: scope[name] for name in names}


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _with_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        setattr(self, f.name, value)


_SHARED: dict[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__getstate__": _state,
    "__setstate__": _with_state,
}
