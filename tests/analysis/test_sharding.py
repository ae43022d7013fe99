"""How ops may be spread over devices: every rule on a body that shows it, and bodies that must not be cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from opc.analysis.sharding import Sharding, format_shardings, shardings
from opc.pipeline import compile_text, load_family
from tests.transform.language import spec_text


def cuts(body: str) -> dict[str, Sharding]:
    found = shardings(compile_text(spec_text("f", body), "f").forward)
    return {s.along: s for s in found}


def words(s: Sharding) -> str:
    return " ".join(p.value for p in s.inputs) + " -> " + " ".join(p.value for p in s.outputs)


SPECS = Path(__file__).parents[2] / "specs"
MATRIX = "inputs: {x: 'T[M, N]'}\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (MATRIX + "outputs: {y: 'T[M, N]'}\nkernel: y[i, j] = x[i, j] * 2\n", {"M": "shard -> shard", "N": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[N, M]'}\nkernel: y[j, i] = x[i, j]\n", {"M": "shard -> shard", "N": "shard -> shard"}),
        # A reduction makes parts where it is the outermost operation, or linear operations follow.
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = sum[j](x[i, j])\n", {"M": "shard -> shard", "N": "shard -> sum"}),
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = 2 * sum[j](x[i, j]) / 3\n", {"M": "shard -> shard", "N": "shard -> sum"}),
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = max[j](x[i, j])\n", {"M": "shard -> shard", "N": "shard -> max"}),
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = sum[j](x[i, j]) ** 2\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = sum[j](x[i, j]) + 1\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = -max[j](x[i, j])\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = prod[j](x[i, j])\n", {"M": "shard -> shard"}),
        # That there is a point at all is asked for what is 0 otherwise: a piece without one has no part in it.
        (
            MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = sum[j](x[i, j]) / x[i, 0] if N > 0 else 0\n",
            {"M": "shard -> shard"},
        ),
        (
            "inputs: {x: 'T[M, N]', c: 'T[]'}\noutputs: {y: 'T[M]'}\n"
            "kernel: y[i] = sum[j](x[i, j]) / c[] if N > 0 and M > 0 else 0\n",
            {"M": "shard replicate -> shard", "N": "shard replicate -> sum"},
        ),
        (
            "inputs: {x: 'T[M, N]', c: 'T[]'}\noutputs: {y: 'T[M]'}\nkernel: y[i] = c[] * sum[j](x[i, j]) if N > 0 else 1\n",
            {"M": "shard replicate -> shard"},
        ),
        (
            "inputs: {x: 'T[M, N]', c: 'T[]'}\noutputs: {y: 'T[M]'}\nkernel: y[i] = c[] if N > 0 and x[i, 0] > 0 else 0\n",
            {"M": "shard replicate -> shard"},
        ),
        # A piece of one axis of a diagonal lacks the other.
        ("inputs: {x: 'T[N, C, N]'}\noutputs: {y: 'T[N, C]'}\nkernel: y[n, c] = x[n, c, n]\n", {"C": "shard -> shard"}),
        # The size of the whole, an index as a value, and a position are not what a piece knows.
        (MATRIX + "outputs: {y: 'T[M]'}\nkernel: y[i] = mean[j](x[i, j])\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M, N]'}\nkernel: y[i, j] = x[i, j] * j\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M, N]'}\nkernel: y[i, j] = x[i, N - 1 - j]\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M, N]'}\nkernel: y[i, j] = pad(x[i, j - 1], 0)\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M, N]'}\nkernel: y[i, j] = sum[k:j + 1](x[i, k])\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M, N]'}\nkernel: y[i, j] = x[i, j] - sum[k](x[i, k])\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'int64[M]'}\nkernel: y[i] = argmax[j](x[i, j])\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'int64[M]'}\nkernel: y[i] = cast(int64, sum[j](x[i, j]))\n", {"M": "shard -> shard"}),
        (MATRIX + "require: [N % 2 == 0]\noutputs: {y: 'T[M, N]'}\nkernel: y[i, j] = x[i, j]\n", {"M": "shard -> shard"}),
        (MATRIX + "outputs: {y: 'T[M, 2*N]'}\nkernel: y[i, j] = x[i, j // 2]\n", {"M": "shard -> shard"}),
        ("inputs: {x: 'T[N, N]'}\noutputs: {y: 'T[N, N]'}\nkernel: y[i, j] = x[i, j]\n", {}),
        ("inputs: {x: 'T[N]', z: 'T[N]'}\noutputs: {y: 'T[N, N]'}\nkernel: y[i, j] = x[i] * z[j]\n", {}),
        # Groups: every axis of one may be cut.
        ("inputs: {x: 'T[...]'}\noutputs: {y: 'T[]'}\nkernel: y[()] = sum[...](x[...])\n", {"...": "shard -> sum"}),
        ("inputs: {x: 'T[...]'}\noutputs: {y: 'T[]'}\nkernel: y[()] = mean[...](x[...])\n", {}),
        # So may each of those that an attribute lists, and of the others.
        (
            "inputs: {x: 'T[*K, *R]'}\nattributes: {axes: {type: axes, group: R}}\n"
            "outputs: {y: 'T[*K]'}\nkernel: 'y[*K] = sum[*R](x[*K, *R])'\n",
            {"*K": "shard -> shard", "*R": "shard -> sum"},
        ),
        # What is looked up stays whole, what looks up is cut.
        (
            "inputs: {table: 'T[V, D]', ids: 'int64[K]'}\noutputs: {y: 'T[K, D]'}\nkernel: y[k, d] = table[ids[k], d]\n",
            {"D": "shard replicate -> shard", "K": "replicate shard -> shard"},
        ),
        # A term that is only added to a part counts as a part, an absent one as none.
        (
            "inputs: {x: 'T[K]', 'b?': 'T[]'}\noutputs: {y: 'T[]'}\n"
            "kernel: y[()] = sum[k](x[k]) + (b[()] if present(b) else 0)\n",
            {"K": "shard sum -> sum"},
        ),
        (
            "inputs: {x: 'T[K]', b: 'T[]'}\noutputs: {y: 'T[]'}\nkernel: y[()] = sum[k](x[k]) + b[()] * b[()]\n",
            {},
        ),
    ],
)
def test_rule(body: str, expected: dict[str, str]) -> None:
    assert {along: words(s) for along, s in cuts(body).items()} == expected


def test_optional_inputs_are_told_apart_where_they_matter() -> None:
    body = (
        "inputs: {x: 'T[K]', 'b?': 'T[]'}\noutputs: {y: 'T[]'}\n"
        "kernel: y[()] = sum[k](x[k]) * 2 if not present(b) else exp(sum[k](x[k]) * b[()])\n"
    )
    found = cuts(body)["K"]
    assert (found.given, found.absent, words(found)) == ((), ("b",), "shard replicate -> sum")


def test_text() -> None:
    family = load_family(SPECS / "add.yaml")
    assert family.backward is not None
    assert format_shardings(family.backward) == (
        "Sharding of add_backward: whole operands everywhere, or one of\n"
        "  along an axis of ...: a Shard(...), b Shard(...), d_y Shard(...) -> d_a Shard(...), Partial(sum) where broadcast, "
        "d_b Shard(...), Partial(sum) where broadcast\n"
    )
