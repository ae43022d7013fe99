"""Records: `dataclass(slots=True)` as the standard library has it, frozen or not, in a fraction of the time.

A command imports a few hundred of them. For each, the standard decorator compiles six functions from text one by one; here the
three that depend on the fields are compiled once for all classes with as many fields, and the others are the same for all. Type
checkers see the standard decorator, and refuse to change a frozen record; as the program runs nothing does, which makes a record
in less than half the time, of more than a million in a run. The slots that `BLANK` of a class names hold None.
`dataclasses.fields`, `asdict` and pickling work as they do for what the standard decorator makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import MISSING, Field
from functools import cache
from operator import attrgetter, is_
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import replace as replace
else:

    def dataclass(**options: bool) -> Callable[[type], type]:
        """As `dataclasses.dataclass`, which it calls for whatever is no record."""
        if not options.get("slots") or not options.keys() <= _OF_RECORDS:
            return dataclasses.dataclass(**options)
        frozen = options.get("frozen", False)
        return lambda cls: _record(cls, options.get("eq", True), frozen, options.get("weakref_slot", False))

    def replace(record: Any, /, **changes: Any) -> Any:
        """As `dataclasses.replace`; the record itself where nothing is another object, with whatever is remembered of it.

        A tuple of the same objects is no other one: passes that go through the statements of an op make one each.
        """
        cls = record.__class__
        values_of = _VALUES.get(cls)
        if values_of is None:
            return dataclasses.replace(record, **changes)
        places, found, same = _PLACES[cls], [*values_of(record)], True
        for name, value in changes.items():
            place = places.get(name)
            if place is None:
                raise TypeError(f"{cls.__name__} takes {', '.join(places)}")
            old = found[place]
            if old is not value and not (old.__class__ is tuple is value.__class__ and _are_same(old, value)):
                found[place], same = value, False
        return record if same else cls(*found)


def _are_same(old: tuple[Any, ...], new: tuple[Any, ...]) -> bool:
    return len(old) == len(new) and all(map(is_, old, new))


_OF_RECORDS = frozenset(("frozen", "slots", "eq", "weakref_slot"))

_VALUES: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
"""What returns the values that a record of each class is made of."""

_PLACES: dict[type, dict[str, int]] = {}
"""The position of each of these values, by the name of the field."""


def _record(cls: type, eq: bool, frozen: bool, weakref_slot: bool) -> type:
    """Return a class with slots for its fields, and with what is particular to them."""
    fields: dict[str, Field[Any]] = {}
    taken: set[str] = set()
    for base in reversed(cls.__mro__[1:]):
        fields |= {f.name: f for f in dataclasses.fields(base)} if dataclasses.is_dataclass(base) else {}
        taken.update(base.__dict__.get("__slots__", ()))
    held: dict[str, Any] = {name: value for name, value in cls.__dict__.items() if name not in ("__dict__", "__weakref__")}
    own = {name: kind for name, kind in cls.__annotations__.items() if "ClassVar" not in str(kind)}
    for name, kind in own.items():
        default = held.pop(name, MISSING)
        f: Any = default if isinstance(default, Field) else dataclasses.field(default=default)
        fields[name] = f
        f.name, f.type, f.kw_only = name, kind, False
        f._field_type = dataclasses._FIELD  # type: ignore[attr-defined]  # what `dataclasses.fields` returns
    held["__slots__"] = (*(name for name in own if name not in taken), *(("__weakref__",) if weakref_slot else ()))
    names = tuple([f.name for f in fields.values() if f.init])
    held |= {"__dataclass_fields__": fields, "__dataclass_params__": _PARAMS, "__match_args__": names}
    # Who defines `__eq__` alone has None for `__hash__`.
    methods: dict[str, Callable[..., Any] | None] = {**_SHARED, **_compiled(cls, [*fields.values()], eq)}
    if eq and not frozen:
        methods["__hash__"] = None  # as of all that compares equal by what may change
    held |= {name: method for name, method in methods.items() if held.get(name) is None}
    made = type(cls)(cls.__name__, cls.__bases__, held)
    made.__qualname__ = cls.__qualname__
    if frozen:  # what `replace` changes nothing of must be another object, where it may change later
        _VALUES[made], _PLACES[made] = _values(names), {name: n for n, name in enumerate(names)}
    return made


def _values(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that returns attributes of these names."""
    return attrgetter(*names) if len(names) > 1 else lambda record: tuple([getattr(record, name) for name in names])


def _compiled(cls: type, fields: Sequence[Field[Any]], eq: bool) -> dict[str, Callable[..., Any]]:
    """Return the methods that name the fields."""
    scope: dict[str, Any] = {"MISSING": MISSING}
    parameters, lines, defaults = ["self"], [], []
    for n, f in enumerate(fields):
        made, given = f.default_factory is not MISSING, f.default is not MISSING
        scope |= {f"default{n}": f.default, f"make{n}": f.default_factory}
        if f.init:
            parameters.append(f"f{n}")
            lines.append(f"self.f{n} = {f'make{n}() if f{n} is MISSING else f{n}' if made else f'f{n}'}")
            if made or given:
                defaults.append(f.default)
            elif defaults:
                raise TypeError(f"{cls.__name__}.{f.name} has no default, and stands behind one that has")
        elif made or given:
            lines.append(f"self.f{n} = {f'make{n}()' if made else f'default{n}'}")
    lines += [f"self.{slot} = None" for slot in getattr(cls, "BLANK", ())]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    text = f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(lines or ["pass"])
    if eq:
        compared = "".join(f"self.f{n}, " for n, f in enumerate(fields) if f.compare)
        same = f"({compared}) == ({compared.replace('self.', 'other.')})"
        text += f"\ndef __eq__(self, other):\n    return {same} if other.__class__ is self.__class__ else NotImplemented"
        text += f"\ndef __hash__(self):\n    return hash(({compared}))"
    names = {f"f{n}": f.name for n, f in enumerate(fields)}
    found: dict[str, Callable[..., Any]] = {}
    for code in _codes(text):
        used, own = (tuple([names.get(name, name) for name in all_of]) for all_of in (code.co_names, code.co_varnames))
        code = code.replace(co_names=used, co_varnames=own, co_qualname=f"{cls.__qualname__}.{code.co_name}")
        found[code.co_name] = FunctionType(code, scope, code.co_name, tuple(defaults) if code.co_name == "__init__" else None)
    return found


@cache
def _codes(text: str) -> tuple[CodeType, ...]:
    """Return the code of functions, in which f0, f1, ... stand for the names of fields: many classes have as many fields."""
    return tuple([c for c in compile(text, "<record>", "exec").co_consts if isinstance(c, CodeType)])


def _repr(self: Any) -> str:
    shown = ", ".join(f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{self.__class__.__qualname__}({shown})"


def _state(self: Any) -> list[Any]:
    return [getattr(self, f.name) for f in dataclasses.fields(self)]


def _with_state(self: Any, state: list[Any]) -> None:
    for f, value in zip(dataclasses.fields(self), state, strict=True):
        setattr(self, f.name, value)
    for slot in getattr(self, "BLANK", ()):
        setattr(self, slot, None)


_SHARED: dict[str, Callable[..., Any]] = {
    "__repr__": _repr,
    "__getstate__": _state,
    "__setstate__": _with_state,
}


@dataclasses.dataclass(init=False, repr=False, eq=False)
class _Sample:
    """What other dataclasses ask of a record that they derive from is as here."""


_PARAMS = _Sample.__dataclass_params__  # type: ignore[attr-defined]  # the decorator has made it
