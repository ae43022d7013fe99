"""A few of the mutated specs of `nox -s faults`, and that what it looks for would be seen."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from opc.diagnostics import Diagnostic, Source, SpecError
from opc.editor import checks
from opc.spec.text import span_at
from tests.faults import mutants
from tests.faults.mutations import KINDS, mutant

GOOD = """op: f
domain: t
version: 1
doc: D.
types: {T: floating}
inputs: {x: 'T[N]'}
outputs: {y: 'T[N]'}
kernel: y[n] = x[n]
"""
FAR = Diagnostic("far", span_at(Source("f", "\n" * 99), 90, 91))
# What was wrong once: its seed and number.
FOUND = [("2", 3653)]


def test_mutants_are_accepted_or_refused(tmp_path: Path) -> None:
    for number in range(48):
        assert mutants.verdict("tests", number, tmp_path).wrong == ""


@pytest.mark.parametrize(("seed", "number"), FOUND)
def test_what_was_wrong_once(seed: str, number: int, tmp_path: Path) -> None:
    assert mutants.verdict(seed, number, tmp_path).wrong == ""


def test_mutants_are_the_same_each_time_and_of_every_kind() -> None:
    assert [mutant("a", n) for n in range(24)] == [mutant("a", n) for n in range(24)]
    assert {mutant("a", n)[0] for n in range(24)} == {*KINDS}
    assert mutant("a", 1) != mutant("b", 1)


def _raise(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    ("happens", "outcome"),
    [
        (lambda *_: _raise(ValueError("x")), "a traceback"),
        (lambda *_: _raise(SpecError([Diagnostic("no place")])), "a diagnostic without a place"),
        (
            lambda *_: _raise(SpecError([Diagnostic("far", span_at(Source("f", "\n" * 99), 90, 91))])),
            "a diagnostic without a place",
        ),
        (lambda *_: [None for _ in iter(int, 1)], "a hang"),
    ],
)
def test_what_is_wrong_is_seen(happens: object, outcome: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(mutants, "SECONDS", 0.1)
    monkeypatch.setattr(mutants, "mutant", lambda seed, number: ("text", GOOD.encode()))
    assert mutants.verdict("x", 0, tmp_path).outcome == "accepted"
    monkeypatch.setattr(checks, "forward_op", happens)
    found = mutants.verdict("x", 0, tmp_path)
    assert (found.outcome, bool(found.wrong)) == (outcome, True)


def test_a_session_counts_all_mutants_in_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    tally = mutants.run(12, "tests", jobs=2)
    assert (tally.counts["all"], tally.faults) == (12, [])
    monkeypatch.setattr(mutants, "verdict", lambda *_: os._exit(9))
    tally = mutants.run(2, "tests", jobs=1)
    assert [fault.kind.partition(":")[0] for fault in tally.faults] == ["a crash", "a crash"]
