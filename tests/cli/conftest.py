"""Running the command line inside the test's own process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opc.cli import app
from opc.cli_console import guarded

SPECS = Path(__file__).parents[2] / "specs"


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


@pytest.fixture
def opc(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Call `opc` with arguments in an empty folder; returns the exit code and what it printed."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str | Path) -> Outcome:
        capfd.readouterr()
        code = guarded(lambda: app([str(a) for a in arguments], prog_name="opc"))
        printed = capfd.readouterr()
        assert "Traceback" not in printed.err
        return Outcome(code, printed.out, printed.err)

    return call
