"""The files of `tensorrt/` in a package."""

from __future__ import annotations

from opc.backends.tensorrt.library import library_source, templates
from opc.backends.tensorrt.names import place_name, status_name
from opc.backends.tensorrt.python_plugin import python_files
from opc.ir.op import Family


def files(family: Family) -> dict[str, str]:
    """Return the sources of the plugins and what builds them, by path relative to the package directory."""
    name = family.name
    return {
        f"tensorrt/{name}_tensorrt.cpp": library_source(family),
        f"tensorrt/{name}_status.cu": templates.render(
            "status.cu.j2", family, status=status_name(family), place=place_name(family)
        ),
        **python_files(family),
        "tensorrt/CMakeLists.txt": templates.render("CMakeLists.txt.j2", family),
        "tensorrt/build.sh": templates.render("build.sh.j2", family),
        "tensorrt/exports.map": templates.render("exports.map.j2", family),
    }
