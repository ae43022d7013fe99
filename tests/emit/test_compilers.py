"""Kernels made by clang++ give what the oracle allows, as those of g++ do: the main forms of loops, at sizes around a vector."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opc.backends.base import Compile
from opc.backends.kernel.backend import VARIANT, KernelBackend, instruction_sets
from opc.build import headers
from opc.pipeline import load_family
from tests.emit.compilers import CLANG, run_compiler
from tests.emit.kernel_library import INCLUDE, KernelLibrary
from tests.fuzz.test_written import wrong
from tests.narrow import narrow

pytestmark = pytest.mark.rotating("file")

FORMS = ("gelu", "layer_norm", "linear", "avg_pool2d")
"""Points, rows with reductions, products, windows."""


@pytest.mark.parametrize("name", FORMS)
def test_kernels_of_clang_agree_with_the_oracle(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIANT, instruction_sets()[0])
    family, backend, objects = load_family(narrow(name, tmp_path / "specs", "float16, float32")), KernelBackend(), []
    for path, text in backend.emit(family).items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for step in backend.build(family):
        if isinstance(step, Compile):
            objects.append(tmp_path / f"{Path(step.object).name}")
            include = (f"-I{INCLUDE}", f"-I{tmp_path}")
            run_compiler(CLANG, *headers.flags(step), *include, "-w", "-c", tmp_path / step.source, "-o", objects[-1])
    library = tmp_path / "library.so"
    run_compiler(("g++",), "-shared", *objects, *backend.link_flags(family), "-o", library)
    with np.errstate(all="ignore"):
        assert not list(wrong(family, KernelLibrary(family, library)))
