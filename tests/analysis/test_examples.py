"""Points at which facts hold, by which a proof is not looked for where there is none."""

from __future__ import annotations

from threading import Thread

import pytest

from opc.analysis.bounds.examples import Examples
from opc.analysis.bounds.prover import Prover
from opc.ir.affine import Affine, AttrInt, Dim, Index

N, INDEX, J, PAD = (Affine.of(a) for a in (Dim("N"), Index("i"), Index("j"), AttrInt("padding", 0)))


@pytest.mark.parametrize(
    ("f", "refuted"),
    [
        (INDEX, False),
        (N - INDEX - 1, False),
        (INDEX - 1, True),  # the first point
        (N - INDEX - 2, True),  # the last one
        (INDEX + J - N, True),
        (INDEX - J, True),
        (INDEX - PAD, True),
        (PAD, False),  # a fact
        (-PAD, True),
        (N // PAD - N // PAD, False),
        (-N // PAD, True),
    ],
    ids=str,
)
def test_negative_at_a_point(f: Affine, refuted: bool) -> None:
    assert Examples((PAD - 1,), {"i": N, "j": N}).refute(f) is refuted


def test_an_attribute_has_one_value_at_a_point() -> None:
    u, v = (Affine.of(AttrInt("mode", flag=True, text=text)) for text in "uv")
    assert Examples((), {"i": N}).refute(-u)
    assert not Examples((), {"i": N}).refute(Affine.of(1) - u - v)


def test_no_point_where_facts_contradict() -> None:
    assert not Examples((PAD - 1, -PAD), {"i": N}).refute(Affine.of(-1))


def test_a_divisor_that_is_zero_says_nothing() -> None:
    assert not Examples((), {"j": Affine.of(1)}).refute(N // J - 100)


def test_an_index_that_is_not_known() -> None:
    assert not Examples((), {"i": N}).refute(J - N - 100)


def test_what_is_refuted_takes_no_steps() -> None:
    prover = Prover((PAD,), {"i": N, "j": N})
    assert not prover.nonnegative(INDEX + J - N)
    before = prover.steps
    assert not prover.nonnegative(INDEX + J - N - 1)
    assert prover.steps - before < 10


def test_threads_share_the_points() -> None:
    examples = Examples((PAD - 1,), {"i": N, "j": N})
    answers: list[bool] = []
    threads = [Thread(target=lambda: answers.append(examples.refute(PAD - 1 + INDEX * 0))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [False] * 8
