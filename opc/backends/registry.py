"""Finds backends through the entry-point group `opc.backends`.

A backend's module is imported only when the backend is looked up by name. Names are unique: two distributions that offer the same
name are an error, because which one would win depends on the order of the search path. A backend that can't be imported is a
diagnostic, and the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points

from opc.backends.base import GROUP, Backend
from opc.diagnostics import Diagnostic, SpecError, did_you_mean
from opc.records import dataclass

COMPANION = "_cuda"
"""What the name of a backend that calls a framework on a GPU has behind that of the framework's backend."""


NAMED: Mapping[str, str] = {"aarch64": "opc.backends.aarch64.backend:AArch64Backend"}
"""The classes, as `module:name`, of backends with `parts` that the proof runs where they are named and nowhere else."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A registered backend that can't be used, and why."""

    name: str
    diagnostic: Diagnostic


def registered() -> dict[str, EntryPoint]:
    """Return the entry point of every registered backend by name, in alphabetical order, without importing any.

    Raises:
        SpecError: when two distributions register the same name.
    """
    found: dict[str, EntryPoint] = {}
    clashes: list[Diagnostic] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (e.name, e.value)):
        first = found.setdefault(entry.name, entry)
        if first is entry:
            continue
        # A distribution's name stands in its metadata, which costs more to read than all entry points: only a second entry asks.
        if first.value != entry.value or _distribution(first) != _distribution(entry):
            clashes.append(
                Diagnostic(
                    f"backend '{entry.name}' is registered twice: as {first.value} by {_distribution(first)} "
                    f"and as {entry.value} by {_distribution(entry)}",
                    hint="uninstall one of the two",
                )
            )
    if clashes:
        raise SpecError(clashes)
    return found


def names() -> tuple[str, ...]:
    """Return the names of all registered backends in alphabetical order.

    Raises:
        SpecError: when two distributions register the same name.
    """
    return tuple(registered())


def load(name: str) -> Backend:
    """Return the backend of that name, importing its module.

    Raises:
        SpecError: when no backend has the name, two have it, or its module can't be imported or is not a backend.
    """
    entries = registered()
    if name not in entries:
        found = _beside(name, entries)
        if found is None:
            raise SpecError([_unknown(name, entries)])
        return found
    made = _make(entries[name])
    if isinstance(made, Broken):
        raise SpecError([made.diagnostic])
    return made


def unknown(wanted: Sequence[str]) -> list[Diagnostic]:
    """Return a diagnostic for each name that no backend has.

    Raises:
        SpecError: when two distributions register the same name.
    """
    entries = registered()
    return [_unknown(name, entries) for name in sorted(set(wanted)) if name not in entries and _beside(name, entries) is None]


def _beside(name: str, entries: Mapping[str, EntryPoint]) -> Backend | None:
    """Return the backend of a name that is not registered, which only the proof runs; None where there is none."""
    if name in NAMED:
        return _imported(NAMED[name])
    beside = entries.get(name.removesuffix(COMPANION))
    return companion(backend) if beside is not None and not isinstance(backend := _make(beside), Broken) else None


def companion(backend: Backend) -> Backend | None:
    """Return the backend that only the proof runs beside one, named like it and `COMPANION`; None where it has none."""
    if not backend.companion:
        return None
    return _imported(backend.companion)


def _imported(place: str) -> Backend:
    """Return a backend of opc's own by its class, as `module:name`."""
    module, _, kind = place.partition(":")
    found: Backend = getattr(import_module(module), kind)()
    return found


def distribution(name: str) -> str:
    """Return the name of the distribution that registers a backend.

    Raises:
        SpecError: when two distributions register the same name, or none does.
    """
    entries = registered()
    if name not in entries:
        raise SpecError([_unknown(name, entries)])
    return _distribution(entries[name])


def select(wanted: Sequence[str] | None = None) -> tuple[Backend, ...]:
    """Return the backends of these names, or every registered one that can be imported when `wanted` is None.

    Each backend stands once, in alphabetical order.

    Raises:
        SpecError: with a diagnostic for each name that is unknown or broken. Without `wanted`, a broken backend is left out;
            `load_all` tells about it.
    """
    if wanted is None:
        return load_all()[0]
    found: list[Backend] = []
    mistakes: list[Diagnostic] = []
    for name in sorted(set(wanted)):
        try:
            found.append(load(name))
        except SpecError as error:
            mistakes += error.diagnostics
    if mistakes:
        raise SpecError(mistakes)
    return tuple(found)


def load_all() -> tuple[tuple[Backend, ...], tuple[Broken, ...]]:
    """Return every registered backend, and those that can't be used with the reason, each in alphabetical order.

    Raises:
        SpecError: when two distributions register the same name.
    """
    made = [_make(entry) for entry in registered().values()]
    broken = tuple(m for m in made if isinstance(m, Broken))
    return tuple(m for m in made if not isinstance(m, Broken)), broken


def owner(value: object) -> Backend | None:
    """Return the backend whose tensor a value is, None when it is none's; see `Backend.owns`.

    Raises:
        SpecError: when two distributions register the same name.
    """
    return next((backend for backend in load_all()[0] if backend.owns(value)), None)


def owner_of(kind: type) -> Backend | None:
    """Return the backend whose class of tensors a class is, or is derived from; None where values of it must be asked."""
    for backend in load_all()[0]:
        if type(backend).owns is not Backend.owns:
            return None
        if issubclass(kind, backend.classes()):
            return backend
    return None


def _make(entry: EntryPoint) -> Backend | Broken:
    # A third party's module may raise anything while it is imported; that must cost its user a line, not all other backends.
    try:
        backend = entry.load()()
    except Exception as error:
        return Broken(entry.name, _broken(entry, f"{type(error).__name__}: {error}"))
    if not isinstance(backend, Backend):
        return Broken(entry.name, _broken(entry, "it is no subclass of opc.backends.base.Backend"))
    missing = [member for member in ("name", "title") if not hasattr(backend, member)]
    if missing:
        return Broken(entry.name, _broken(entry, f"it has no {' and no '.join(missing)}"))
    if backend.name != entry.name:
        return Broken(entry.name, _broken(entry, f"it calls itself '{backend.name}'"))
    return backend


def _unknown(name: str, entries: Mapping[str, EntryPoint]) -> Diagnostic:
    hint = did_you_mean(name, entries) or f"the backends are {', '.join(entries) or 'none: opc is not installed'}"
    return Diagnostic(f"there is no backend '{name}'", hint=hint)


def _broken(entry: EntryPoint, why: str) -> Diagnostic:
    return Diagnostic(
        f"backend '{entry.name}' can't be loaded from {entry.value}: {why}", hint=f"reinstall {_distribution(entry)}"
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown distribution"
