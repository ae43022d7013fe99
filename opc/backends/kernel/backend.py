"""The C++ kernel every other backend links: not a framework of its own, always part of a package.

`emit` writes the header of the C ABI and the C++ sources, `build` compiles the loops once for each instruction-set variant, and
`objects` and `link_flags` are what a backend's shared library takes.
"""

from __future__ import annotations

import os
import platform
from pathlib import Path

from opc.backends.base import BuildStep, Compile
from opc.backends.kernel import libraries
from opc.backends.kernel.exact import EXACT_FLAGS
from opc.backends.kernel.target import target
from opc.diagnostics import Diagnostic, SpecError
from opc.emit.kernel.files import kernel_files
from opc.emit.kernel.native import source_path
from opc.ir.op import Family
from opc.records import replace

COMMON_FLAGS = (
    "-std=c++17",
    "-fPIC",
    "-fvisibility=hidden",
    "-fno-exceptions",
    "-fno-rtti",
    *EXACT_FLAGS,
    "-fwrapv",  # integer overflow wraps
    "-fno-strict-aliasing",  # rows are moved as bits
)
"""Flags of every kernel source. Floating-point results are those of the source: nothing is reassociated or contracted."""

LOOP_FLAGS = ("-O2", "-fopenmp-simd")
ENTRY_FLAGS = ("-O1",)

FUNCTIONS = "opc/core/functions_here.h"
"""What all files of entry functions have in common: how rows and products are run."""

NATIVE_FLAGS = ("-std=c++17", "-fPIC", "-fvisibility=hidden", "-O2", "-ftabstop=1")
"""Flags of native code, which is ordinary C++ with exceptions; columns in messages count characters."""

VARIANTS = {"baseline": (), "v3": ("-march=x86-64-v3",), "v4": ("-march=x86-64-v4", "-mprefer-vector-width=512")}
"""Instruction-set variants on x86-64 and their flags; elsewhere there is only the baseline.

g++ takes the widest vectors of v4 anyway; clang++ halves them unless asked, and products of matrices take twice as long.
"""

VARIANT = "OPC_VARIANT"
"""Environment variable: `native`, or the name of a variant, the only one to be compiled. A proof of libraries that run here alone
takes a third of the time; without it all are compiled, and a call chooses among them."""

OPTIMIZE = "OPC_OPTIMIZE"
"""Environment variable: with 0, kernels of the only variant are compiled unoptimised, in a quarter of the time; with 1, those of
their functions that training seldom calls."""

NATIVE = "native"
"""Stands for the variant that this machine's kernels choose."""


class KernelBackend:
    """Emits and builds the kernels of a family."""

    name = "kernel"
    title = "C++ kernel"

    def emit(self, family: Family) -> dict[str, str]:
        """Return the header and the C++ sources, by path relative to the package directory."""
        return kernel_files(family)

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the compile steps, one an object of `objects`.

        Raises:
            SpecError: when a package that native code needs is not installed, or has libraries and they are for another machine.
        """
        if not target().is_here:
            _refuse_libraries(family, target().machine)
        only = only_variant()
        forced = () if only is None else (f"-DOPC_FORCE_VARIANT={only}",)
        loops = [_loops(family, name, _less_optimised()) for name in variants() if only in (None, name)]
        return (_entry(family, forced), *loops, *self._native(family))

    def build_anywhere(self, family: Family) -> tuple[tuple[Compile, ...], tuple[Compile, ...]]:
        """Return the compile steps for a machine that is not known yet: those of every machine, and those for x86-64 alone.

        Raises:
            SpecError: when a package that native code needs is not installed.
        """
        common = (_entry(family), _loops(family, "baseline"), *self._native(family))
        return common, tuple(_loops(family, name) for name in VARIANTS if name != "baseline")

    def build_for(self, machine: str, compiler: tuple[str, ...], family: Family) -> tuple[Compile, ...]:
        """Return the compile steps of the baseline for another machine, made by that compiler.

        Raises:
            SpecError: when a package that native code needs is not installed, or has libraries, which are this machine's.
        """
        _refuse_libraries(family, machine)
        common = (_entry(family), _loops(family, "baseline"), *self._native(family))
        return tuple(
            replace(step, object=step.object.replace("build/", f"build/{machine}/", 1), compiler=compiler, functions="")
            for step in common
        )

    def _native(self, family: Family) -> tuple[Compile, ...]:
        native = family.native_for("cpp")
        if native is None:
            return ()
        flags = (*NATIVE_FLAGS, *libraries.find(native).compile)
        return (Compile(source_path(family, "cpp"), _object(f"{family.name}_native"), flags),)

    def objects(self, family: Family) -> tuple[str, ...]:
        """Return the object files that hold the kernels of every op of the family, relative to the package directory."""
        return tuple(step.object for step in self.build(family) if isinstance(step, Compile))

    def link_flags(self, family: Family) -> tuple[str, ...]:
        """Return the linker flags a shared library with these objects needs."""
        vector_math = target().is_x86 and target().system == "linux" and platform.libc_ver()[0] == "glibc"
        native = family.native_for("cpp")
        own = libraries.find(native).link if native is not None else ()
        # The vector library is taken where something calls it: sin, cos and tan alone do.
        return (*own, *(("-Wl,--as-needed", "-lmvec", "-lm") if vector_math else ("-lm",)))


def _refuse_libraries(family: Family, machine: str) -> None:
    """Raise SpecError for native code that is linked with libraries, which are this machine's, where it is for another one."""
    native = family.native_for("cpp")
    if native is not None and libraries.find(native).link:
        message = f"the native code of {family.name} is linked with libraries of this machine, and not of {machine}"
        raise SpecError([Diagnostic(message, native.span)])


def _entry(family: Family, forced: tuple[str, ...] = ()) -> Compile:
    # It checks shapes, and takes long to compile with optimisation.
    flags = (*COMMON_FLAGS, *ENTRY_FLAGS, *forced)
    return Compile(f"kernel/{family.name}.cpp", _object(family.name), flags, glue=True, functions=FUNCTIONS)


def _loops(family: Family, variant: str, more: tuple[str, ...] = ()) -> Compile:
    flags = (*COMMON_FLAGS, *LOOP_FLAGS, *more, f"-DOPC_VARIANT={variant}", *VARIANTS[variant])
    return Compile(f"kernel/{family.name}_loops.cpp", _object(f"{family.name}_loops_{variant}"), flags)


def _object(name: str) -> str:
    return f"build/kernel/{name}.o"


_NEEDED = {
    "v4": ("avx2", "fma", "bmi2", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "v3": ("avx2", "fma", "bmi2"),
    "baseline": (),
}
"""What a processor needs for each variant, the best first: as `opc::runs_v3()` and `opc::runs_v4()` ask for it."""


def instruction_sets() -> tuple[str, ...]:
    """Return the variants that this machine can run, the best first, which is the one that its kernels choose.

    Of another machine nothing is known: libraries for it have what all of its kind run.
    """
    here = target()
    try:
        found = set(Path("/proc/cpuinfo").read_text().split()) if here.is_x86 and here.is_here else set()
    except OSError:
        found = set()
    return tuple(name for name, needed in _NEEDED.items() if found.issuperset(needed))


def only_variant() -> str | None:
    """Return the only variant to be compiled, None for all.

    Raises:
        SpecError: when the environment variable names none.
    """
    name = os.environ.get(VARIANT, "")
    if not name:
        return None
    if name == NATIVE:
        return instruction_sets()[0]
    if name not in variants():
        raise SpecError([Diagnostic(f"${VARIANT} is '{name}'", hint=f"it is {NATIVE} or one of {', '.join(variants())}")])
    return name


def unoptimised() -> bool:
    """Return whether what computes is compiled without optimisation, which it is for this machine alone."""
    return only_variant() is not None and os.environ.get(OPTIMIZE) == "0"


def _less_optimised() -> tuple[str, ...]:
    chosen = os.environ.get(OPTIMIZE, "") if only_variant() is not None else ""
    return {"0": ("-O0",), "1": ("-DOPC_SELDOM_UNOPTIMISED",)}.get(chosen, ())


def variants() -> dict[str, tuple[str, ...]]:
    """Return the variants of what libraries are built for, and the flags of each."""
    return VARIANTS if target().is_x86 else {"baseline": ()}
