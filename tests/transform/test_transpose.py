"""Transposition of reads against brute force: every access pattern of the language on small arrays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opc.analysis.bounds.knowledge import Knowledge
from opc.ir.affine import Affine, AttrInt, Dim, Index
from opc.ir.dtypes import TYPE_SETS, TypeVar
from opc.ir.expr import Axis, BroadcastAxis, GroupAxis, GroupRef, Read, Reduce
from opc.ir.op import Group
from opc.ir.printer import format_expr
from opc.transform.domain import Domain
from opc.transform.transpose import transpose
from tests.amounts import examples
from tests.transform.evaluator import Point

T = TypeVar("T", TYPE_SETS["floating"])
LOOPS = ("i", "j")


def brute_force(read: Read, axes: tuple[Axis, ...], adjoint: np.ndarray, shape: tuple[int, ...], point: Point) -> np.ndarray:
    """Scatter the adjoint at every point of the loops to where the access reads; a read outside the operand adds nothing."""
    result = np.zeros(shape, dtype=object)
    for at in itertools.product(*(range(n) for n in adjoint.shape)):
        inner = Point(point.operands, point.symbols | {a.index: i for a, i in zip(axes, at)})
        where = tuple(inner.affine(i) for i in read.indices)
        if all(0 <= w < n for w, n in zip(where, shape)):
            result[where] += adjoint[at]
    return result


def check(
    read: Read,
    axes: tuple[Axis, ...],
    shape: tuple[int, ...],
    symbols: dict[str, int],
    dims: tuple[Affine, ...],
    facts: tuple[Affine, ...] = (),
) -> str:
    """Compare the transposed read with brute force and return the expression as text."""
    point = Point({}, symbols)
    extents = tuple(point.affine(a.extent) for a in axes)
    adjoint = np.arange(1, 1 + int(np.prod(extents)), dtype=object).reshape(extents)
    value = Read("d_y", tuple(Affine.of(Index(a.index)) for a in axes), T)
    target = tuple(f"t{n}" for n in range(len(shape)))
    result = transpose(read, Domain(axes, ()), value, target, dims, Knowledge(facts=facts))
    expected = brute_force(read, axes, adjoint, shape, point)
    for at in itertools.product(*(range(n) for n in shape)):
        here = Point({"d_y": adjoint}, symbols | dict(zip(target, at)))
        assert here.value(result) == expected[at], f"{format_expr(result)} at {at}"
    return format_expr(result)


i, j = Affine.of(Index("i")), Affine.of(Index("j"))


@st.composite
def affine_index(draw: st.DrawFn) -> Affine:
    a, b = draw(st.integers(-3, 3)), draw(st.integers(-3, 3))
    e = i * a + j * b + draw(st.integers(-3, 4))
    kind = draw(st.sampled_from(["affine", "affine", "bare", "div", "mod"]))
    match kind:
        case "bare":
            return draw(st.sampled_from([i, j]))
        case "div":
            return draw(st.sampled_from([i, j, e])) // draw(st.integers(1, 3))
        case "mod":
            return draw(st.sampled_from([i, j, e])) % draw(st.integers(1, 4))
        case _:
            return e


@settings(max_examples=examples(120, 400), deadline=None)
@given(
    st.lists(affine_index(), min_size=1, max_size=2),
    st.tuples(st.integers(1, 4), st.integers(1, 4)),
    st.lists(st.integers(1, 5), min_size=2, max_size=2),
)
def test_any_affine_access(indices: list[Affine], extents: tuple[int, int], sizes: list[int]) -> None:
    shape = tuple(sizes[: len(indices)])
    axes = tuple(Axis(n, Affine.of(e)) for n, e in zip(LOOPS, extents))
    check(Read("x", tuple(indices), T), axes, shape, {}, tuple(Affine.of(n) for n in shape))


@settings(max_examples=examples(50, 150), deadline=None)
@given(
    stride=st.integers(1, 3),
    dilation=st.integers(1, 3),
    padding=st.integers(0, 2),
    window=st.integers(1, 3),
    size=st.integers(1, 7),
)
def test_window_with_symbolic_parameters(stride: int, dilation: int, padding: int, window: int, size: int) -> None:
    s, d, p, k = (Affine.of(AttrInt(n)) for n in ("s", "d", "p", "k"))
    n = Affine.of(Dim("N"))
    out = max(0, (size + 2 * padding - dilation * (window - 1) - 1) // stride + 1)
    axes = (Axis("i", Affine.of(Dim("M"))), Axis("j", k))
    symbols = {"s": stride, "d": dilation, "p": padding, "k": window, "N": size, "M": out}
    text = check(Read("x", (i * s + j * d - p,), T), axes, (size,), symbols, (n,), (s - 1, d - 1))
    # The long loop is solved for; only the window stays.
    assert "sum[j:k]" in text or out == 0
    assert "M](" not in text


@pytest.mark.parametrize("kind", [Dim, AttrInt])
@pytest.mark.parametrize(("heads", "groups"), [(6, 2), (6, 3), (4, 4), (5, 1)])
def test_the_members_of_a_group_are_as_many_in_each(heads: int, groups: int, kind: type[Dim] | type[AttrInt]) -> None:
    """Where groups divide heads, be these sizes or attributes, the sum over a group's heads has an extent without an index."""
    h, g = Affine.of(kind("H")), Affine.of(kind("G"))
    axes = (Axis("i", h), Axis("j", Affine.of(Dim("M"))))
    symbols = {"H": heads, "G": groups, "M": 2}
    divides = (g * (h // g) - h, g - 1, h - 1)
    text = check(Read("x", ((i * g) // h, j), T), axes, (groups, 2), symbols, (g, Affine.of(Dim("M"))), divides)
    assert text == "sum[k:H // G](d_y[k + t0*(H // G), t1])"
    # Of others groups have one more or less.
    text = check(Read("x", ((i * g) // h, j), T), axes, (groups, 2), symbols, (g, Affine.of(Dim("M"))), divides[1:])
    assert "(-t0*H - H) // G" in text


@pytest.mark.parametrize(
    ("indices", "expected"),
    [
        ((i, j), "d_y[t0, t1]"),
        ((j, i), "d_y[t1, t0]"),
        ((i,), "sum[j:M](d_y[t0, j])"),
        ((i, i), "sum[j:M](d_y[t0, j]) if t1 == t0 else 0"),
        ((Affine.of(0), j), "sum[i:N](d_y[i, t1]) if t0 == 0 else 0"),
        ((i - 1, j), "d_y[t0 + 1, t1] if t0 + 1 < N else 0"),
        ((i + 1, j), "d_y[t0 - 1, t1] if t0 - 1 >= 0 else 0"),
    ],
)
def test_form(indices: tuple[Affine, ...], expected: str) -> None:
    n, m = Affine.of(Dim("N")), Affine.of(Dim("M"))
    dims = (n, n) if indices == (i, i) else (m, n) if indices == (j, i) else (n, m)
    value = Read("d_y", (i, j), T)
    target = tuple(f"t{k}" for k in range(len(indices)))
    result = transpose(Read("x", indices, T), Domain((Axis("i", n), Axis("j", m)), ()), value, target, dims[: len(indices)])
    assert format_expr(result) == expected


def test_groups_that_a_read_does_not_use_are_summed() -> None:
    value = Read("d_y", (GroupRef("..."), j), T)
    domain = Domain((Axis("j", Affine.of(Dim("D"))),), (("...", None),))
    result = transpose(Read("w", (j,), T), domain, value, ("j",), (Affine.of(Dim("D")),))
    assert isinstance(result, Reduce)
    assert result.axes == (GroupAxis("..."),)


def test_a_broadcast_read_is_summed_over_the_axes_it_was_broadcast_along() -> None:
    value = Read("d_y", (GroupRef("..."),), T)
    read = Read("w", (GroupRef("..."),), T)
    result = transpose(read, Domain((), (("...", None),)), value, (GroupRef("..."),), (Group("...", "w"),))
    assert isinstance(result, Reduce)
    assert result.axes == (BroadcastAxis("...", "w"),)
    same = transpose(read, Domain((), (("...", "w"),)), value, (GroupRef("..."),), (Group("...", "w"),))
    assert same == value
