"""A reduction over a group of axes inside a loop over the same group: what is derived keeps the two apart, or is refused."""

import pytest

from opc.diagnostics import SpecError
from opc.ir.affine import Affine, Index
from opc.ir.dtypes import DType
from opc.ir.expr import GroupAxis, GroupRef, Read, Reduce, walk
from opc.transform.affine_rules import at_position
from opc.transform.indices import store_values
from tests.fuzz.shadowed import SHADOWED
from tests.fuzz.test_classes import family

HEAD = "inputs: {x: 'T[*A, N]'}\noutputs: {y: 'T[*A, N]'}\nattributes: {c: {type: int, default: 1}}\n"
BODY = "y[*A, i] = x[*A, i] * sum[k:c*i + 1](sum[*A](pad(x[*A, i - k], 0) * x[*A, i]) * x[*A, i])"


@pytest.mark.parametrize("name", SHADOWED)
def test_no_reduction_runs_over_one_group_twice(name: str) -> None:
    for op in family(name, *SHADOWED[name]).ops:
        for s in op.body:
            for e in walk(s.value):
                groups = [a.name for a in e.axes if isinstance(a, GroupAxis)] if isinstance(e, Reduce) else []
                assert len(groups) == len(set(groups)), f"{op.name}: {s.target}"


def test_a_range_of_no_known_size_is_refused() -> None:
    with pytest.raises(SpecError) as refused:
        family("refused", HEAD, BODY)
    (mistake,) = refused.value.diagnostics
    assert mistake.message == "the gradient of this reduction over *A, inside a loop over *A, can't be derived"
    assert BODY[mistake.span.column - 3 :].startswith("sum[*A](")
    assert "a statement of its own" in str(mistake.hint)
    assert family("accepted", HEAD + "gradient: none\n", BODY).backward is None


def test_data_does_not_move_into_a_reduction_over_its_group() -> None:
    place = Read("ids", (GroupRef("A"),), DType.INT64)
    body = Read("x", (GroupRef("A"), Affine.of(Index("k"))), DType.FLOAT64)
    assert store_values(body, {"k": place}) is not None
    assert store_values(Reduce("sum", (GroupAxis("A"),), body, DType.FLOAT64), {"k": place}) is None
    assert store_values(Reduce("sum", (GroupAxis("B"),), body, DType.FLOAT64), {"k": place}) is not None


def test_what_is_known_of_data_is_known_outside_a_reduction_over_its_group() -> None:
    place = Read("ids", (GroupRef("A"),), DType.INT64)
    read = Read("x", (place,), DType.FLOAT64)
    inner = Reduce("sum", (GroupAxis("A"),), read, DType.FLOAT64)
    assert at_position(read, place, Affine.of(Index("j"))) == Read("x", (Affine.of(Index("j")),), DType.FLOAT64)
    assert at_position(inner, place, Affine.of(Index("j"))) == inner
