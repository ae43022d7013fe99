"""Specs with several lists of numbers: an op for each pair of ranks, or of a rank and a count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opc.build import stamp
from opc.ir.printer import format_op
from opc.overloads import RankedOp, VariadicOp
from opc.pipeline import compile_text, family_of
from opc.spec import files
from opc.spec.instances import numbers_of, read_instances
from opc.spec.instantiate import Operand, inputs_of, lengths_of
from opc.spec.loader import load, loads
from opc.testing.references.examples import check_examples

FOLD = """\
op: fold
domain: tests
version: 1
doc: The elements of {S} axes along {O} others.
types: {T: [float32, float64]}
ranks: {S: [1, 2, 3], O: [1, 2]}
inputs: {x: 'T[*S]'}
attributes:
  shape: {type: 'int[*O]', check: shape >= 0}
outputs: {y: 'T[*O]'}
shape: {O: 'shape if shape > 0 else size(S, axis(O))'}
require: [size(*O) == size(*S), rank(S) + rank(O) < 9]
kernel: |
  y[*O] = x[*(unravel(S, position(*O)))]
examples:
  - {x: [1.0, 2.0], shape: [2], y: [1.0, 2.0]}
  - {x: [[1.0, 2.0], [3.0, 4.0]], shape: [0, 2], y: [[1.0, 2.0], [3.0, 4.0]]}
  - {x: [[[1.0, 2.0]]], shape: [2], y: [1.0, 2.0]}
"""
FOLD_3_2 = """\
op: fold3d2d
domain: tests
version: 1
doc: The elements of 3 axes along 2 others.
types: {T: [float32, float64]}
inputs: {x: 'T[S0, S1, S2]'}
attributes:
  shape: {type: 'int[2]', check: shape >= 0}
outputs: {y: 'T[O0, O1]'}
shape: {O0: 'shape[0] if shape[0] > 0 else S0', O1: 'shape[1] if shape[1] > 0 else S1'}
require: [O0 * O1 == S0 * S1 * S2, 3 + 2 < 9]
kernel: |
  y[o0, o1] = x[(o0*O1 + o1) // (S1*S2) % S0, (o0*O1 + o1) // S2 % S1, (o0*O1 + o1) % S2]
"""
SUMS = """\
op: sums
domain: tests
version: 1
doc: Sums over windows of {S} axes of {x} tensors, each times its weight.
types: {T: [float32, float64]}
ranks: {S: [1, 2], O: S, K: S}
counts: {x: [2, 3]}
inputs: {x: 'T[N, *S]'}
attributes:
  size: {type: 'int[*S]', check: size > 0}
  weight: {type: 'float[*x]', default: 1.0}
outputs: {y: 'T[N, *O]'}
shape: {K: size, O: S - K + 1}
require: [S >= K]
kernel: |
  y[n, *O] = sum[*K](sum(*(x[n, *(O + K)] * weight)))
examples:
  - {x: [[[1.0, 2.0]], [[3.0, 4.0]]], size: [2], weight: [1.0, 2.0], y: [[17.0]]}
  - {x: [[[[1.0]]], [[[2.0]]], [[[4.0]]]], size: [1, 1], y: [[[7.0]]]}
"""


def test_a_pair_of_ranks_is_what_a_person_would_write() -> None:
    found, written = family_of(loads(FOLD, "fold.yaml", number=(3, 2))), compile_text(FOLD_3_2, "fold3d2d.yaml")
    assert [format_op(op) for op in found.ops] == [format_op(op) for op in written.ops]
    assert found.backward is not None
    assert not any("sum" in line for line in format_op(found.backward).splitlines())


@pytest.mark.parametrize(("text", "pairs"), [(FOLD, 6), (SUMS, 4)], ids=["fold", "sums"])
def test_each_pair_is_an_op(text: str, pairs: int) -> None:
    assert len(numbers_of(text)) == pairs
    checked = 0
    for numbers in numbers_of(text):
        family = family_of(loads(text, "op.yaml", number=numbers))
        assert [message for _, message in check_examples(family) if message] == []
        checked += len(family.examples)
    assert checked == text.count("- {x")


def test_a_rank_and_a_count_are_written_out() -> None:
    model = loads(SUMS, "sums.yaml", number=(2, 3)).model
    assert (model.op, model.doc) == ("sums2d3", "Sums over windows of 2 axes of 3 tensors, each times its weight.")
    assert {n: o.type for n, o in model.inputs.items()} == {f"x{i}": "T[N, S0, S1]" for i in range(3)}
    assert model.kernel is not None
    assert model.kernel.rstrip("\n").endswith(" + ".join(f"(x{i}[n, o0 + k0, o1 + k1] * weight[{i}])" for i in range(3)) + "))")


def test_paths_say_which_op(tmp_path: Path) -> None:
    (tmp_path / "fold.yaml").write_text(FOLD)
    (tmp_path / "sums.yaml").write_text(SUMS)
    names = ["fold1d1d", "fold1d2d", "fold2d1d", "fold2d2d", "fold3d1d", "fold3d2d", "sums1d2", "sums1d3", "sums2d2", "sums2d3"]
    found = files.in_folder(tmp_path)
    assert [p.stem for p in found] == names
    assert [load(p).model.op for p in found] == names
    assert [stamp.op_of(p, files.content(p)) for p in found] == names
    assert len({load(p).hash for p in found}) == len(found)
    assert [files.file_of(p).name for p in found] == ["fold.yaml"] * 6 + ["sums.yaml"] * 4
    for other in ("fold4d1d", "fold2d", "sums2d", "sums2", "sums3d2"):
        path = tmp_path / f"{other}.yaml"
        assert files.file_of(path) == path


class Member:
    """Stands for an op: says which it is."""

    inputs = ("x",)

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __call__(self, x: Any, shape: Any = None) -> str:
        """Do nothing else."""
        return self.__name__


def test_operands_and_lists_choose_together() -> None:
    made = read_instances(FOLD)
    assert made is not None
    root, instances = made
    members: Any = {n: Member(f"fold{n[0]}d{n[1]}d") for n in numbers_of(FOLD)}
    inputs = {n: inputs_of(root, instances, n) for n in members}
    assert inputs[3, 2] == [Operand("x", False, 3)]
    fold = RankedOp("fold", members, inputs, {n: lengths_of(root, instances, n) for n in members}, ())
    assert fold(np.ones((2, 2)), shape=[4]) == "fold2d1d"
    assert fold(np.ones((2, 1, 2)), [2, 2]) == "fold3d2d"
    with pytest.raises(ValueError, match="x has 4 axes: fold1d1d takes 1"):
        fold(np.ones((1, 1, 1, 1)), shape=[1])


class Several(Member):
    """Stands for an op of two operands."""

    inputs = ("x0", "x1")

    def __call__(self, x0: Any, x1: Any, size: Any = None) -> str:
        """Do nothing else."""
        return self.__name__


def test_a_list_of_operands_chooses_first() -> None:
    made = read_instances(SUMS)
    assert made is not None
    root, instances = made
    numbers = [n for n in numbers_of(SUMS) if n[1] == 2]
    members: Any = {n: Several(f"sums{n[0]}d2") for n in numbers}
    inputs = {n: inputs_of(root, instances, n) for n in numbers}
    assert inputs[2, 2] == [Operand("x", True, 3)]
    two = RankedOp("sums2", members, inputs, {n: lengths_of(root, instances, n) for n in numbers}, ())
    sums = VariadicOp("sums", {2: two}, {2: inputs[2, 2]}, ())
    assert sums([np.ones((1, 2)), np.ones((1, 2))]) == "sums1d2"
    assert sums([np.ones((1, 2, 2)), np.ones((1, 2, 2))], size=[1, 1]) == "sums2d2"
