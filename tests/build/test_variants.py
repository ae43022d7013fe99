"""Which instruction-set variants of a kernel are compiled, and that a library with all of them runs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from opc.backends.base import Compile
from opc.backends.kernel.backend import OPTIMIZE, VARIANT, VARIANTS, KernelBackend, instruction_sets
from opc.build import headers
from opc.build.builder import build_specs
from opc.build.toolchain import runtime_include
from opc.diagnostics import SpecError
from opc.pipeline import load_family

SPEC = Path(__file__).parents[2] / "specs" / "leaky_relu.yaml"


def compiled() -> list[tuple[str, ...]]:
    return [headers.flags(step) for step in KernelBackend().build(load_family(SPEC)) if isinstance(step, Compile)]


def test_all_are_compiled_unless_one_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIANT, raising=False)
    entry, *loops = compiled()
    assert not any("FORCE" in flag for flag in entry)
    assert "-O1" in entry
    assert [f for flags in loops for f in flags if "OPC_VARIANT" in f] == [f"-DOPC_VARIANT={name}" for name in VARIANTS]


@pytest.mark.parametrize("name", VARIANTS)
def test_one_alone(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(VARIANT, name)
    entry, loops = compiled()
    assert f"-DOPC_FORCE_VARIANT={name}" in entry
    assert "-O0" in entry
    assert f"-DOPC_VARIANT={name}" in loops
    assert len(KernelBackend().objects(load_family(SPEC))) == 2


def test_how_much_of_one_alone_is_optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    """All, all but what training seldom calls, or nothing; libraries of all variants are always optimised."""
    monkeypatch.setenv(VARIANT, "baseline")
    (name,) = {*re.findall(r"OPC_SELDOM_[A-Z]+", (Path(runtime_include()) / "opc/core/variant.h").read_text())}
    seldom = f"-D{name}"
    for optimise, marks in (("", set()), ("1", {seldom}), ("0", {"-O0"})):
        monkeypatch.setenv(OPTIMIZE, optimise)
        _, loops = compiled()
        assert {*loops} & {"-O0", seldom} == marks
        assert "-O2" in loops
    monkeypatch.delenv(VARIANT)
    for optimise in ("0", "1"):
        monkeypatch.setenv(OPTIMIZE, optimise)
        assert not any({*flags} & {"-O0", seldom} for flags in compiled())


def test_native_is_the_best_that_runs_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIANT, "native")
    assert f"-DOPC_FORCE_VARIANT={instruction_sets()[0]}" in compiled()[0]
    assert instruction_sets()[-1] == "baseline"


def test_an_unknown_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIANT, "v9")
    with pytest.raises(SpecError, match=r"\$OPC_VARIANT is 'v9'") as caught:
        compiled()
    assert "native or one of baseline, v3, v4" in str(caught.value)


@pytest.mark.rotating
def test_a_library_of_all_is_another_build_and_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from opc.backends import package

    monkeypatch.delenv(VARIANT, raising=False)
    built = build_specs([SPEC], tmp_path, ["numpy"])[0]
    assert built.package is not None
    assert len([*built.package.glob("build/kernel/*_loops_*.o")]) == 3
    module = package.load(built.package, "numpy")
    np.testing.assert_array_equal(module.leaky_relu(np.array([-2.0, 3.0]), alpha=0.5), [-1.0, 3.0])
    assert build_specs([SPEC], tmp_path, ["numpy"])[0].fresh
    monkeypatch.setenv(VARIANT, "native")
    assert not build_specs([SPEC], tmp_path, ["numpy"])[0].fresh
