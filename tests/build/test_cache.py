"""The cache of `opc.load`: what it holds, damage, room, and several backends of one entry."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import opc
from opc.build import builder, cache, locks
from opc.cli.main import app

SPEC = """
op: pair
domain: opc.test
version: 1
doc: Two results.
types: {T: [float64]}
inputs: {x: 'T[...]'}
outputs: {y: 'T[...]', z: 'T[...]'}
kernel: |
  y = 2 * x
  z = x + 1
gradient: none
"""


@pytest.fixture
def spec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "cache"))
    path = tmp_path / "pair.yaml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The backends of every build."""
    found: list[list[str]] = []
    original = builder.build_families

    def build(families: object, out: object, backends: list[str], **options: object) -> object:
        found.append([*backends])
        return original(families, out, backends, **options)

    monkeypatch.setattr(builder, "build_families", build)
    return found


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["cache", *arguments])
    return result.exit_code, result.output


def test_several_outputs_are_a_named_tuple(spec: Path) -> None:
    y, z = both = opc.load(spec)(np.ones(2))
    assert both._fields == ("y", "z")
    assert both.y is y
    assert both.z is z
    again = pickle.loads(pickle.dumps(both))
    assert [a.tolist() for a in again] == [[2.0, 2.0], [2.0, 2.0]]


def test_a_pickled_op_needs_no_file(spec: Path, built: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    data = pickle.dumps(opc.load(spec))
    text = spec.read_text()
    spec.write_text(text.replace("2 * x", "3 * x"))
    assert pickle.loads(data)(np.ones(1)).y.tolist() == [2.0]
    spec.unlink()
    assert pickle.loads(data)(np.ones(1)).y.tolist() == [2.0]
    assert built == [["numpy"]]
    # On a machine whose cache is empty, or was emptied while the op was in use.
    assert run("prune")[0] == 0
    op = pickle.loads(data)
    assert run("prune")[0] == 0
    assert op(torch.ones(1, dtype=torch.float64)).y.tolist() == [2.0]
    assert built == [["numpy"], ["numpy"], ["torch"]]


def test_builds_for_several_backends_are_remembered_together(spec: Path, built: list[list[str]]) -> None:
    import torch

    for _ in range(2):
        op = opc.load(spec)
        op(np.ones(1))
        op(torch.ones(1, dtype=torch.float64))
    assert built == [["numpy"], ["torch"]]


def library(folder: Path) -> Path:
    (found,) = folder.glob("cache/pair-*/pair/build/_pair_numpy.abi3.so")
    return found


@pytest.mark.rotating
@pytest.mark.parametrize("damage", ["cut", "object", "changed"])
def test_a_damaged_library_is_built_again(spec: Path, tmp_path: Path, damage: str) -> None:
    # In another process: this one would end with it, as it is damaged, where it had loaded it.
    subprocess.run([sys.executable, "-c", f"import opc; opc.load({str(spec)!r})"], check=True)
    place = library(tmp_path)
    whole = place.read_bytes()
    if damage == "cut":
        place.write_bytes(whole[: len(whole) // 2])
    elif damage == "object":
        (made,) = place.parent.glob("kernel/pair.o")
        made.write_bytes(b"")
        place.unlink()
    else:
        # Changed in place, with the time it had: only its bytes tell.
        status = place.stat()
        place.write_bytes(whole[:-64] + bytes(64))
        os.utime(place, ns=(status.st_atime_ns, status.st_mtime_ns))
        code, output = run("verify")
        assert code == 1
        assert "damaged: pair-" in output
        assert "1 checked, 1 damaged and removed" in output
        assert run("list")[1].startswith("0 entries")
    program = f"import opc, numpy; print(opc.load({str(spec)!r})(numpy.ones(1)).y)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ})
    assert (done.stdout, done.returncode) == ("[2.]\n", 0), done.stderr
    assert library(tmp_path).read_bytes() == whole
    assert run("verify") == (0, "1 checked, 0 damaged\n")


def fake_entry(name: str, size: int, days: float) -> Path:
    place = cache.folder() / f"{name}-{'0' * 20}"
    place.mkdir()
    (place / f"{name}.yaml").write_bytes(bytes(size))
    os.utime(place / f"{name}.yaml", (time.time() - days * 86400,) * 2)
    return place


def test_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("OPC_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache.folder() == tmp_path / ".cache/opc"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache.folder() == tmp_path / "xdg/opc"
    monkeypatch.setenv("OPC_CACHE_DIR", str(tmp_path / "mine"))
    assert cache.folder() == tmp_path / "mine"
    monkeypatch.setenv("OPC_CACHE_DIR", "~/ours")
    assert cache.folder() == tmp_path / "ours"
    monkeypatch.delenv("OPC_CACHE_DIR")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache.folder() == tmp_path / ".cache/opc"


def test_what_was_not_used_for_longest_makes_room(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opc.load(spec)
    size = cache.entries()[0].size
    old, older = fake_entry("old", 1 << 20, 1), fake_entry("older", 1 << 20, 2)
    (cache.folder() / "notes").mkdir()
    monkeypatch.setenv("OPC_CACHE_LIMIT", str(2 * size + (1 << 20) + 100_000))
    spec.write_text(spec.read_text() + "\n# another\n")
    opc.load(spec)
    assert old.exists()
    assert not older.exists()
    opc.load(spec)
    data = json.loads(run("list", "--json")[1])
    assert [e["spec"] for e in data["entries"]] == ["pair.yaml", "pair.yaml", "old.yaml"]
    assert run("prune", "--days", "0.5")[1].startswith("1 removed, 1.0 MiB")
    assert run("prune", "--max-size", f"{size + 100_000}")[1].startswith("1 removed")
    assert len(cache.entries()) == 1
    assert (cache.folder() / "notes").exists()
    monkeypatch.setenv("OPC_CACHE_LIMIT", "much")
    with pytest.raises(opc.SpecError, match="OPC_CACHE_LIMIT is 'much', which is no size"):
        cache.limit()


def test_an_entry_that_is_being_built_is_left(spec: Path) -> None:
    opc.load(spec)
    (entry,) = cache.entries()
    with locks.hold(entry.folder / locks.FOLDER):
        code, output = run("prune")
    assert code == 0
    assert "left alone, as it is being built" in output
    assert entry.folder.exists()


def test_loading_leaves_no_file_open(spec: Path) -> None:
    program = f"import opc, numpy; print(opc.load({str(spec)!r})(numpy.ones(1)).y)"
    call = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", program]
    done = subprocess.run(call, capture_output=True, text=True, env={**os.environ})
    assert (done.stdout, done.stderr) == ("[2.]\n", "")


@pytest.mark.rotating
@pytest.mark.parametrize("dynamic", [None, True])
def test_attributes_change_within_torch_compile(tmp_path: Path, dynamic: bool | None) -> None:
    """torch.compile makes a symbol of a number that changes, whether it calls the op's own function or one of several."""
    import torch

    head = "domain: tests\nversion: 1\ndoc: A test.\ntypes: {T: floating}\nattributes: {k: {type: int, check: k > 0}, a: float}\n"
    one, several = tmp_path / "steps.yaml", tmp_path / "totals.yaml"
    shape = "outputs: {y: 'T[M]'}\nshape: {M: (N - 1) // k + 1}\nrequire: [N > 0]\n"
    one.write_text(f"op: steps\n{head}inputs: {{x: 'T[N]'}}\n{shape}kernel: y[i] = x[i*k] * a\n")
    stars = "ranks: {S: [1, 2]}\ninputs: {x: 'T[N, *S]'}\n"
    several.write_text(f"op: totals\n{head}{stars}{shape.replace('[M]', '[M, *S]')}kernel: y[i, *S] = x[i*k, *S] * a\n")
    x = torch.arange(12.0).reshape(6, 2)
    for path, v in ((one, x[:, 0]), (several, x)):
        op = opc.load(path)
        torch._dynamo.reset()  # it counts how often it compiled the code below
        compiled = torch.compile(lambda v, k, a, op=op: op(v, k=k, a=a), fullgraph=True, backend="aot_eager", dynamic=dynamic)
        for k in (1, 2, 3, 4):
            assert compiled(v, k, 0.5 * k).tolist() == (v[::k] * 0.5 * k).tolist()


@pytest.mark.rotating
def test_torch_compile_builds_what_it_meets_first(spec: Path) -> None:
    import torch

    op = opc.load(spec)
    compiled = torch.compile(lambda x: op(x).z, fullgraph=True, backend="eager")
    assert compiled(torch.ones(2, dtype=torch.float64)).tolist() == [2.0, 2.0]
