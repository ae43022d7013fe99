"""Importing a generated package from where it lies, without touching the search path."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType


def load(package: Path, subpackage: str | None = None) -> ModuleType:
    """Return a generated package, or one of its subpackages or modules, imported under a name of its own.

    The name depends on the folder and on the package's manifest: after a package was generated anew, the new one is loaded.

    Raises:
        ImportError: when there is no package, or what it imports is missing.
    """
    folder = package.absolute()
    try:
        state = (folder / "manifest.json").read_bytes()
    except OSError as error:
        raise ImportError(f"{folder} is not a generated package: {error}") from error
    name = f"opc_package_{hashlib.sha256(str(folder).encode() + state).hexdigest()[:16]}"
    module = sys.modules.get(name)
    if module is None:
        spec = importlib.util.spec_from_file_location(name, folder / "__init__.py", submodule_search_locations=[str(folder)])
        if spec is None or spec.loader is None:
            raise ImportError(f"{folder} is not a Python package")
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return module if subpackage is None else import_module(f"{name}.{subpackage}")
