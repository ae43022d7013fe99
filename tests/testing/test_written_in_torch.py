"""specs/fused, specs/bench: the examples of each spec hold, and what torch's formula of the op gives is what the oracle does."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.diagnostics import Diagnostics
from opc.pipeline import load_family
from opc.testing.cases.table import accepted
from opc.testing.extent import Extent
from opc.testing.references.examples import check_examples, example_cases
from opc.testing.references.torch import RefusedByTorchError, check_reference

ROOT = Path(__file__).parents[2] / "specs"
SPECS = [p for folder in ("bench", "fused") for p in sorted((ROOT / folder).glob("*.yaml"))]
KINDS = ("sizes", "attribute", "attributes", "without", "random")
"""Calls whose inputs are ordinary numbers: `opc test` runs also special ones, and large ones."""

WRONG = {
    "adamw": ("beta2 * v + (1 - beta2) * grad * grad", "beta2 * v + (1 - beta1) * grad * grad"),
    "alibi_attention": ("- slopes[h] *", "+ slopes[h] *"),
    "grid_sample2d": ("- (0 if align_corners else 1)", "- (1 if align_corners else 0)"),
    "linear_int4": ("4 * (i % 2)", "4 * ((i + 1) % 2)"),
    "moe_routing": ("sum[i](p[n, i]) if normalize", "sum[i](p[n, i]) if not normalize"),
    "paged_attention": ("h * G // H, d]", "h % G, d]"),
    "rotary_positions": ("-2 * log(base)", "-1 * log(base)"),
    "sliding_window_attention": ("w <= i", "w < i or i == 0"),
}
"""Faults that a spec could have: what stands there, and what would in its place."""


def wrong_in(path: Path, domain: str = "fused") -> list[str]:
    """Return what is wrong in a spec: mistakes, examples that do not hold, calls that torch gives another answer to.

    Where torch has no formula of an op that is there to be measured, its case says one, and `test_bench_formulas` tries that.
    """
    found = Diagnostics()
    family = load_family(path, found)
    if found.items:
        return [d.message for d in found.items]
    assert (family.name, family.forward.domain) == (path.stem, f"opc.{domain}")
    wrong = [message for _, message in check_examples(family) if message]
    if domain == "bench" and family.reference.torch is None:
        return wrong
    calls = [c for c in accepted(family.forward, extent=Extent.SAMPLE) if c.kind in KINDS]
    decided = 0
    for case in [*example_cases(family), *calls]:
        try:
            compared = check_reference(family, case)
        except RefusedByTorchError:
            continue
        if compared is not None:
            decided += 1
            wrong += [] if compared.ok else [f"{case.name}: {compared.message}"]
    return wrong if decided > len(calls) // 2 else [*wrong, f"torch decides {decided} calls of {len(calls)}"]


@pytest.mark.rotating
@pytest.mark.parametrize("path", SPECS, ids=lambda p: p.stem)
def test_a_spec_gives_what_torch_gives(path: Path) -> None:
    assert wrong_in(path, path.parent.name) == []


@pytest.mark.rotating
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_spec_is_found(name: str, tmp_path: Path) -> None:
    right, wrong = WRONG[name]
    text = (ROOT / "fused" / f"{name}.yaml").read_text()
    assert text.count(right) == 1
    path = tmp_path / f"{name}.yaml"
    path.write_text(text.replace(right, wrong))
    assert wrong_in(path)
