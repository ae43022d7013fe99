"""The C++ kernel every other backend links: not a framework of its own, always part of a package.

`emit` writes the header of the C ABI and the C++ sources, `build` compiles each source once an instruction-set variant, and
`objects` and `link_flags` are what a backend's shared library takes.
"""

from __future__ import annotations

from opc.backends.base import BuildStep
from opc.ir.op import Family


class KernelBackend:
    """Emits and builds the kernels of a family."""

    name = "kernel"
    title = "C++ kernel"

    def emit(self, family: Family) -> dict[str, str]:
        """Return the header and the C++ sources, by path relative to the package directory."""
        raise NotImplementedError

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the compile steps, one an object of `objects`."""
        raise NotImplementedError

    def objects(self, family: Family) -> tuple[str, ...]:
        """Return the object files that hold the kernels of every op of the family, relative to the package directory."""
        raise NotImplementedError

    def link_flags(self, family: Family) -> tuple[str, ...]:
        """Return the linker flags a shared library with these objects needs."""
        return ("-lmvec", "-lm")
