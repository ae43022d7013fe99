"""The largest that the range of a reduction gets."""

from __future__ import annotations

import pytest

from opc.analysis.bounds.checker import knowledge_of
from opc.analysis.bounds.largest import largest
from opc.ir.affine import Affine
from opc.ir.expr import Axis, Reduce, walk
from opc.ir.op import Assign
from opc.pipeline import compile_text
from tests.transform.language import spec_text

SHAPES = (
    "inputs: {x: 'T[N]'}\nattributes: {reverse: bool, both: bool, c: int}\noutputs: {y: 'T[N]'}\ngradient: none\nkernel: |\n  "
)


def bound(extent: str) -> str:
    op = compile_text(spec_text("f", f"{SHAPES}y[i] = sum[k:{extent}](pad(x[k], 0))\n")).forward
    (s,) = op.body
    assert isinstance(s, Assign)
    (axis,) = next(e for e in walk(s.value) if isinstance(e, Reduce)).axes
    assert isinstance(axis, Axis)
    (size,) = op.outputs[0].dims
    assert isinstance(size, Affine)
    return str(largest(knowledge_of(op), axis.extent, {"i": size}))


@pytest.mark.parametrize(
    ("extent", "expected"),
    [
        ("i + 1", "N"),
        ("(N - i if reverse else i + 1)", "N"),
        ("(2*i + 2 if reverse else i) + (1 if both else N - i)", None),
        ("c*i", "None"),
    ],
)
def test_a_bool_attribute_may_say_which_way_an_index_goes(extent: str, expected: str | None) -> None:
    """Each way has a bound of its own; an attribute of either sign has none."""
    found = bound(extent)
    assert found == expected if expected else found != "None"
