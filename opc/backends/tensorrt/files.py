"""The files of `tensorrt/` in a package."""

from __future__ import annotations

from opc.backends.tensorrt.library import library_source, templates
from opc.ir.op import Family


def files(family: Family) -> dict[str, str]:
    """Return the sources of the plugins and what builds them, by path relative to the package directory."""
    name = family.name
    return {
        f"tensorrt/{name}_tensorrt.cpp": library_source(family),
        "tensorrt/emulated.cpp": templates.render("emulated.cpp.j2", family),
    }
