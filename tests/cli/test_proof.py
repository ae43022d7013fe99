"""The command line: `opc test`, its report, its parts, and backends that are absent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome, spec

Opc = Callable[..., Outcome]


def test_the_proof_is_reported(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import runner
    from opc.testing.results import Column, Report, Result, Status

    asked: list[object] = []

    def run_tests(specs: object, backends: object, out: object, jobs: object, **_: object) -> Report:
        asked.append((specs, backends, out, jobs))
        failed = Result("leaky_relu", "numpy", "forward", "case 7", Status.FAILED, 3.0, 0.1, "y differs")
        passed = Result("leaky_relu", "numpy", "forward", "case 6", Status.PASSED, 0.5, 0.1)
        columns = {"numpy": Column("NumPy", "2.0"), "rknn": Column("RKNN", reason="not installed")}
        return Report(columns, [passed] if backends else [passed, failed], {}, 1.0)

    monkeypatch.setattr(runner, "run_tests", run_tests)
    one = spec(tmp_path)
    done = opc("test", one, "-b", "numpy", "-j", "1", "--report", "r.html", "--junit", "r.xml")
    assert done.code == 0
    assert asked == [([one], ["numpy"], Path("generated"), 1)]
    assert "leaky_relu" in done.out
    assert done.err == "wrote r.html\nwrote r.xml\n"
    assert "<testsuite" in (tmp_path / "r.xml").read_text()
    assert "leaky_relu" in (tmp_path / "r.html").read_text()
    done = opc("test", one, "-b", "numpy", "--strict", "--markdown", "r.md")
    assert done.code == 1
    assert "error: RKNN could not be run" in done.err
    assert "| NumPy | 1 op, NumPy 2.0 |" in (tmp_path / "r.md").read_text()
    done = opc("test", one)
    assert done.code == 1
    assert "y differs" in done.out
    data = json.loads(opc("test", one, "--json").out)
    assert (data["ok"], data["totals"]) == (False, {"forward": 2})
    asked.clear()
    done = opc("test", one, "--report", "gone/r.html")
    assert (done.code, asked) == (2, [])
    assert "there is no folder gone to write r.html to" in done.err


def test_a_named_backend_that_is_absent_is_a_failure(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import runner
    from opc.testing.results import Column, Report, Result, Status

    def run_tests(specs: list[Path], backends: object, *_: object, **__: object) -> Report:
        columns = {"numpy": Column("NumPy", "2.0"), "torch": Column("PyTorch", reason="install with: pip install torch")}
        return Report(columns, [Result("leaky_relu", "numpy", "forward", "case 6", Status.PASSED)], {}, 1.0)

    monkeypatch.setattr(runner, "run_tests", run_tests)
    one = spec(tmp_path)
    assert opc("test", one).code == 0
    assert opc("test", one, "--backend", "numpy").code == 0
    done = opc("test", one, "--backend", "numpy", "--backend", "torch")
    assert done.code == 1
    assert "error: PyTorch could not be run: install with: pip install torch" in done.err
    assert "all that ran is right; nothing ran on PyTorch" in done.out


def test_parts_of_a_proof(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import runner
    from opc.testing.results import Column, Report, Result, Status

    def run_tests(specs: list[Path], *_: object, **__: object) -> Report:
        return Report(
            {"numpy": Column("NumPy")}, [Result(s.stem, "numpy", "forward", "a", Status.PASSED) for s in specs], {}, 1.0
        )

    monkeypatch.setattr(runner, "run_tests", run_tests)
    specs = [spec(tmp_path, name) for name in ("add", "leaky_relu", "relu")]
    assert opc("test", *specs, "--part", "1/2", "--results", "one.json").code == 0
    assert opc("test", *specs, "--part", "2/2", "--results", "two.json").code == 0
    done = opc("report", "one.json", "two.json", "--markdown", "page.md", "--made-by", "opc test specs")
    assert done.code == 0
    page = (tmp_path / "page.md").read_text()
    assert "Made by `opc test specs`: 3 outcomes of 3 ops." in page
    assert opc("report", "one.json", "one.json").code == 2
    for wrong in ("0/2", "3/2", "2", "a/b"):
        assert opc("test", *specs, "--part", wrong).code == 2


JUNK = (b"junk", b"\xff\xfe", b"", b"null", b"[]", b"{}", b"5", b'{"format": 1}', b'{"rows": [1, {}]}')


@pytest.mark.parametrize("text", JUNK)
def test_files_that_hold_no_results(opc: Opc, tmp_path: Path, text: bytes) -> None:
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "specs").mkdir()
    spec(tmp_path / "specs", "relu")
    for command in (("report", "a.json"), ("site", "--pages", "--proof", "a.json"), ("site", "--pages", "--bench", "a.json")):
        done = opc(*command)
        assert done.code == 2
        assert done.err.startswith("error: a.json: ")
        assert "Traceback" not in done.err


def test_the_covering_set_is_printed(opc: Opc, tmp_path: Path) -> None:
    done = opc("cover", spec(tmp_path, "relu"))
    assert done.code == 0
    assert done.out.startswith("1 of 1 ops have all ")
    assert "\nrelu: " in done.out
    assert done.out.endswith("Changed: none.\nWritten otherwise by opc: none.\n")


def test_what_has_not_changed_takes_turns(opc: Opc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from opc.testing import codelets, cover, runner, sanitize, sanitize_device, touched
    from opc.testing.cover import Chosen, Covering
    from opc.testing.results import Column, Report, Result, Status
    from opc.testing.tiers import Tiers

    right = Report({"numpy": Column("NumPy")}, [Result("relu", "numpy", "forward", "a", Status.PASSED)], {}, 1.0)
    ran: list[Tiers] = []
    sanitized: list[Path] = []

    def run_tests(*_: object, tiers: Tiers, **__: object) -> Report:
        ran.append(tiers)
        return right

    def run_sanitized(some: list[Path], *_: object, **__: object) -> Report:
        sanitized.extend(some)
        return right

    monkeypatch.setattr(runner, "run_tests", run_tests)
    monkeypatch.setattr(sanitize, "run_sanitized", run_sanitized)
    monkeypatch.setattr(codelets, "sanitize_codelets", lambda *_: None)
    monkeypatch.setattr(sanitize_device, "sanitize_device", lambda *_: None)
    specs = [spec(tmp_path, name) for name in ("add", "leaky_relu", "prelu", "relu", "selu", "sigmoid", "silu")]
    chosen = [Chosen(s.stem, s, (), *[True] * 5) for s in specs[:3]]
    others = {s.stem: s for s in specs[3:]}
    monkeypatch.setattr(cover, "covering_set", lambda *_: Covering((*chosen,), {}, {}, {}, others))
    monkeypatch.setattr(touched, "changed", lambda _: [specs[1], specs[3]])
    monkeypatch.setattr(touched, "joining", lambda *_: [])
    for turn in range(4):
        assert opc("test", *specs, "--cover", "--turn", str(turn)).code == 0
        assert opc("test", *specs, "--cover", "--turn", str(turn), "--sanitize", "address").code == 0
    waited = [name for tiers in ran for name in tiers.waiting.values()]
    assert sorted(waited) == sorted(["selu", "sigmoid", "silu"] * 3)
    assert all({*tiers.chosen} == {*specs[:4]} for tiers in ran)
    assert [[*tiers.alternating] for tiers in ran] == [[specs[2]], [specs[0]]] * 2
    # What changed is seen by the sanitizers in each turn, and all others of the set in one.
    assert [sanitized.count(s) for s in specs] == [1, 4, 1, 4, 0, 0, 0]
    assert opc("test", *specs, "--turn", "1").code == 2
