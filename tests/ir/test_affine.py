"""The normal form of sizes with minima: equal sizes compare equal, and values are kept."""

from __future__ import annotations

import itertools

import pytest

from opc.ir.affine import Affine, Dim, Minimum, maximum, minimum

N, M, K = (Affine.of(Dim(name)) for name in "NMK")


def test_minima_of_the_same_sizes_are_equal() -> None:
    assert minimum(N, M) == minimum(M, N)
    assert maximum(N, M) == maximum(M, N)
    assert str(minimum(N + 1, M)) == "minimum(M, N + 1)"


def test_sizes_a_number_apart_need_no_minimum() -> None:
    assert minimum(N, N + 2) == N
    assert maximum(N, N + 2) == N + 2
    assert minimum(Affine.of(3), Affine.of(2)) == Affine.of(2)


SIZES = [
    (minimum(N, M), lambda n, m, k: min(n, m)),
    (maximum(N, M), lambda n, m, k: max(n, m)),
    (minimum(minimum(N, M), K), lambda n, m, k: min(n, m, k)),
    ((maximum(N - M, Affine.of(0)) + 1) // 2 * K, lambda n, m, k: (max(n - m, 0) + 1) // 2 * k),
    (minimum(N // 2, M % 3) - K, lambda n, m, k: min(n // 2, m % 3) - k),
]


@pytest.mark.parametrize(("size", "want"), SIZES, ids=lambda x: str(x) if isinstance(x, Affine) else "")
def test_values(size, want) -> None:
    for n, m, k in itertools.product(range(5), repeat=3):
        values = {"N": n, "M": m, "K": k}
        assert size.evaluate(lambda s, values=values: values[s.name]) == want(n, m, k)
        # What is put in is worked out, also inside the minima.
        assert size.substitute(lambda s, values=values: Affine.of(values[s.name])).constant == want(n, m, k)


def test_what_is_inside_is_found_and_decided() -> None:
    inner = Minimum(M, N)
    size = minimum(minimum(N, M) * 2, K) + 1
    assert {d.name for d in size.atoms()} == {"N", "M", "K"}
    assert inner in size.minima()
    assert len(size.minima()) == 2
    assert size.substitute(lambda s: None, {inner: N}) == minimum(N * 2, K) + 1
