"""NumPy: an extension module that cffi compiles over the kernels, and functions on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from opc.backends.base import Availability, Backend, BuildStep, Check, WheelPart
from opc.backends.kernel.backend import KernelBackend
from opc.backends.kernel.target import target
from opc.backends.numpy import api, binding, generated_tests
from opc.backends.templates import Templates
from opc.diagnostics import Diagnostic, SpecError
from opc.distribution import install
from opc.emit.python.layout import bracketed
from opc.emit.python.spelling import spells
from opc.emit.python.text import Bracket, docstring, quoted
from opc.ir.dtypes import DTYPES, candidates
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.numpy.session import NumpySession

templates = Templates("opc.backends.numpy")
_HEADERS = "Debian, Ubuntu: sudo apt install python3-dev; Fedora: sudo dnf install python3-devel"


class NumpyBackend(Backend):
    """Functions on NumPy arrays."""

    name = "numpy"
    title = "NumPy"
    tensor = "numpy.ndarray"
    wraps = True

    def probe(self) -> Availability:
        """Say whether NumPy, cffi and Python's headers are there."""
        for package in ("numpy", "cffi"):
            if find_spec(package) is None:
                return Availability(False, reason=f"{package} is not installed", install=install(package))
        if _python_include() is None:
            return Availability(False, reason="Python's headers are not installed", install=_HEADERS)
        try:
            return Availability(True, version("numpy"))
        except PackageNotFoundError:
            return Availability(True)

    def emit(self, family: Family) -> dict[str, str]:
        """Return the binding, the functions and their tests."""
        return {
            "numpy/__init__.py": _api(family),
            "numpy/_signature.py": _shipped(family, "signature"),
            "numpy/_support.py": _shipped(family, "support"),
            "numpy/binding.h": templates.render(
                "binding.h.j2", family, definitions=[binding.definitions(family, op) for op in family.ops]
            ),
            "numpy/bindings.py": templates.render(
                "bindings.py.j2",
                family,
                cdef=f"{binding.CDEF}\n\n{binding.declarations(family)}",
                module=binding.module_name(family),
            ),
            **generated_tests.files(family, templates),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make the extension module.

        Raises:
            SpecError: when Python's headers are not installed, or not for the machine that is built for.
        """
        include = _python_include()
        if include is None:
            raise SpecError(
                [Diagnostic("NumPy's binding needs Python's headers (Python.h), which are not installed", hint=_HEADERS)]
            )
        machine = target().machine
        if _lacks_machine(include, machine):
            message = f"NumPy's binding needs Python's headers for {machine}, which are not installed"
            name = {"aarch64": "arm64", "x86_64": "amd64"}.get(machine, machine)
            install = f"sudo dpkg --add-architecture {name} && sudo apt update && sudo apt install lib{include.name}-dev:{name}"
            raise SpecError([Diagnostic(message, hint=install)])
        kernel = KernelBackend()
        return binding.steps(family, str(include), kernel.objects(family), kernel.link_flags(family))

    def wheel(self, family: Family) -> WheelPart:
        """Return the extension module, which runs on cffi; an op without a call on NumPy's own dtypes needs ml_dtypes."""
        requires = ("numpy>=1.26", "cffi>=1.17", *(("ml_dtypes>=0.5",) if _needs_ml_dtypes(family) else ()))
        return WheelPart((binding.library_path(family),), requires, without=("numpy/bindings.py",))

    def session(self, family: Family, package: Path) -> NumpySession:
        """Load the built functions."""
        from opc.backends.numpy.session import NumpySession

        return NumpySession(family, package)

    def checks(self, session: NumpySession) -> Sequence[Check]:
        """Return what NumPy users expect beyond values."""
        from opc.backends.numpy.checks import NumpyChecks

        return NumpyChecks(session).all()


def _needs_ml_dtypes(family: Family) -> bool:
    """Whether an operand of the op has dtypes of ml_dtypes alone."""
    op = family.forward
    return any(all(d.row.numpy == "ml_dtypes" for d in candidates(o.type)) for o in (*op.inputs, *op.outputs))


def _python_include() -> Path | None:
    import sysconfig

    folder = Path(sysconfig.get_path("include"))
    return folder if (folder / "Python.h").is_file() else None


def _lacks_machine(include: Path, machine: str) -> bool:
    """Whether the headers have a part for each machine, as Debian's do, and not that one.

    Others' serve every 64-bit machine: what the limited API has of the machine is the same on all.
    """
    part = f"{machine}-linux-gnu/{include.name}/pyconfig.h"
    try:
        return part in (include / "pyconfig.h").read_text(encoding="utf-8") and not (include.parent / part).is_file()
    except OSError:
        return False


def _api(family: Family) -> str:
    about = f"{family.name} on NumPy arrays.\n\nOutputs are new arrays unless `out` gives them. Inputs may have any strides."
    functions = api.functions(family)
    names = ["__package__", quoted(binding.module_name(family)), quoted(family.name)]
    return templates.render(
        "api.py.j2",
        family,
        about=docstring(about),
        extension=bracketed("_extension = _support.extension(", names, indent=0),
        functions=functions,
        spells=any(map(spells, family.ops)),
        code="\n".join(f.description + f.definition for f in functions),
        constants=api.dtype_constants(family) + api.value_constants(family),
    )


def _shipped(family: Family, name: str) -> str:
    """Return a module that is the same in every package.

    There its neighbours have a leading underscore, and the table of dtypes is filled in.
    """
    text = (Path(__file__).parent / "shipped" / f"{name}.py").read_text(encoding="utf-8")
    header = f"# Generated by opc from {family.source_name}; edits are lost.\n"
    table = Bracket("{", [f"{quoted(d.value)}: ({d.row.dlpack}, {d.bits})" for d in DTYPES], "}").render()
    text = text.replace("DLPACK: Mapping[str, tuple[int, int]] = {}", f"DLPACK: Mapping[str, tuple[int, int]] = {table}")
    return header + text.replace("from opc.backends.numpy.shipped.", "from ._")
