"""The backends of Paddle: one on its dynamic and static graphs, one on its inference library. They share a package's library.

A package's `paddle/` holds the C++ library, which registers the operators (`library`), and its Python side (`api`). Of Paddle's
headers two are compiled, in less than two seconds an op.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opc.backends import environments
from opc.backends.base import Availability, Backend, BuildStep, Check, Compile, Environment, Link, WheelPart
from opc.backends.dtypes import lacking
from opc.backends.example_text import test_file
from opc.backends.kernel.backend import KernelBackend
from opc.backends.kernel.target import target
from opc.backends.paddle.api import api_source, dispatch_source, operators_source
from opc.backends.paddle.embedding import embedding_files
from opc.backends.paddle.inference_program import inference_files
from opc.backends.paddle.library import cuda_files, library_source, templates, threads_source
from opc.backends.paddle.signature import MAX_OPERANDS
from opc.backends.paddle_names import operator_name
from opc.diagnostics import Diagnostic, SpecError
from opc.ir.op import Family

if TYPE_CHECKING:
    from opc.backends.paddle.inference import InferenceSession
    from opc.backends.paddle.session import PaddleSession

VERSIONS = ">=3.0"
"""The versions of Paddle whose graphs are its new intermediate representation's."""

LIBRARIES = ("libphi_core.so", "libphi.so", "libcommon.so")
"""Paddle's libraries that hold what operators use; some versions lack some."""


def library_path(family: Family) -> str:
    """Return the path of the built library, relative to the package directory."""
    return f"build/lib{family.name}_paddle.so"


def headers(family: Family) -> tuple[str, ...]:
    """Return what an adapter is compiled with: where Paddle's headers are.

    Raises:
        SpecError: when Paddle is not installed.
    """
    folder = environments.folder("paddle", "paddle")
    if folder is None:
        reason = f"{family.name} needs Paddle's headers, and paddlepaddle is not installed"
        raise SpecError([Diagnostic(reason, hint="opc env create paddle")])
    include = folder / "include"
    # -isystem: the warnings of Paddle's headers are not the user's. The version has the file compiled anew after an update.
    version = f'-DOPC_PADDLE_VERSION="{environments.version("paddle", "paddlepaddle")}"'
    places = ("-isystem", str(include), "-isystem", str(include / "third_party"))
    return ("-DPADDLE_NO_PYTHON", version, *places)


def linked_libraries() -> list[str]:
    """Return the paths of Paddle's own libraries that an operator is linked with."""
    folder = environments.folder("paddle", "paddle")
    return [] if folder is None else [str(path) for name in LIBRARIES if (path := folder / "libs" / name).exists()]


class PaddleBackend(Backend):
    """Emits, builds and runs an op family for Paddle."""

    name = "paddle"
    title = "Paddle"
    companion = "opc.backends.paddle.on_gpu:PaddleOnGpuBackend"
    tensor = "paddle.Tensor"
    symbols = ("paddle.base.libpaddle.pir.Value", "paddle.base.framework.Variable")
    wraps = True
    environment = Environment("paddle")

    def probe(self) -> Availability:
        """Say whether Paddle is installed, without importing it."""
        return environments.probe(self.name, "paddlepaddle", versions=VERSIONS)

    def requires(self, family: Family) -> tuple[Diagnostic, ...]:
        """Return why Paddle can't carry the family: dtypes that it lacks, its name, or too many operands."""
        found = list(lacking(family.ops, "Paddle", lambda d: d.row.paddle is not None))
        if "_grad" in operator_name(family, family.forward):
            reason = f"Paddle takes the '_grad' in the name {operator_name(family, family.forward)} for a gradient's"
            found.append(Diagnostic(reason, hint="use another name"))
        for op in family.ops:
            if max(len(op.inputs), len(op.outputs)) > MAX_OPERANDS:
                found.append(Diagnostic(f"{op.name} has more operands than the {MAX_OPERANDS} that Paddle's adapter takes"))
        return tuple(found)

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `paddle/` and its test."""
        name = family.name
        return {
            "paddle/__init__.py": api_source(family),
            "paddle/dispatch.py": dispatch_source(family),
            "paddle/operators.py": operators_source(family),
            f"paddle/{name}_paddle.cpp": library_source(family),
            **cuda_files(family),
            "paddle/threads.c": threads_source(family),
            **embedding_files(family),
            **test_file(family, templates, "paddle"),
        }

    def build(self, family: Family) -> tuple[BuildStep, ...]:
        """Return the steps that make `build/lib<op>_paddle.so`.

        It is linked with Paddle's own libraries by their names alone: the process that loads an operator has loaded them.

        Raises:
            SpecError: when Paddle, whose headers are compiled, is not installed.
        """
        flags, kernel = ("-O1", "-std=c++17", *headers(family)), KernelBackend()
        adapter, threads = f"build/{family.name}_paddle.o", "build/paddle_threads.o"
        return (
            *kernel.build(family),
            Compile(f"paddle/{family.name}_paddle.cpp", adapter, flags, glue=True, header="opc/adapters/paddle.h"),
            Compile("paddle/threads.c", threads, ("-O2", "-D_GNU_SOURCE"), "c", glue=True),
            Link(
                (adapter, threads, *kernel.objects(family)),
                library_path(family),
                (*linked_libraries(), *kernel.link_flags(family), "-lpthread"),
            ),
        )

    def wheel(self, family: Family) -> WheelPart | None:
        """Return the library of operators, for the versions of Paddle that have the interface of C++ it is compiled against.

        It is linked with Paddle's libraries, which are this machine's: for another one there is none.
        """
        if not target().is_here:
            return None
        built = environments.version("paddle", "paddlepaddle") or ""
        series = ".".join(built.split(".")[:2])
        requires = (f"paddlepaddle=={series}.*",) if series else ()
        path = library_path(family)
        return WheelPart((path,), requires, without=("paddle/setup.py",), registers=True, handed=path)

    def adopt(self, function: Callable[..., Any]) -> bool:
        """Have `to_static` in its default mode, which could not follow a search for a tensor's backend, call it as it stands."""
        from paddle.jit.marker import force_dynamic

        force_dynamic(function)
        return True

    def session(self, family: Family, package: Path) -> PaddleSession:
        """Load the built package.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.paddle.session import PaddleSession

        return PaddleSession(family, package)

    def checks(self, session: PaddleSession) -> Sequence[Check]:
        """Return what Paddle promises of an op beyond values and gradients."""
        from opc.backends.paddle.checks import PaddleChecks

        return PaddleChecks(session).all()


class PaddleInferenceBackend(PaddleBackend):
    """Runs the same operators from saved models, in Paddle Inference."""

    name = "paddle_inference"
    title = "Paddle Inference"
    companion = ""
    tensor = ""  # a model of it has no tensors that users hold

    def emit(self, family: Family) -> dict[str, str]:
        """Return the files of `paddle/`, and those of a program in C++ that runs a saved model."""
        return {**super().emit(family), **inference_files(family)}

    def wheel(self, family: Family) -> None:
        """Return nothing: programs take the library that a wheel has for Paddle."""
        return

    def session(self, family: Family, package: Path) -> InferenceSession:  # type: ignore[override]  # another session, same protocol
        """Load the built library.

        Raises:
            ImportError: when it has not been built.
        """
        from opc.backends.paddle.inference import InferenceSession

        return InferenceSession(family, package)

    def checks(self, session: object) -> Sequence[Check]:
        """Return nothing that the calls themselves do not prove."""
        return ()
