"""Libraries of kernels on a device, in the emulation."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from opc.backends.base import Compile, Link
from opc.backends.cuda import toolkit
from opc.backends.cuda.backend import CudaBackend
from opc.backends.cuda.session import CudaSession
from opc.emit.kernel.files import kernel_files
from opc.ir.op import Family
from opc.pipeline import load_family
from tests.narrow import only

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., CudaSession]:
    """Return what builds the library of an op, of the folder of specs or a family, with the derived ops named, and loads it."""

    def load(op: str | Family, *derived: str) -> CudaSession:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(toolkit.VARIABLE, toolkit.EMULATED)
            family = only(load_family(ROOT / "specs" / f"{op}.yaml") if isinstance(op, str) else op, *derived)
            backend, folder = CudaBackend(), tmp_path_factory.mktemp(family.name)
            assert backend.execution == "emulated"
            for path, text in {**kernel_files(family), **backend.emit(family)}.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(text)
            for step in backend.build(family):
                match step:
                    case Compile():
                        (folder / step.object).parent.mkdir(parents=True, exist_ok=True)
                        command = ["g++", *step.flags, f"-I{ROOT / 'runtime' / 'include'}", "-c", step.source, "-o", step.object]
                    case Link():
                        objects = [*step.objects, *(each.object for each in step.shared)]
                        for each in step.shared:
                            own = ["g++", *each.flags, f"-I{ROOT / 'runtime' / 'include'}", "-c", each.source, "-o", each.object]
                            subprocess.run(own, check=True, cwd=folder)
                        command = ["g++", "-shared", *objects, *step.flags, "-o", step.output]
                subprocess.run(command, check=True, cwd=folder)
            return CudaSession(family, folder)

    return load
