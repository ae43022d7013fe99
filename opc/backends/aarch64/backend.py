"""The kernels of a family, compiled for aarch64 as a program that answers calls: a backend of the proof's alone."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opc.backends.aarch64 import PROGRAM
from opc.backends.base import Availability, Backend, BuildStep, Compile, Link
from opc.backends.kernel.backend import KernelBackend
from opc.backends.kernel.target import AARCH64, INSTALL, cross_compiler, emulator
from opc.backends.templates import Templates
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.aarch64.session import AArch64Session

templates = Templates("opc.backends.aarch64")


class AArch64Backend(Backend):
    """NumPy arrays in, kernels for aarch64, NumPy arrays out."""

    name = AARCH64
    title = "AArch64"
    wraps = True
    parts = ("numpy",)
    on_cpu = True

    @property
    def execution(self) -> Literal["native", "emulated", "compiled"]:  # type: ignore[override]  # it depends on the machine
        """Whether this is such a machine, or qemu stands in for one."""
        return "native" if platform.machine() == AARCH64 else "emulated"

    def probe(self) -> Availability:
        """Say whether there are a cross compiler and qemu, or this is an aarch64."""
        if platform.machine() == AARCH64:
            return Availability(True)
        if not cross_compiler():
            return Availability(False, reason=f"there is no compiler for {AARCH64}", install=INSTALL)
        found = emulator()
        if found is None:
            return Availability(False, reason=f"qemu-{AARCH64} is not installed", install=INSTALL)
        said = subprocess.run([*found, "--version"], capture_output=True, text=True, check=False).stdout
        version = re.search(r"version (\S+)", said)
        return Availability(True, f"under qemu {version[1]}" if version else "under qemu")

    def emit(self, family: Family) -> dict[str, str]:
        """Return the program's source."""
        return {"aarch64/program.c": templates.render("program.c.j2", family, ops=[op.name for op in family.ops])}

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the program: static, for the libraries of the other machine are not here.

        Raises:
            SpecError: when a package that native code needs is not installed, or is of this machine alone.
        """
        compiler, made = cross_compiler(), f"build/{AARCH64}/program.o"
        kernel = KernelBackend().build_for(AARCH64, compiler, family)
        main = Compile("aarch64/program.c", made, ("-DOPC_STATIC",), language="c", compiler=compiler, glue=True)
        objects = (made, *(step.object for step in kernel))
        flags = ("-static", "-lm", "-pthread")
        return (*kernel, main, Link(objects, PROGRAM, flags, program=True, compiler=compiler))

    def session(self, family: Family, package: Path) -> AArch64Session:
        """Start the built program.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.aarch64.session import AArch64Session

        return AArch64Session(family, package)
