"""Running the command line inside the test's own process."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opc.cli.console import guarded
from opc.cli.main import app

SPECS = Path(__file__).parents[2] / "specs"
BAD = "op: broken\ndomain: opc.nn\nversion: 1\ndoc: x.\ntypes: {T: floating}\ninputs: {x: 'T[...]'}\noutputs: {y: 'T[...]'}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def spec(tmp_path: Path, name: str = "leaky_relu") -> Path:
    return Path(shutil.copy(SPECS / f"{name}.yaml", tmp_path))


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
