"""opc for an interpreter that it is not installed for.

Another environment's Python must find opc and the modules of third-party backends, and nothing else of the environment opc runs
in: its own NumPy must not be hidden by ours. So it gets a folder with links to just these packages.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import opc
from opc.backends.base import Backend


def packages(backends: Iterable[Backend] = ()) -> dict[str, Path]:
    """Return the top-level modules that workers need, by name: opc with its runtime headers, and those of backends."""
    own = Path(opc.__file__).parent
    found = {"opc": own}
    # In a source tree the headers lie beside opc, and are looked for there.
    if (own.parent / "runtime" / "include" / "opc").is_dir():
        found["runtime"] = own.parent / "runtime"
    for backend in backends:
        module = type(backend).__module__
        source = getattr(sys.modules[module], "__file__", None)
        if source is not None:
            path = Path(source)
            # From the file of a.b.c, or of its folder, to that of a, which may be a namespace of several distributions.
            path = path.parent if path.name == "__init__.py" else path
            place = [path, *path.parents][module.count(".")]
            found.setdefault(place.name, place)
    return found


@contextmanager
def links(backends: Iterable[Backend] = ()) -> Iterator[Path]:
    """Yield a folder for the search path of another interpreter, which holds links to what workers import from here."""
    with tempfile.TemporaryDirectory(prefix="opc-imports-") as folder:
        for name, place in packages(backends).items():
            Path(folder, name).symlink_to(place)
        yield Path(folder)
