"""Random well-typed ops: each compiles; its kernels, its NumPy reference and its body in ONNX's standard operators agree with the
oracle, its gradients with differences, its text with itself.

The ops of a run are always the same ones, so that CI is; `OPC_FUZZ=500` in the environment draws that many other ones, and
`OPC_FUZZ_SEED` says which. `nox -s fuzz` does that.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from opc.ir.op import Family
from opc.pipeline import compile_text
from tests.backends.onnx.test_checks import load
from tests.fuzz.bodies import specs
from tests.fuzz.kernels import KernelLibrary, compile_together
from tests.fuzz.proof import wrong_functions, wrong_gradients, wrong_kernels, wrong_references, wrong_text

COUNT = int(os.environ.get("OPC_FUZZ", "0"))
OPS = COUNT or 48
SEED = int(os.environ.get("OPC_FUZZ_SEED", "3"))  # one in whose ops every construct is
CALLS = 8
"""How many calls of each op of a family are run."""
BATCH = 24
"""How many families are compiled by one run of the compiler."""


def drawn() -> list[str]:
    """Return the texts of different specs."""
    found: dict[str, None] = {}

    @settings(
        max_examples=2 * OPS,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(specs())
    def collect(text: str) -> None:
        found.setdefault(text)

    seed(SEED)(collect)()
    # hypothesis begins with the simplest ones.
    return [text.replace("op: fuzz", f"op: fuzz_{n}") for n, text in enumerate(list(found)[-OPS:])]


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return drawn()


@pytest.fixture(scope="module")
def families(texts: list[str]) -> list[tuple[str, Family]]:
    """Compile the specs; that each is accepted, and is what the verifier takes after every pass, is the first thing proved."""
    return [(text, compile_text(text, "drawn")) for text in texts]


def report(families: list[tuple[str, Family]], wrong: Callable[[Family], Iterator[str]]) -> None:
    """Fail with everything that is wrong, and with the specs it is wrong for."""
    found = []
    for text, family in families:
        mistakes = list(wrong(family))
        if mistakes:
            found.append("\n".join([*mistakes, text]))
    assert not found, "\n".join([f"{len(found)} of {len(families)} ops are wrong", *found])


def test_kernels(families: list[tuple[str, Family]], tmp_path: Path) -> None:
    for start in range(0, len(families), BATCH):
        batch = families[start : start + BATCH]
        folder = tmp_path / str(start)
        library = compile_together([f for _, f in batch], folder)
        report(batch, lambda family, library=library: wrong_kernels(family, KernelLibrary(family, library), CALLS))  # type: ignore[misc]


def test_references(families: list[tuple[str, Family]]) -> None:
    report(families, lambda family: wrong_references(family, CALLS))


def test_functions(families: list[tuple[str, Family]], tmp_path: Path) -> None:
    report(families, lambda family: wrong_functions(family, load(family, tmp_path), CALLS // 2))


def test_gradients(families: list[tuple[str, Family]]) -> None:
    report(families, wrong_gradients)


def test_texts(families: list[tuple[str, Family]]) -> None:
    text_of = {id(family): text for text, family in families}
    report(families, lambda family: wrong_text(text_of[id(family)]))


@pytest.mark.skipif(0 < COUNT < 48, reason="so few ops need not have every construct")
def test_every_construct_is_drawn(texts: list[str]) -> None:
    """A generator that lost a construct would leave it untested without anybody noticing."""
    everything = "\n".join(texts)
    missing = [
        word
        for word in (
            "pad(", "present(", "broadcast: true", "axis:", "?'", "argmax[", "any[", "max[", "prod[", "mean[", " // ", " % ",
            "ids[", "cast(int64", "bool[", "float16", "float64", "stride", "width", "t0[", "y1[", " + 1](", " + 3](", "sum[",
        )
        if word not in everything
    ]  # fmt: skip
    assert missing == []
