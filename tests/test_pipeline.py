"""Loading a spec again: the same family while its text is the same. And what is asked of its ops once, whoever asks."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from opc.analysis import sharding
from opc.backends import registry
from opc.compiler import compile_spec
from opc.diagnostics import Diagnostics
from opc.ir.affine import Dim, GroupSize
from opc.ir.op import Op
from opc.ir.verify import _OpVerifier
from opc.pipeline import load_family

TEXT = """\
op: twice
domain: test
version: 1
doc: Twice x.
types: {T: [float32]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]'}
kernel: |
  y = 2*x
"""


def test_a_spec_is_compiled_again_when_its_text_changes(tmp_path: Path) -> None:
    spec = tmp_path / "twice.yaml"
    spec.write_text(TEXT)
    first = load_family(spec)
    assert load_family(spec) is first
    spec.write_text(TEXT.replace("2*x", "3*x"))
    assert load_family(spec).forward != first.forward
    spec.write_text(TEXT)
    assert load_family(spec, Diagnostics()) == first


def test_what_a_pass_leaves_as_it_is_is_verified_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verified: list[Op] = []
    run = _OpVerifier.run

    def recorded(self: _OpVerifier) -> None:
        verified.append(self.op)
        run(self)

    monkeypatch.setattr(_OpVerifier, "run", recorded)
    path = tmp_path / "once.yaml"
    path.write_text(TEXT.replace("2*x", "7*x"))
    family = load_family(path)
    assert family.backward is not None
    # The op as it is elaborated, and each of the family as it is lowered; the gradient also before reads are guarded.
    assert len(set(verified)) == len(verified), [op.name for op in verified]


def test_ways_to_shard_an_op_are_found_once_for_all_frameworks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Op, object]] = []
    along = sharding._along

    def recorded(op: Op, by: Dim | GroupSize) -> Iterator[sharding.Sharding]:
        asked.append((op, by))
        return along(op, by)

    monkeypatch.setattr(sharding, "_along", recorded)
    path = tmp_path / "sharded.yaml"
    path.write_text(TEXT.replace("2*x", "9*x"))
    compile_spec(path, registry.select(["jax", "torch"]))
    assert asked
    assert len(set(asked)) == len(asked)
