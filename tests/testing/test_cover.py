"""The covering set: everything at least once, and few ops."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.pipeline import load_family
from opc.testing import cover as covers
from opc.testing.cover import (
    BODY,
    DEVICE,
    INTERFACE,
    LOOPS,
    MEMORY,
    OF_TORCH,
    ON_GPU,
    SIGNATURE,
    cover,
    covering_set,
    expressions,
    features,
)

SPECS = Path(__file__).parents[2] / "specs"
FEW = [SPECS / f"{name}.yaml" for name in ("add", "argmax", "cumsum", "leaky_relu", "relu", "softmax")]


def test_a_cover_has_all_and_nothing_superfluous() -> None:
    found = {"a": frozenset("12345"), "b": frozenset("126"), "c": frozenset("345"), "d": frozenset("7"), "e": frozenset("7")}
    adds = cover(found, {"a": 9.0, "b": 1.0, "c": 1.0, "d": 2.0, "e": 1.0})
    assert adds == {"b": ("1", "2", "6"), "c": ("3", "4", "5"), "e": ("7",)}
    assert cover({}, {}) == {}


def test_features_are_constructs_loops_types_and_ranks() -> None:
    relu, softmax = (features(load_family(SPECS / f"{name}.yaml")) for name in ("leaky_relu", "softmax"))
    assert {"attribute Attribute.kind=float", "op with inplace", "rank *", "type input bfloat16"} <= relu
    assert {
        "language Reduce.kind=sum",
        "language Call",
        "loops RowStage.whole_rows",
        "loops RowAccumulate.kind=max",
    } <= softmax
    assert "language Reduce.kind=sum" not in relu
    # Which functions are called is none, nor what attributes have to be.
    gelu, normalised = (features(load_family(SPECS / f"{name}.yaml")) for name in ("gelu", "lp_normalize"))
    assert not any(text.startswith("language Call.fn") for text in gelu)
    assert "attribute Attribute.check given" in normalised
    assert not any(text.startswith("attribute Call") for text in normalised)


def test_native_code_of_torch_is_no_feature_of_interfaces(tmp_path: Path) -> None:
    covering = covering_set([*FEW, SPECS / "native" / "leaky_relu_aten.yaml"], tmp_path)
    (aten,) = (c for c in covering.chosen if c.name == "leaky_relu_aten")
    assert OF_TORCH in aten.adds
    assert {aten.interface, aten.signature, aten.body} == {False}


def test_stages_fused_by_rows_are_a_feature() -> None:
    fused = {"loops schedule fuse", "loops FusedRows.group given", "loops Temporary.host given"}
    assert fused <= features(load_family(SPECS / "attention.yaml"))
    assert not fused & features(load_family(SPECS / "softmax.yaml"))


def test_the_set_of_specs_has_every_feature_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("op: bad\n")
    again = tmp_path / "relu_again.yaml"
    again.write_text((SPECS / "relu.yaml").read_text().replace("op: relu", "op: relu_again"))
    specs = [*FEW, again]
    covering = covering_set([*specs, bad], tmp_path)
    chosen = covering.chosen
    every = frozenset[str]().union(*(features(load_family(spec)) for spec in FEW))
    assert {text for c in chosen for text in c.adds} == every
    assert len({"relu", "relu_again"} & {c.name for c in chosen}) < 2
    # Few of them have all that interfaces, signatures, loops, bodies or accesses to memory have.
    kinds_of = {"interface": INTERFACE, "signature": SIGNATURE, "loops": LOOPS, "body": BODY, "memory": MEMORY}
    for part, kinds in kinds_of.items():
        few = [c for c in chosen if getattr(c, part)]
        assert len(few) < len(chosen) or part in ("body", "memory")
        found = frozenset[str]().union(*(features(load_family(c.spec)) for c in few))
        assert {f for f in every if f.startswith(kinds)} == {f for f in found if f.startswith(kinds)}
    assert all(c.interface for c in chosen if c.signature)
    on_device = frozenset[str]().union(*(features(load_family(spec)) for spec in covering.device.values()))
    assert {f for f in every if f.startswith(DEVICE)} == {f for f in on_device if f.startswith(DEVICE)}
    assert len(covering.device) < len(specs)
    plugins = frozenset[str]().union(*(expressions(load_family(spec)) for spec in specs))
    assert frozenset[str]().union(*(expressions(load_family(s)) for s in covering.expressions.values())) == plugins
    assert len(covering.expressions) < len(specs)
    called = frozenset[str]().union(*(features(load_family(spec)) for spec in covering.on_gpu.values()))
    assert {f for f in on_device if f.startswith(ON_GPU)} == {f for f in called if f.startswith(ON_GPU)}
    assert covering.on_gpu.keys() <= covering.device.keys()
    # A second time nothing is compiled.
    monkeypatch.setattr(covers, "features", None)
    assert covering_set(specs, tmp_path) == covering
