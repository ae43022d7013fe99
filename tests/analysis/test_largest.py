"""The largest that the range of a reduction gets."""

from __future__ import annotations

import pytest

from opc.analysis.bounds.knowledge import knowledge_of
from opc.analysis.bounds.largest import largest
from opc.backends.onnx.backend import OnnxBackend
from opc.backends.popart.backend import PopartBackend
from opc.backends.rknn.backend import RknnBackend
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


def test_a_group_of_a_size_that_is_divided_is_as_large_as_any() -> None:
    """The rows of group q, of a groups in all, are those from ceil(N*q/a) to ceil(N*(q + 1)/a): N // a, as a divides N."""
    more = "require: [N % a == 0, I > 0]\nattributes: {a: {type: int, default: 1, check: a > 0}}\n"
    shapes = f"inputs: {{x: 'T[N]', w: 'T[I]'}}\noutputs: {{y: 'T[N]'}}\n{more}gradient: none\nkernel: |\n  "
    body = "y[i] = w[0] * sum[k:-((-N - N*(i // I)) // a) + ((-N*(i // I)) // a)](x[i])"
    op = compile_text(spec_text("f", f"{shapes}{body}\n")).forward
    (s,) = op.body
    (axis,) = next(e for e in walk(s.value) if isinstance(e, Reduce)).axes
    assert isinstance(axis, Axis)
    (size,) = op.outputs[0].dims
    assert isinstance(size, Affine)
    assert str(largest(knowledge_of(op), axis.extent, {"i": size})) == "N // a"


def test_what_has_no_bound_has_no_reference_in_numpy() -> None:
    """Backends that are made from one leave such an op out, and say so."""
    family = compile_text(spec_text("f", f"{SHAPES}y[i] = sum[k:c*i](pad(x[k], 0))\n"))
    (found,) = OnnxBackend().requires(family)
    assert found.message == "f has no reference in NumPy: the range of a reduction, i*c, has no bound that is known"
    assert [d.message for b in (RknnBackend(), PopartBackend()) for d in b.requires(family)] == [found.message] * 2
