"""Operators on DTensors in two processes over gloo: values and gradients of whole tensors, no collective but needed ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from opc.backends.torch.sharding import sharding_source
from opc.build.builder import build_families
from opc.pipeline import compile_text, load_family
from tests.narrow import narrow, only

from .conftest import Loader

OPS = ("leaky_relu", "add", "softmax", "layer_norm", "linear", "embedding", "onnx/unsqueeze")
SCRIPT = Path(__file__).with_name("sharded.py")

# For each case: placements of the floating outputs, of the gradients, and the collectives forward and backward.
GATHER = {"all_gather_into_tensor": 1}
EXPECTED: dict[str, tuple[list[str], list[str | None], dict[str, int], dict[str, int]]] = {
    "elementwise": (["S(0)"], ["S(0)"], {}, {}),
    "elementwise-default": (["S(1)"], ["S(1)"], {}, {}),
    "broadcast": (["S(0)"], ["S(0)", "S(0)"], {}, {}),
    "broadcast-row": (["S(0)"], ["S(0)", "P(sum)"], {}, {}),
    "broadcast-both": (["S(0)"], ["S(0)", "P(sum)"], {}, {}),
    "broadcast-columns": (["S(1)"], ["S(1)", "S(0)"], {}, {}),
    "softmax-batch": (["S(0)"], ["S(0)"], {}, {}),
    "softmax-behind": (["S(2)"], ["S(2)"], {}, {}),
    "softmax-along": (["R"], ["R"], GATHER, {}),
    "layer_norm": (["S(0)"] * 3, ["S(0)", "P(sum)", "P(sum)"], {}, {}),
    "layer_norm-plain": (["S(1)"] * 3, ["S(1)", None, None], {}, {}),
    "linear-batch": (["S(0)"], ["S(0)", "P(sum)", "P(sum)"], {}, {}),
    "linear-column": (["S(1)"], ["P(sum)", "S(0)", "S(0)"], {}, {}),
    "linear-row": (["P(sum)"], ["S(1)", "S(1)", None], {}, {}),
    "linear-row-bias": (["P(sum)"], ["S(1)", "S(1)", "R"], {}, {}),
    "embedding-batch": (["S(0)"], [None, "P(sum)"], {}, {}),
    "embedding-columns": (["S(2)"], [None, "S(1)"], {}, {}),
    "new-axis-ahead": (["S(2)"], ["S(1)"], {}, {}),
    "new-axis-behind": (["S(1)"], ["S(1)"], {}, {}),
    "compiled": (["S(0)"], ["S(0)"], {}, {}),
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """Run all cases once; for each, what each of the two processes says."""
    folder = tmp_path_factory.mktemp("sharded")
    families = [only(load_family(narrow(op, folder / "specs", "float64")), "backward") for op in OPS]
    built = build_families(families, folder, ["torch"])
    assert [d.render() for b in built for d in b.diagnostics] == []
    meeting = tmp_path_factory.mktemp("gloo") / "meeting"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    command = [sys.executable, str(SCRIPT)]
    processes = [
        subprocess.Popen(
            [*command, str(rank), str(meeting), str(folder)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    results: dict[str, list[dict[str, Any]]] = {}
    try:
        for process in processes:
            output, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
            for line in output.splitlines():
                result = json.loads(line)
                results.setdefault(result["name"], []).append(result)
    finally:
        for process in processes:
            process.kill()
    return results


@pytest.mark.rotating("file", seconds=12)
@pytest.mark.parametrize("name", EXPECTED)
def test_sharded(found: dict[str, list[dict[str, Any]]], name: str) -> None:
    placements, gradients, forward, backward = EXPECTED[name]
    assert len(found[name]) == 2
    for result in found[name]:
        assert result["wrong"] == []
        assert (result["placements"], result["gradients"]) == (placements, gradients)
        assert (result["forward"], result["backward"]) == (forward, backward)


@pytest.mark.rotating("file")
def test_packages_do_not_import_dtensor(found: dict[str, list[dict[str, Any]]]) -> None:
    assert [result["eager"] for result in found["import"]] == [False, False]


def test_rules_are_in_the_package(family: Loader) -> None:
    text = sharding_source(family("linear"))
    assert 'inputs=("... K", "O K", "O"),' in text
    assert 'Way("K", "shard shard sum", "sum"),' in text
    text = sharding_source(family("add"))
    assert 'outputs=("...@0", "...@1"),' in text
    assert 'Way("...", "shard shard shard", "own own"),' in text


def test_an_axis_is_one_of_the_operand_with_groups_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = """\
op: scaled
domain: opc.test
version: 1
doc: A test.
types: {T: floating}
inputs: {w: 'T[N]', x: 'T[*A, N, *B]'}
attributes: {axis: {type: axis, dim: N, default: -1}}
outputs: {y: 'T[*A, N, *B]'}
kernel: |
  y[*A, n, *B] = w[n] * x[*A, n, *B]
"""
    text = sharding_source(compile_text(spec, "scaled.yaml"))
    modules = {name: ModuleType(f"scaled.{name}") for name in ("operators", "dispatch", "late", "sharding")}
    modules["operators"].__getattr__ = lambda name: None
    modules["dispatch"].Operator = object
    modules["late"].when_imported = lambda *_: None
    modules["sharding"].__package__ = "scaled"
    for name, module in {"scaled": ModuleType("scaled"), **modules}.items():
        monkeypatch.setitem(sys.modules, name if name == "scaled" else f"scaled.{name}", module)
        if name != "scaled":
            setattr(sys.modules["scaled"], name, module)
    found = vars(modules["sharding"])
    exec(text, found)
    for axis in (1, -3):
        call = found["_Call"](found["RULES"][0], [SimpleNamespace(ndim=1), SimpleNamespace(ndim=4)], [None, None, axis])
        assert call.ranks == {"*A": 1, "*B": 2}
