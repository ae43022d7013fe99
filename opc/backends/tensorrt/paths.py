"""Where a package's plugins for a version of TensorRT are built, and the host that the proof calls them through."""

from __future__ import annotations

from opc.ir.op import Family

VERSIONS = ("8.6", "10", "11")
"""The versions of TensorRT that there are declarations of: the folders of `runtime/emulation/tensorrt`."""

EMULATED_VERSION = "10"
"""The version whose interfaces the proof goes through."""


def library_path(family: Family, version: str = EMULATED_VERSION) -> str:
    """Return the path of the library of plugins, relative to the package directory."""
    return f"build/tensorrt/{version}/lib{family.name}_tensorrt.so"


def host_path(version: str = EMULATED_VERSION) -> str:
    """Return the path of the host, relative to the package directory."""
    return f"build/tensorrt/{version}/libhost.so"
