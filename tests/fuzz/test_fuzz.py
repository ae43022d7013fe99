"""Random well-typed ops: each compiles; the oracle agrees with brute force, its kernels, its NumPy reference and its body in
ONNX's standard operators with the oracle, gradients with differences, its text with itself.

The ops of a run are always the same ones, so that CI is: few of those a seed gives, which together have every construct.
`nox -s fuzz -- 2000 7` draws 2,000 others.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from opc.pipeline import compile_text
from tests.fuzz.check import check, drawn
from tests.fuzz.constructs import constructs, every
from tests.fuzz.kernels import Libraries
from tests.fuzz.mutants import mutant
from tests.rotation import asked

SEED = "ci"
DRAWN = 1600
MOST = 30
"""How many ops are run at most."""

FOUND = sorted((Path(__file__).parent / "found").glob("*.yaml"))
CALLS = 1
"""How many calls of each derived op of a family are run."""


OPEN: dict[int, str] = {}
"""Ops of the seed with findings that are not mended yet; others stand in for them."""


@cache
def covering() -> list[int]:
    """Return the numbers of ops that have every construct together, short ones first."""
    texts = {n: text for n in range(DRAWN) if n not in OPEN and len(text := drawn(SEED, n)) < 1400}
    having = {n: constructs(text) & every() for n, text in texts.items()}
    lengths = {n: len(text) for n, text in texts.items()}
    missing, chosen = every(), []
    while missing and (best := max(having, key=lambda n: len(having[n] & missing) / (lengths[n] + 400))) not in chosen:
        chosen.append(best)
        missing = missing - having[best]
    return chosen


@pytest.fixture(scope="module")
def libraries(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Libraries:
    texts = {path.stem: path.read_text() for path in asked(request, "path")}
    texts |= {f"{n}": drawn(SEED, n) for turn, n in enumerate(covering()[:MOST]) if turn in asked(request, "turn")}
    return Libraries(texts, lambda name: compile_text(texts[name], "drawn"), tmp_path_factory.mktemp("fuzz"))


@pytest.mark.rotating
@pytest.mark.parametrize("turn", range(MOST))
def test_op(turn: int, libraries: Libraries) -> None:
    if turn < len(covering()):
        number = covering()[turn]
        found = check(drawn(SEED, number), f"{SEED}/{number}", CALLS, library=libraries.of(f"{number}"))
        assert not found, "\n".join([f"op {number} of seed {SEED}", *found, drawn(SEED, number)])


@pytest.mark.rotating
@pytest.mark.parametrize("number", range(MOST))
def test_mutant(number: int) -> None:
    """A spec of the project with a mistake that is none to the front end is an op like any other."""
    text = mutant(SEED, number)
    assert check(text, f"{SEED}/{number}", CALLS) == [], text


def test_every_construct_is_drawn() -> None:
    """A generator that lost a construct would leave it untested without anybody noticing."""
    found = set().union(*(constructs(drawn(SEED, n)) for n in covering()[:MOST]))
    assert every() - found == set()


@pytest.mark.rotating
@pytest.mark.parametrize("path", FOUND, ids=lambda p: p.stem)
def test_found(path: Path, libraries: Libraries) -> None:
    """What longer runs found, and was mended."""
    assert check(path.read_text(), path.stem, library=libraries.of(path.stem)) == []
