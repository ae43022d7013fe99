"""The packages kept under `generated/` are what opc writes today, so that a change of a template shows in review."""

from pathlib import Path

import pytest

from opc.build import generate
from opc.pipeline import load_family

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", ["leaky_relu", "dual_residual"])
def test_showcase_is_fresh(name: str) -> None:
    family = load_family(ROOT / "specs" / f"{name}.yaml")
    differences = generate.check(family, ROOT / "generated")
    assert not differences, "run `opc generate specs/leaky_relu.yaml specs/dual_residual.yaml`"
