"""The functions of a wheel: each answers the tensors of a framework in kind.

No framework is imported here. Its module is imported when the first of its tensors
comes, or, where that registers operators, as soon as the framework is there.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from opc.backends.shipped.late import when_imported

NUMPY = "numpy"
"""The framework of what is no other's tensor."""

_PLAIN = (type(None), bool, int, float, str, list, tuple)
"""Types of attributes, and of an optional input that is absent: no tensors."""


class Frameworks:
    """The ops of a wheel by framework.

    `tensors` names the class of each framework's tensors, such as `torch.Tensor`. Of
    those in `registering`, importing an op's module registers its operators.
    """

    def __init__(
        self,
        package: str,
        ops: Mapping[str, Sequence[str]],
        tensors: Mapping[str, str],
        registering: Sequence[str],
    ) -> None:
        """Take the module's name, and for each op the frameworks that it is for."""
        self._package, self._ops, self._tensors = package, ops, tensors
        self._classes: dict[type, str] = {}
        self._owners: dict[type, str] = {}
        self._found: dict[str, dict[str, Callable[..., Any]]] = {op: {} for op in ops}
        for name in registering:
            module, _, kind = tensors[name].rpartition(".")
            register = functools.partial(self._register, name)
            when_imported(module.partition(".")[0], kind, register)

    def function(self, op: str) -> Callable[..., Any]:
        """Return the function of an op, documented as that for NumPy arrays."""
        plain = getattr(self._module(op, NUMPY), op)
        found = self._found[op]
        found[""] = found[NUMPY] = plain
        owner = self._owner

        @functools.wraps(plain)
        def call(*args: Any, **kwargs: Any) -> Any:
            name = ""
            for value in (*args, *kwargs.values()):
                other = owner(value)
                if other and other != name:
                    if name:
                        raise self._mixed(op, plain, args, kwargs)
                    name = other
            function = found.get(name)
            if function is None:
                function = found[name] = self._function(op, name)
            return function(*args, **kwargs)

        call.__module__ = self._package
        return call

    def library(self, op: str, path: str) -> str:
        """Return the path of a library in an op's folder, of the joint one for ``."""
        return str(Path(__file__).parent.joinpath("_ops", op, path))

    def joined(self, name: str, attribute: str) -> tuple[Any, ...]:
        """Return what a tuple of a framework's module has for each op, of all ops."""
        modules = (
            self._module(op, name) for op, has in self._ops.items() if name in has
        )
        return tuple(x for module in modules for x in getattr(module, attribute))

    def _owner(self, value: Any) -> str:
        """Return the framework that a value is a tensor of; empty for none."""
        # A number may be a symbol to torch.compile, and a tensor one of several
        # transforms: it knows their types alone.
        kind = type(value)
        return "" if kind in _PLAIN else self._owner_of(kind) or self._owner_by(value)

    def _owner_of(self, kind: type) -> str:
        """Return the framework whose tensors a class has; empty if it does not tell."""
        found = self._classes.get(kind)
        if found is None:
            of_it = functools.partial(issubclass, kind)
            found = self._classes[kind] = self._search(of_it)
        return found

    def _owner_by(self, value: Any) -> str:
        kind = type(value)
        found = self._owners.get(kind)
        if found is None:
            is_its = functools.partial(isinstance, value)
            found = self._owners[kind] = self._search(is_its)
        return found

    # torch.compile, which could not follow the search, calls it and goes on.
    _owner_of._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions
    _owner_by._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions

    def _search(self, owns: Callable[[type], bool]) -> str:
        for name, path in self._tensors.items():
            module, _, kind = path.rpartition(".")
            cls = getattr(sys.modules.get(module), kind, None)
            if cls is not None and owns(cls):
                return name
        return ""

    def _function(self, op: str, name: str) -> Callable[..., Any]:
        """Return the function of an op for a framework.

        Raises:
            TypeError: when the op has none.
        """
        if name not in self._ops[op]:
            has = ", ".join(self._ops[op])
            message = f"{op}: this package has it for {has}, but not for {name}"
            raise TypeError(message)
        function: Callable[..., Any] = getattr(self._module(op, name), op)
        return function

    _function._dynamo_marked_constant = True  # type: ignore[attr-defined]  # a mark that torch reads off functions

    def _module(self, op: str, name: str) -> ModuleType:
        return import_module(f"{self._package}._ops.{op}.{name}")

    def _mixed(
        self,
        op: str,
        plain: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> TypeError:
        """Return the refusal of inputs that are not all of one framework."""
        given = inspect.signature(plain).bind_partial(*args, **kwargs).arguments
        kinds = {k: self._owner(v) for k, v in given.items() if self._owner(v)}
        first, *others = kinds
        other = next(k for k in others if kinds[k] != kinds[first])
        a, b = (f"{k} is a {self._tensors[kinds[k]]}" for k in (other, first))
        message = f"{op}: {a}, but {b}: all inputs must be of one framework"
        return TypeError(message)

    def _register(self, name: str) -> None:
        """Register the operators of all ops with a framework, which is imported."""
        for op, names in self._ops.items():
            if name in names:
                try:
                    # torch.compile follows no import: what it calls is here before.
                    self._found[op][name] = getattr(self._module(op, name), op)
                except ImportError as error:
                    # Whoever imports the framework need not use these operators.
                    message = f"{self._package}: {op} is not registered: {error}"
                    warnings.warn(message, RuntimeWarning, stacklevel=2)
