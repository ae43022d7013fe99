"""What is done as soon as a module is imported, whether that is now, later or never."""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any


def when_imported(module: str, member: str, action: Callable[[], None]) -> None:
    """Do something as soon as a module is there, of which `member` is a sign."""
    if hasattr(sys.modules.get(module), member):
        action()
    else:
        sys.meta_path.insert(0, _Finder(module, action))


class _Finder(importlib.abc.MetaPathFinder):
    """Waits for the import of a module."""

    def __init__(self, module: str, action: Callable[[], None]) -> None:
        self.module, self.action = module, action

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the module's own spec, with a loader that acts at the end."""
        if name != self.module:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, self.action)
        return spec


class _Loader(importlib.abc.Loader):
    """Loads a module as its own loader does, then acts."""

    def __init__(self, loader: Any, action: Callable[[], None]) -> None:
        self.loader, self.action = loader, action

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Return what the own loader makes."""
        module: ModuleType | None = self.loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module as its own loader's, then act."""
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        self.action()
