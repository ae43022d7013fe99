"""What shells are told when they ask `opc` how a line may go on: through the protocol of Click, as bash speaks it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from opc.backends import registry
from opc.build.environments import names
from opc.cli import completion
from opc.testing.bench.benchmark import SECTIONS
from tests.cli.conftest import spec, write


def complete(line: str, folder: Path) -> list[str]:
    words = line.split(" ")
    asked = {"_OPC_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    done = subprocess.run(
        [sys.executable, "-m", "opc"], cwd=folder, env={**os.environ, **asked}, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_is_answered(tmp_path: Path) -> None:
    spec(tmp_path)
    assert complete("opc check leak", tmp_path) == ["leaky_relu.yaml"]
    assert complete("opc test --backend onnxr", tmp_path) == ["onnxruntime"]
    assert complete("opc bench --section gpu", tmp_path) == [name for name in SECTIONS if name.startswith("gpu")]


@pytest.mark.parametrize("command", ["check", "fmt", "show", "generate", "backends", "test", "run --spec"])
def test_every_command_completes_specs(command: str) -> None:
    import typer.main

    from opc.cli.main import app

    name, _, option = command.partition(" ")
    found = typer.main.get_command(app).commands[name].params
    chosen = next(p for p in found if (option in p.opts if option else p.param_type_name == "argument"))
    assert chosen._custom_shell_complete is not None


def test_specs_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("specs/a.yaml", "specs/b.yml", "specs/more/c.yaml", "specs/opc.schema.json", "other/.hidden/d.yaml", "e.yaml"):
        write(tmp_path / name, "")
    assert completion.specs("") == ["e.yaml", "other", "specs"]
    assert completion.specs("sp") == ["specs", "specs/a.yaml", "specs/b.yml", "specs/more"]
    assert completion.specs("specs/m") == ["specs/more", "specs/more/c.yaml"]
    assert completion.specs("other/") == []
    assert completion.specs("missing/x") == []


def test_names() -> None:
    assert completion.backends("") == list(registry.names())
    assert completion.environments("") == list(names())
    assert dict(completion.sections("")) == dict(SECTIONS)
