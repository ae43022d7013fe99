"""Value numbers: what is the same number is known to be, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from opc.ir.dtypes import DType
from opc.pipeline import compile_text
from opc.testing.oracle.bounds import PRECISIONS, UNKNOWN, Array, Bounds, between, exact
from opc.testing.oracle.enclosures import compare
from opc.testing.oracle.evaluation import evaluate
from opc.testing.oracle.numbering import ValueNumbers, compares
from opc.testing.oracle.reductions import reduce
from tests.transform.language import spec_text

F64 = PRECISIONS[DType.FLOAT64]
COMPARISONS = {"lt": False, "le": True, "gt": False, "ge": True, "eq": True, "ne": False}


def around(*middles: float, width: float = 0.1) -> Bounds:
    middle = np.asarray(middles)
    return ValueNumbers().fresh(between(middle - width, middle + width))


def number(values: Bounds) -> list[int]:
    assert values.number is not None
    return np.asarray(values.number).tolist()


@pytest.mark.parametrize("name", COMPARISONS)
def test_an_element_compared_with_itself_is_decided(name: str) -> None:
    x = around(1.0, 1.05)
    found = compare(name, x, x)
    assert (found.low == COMPARISONS[name]).all()
    assert (found.high == COMPARISONS[name]).all()
    # Its neighbour is another number, which may be the same or not.
    other = compare(name, x, x.map(lambda v: v[::-1]))
    assert not other.low.any()
    assert other.high.all()


@pytest.mark.parametrize("name", COMPARISONS)
def test_what_is_not_a_number_is_not_equal_to_itself(name: str) -> None:
    x = around(1.0)
    x = Bounds(x.low, x.high, np.array([True]), x.number)
    found = compare(name, x, x)
    assert not found.low[0]
    assert found.high[0] == (name not in ("lt", "gt"))


@pytest.mark.parametrize("kind", ["max", "min"])
def test_extremes_of_no_rows_have_no_numbers(kind: str) -> None:
    x = ValueNumbers().fresh(between(np.zeros((1, 0, 3)), np.ones((1, 0, 3))))
    assert np.shape(reduce(kind, x, (2,), DType.FLOAT64, F64).number) == (1, 0)


@pytest.mark.parametrize(("kind", "sign"), [("max", 1), ("min", -1)])
def test_an_extreme_has_the_number_of_its_element_where_no_other_can_be(kind: str, sign: int) -> None:
    def of(x: Bounds) -> list[int]:
        return number(reduce(kind, x, (0,), DType.FLOAT64, F64))

    assert of(around(sign * 1.0, sign * 3.0, sign * 2.0)) == 1
    assert of(around(sign * 1.0, sign * 3.0, sign * 2.9)) == UNKNOWN
    # The same element twice is no other one, and neither is one that is at most the least of it.
    twice = around(sign * 3.0, sign * 1.0).map(lambda v: v[[1, 0, 0]])
    assert of(twice) == 0
    low, high = sorted((sign * 3.0, sign * 4.0))
    touching = between(np.array([sign * 3.0, low]), np.array([sign * 3.0, high]))
    assert of(ValueNumbers().fresh(touching)) == 1


def test_single_points_are_the_same_where_their_values_are() -> None:
    numbers = ValueNumbers()
    first = number(numbers.of(exact(np.array([1.0, 2.0, 0.0, -0.0, np.nan]))))
    again = number(numbers.of(exact(np.array([2.0, 1.0, 0.0]))))
    assert first[:3] == [again[1], again[0], again[2]]
    assert len(set(first)) == 5
    assert first[4] == UNKNOWN
    fresh = number(numbers.fresh(between(np.zeros(2), np.ones(2))))
    assert not {*fresh} & {*first}


def values(kernel: str, x: Array | Bounds) -> list[tuple[float, float]]:
    """Return the ends of an op's output on a row of floats with value numbers."""
    body = f"inputs: {{x: 'T[N]'}}\noutputs: {{y: 'T[N]'}}\nkernel: |\n  {kernel}\n"
    op = compile_text(spec_text("f", body), "f").forward
    assert compares(op)
    binding = {"T": DType.FLOAT64}
    found = evaluate(op, {"x": x}, binding=binding, precise=True, numbers=ValueNumbers())["y"].bounds
    return list(zip(found.low.tolist(), found.high.tolist(), strict=True))


def test_functions_of_the_same_numbers_are_the_same() -> None:
    box = ValueNumbers().fresh(between(np.array([1.0, 3.0]), np.array([1.1, 3.1])))
    kernel = "y[i] = 1 if {} == max[j]({}) else 0"
    assert values(kernel.format("x[i] ** 2", "x[j] ** 2"), box) == [(0, 0), (1, 1)]
    assert values(kernel.format("x[i] * abs(x[i])", "x[j] ** 2"), box) == [(0, 0), (0, 1)]
    # Both may be the larger one.
    near = ValueNumbers().fresh(between(np.array([1.0, 1.05]), np.array([1.1, 1.15])))
    assert values(kernel.format("x[i] ** 2", "x[j] ** 2"), near) == [(0, 1), (0, 1)]


def test_a_number_goes_through_what_chooses_it() -> None:
    box = ValueNumbers().fresh(between(np.array([1.0, 3.0]), np.array([1.1, 3.1])))
    assert values("y[i] = 1 if pad(x[i + 1], 7) >= pad(x[N - 1 if i == 0 else 0], 0) else 0", box) == [(1, 1), (1, 1)]


def test_bodies_that_compare_with_constants_need_no_numbers() -> None:
    body = "inputs: {x: 'T[N]'}\noutputs: {y: 'T[N]'}\nkernel: |\n  y[i] = x[i] if x[i] > 0 and i < N - 1 else 0\n"
    assert not compares(compile_text(spec_text("f", body), "f").forward)
