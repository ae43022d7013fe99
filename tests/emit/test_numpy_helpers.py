"""The helpers of generated NumPy code that move elements."""

import numpy as np
import pytest

from opc.emit.numpy.helpers import contract, dtype_of, flatten, inside, not_empty, scatter, shape_of, take


def test_contractions_are_einsum_s() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((5, 6))
    np.testing.assert_allclose(contract("... i k, k j -> ... i j", [a, b]), a @ b, rtol=1e-13)
    x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal((4, 5))
    found = contract("*A k, k *B -> *B *A", [x, y], {"*A": 2, "*B": 1})
    np.testing.assert_allclose(found, np.einsum("abk,kc->cab", x, y), rtol=1e-13)
    np.testing.assert_allclose(contract("n k, n m -> k m", [x[0], rng.standard_normal((3, 0))]), np.zeros((4, 0)))


def test_a_sum_of_nothing_is_zero() -> None:
    np.testing.assert_array_equal(contract("n k, k m -> n m", [np.ones((2, 0)), np.ones((0, 3))]), np.zeros((2, 3)))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_terms_that_do_not_count_are_nothing_even_where_a_factor_is_infinite() -> None:
    a, b = np.array([1.0, 2.0]), np.array([[np.inf, 3.0], [4.0, 5.0]])
    found = contract("k, k m -> m", [a, b], where=[np.array([False, True]), None])
    np.testing.assert_array_equal(found, [8.0, 10.0])
    np.testing.assert_array_equal(contract("k, k m -> m", [np.zeros(2), b]), [np.nan, 0.0])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_overflows_is_summed_as_it_is_stored() -> None:
    a = np.array([3e38, -3e38, 3e38], np.float32)
    assert np.isnan(contract("k, k -> ", [a, np.array([10.0, 10.0, 1e-30], np.float32)]))


def test_scatter_adds_repeatedly_and_leaves_out_what_falls_outside() -> None:
    values = np.arange(8.0).reshape(4, 2)
    places = (np.array([1, 1, -1, 3])[:, None], np.arange(2))
    np.testing.assert_array_equal(scatter((3, 2), places, values), [[0, 0], [2, 4], [0, 0]])


def test_take_pads_on_both_sides() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(take(x, (np.array([-1, 0, 1, 2]),), pad=9), [9, 1, 2, 9])
    np.testing.assert_array_equal(take(np.zeros((0, 2)), (np.array([0]), np.array([1])), pad=np.ones(3)), [1, 1, 1])


def test_only_indices_that_are_asked_for_are_refused() -> None:
    index = np.array([0, 7, -1])
    inside(index, 3, "gather: an index of x", where=np.array([True, False, False]))
    with pytest.raises(IndexError, match="gather: an index of x is 7, outside an axis of size 3"):
        inside(index, 3, "gather: an index of x")
    with pytest.raises(IndexError, match="is -1, outside"):
        inside(np.int64(-1), 3, "gather: an index of x")


def test_only_counts_that_are_asked_for_are_refused() -> None:
    not_empty(np.array([0, 1]), "op: max over k", where=np.array([False, True]))
    with pytest.raises(ValueError, match="op: max over k of nothing"):
        not_empty(np.array([0, 1]), "op: max over k")


def test_flattening_keeps_axes_without_elements() -> None:
    assert flatten(np.zeros((0, 3, 2)), 2).shape == (0, 6)
    assert flatten(np.zeros((4, 0, 2)), 2).shape == (4, 0)
    assert flatten(np.zeros(3), 0).shape == (3, 1)


def test_shape_and_type_are_those_of_the_first_array_that_is_given() -> None:
    x = np.zeros((2, 3), np.float16)
    assert (shape_of(None, x), dtype_of(None, x)) == ((2, 3), np.float16)
    assert (shape_of(None, None), dtype_of(None)) == ((), None)
