"""Kernels built once for all tests of a session."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from opc.ir.op import Family
from opc.pipeline import load_family
from tests.emit.kernel_library import compile_kernel
from tests.narrow import only

SPECS = Path(__file__).parents[2] / "specs"

Build = Callable[..., tuple[Family, Path]]


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Return a function that builds the kernel of a spec in specs/, with further compiler flags.

    With `derived`, these of its derived ops alone.
    """

    @cache
    def built(name: str, *flags: str, derived: tuple[str, ...] | None = None) -> tuple[Family, Path]:
        family = load_family(SPECS / f"{name}.yaml")
        family = family if derived is None else only(family, *derived)
        return family, compile_kernel(family, tmp_path_factory.mktemp(name), *flags)

    return built
